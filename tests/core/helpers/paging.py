"""Machines whose jobs go to pages at every opportunity, and a store of pages in memory."""

from __future__ import annotations

from random import Random

import pytest

from sockpqd.core import Machine, PageLost, Pager, Pages
from sockpqd.core.pages.pager import Stage
from tests.core.helpers.logs import KNOWN_LEVEL


class MemorySpace:
    """Pages in memory: each number is used once, so a page that was freed too soon is missed."""

    def __init__(self, store: MemoryStore) -> None:
        self.by_number: dict[int, bytes] = {}
        self.dropped = False
        self._store = store

    def put(self, data: bytes) -> int | None:
        """Implement PageSpace."""
        assert not self.dropped
        if self._store.refuses():
            return None
        self._store.last += 1
        self.by_number[self._store.last] = data
        return self._store.last

    def get(self, number: int) -> bytes:
        """Implement PageSpace."""
        if number not in self.by_number:
            raise PageLost(f"there is no page {number}")
        self._store.reads += 1
        return self.by_number[number]

    def free(self, number: int) -> None:
        """Implement PageSpace."""
        del self.by_number[number]

    def reference(self, number: int) -> bytes:
        """Implement PageSpace."""
        assert number in self.by_number
        return number.to_bytes(8, "big")

    def adopt(self, reference: bytes) -> int:
        """Implement PageSpace."""
        number = int.from_bytes(reference, "big")
        if number not in self._store.left:
            raise PageLost(f"there is no page {number}")
        self.by_number[number] = self._store.left[number]
        return number

    def expect(self, number: int) -> None:
        """Implement PageSpace."""
        assert number in self.by_number
        self._store.expected += 1

    def drop(self) -> None:
        """Implement PageSpace."""
        assert not self.dropped
        self.dropped = True
        self.by_number.clear()


class MemoryStore:
    """Makes spaces. `full`: the share of pages for which it has no room."""

    def __init__(self, random: Random | None = None, full: float = 0) -> None:
        self.spaces: list[MemorySpace] = []
        self.last = 0
        self.expected = 0
        self.reads = 0
        self.full = full
        self.left: dict[int, bytes] = {}        # by earlier processes
        self._random = random or Random(0)

    def space(self) -> MemorySpace:
        """Implement PageStore."""
        self.spaces.append(MemorySpace(self))
        return self.spaces[-1]

    def restart(self) -> None:
        """End the process, which leaves its pages."""
        for space in self.spaces:
            self.left.update(space.by_number)
        self.spaces.clear()

    def refuses(self) -> bool:
        """Return whether there is no room now."""
        return self._random.random() < self.full

    @property
    def pages(self) -> int:
        """Return the number of pages in all spaces."""
        return sum(len(space.by_number) for space in self.spaces)


def small_collections(patch: pytest.MonkeyPatch) -> None:
    """Use runs of two jobs, blocks of five, and bodies of three bytes as large ones, so that short logs have pages."""
    patch.setattr("sockpqd.core.limits.BODY_BYTES_MIN", 3)
    patch.setattr("sockpqd.core.store.ready.UNSPLIT_JOBS_MAX", 2)
    patch.setattr("sockpqd.core.store.job_list.BLOCK_JOBS_MAX", 5)
    patch.setattr("sockpqd.core.pages.paged_run.BLOCK_JOBS_MAX", 5)


def paged_machine(store: MemoryStore, stages: tuple[Stage, ...] = (Stage(1, 3, 1),), hot_bytes_max: int = 0) -> Machine:
    """Return a machine with pages of three jobs that keeps as little as possible in memory."""
    return Machine(KNOWN_LEVEL, lambda: Pager(Pages(store), hot_bytes_max, stages))


def page_out(machine: Machine, random: Random) -> None:
    """Page out something, or nothing, or all that can be."""
    steps = random.choice([0, 1, 2, 5, 1000])
    while steps and machine.page_out():
        steps -= 1
