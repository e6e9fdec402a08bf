"""Limits of a node process: descriptors and address space by its own limits, memory by a control group.

A limit is set before the program begins: `prlimit`, and a shell that joins the group, become the program.
"""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

TOP = Path("/sys/fs/cgroup")
NAME = "sockpqd-hostile"
JOIN = 'echo $$ > "$0" && exec "$@"'
EMPTY_S = 5.0

Group = Path


def raise_own() -> int:
    """Let this process have as many descriptors as it may; returns that number."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def can_limit() -> bool:
    """Return whether there is a prlimit."""
    return shutil.which("prlimit") is not None


def wrapper(descriptors: int | None, address_mb: int | None, group: Group | None) -> list[str]:
    """Return the start of a command that runs the rest of it within these limits."""
    words = [] if group is None else ["/bin/sh", "-c", JOIN, str(group / "cgroup.procs")]
    own = []
    if descriptors is not None:
        own.append(f"--nofile={descriptors}:{descriptors}")
    if address_mb is not None:
        own.append(f"--as={address_mb << 20}")
    return [*words, *(["prlimit", *own, "--"] if own else [])]


@contextlib.contextmanager
def groups(names: Sequence[str], memory_mb: int) -> Iterator[dict[str, Group]]:
    """A control group for each of these nodes; empty where there can be none. Removed at the end, when the processes
    have ended."""
    made: dict[str, Group] = {}
    _sweep()
    try:
        for name in names:
            group = _make(f"{NAME}-{os.getpid()}-{name}", memory_mb << 20)
            if group is None:
                break
            made[name] = group
        yield made if len(made) == len(names) else {}
    finally:
        for group in made.values():
            _remove(group)


def _make(name: str, size: int) -> Group | None:
    first, second = TOP / "memory", TOP / "cgroup.controllers"
    try:
        if (first / "memory.limit_in_bytes").exists():      # version 1
            group, file = first / name, "memory.limit_in_bytes"
        elif "memory" in second.read_text().split():        # version 2
            (TOP / "cgroup.subtree_control").write_text("+memory")
            group, file = TOP / name, "memory.max"
        else:
            return None
        group.mkdir()
        (group / file).write_text(str(size))
    except OSError:
        return None
    return group


def _sweep() -> None:
    """Remove what killed processes left behind."""
    for folder in (TOP / "memory", TOP):
        for group in folder.glob(f"{NAME}-*-*"):
            if not Path(f"/proc/{group.name.removeprefix(NAME).split('-')[1]}").exists():
                with contextlib.suppress(OSError):
                    group.rmdir()


def _remove(group: Group) -> None:
    until = time.monotonic() + EMPTY_S
    while group.exists() and time.monotonic() < until:
        try:
            group.rmdir()
        except OSError:                 # the kernel has not finished with the processes yet
            time.sleep(0.05)
