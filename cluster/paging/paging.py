"""Schedules paging: between turns, for a short time in each."""

from __future__ import annotations

from collections.abc import Callable

from sockpqd.cluster import limits
from sockpqd.cluster.paging.page_files import PageFiles
from sockpqd.core import Machine, Pager, Pages


class Paging:
    """Pages out jobs and records beyond the memory budget, and keeps the files tidy."""

    def __init__(self, machine: Machine, files: PageFiles, monotonic: Callable[[], float]) -> None:
        """`monotonic()` returns monotonic time in seconds."""
        self.files = files
        self.behind = False                 # there was not enough time in the last turn
        self._machine = machine
        self._monotonic = monotonic

    def between_turns(self) -> None:
        """Page out jobs and records for at most PAGING_S. Raises PageLost and OSError, which must end this node."""
        files = self.files
        if files.lost is not None:
            raise files.lost
        self.behind = self._step(files)
        if self.behind:
            end = self._monotonic() + limits.PAGING_S
            while self.behind and self._monotonic() < end:
                self.behind = self._step(files)

    def _step(self, files: PageFiles) -> bool:
        return self._machine.page_out() or files.tidy()


def paging_machine(files: PageFiles, hot_bytes_max: int, known_level: int | None = None) -> Machine:
    """A machine that moves records, and jobs beyond `hot_bytes_max` (0: no jobs), to these files."""
    return Machine(known_level, lambda: Pager(Pages(files), hot_bytes_max, resident=not hot_bytes_max))
