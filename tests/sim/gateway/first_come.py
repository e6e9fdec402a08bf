"""Checks first come, first served: no client that waits for a turn at a process is overtaken (spec/pulse 3.1).

What counts is the order in which the process reads the commands, and the order of the tickets. A grant is written
later than one behind it when the lease has to be waited for (spec/pulse 2.1), or is lost then, and its client has 500
Offline Mode for an answer. Commands with a number are left out: each is an entry of its own before it stands in line,
so that the order in which they are read is not that in which they come to stand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.sim.gateway.answers import Answer
from tests.sim.world.events import Events
from tests.sim.world.trace import Violation

if TYPE_CHECKING:
    from tests.sim.gateway.connections import Line

WAIT, OFFLINE = b"PULSE WAIT ", b"500 "


class FirstCome:
    """The clients that wait at one process."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self._waiting: dict[str, dict[Line, float]] = {}        # by pulse, in the order of coming: since when
        self._overtaken: dict[Line, tuple[int, float]] = {}     # by which ticket, the least, and when it was written

    def reads(self, line: Line, command: bytes) -> None:
        """Note that the serving process reads a command for an existing pulse, or another command."""
        if command.startswith(WAIT):
            self._waiting.setdefault(command.split()[2].decode(), {})[line] = self._events.now

    def wrote(self, line: Line, answer: Answer) -> None:
        """Note that the process writes an answer."""
        pulse = answer.asked.pulse or ""
        waiting = self._waiting.get(pulse, {})
        if line not in waiting:
            return
        self._judge(line, pulse, answer)
        if answer.ticket is not None:
            by = answer.ticket, self._events.now
            for other in waiting:
                if other is line:
                    break
                self._overtaken[other] = min(by, self._overtaken.get(other, by))
        self.gone(line)

    def gone(self, line: Line) -> None:
        """Note that the client no longer waits."""
        self._overtaken.pop(line, None)
        for waiting in self._waiting.values():
            waiting.pop(line, None)

    def _judge(self, line: Line, pulse: str, answer: Answer) -> None:
        """Check that a client was not overtaken, now that it has its answer."""
        if line not in self._overtaken or answer.line.startswith(OFFLINE):
            return
        ticket, at = self._overtaken[line]
        if answer.ticket is None or answer.ticket > ticket:
            since = self._waiting[pulse][line]
            raise Violation(f"a client that waits for {pulse} since {since:.4f} was overtaken at {at:.4f}")
