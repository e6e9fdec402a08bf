"""A check that the file system of the data directory has room enough for the settings of a node."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from sockpqd.cluster import FileCheck, disk_needs
from sockpqd.gateway.limits import Limits

OK, WARN, FAIL = "OK", "WARN", "FAIL"
MIB = 1 << 20
BLOCK = 512                     # the unit of st_blocks, on all file systems


def disk_check(data_dir: Path, limits: Limits, feed_keep_bytes: int = 0) -> FileCheck:
    """Compare what a node needs with the size of the file system. Raises OSError if that cannot be determined.

    `feed_keep_bytes`: of the journal that is kept for copies in other regions.
    """
    place = next(path for path in (data_dir, *data_dir.absolute().parents) if path.exists())
    status = os.statvfs(place)
    size = status.f_blocks * status.f_frsize
    free = status.f_bavail * status.f_frsize + _taken(data_dir)
    needs = disk_needs(limits.hot_bytes, limits.disk_free_bytes_min)
    parts = (
        ("journal", needs.journal), ("snapshots", needs.snapshots), ("page files", needs.pages),
        ("ballast", needs.ballast), ("limits.disk_free_bytes_min", needs.free), ("feed.keep_bytes", feed_keep_bytes),
    )
    listed = ", ".join(f"{name} {_mib(part)}" for name, part in parts if part)
    whole = sum(needs) + feed_keep_bytes
    found = (f"the file system of {place} has {_mib(size)} MiB; with these settings a node needs {_mib(whole)} MiB"
             f" ({listed}), and room for its jobs")
    if size < needs.least:
        return FileCheck(FAIL, "disk size", found, f"with less than {_mib(needs.least)} MiB it never accepts a job: "
                         "use a larger one, or lower limits.disk_free_bytes_min")
    if free < needs.least:
        return FileCheck(WARN, "disk size", f"{found}; but only {_mib(free)} MiB of it are free or taken by this node",
                         f"with less than {_mib(needs.least)} MiB it accepts no job: make room on it")
    if size < whole:
        return FileCheck(WARN, "disk size", found, "with less it refuses jobs at times, and often writes snapshots: "
                         "use a larger one, or lower limits.disk_free_bytes_min, limits.hot_bytes and feed.keep_bytes")
    return FileCheck(OK, "disk size", found)


def _taken(data_dir: Path) -> int:
    """Return how many bytes of the disk the files of a node take; those that vanish meanwhile do not count."""
    taken = 0
    for folder, _, names in os.walk(data_dir):
        for name in names:
            with contextlib.suppress(OSError):
                taken += os.lstat(os.path.join(folder, name)).st_blocks * BLOCK
    return taken


def _mib(size: int) -> int:
    return -(-size // MIB)
