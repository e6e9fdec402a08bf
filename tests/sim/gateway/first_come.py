"""Checks first come, first served: no client that waits for a turn at a process is overtaken (spec/pulse 3.1).

What counts is the order in which the process reads the commands, and the moment when it writes the grants. Grants that
are given together are written together, in some order. Commands with a number are left out: each is an entry of its own
before it stands in line, so that the order in which they are read is not that in which they come to stand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.sim.gateway.answers import Answer
from tests.sim.world.events import Events
from tests.sim.world.trace import Violation

if TYPE_CHECKING:
    from tests.sim.gateway.connections import Line

WAIT = b"PULSE WAIT "


class FirstCome:
    """The clients that wait at one process."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self._waiting: dict[str, dict[Line, float]] = {}        # by pulse, in the order of coming: since when
        self._overtaken: dict[Line, tuple[float, str]] = {}     # when, and at which pulse

    def reads(self, line: Line, command: bytes) -> None:
        """Note that the serving process reads a command for an existing pulse, or another command."""
        self._judge()
        if command.startswith(WAIT):
            self._waiting.setdefault(command.split()[2].decode(), {})[line] = self._events.now

    def wrote(self, line: Line, answer: Answer) -> None:
        """Note that the process writes an answer."""
        self._judge()
        waiting = self._waiting.get(answer.asked.pulse or "", {})
        if line not in waiting:
            return
        if answer.ticket is not None:
            for other in waiting:
                if other is line:
                    break
                self._overtaken.setdefault(other, (self._events.now, answer.asked.pulse or ""))
        self.gone(line)

    def gone(self, line: Line) -> None:
        """Note that the client no longer waits."""
        self._overtaken.pop(line, None)
        for waiting in self._waiting.values():
            waiting.pop(line, None)

    def _judge(self) -> None:
        """Check that a client that was overtaken was answered at the same moment."""
        now = self._events.now
        for line, (at, pulse) in self._overtaken.items():
            if at < now:
                since = self._waiting[pulse][line]
                raise Violation(f"a client that waits for {pulse} since {since:.4f} was overtaken at {at:.4f}")
