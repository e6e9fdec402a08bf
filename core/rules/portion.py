"""A portion of jobs: limited in number and in the bytes of their data, equally on all nodes.

Nodes may have to read jobs that are outside memory; the bytes of jobs that no node has to read do not count. A portion
depends on the state alone, never on where jobs are stored.
"""

from __future__ import annotations

from sockpqd.core import limits


class Portion:
    """The rest of a portion. The first job always fits, however large it is."""

    __slots__ = ("_begun", "_data_bytes", "jobs")

    def __init__(self, jobs_max: int) -> None:
        self.jobs = jobs_max                        # as many more at most
        self._data_bytes = limits.PORTION_BYTES_MAX
        self._begun = False

    def take(self, data_bytes: int, jobs: int = 1) -> bool:
        """Add `jobs` jobs with `data_bytes` of data in all; returns False if they do not fit."""
        if jobs > self.jobs or (data_bytes > self._data_bytes and (self._begun or jobs > 1)):
            return False
        self.jobs -= jobs
        self._data_bytes -= data_bytes
        self._begun = True
        return True
