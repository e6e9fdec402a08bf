"""The minimum size of a node's disk for its settings, before it has any jobs."""

from __future__ import annotations

from typing import NamedTuple

from sockpqd.cluster import limits

PAGE_FILES_BYTES = 32 << 20     # one that is written, and one that is given up meanwhile


class DiskNeeds(NamedTuple):
    """The disk space that a node needs, by purpose, in bytes."""

    journal: int        # back to the older snapshot, up to that and beyond the newest one, and the next segment
    snapshots: int      # two, of the jobs in memory; without `hot_bytes` these are all jobs, and not counted
    pages: int
    ballast: int        # what the next snapshot and the journal may take
    free: int           # what is to stay free

    @property
    def least(self) -> int:
        """The least size, below which the node would never accept a job: three segments and the space to keep free."""
        return 3 * limits.SEGMENT_BYTES + self.free


def disk_needs(hot_bytes: int, disk_free_bytes_min: int) -> DiskNeeds:
    """Return the bytes of disk that a node with these settings needs for unimpeded operation."""
    return DiskNeeds(
        journal=2 * limits.COMPACTION_BYTES_MIN + 2 * limits.SEGMENT_BYTES,
        snapshots=2 * hot_bytes,
        pages=PAGE_FILES_BYTES if hot_bytes else 0,
        ballast=hot_bytes + limits.COMPACTION_BYTES_MIN + 3 * limits.SEGMENT_BYTES,
        free=disk_free_bytes_min,
    )
