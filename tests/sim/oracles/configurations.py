"""Determines which voters counted when, from the history that all nodes share (checks.py), not from the product."""

from __future__ import annotations

from bisect import bisect_right

from tests.sim.world.trace import Violation


class Configurations:
    """The sets of voters, each with the index of the entry that introduced it."""

    def __init__(self, founders: tuple[str, ...]) -> None:
        self._voters = [founders]
        self._since = [0]
        self.left: dict[str, int] = {}          # who is no member any more, and the entry that took it away

    @property
    def voters(self) -> tuple[str, ...]:
        """Return the voters of the newest configuration."""
        return self._voters[-1]

    def applied(self, index: int, voters: tuple[str, ...]) -> None:
        """Note the voters after this entry."""
        if voters == self.voters:
            return
        for name in set(self.voters) - set(voters):
            self.left[name] = index
        for name in voters:
            self.left.pop(name, None)
        self._voters.append(voters)
        self._since.append(index)

    def at(self, index: int) -> tuple[str, ...]:
        """Return the voters for a node that has applied all entries up to this one."""
        return self._voters[bisect_right(self._since, index) - 1]

    def counted_by(self, leader: str, elected: int, applied: int) -> tuple[str, ...]:
        """Return who makes the majorities of a leader; `elected`, `applied`: applied at its election, and now.

        One that is no voter (any more) counts as before, until another leads. It must not take part in a further
        change, or two majorities that have no node in common could decide.
        """
        last = number = bisect_right(self._since, applied) - 1
        first = bisect_right(self._since, elected) - 1
        while leader not in self._voters[number] and number > first:
            number -= 1
        if last - number > 1:
            raise Violation(f"{leader} leads on through two changes: {self._voters[number:last + 1]}")
        return self._voters[number]

    def between(self, first: int, last: int) -> list[tuple[str, ...]]:
        """Return all sets that were in force after the first and before the last of these entries."""
        return self._voters[bisect_right(self._since, first) - 1:bisect_right(self._since, last - 1)]
