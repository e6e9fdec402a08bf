"""The last thousand slow commands of this node, by the time from their start to their answer.

Commands that wait on purpose (GETB, GETBE, PUT .. WAIT, PULSE WAIT) count until they begin to wait. The time that a
line waits unread behind others of its connection does not count: that is up to the client.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator

from msgspec import Struct

from sockpqd.core import Handed, HandedMany
from sockpqd.gateway.auth import permissions as may
from sockpqd.gateway.protocol import responses
from sockpqd.gateway.protocol.command import Command
from sockpqd.gateway.waiting.slots import NoReply, Outcome

SLOW_S = 0.1
KEPT_MAX = 1000
ABOUT_MAX = 100             # characters
NAMES = ("queue", "queues", "topic", "pulse", "channel", "ids", "id")     # what operations call what they are about


class SlowCommand(Struct, gc=False, frozen=True):
    """A slow command. `answered_at`: Unix time; `about`: its queue or other subject, never data or secrets."""

    answered_at: float
    took_s: float
    user: str | None
    address: str
    verb: str
    about: str
    answer: str             # "200 OK", the refusal, or why there was none


class SlowCommands:
    """The most recent slow commands."""

    def __init__(self) -> None:
        self._kept: deque[SlowCommand] = deque(maxlen=KEPT_MAX)
        self.count = 0              # since the process began

    def note(self, user: str | None, address: str, began: float, command: Command, outcome: Outcome) -> None:
        """Record a command with its answer. `began`: monotonic seconds."""
        self.count += 1
        self._kept.append(SlowCommand(
            time.time(), time.monotonic() - began, user, address, command.row.word.decode(), _about(command),
            _answer(outcome),
        ))

    def newest(self) -> Iterator[SlowCommand]:
        """Yield the recorded commands, the newest first."""
        return reversed(self._kept)


def _about(command: Command) -> str:
    operation = command.operation
    if operation is None:
        named = command.row.right is may.queue and command.arguments
        return str(command.arguments[0])[:ABOUT_MAX] if named else ""
    for inner in ("job", "put", "get"):
        operation = getattr(operation, inner, operation)
    for name in NAMES:
        value = getattr(operation, name, None)
        if value is not None:
            several = value[:ABOUT_MAX] if isinstance(value, tuple) else (value,)
            return " ".join(map(str, several))[:ABOUT_MAX]
    return ""


def _answer(outcome: Outcome) -> str:
    """Return the refusal. The rest of a `200 OK` line is left out: it may be a job, or the secret of a session."""
    if isinstance(outcome, NoReply):
        return outcome.name
    if isinstance(outcome, responses.AtWriting | Handed | HandedMany):
        return "200 OK"
    answer = outcome if isinstance(outcome, bytes) else responses.answer(outcome)
    return answer.partition(b"\r\n")[0][:ABOUT_MAX].decode() if answer >= responses.REFUSAL else "200 OK"
