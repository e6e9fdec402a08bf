"""A random draw among queues by WEIGHT (spec/state-machine 4.2), in a time that does not grow with their number.

Every queue that can hand out a job has a weight of 1, which needs no list. A greater WEIGHT has an excess above 1,
which is kept here: in groups of excesses between two powers of two. A draw chooses a group by its sum, then any queue
of it, which is taken with the probability excess / upper bound: at least one half, so two tries are enough on average.
"""

from __future__ import annotations

from sortedcontainers import SortedDict, SortedList

from sockpqd.core.store.policies.choice import draw, splitmix64

_GOLDEN = 0x9E3779B97F4A7C15
TRIES_MAX = 256         # then the last one drawn is taken: that happens to one draw in 2^256


class Weights:
    """The queues with a WEIGHT above 1 that can hand out a job."""

    __slots__ = ("_excess", "_groups", "_sums", "total")

    def __init__(self) -> None:
        self._excess: dict[str, int] = {}                   # WEIGHT - 1 of each queue
        self._groups: SortedDict = SortedDict()             # bits of the excess -> sorted names
        self._sums: dict[int, int] = {}                     # bits of the excess -> sum of the excesses
        self.total = 0

    def add(self, name: str, weight: int) -> None:
        """Add a queue that can hand out a job now. One with a weight of 1 need not be added."""
        excess = weight - 1
        bits = excess.bit_length()
        self._excess[name] = excess
        if bits not in self._groups:
            self._groups[bits] = SortedList()
            self._sums[bits] = 0
        self._groups[bits].add(name)
        self._sums[bits] += excess
        self.total += excess

    def remove(self, name: str) -> None:
        """Remove a queue that can no longer hand out a job; does nothing if it is not here."""
        excess = self._excess.pop(name, None)
        if excess is None:
            return
        bits = excess.bit_length()
        self._groups[bits].remove(name)
        self._sums[bits] -= excess
        self.total -= excess
        if not self._groups[bits]:
            del self._groups[bits], self._sums[bits]

    def choose(self, names: SortedList, seed: int) -> str:
        """Choose one of `names`, all that can hand out a job, each with the probability of its weight."""
        at = draw(len(names) + self.total, seed)
        if at < len(names):
            name: str = names[at]
            return name
        at -= len(names)
        for bits, group in self._groups.items():
            if at < self._sums[bits]:
                return self._of_group(group, bits, seed)
            at -= self._sums[bits]
        raise AssertionError("the sums of weights are wrong")

    def _of_group(self, group: SortedList, bits: int, seed: int) -> str:
        for _ in range(TRIES_MAX):
            seed = splitmix64(seed ^ _GOLDEN)
            name: str = group[draw(len(group), seed)]
            seed = splitmix64(seed ^ _GOLDEN)
            if draw(1 << bits, seed) < self._excess[name]:
                break
        return name
