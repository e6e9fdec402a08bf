"""The memory mark: how much memory this process can use before PUT is refused."""

from __future__ import annotations

import os
from pathlib import Path

# Share of the available memory. A snapshot is written by a forked child, which touches the reference count of every
# object and so copies nearly all of the heap: both processes together use up to 1.95 times as much (measured with a
# million small jobs and more), and the buffers of clients come on top of that. Jobs on the disk do not change that: the
# child copies whatever is in memory.
SHARE_PERCENT = 45
# Of the mark. Jobs may come faster than they leave memory, by a quarter of limits.hot_bytes; they take somewhat more
# than is counted there; and running jobs, pages and clients need memory as well.
HOT_SHARE_PERCENT = 60

# The limit files of control groups version 2 and version 1. Parent groups limit the process as well.
_V2 = "memory.max"
_V1 = "memory.limit_in_bytes"


def memory_mark_bytes(configured: int, root: Path = Path("/")) -> int:
    """Return the memory use above which PUT is refused: as configured, or if that is 0 a share of what is available."""
    return configured or _available_bytes(root) * SHARE_PERCENT // 100


def hot_complaint(hot_bytes: int, mark_bytes: int) -> str:
    """Return a warning about this limits.hot_bytes in relation to the memory mark, or ""."""
    if hot_bytes * 100 <= mark_bytes * HOT_SHARE_PERCENT:
        return ""
    return (f"limits.hot_bytes ({hot_bytes}) is more than {HOT_SHARE_PERCENT}% of the memory mark ({mark_bytes}): PUT "
            "may be refused before jobs have left memory. Make it smaller.")


def _available_bytes(root: Path) -> int:
    physical = os.sysconf("SC_PAGESIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([physical, *_group_limits(root)])


def _group_limits(root: Path) -> list[int]:
    """Return the memory limits of this process's control groups; empty if there are none or they cannot be read."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    limits = []
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        if controllers and "memory" not in controllers.split(","):
            continue
        top = root / "sys/fs/cgroup" / ("memory" if controllers else "")
        file = _V1 if controllers else _V2
        folder = top / group.lstrip("/")
        # In a container the path is the host's and may not exist; then the top is the container's own group.
        for place in {folder, *folder.parents}:
            if place == top or top in place.parents:
                limits += _limit(place / file)
    return limits


def _limit(file: Path) -> list[int]:
    try:
        text = file.read_text().strip()
    except OSError:
        return []
    return [int(text)] if text.isdigit() and int(text) else []      # "max": none
