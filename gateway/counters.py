"""What clients asked for and what they were refused, counted as plain numbers on the way."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from gateway.protocol.command import Row


class Tally:
    """Numbers that only grow, from 0 at the start of the process."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = tuple(rows)
        self.commands: defaultdict[Row, int] = defaultdict(int)         # by row
        self.sessions = 0                   # that were asked for
        self.errors: defaultdict[bytes, int] = defaultdict(int)         # by the three digits of the answer
        self.connections = 0                # clients that came and were let in
        self.refused_connections = 0        # and those that were not: there were too many

    def refused(self, answer: bytes) -> None:
        """A command got this answer, which is not a success."""
        self.errors[answer[:3]] += 1

    def by_verb(self) -> dict[str, int]:
        """Commands by the protocol's words, those that never came included."""
        counts: dict[str, int] = {}
        for row in self._rows:
            if row.counter:
                counts[row.counter] = counts.get(row.counter, 0) + self.commands[row]
        return counts
