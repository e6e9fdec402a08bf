"""A portion of jobs: bounded in their number and in the bytes of their data, the same on all nodes.

A node whose jobs are outside memory may have to read them; where none has to, bytes do not count. What a portion has is
determined by the state alone, never by where jobs are.
"""

from __future__ import annotations

from sockpqd.core import limits


class Portion:
    """How much is left of it. The first job is always part of it, however large."""

    __slots__ = ("_begun", "_data_bytes", "jobs")

    def __init__(self, jobs_max: int) -> None:
        self.jobs = jobs_max                        # as many more at most
        self._data_bytes = limits.PORTION_BYTES_MAX
        self._begun = False

    def take(self, data_bytes: int, jobs: int = 1) -> bool:
        """Let so many jobs be part of it, with so much data in all; False: they are too much for the rest of it."""
        if jobs > self.jobs or (data_bytes > self._data_bytes and (self._begun or jobs > 1)):
            return False
        self.jobs -= jobs
        self._data_bytes -= data_bytes
        self._begun = True
        return True
