"""A pipelined batch without IO: which commands to send next, and how each of them stands."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from sockpq.commands import Command
from sockpq.errors import Busy, NotServing
from sockpq.protocol import Answer

WINDOW_COMMANDS_MAX = 1000
WINDOW_BYTES_MAX = 262_144      # below what a server keeps for one connection, so that neither side waits for the other


class Batch:
    """Commands on their way through one connection after another, until each has its answer.

    A position is waiting, sent or answered. When a connection is lost, what was sent on it is unknown.
    """

    def __init__(self, commands: Sequence[Command[Any]]) -> None:
        self.answers: list[Answer | None] = [None] * len(commands)
        self.refusal: Busy | NotServing | None = None       # the server executes nothing for now: send no more
        self._commands = commands
        self._waiting = deque(range(len(commands)))
        self._sent: deque[int] = deque()
        self._sent_bytes = 0
        self._refused: list[int] = []
        self._lost: list[int] = []                          # sent on a connection that ended
        self._doubtful: set[int] = set()                    # lost once, perhaps sent again since then

    @property
    def unknown(self) -> tuple[int, ...]:
        """The positions that have no answer and may have been executed."""
        return tuple(position for position in sorted(self._doubtful) if self.answers[position] is None)

    @property
    def not_executed(self) -> tuple[int, ...]:
        """The positions that have no answer and were surely not executed."""
        return tuple(sorted({*self._refused, *self._waiting} - self._doubtful))

    @property
    def in_flight(self) -> bool:
        """Is any answer still to come on this connection?"""
        return bool(self._sent)

    def next(self) -> list[Command[Any]]:
        """The commands to send now; none while half of the window is in flight, or after a refusal."""
        if self.refusal or len(self._sent) > WINDOW_COMMANDS_MAX // 2 or self._sent_bytes > WINDOW_BYTES_MAX // 2:
            return []
        commands = []
        while self._waiting and len(self._sent) < WINDOW_COMMANDS_MAX:
            command = self._commands[self._waiting[0]]
            size = len(command.line) + len(command.data)
            if self._sent and self._sent_bytes + size > WINDOW_BYTES_MAX:
                break
            self._sent.append(self._waiting.popleft())
            self._sent_bytes += size
            commands.append(command)
        return commands

    def answered(self, answers: Sequence[Answer]) -> bool:
        """Answers of this connection, in their order. Returns whether that is progress: any command was executed."""
        progress = False
        for answer in answers:
            position = self._sent.popleft()
            command = self._commands[position]
            self._sent_bytes -= len(command.line) + len(command.data)
            if isinstance(answer.error, Busy | NotServing):
                self.refusal = answer.error
                self._refused.append(position)
            else:
                self.answers[position] = answer
                progress = True
        return progress

    def not_sent(self, count: int) -> None:
        """The last `count` commands given out by `next` did not leave this process."""
        self._refused += [self._sent.pop() for _ in range(count)]

    def lost(self) -> bool:
        """The connection is gone. Returns whether anything sent on it was still unanswered."""
        lost = bool(self._sent)
        self._lost += self._sent
        self._doubtful.update(self._sent)
        self._sent.clear()
        self._sent_bytes = 0
        return lost

    def again(self) -> None:
        """Put what has no answer back in line, in its old order, the unknown included."""
        self._waiting = deque(sorted([*self._waiting, *self._refused, *self._lost]))
        self._refused, self._lost, self.refusal = [], [], None
