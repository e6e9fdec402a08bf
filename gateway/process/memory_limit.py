"""How much memory this process may have."""

from __future__ import annotations

import os
from pathlib import Path

# Of what there is. A snapshot is written by a forked child, which touches the reference count of every object and so
# copies nearly all of the heap: both processes together have up to 1.95 times as much (measured with a million small
# jobs and more), and what clients send and take has its place beside that.
SHARE_PERCENT = 45

# Limits of the control group: version 2, where the process finds its own group, and version 1. The groups above limit
# it as well.
_V2 = "memory.max"
_V1 = "memory.limit_in_bytes"


def memory_mark_bytes(configured: int, root: Path = Path("/")) -> int:
    """The mark above which PUT is refused: as configured, or, when that is 0, a share of what there is."""
    return configured or _available_bytes(root) * SHARE_PERCENT // 100


def _available_bytes(root: Path) -> int:
    physical = os.sysconf("SC_PAGESIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([physical, *_group_limits(root)])


def _group_limits(root: Path) -> list[int]:
    """What the control groups of this process are limited to; none where there is no limit or nobody says so."""
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
        # In a container the path is that of the host, and may not be there: then the top is the container's own.
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
