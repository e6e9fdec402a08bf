"""Counters of commands, errors, sessions and connections, kept as plain numbers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from sockpqd.gateway.protocol.command import Row


class Tally:
    """Monotonic counters, starting at 0 with the process."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = tuple(rows)
        self.commands: defaultdict[Row, int] = defaultdict(int)         # by row
        self.sessions = 0                   # requested
        self.errors: defaultdict[bytes, int] = defaultdict(int)         # by the answer's three-digit code
        self.connections = 0                # accepted
        self.refused_connections = 0        # turned away by the connection limits

    def refused(self, answer: bytes) -> None:
        """Count an error answer by its three-digit code."""
        self.errors[answer[:3]] += 1

    def by_verb(self) -> dict[str, int]:
        """Return the number of commands per verb of the protocol, including verbs never used."""
        counts: dict[str, int] = {}
        for row in self._rows:
            if row.counter:
                counts[row.counter] = counts.get(row.counter, 0) + self.commands[row]
        return counts
