"""One command, or one batch, over one connection: send, wait as long as that makes sense, or declare it lost.

A server that owes an answer may be silent for `server_timeout`. If another server has begun to serve meanwhile the
answer is not waited for: it could only be "not executed" or never come. A server that delays an answer by right (a
blocked GETB, the output of a PUT .. WAIT) is asked now and then, on another connection, whether it lives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Any

from sockpq.addresses import Address
from sockpq.batch import Batch
from sockpq.commands import Blocks, Command
from sockpq.connection import Connection
from sockpq.protocol import Answer
from sockpq.retry import Lost, Retry

DOUBT_S = 0.2           # after so much silence of a server that owes an answer: has another taken over?
TINY_S = 0.001          # a timeout that is over still takes what is there


@dataclass(frozen=True)
class Limits:
    """Time limits in seconds, and what to do with unknown outcomes."""

    timeout: float              # a whole call, all its attempts together
    server_timeout: float       # one server's silence while it owes an answer
    connect_timeout: float
    retry_unknown: bool


@dataclass(frozen=True)
class Watch:
    """How the other servers, and the same one on another connection, can be asked."""

    taken_over: Callable[[Address], bool]       # does another server serve now?
    alive: Callable[[Address], bool]            # does this one still answer?


class Exchange:
    """What one call does on one connection."""

    def __init__(self, connection: Connection, limits: Limits, watch: Watch) -> None:
        self._connection = connection
        self._limits = limits
        self._watch = watch

    def one(self, command: Command[Any], deadline: float, wait_until: float) -> Answer:
        """Send one command and wait for its answer; both limits on the monotonic clock.

        `wait_until` is for commands that block: they are then taken back, and the answer of a GET is None.
        """
        if self._connection.send([command], self._patience(deadline)) == 0:
            raise Lost(f"{self._connection.address}: the connection broke while sending", sent=False)
        while True:
            if _is_blocked(self._connection, command):
                if not self._comes(wait_until):
                    return self._withdraw()
                deadline = monotonic() + self._limits.timeout       # it begins: now the rest of it is owed
            answers = self._owed(deadline)
            if answers:
                return answers[0]

    def batch(self, batch: Batch, retry: Retry, timeout: float) -> None:
        """Send and receive until the batch has nothing more to do on this connection."""
        while True:
            commands = batch.next()
            if commands:
                complete = self._connection.send(commands, self._patience(retry.deadline))
                if complete < len(commands):
                    batch.not_sent(len(commands) - complete)
                    raise self._connection.lost("the connection broke while sending")
            if not batch.in_flight:
                return
            if batch.answered(self._owed(retry.deadline)):
                retry.progress(monotonic() + timeout)

    def _owed(self, deadline: float) -> list[Answer]:
        """What comes next from a server that owes an answer; raises Lost when nothing does."""
        begun = monotonic()
        until = begun + self._patience(deadline)
        while True:
            try:
                return self._connection.receive(max(min(DOUBT_S, until - monotonic()), TINY_S))
            except TimeoutError:
                if monotonic() >= until:
                    raise self._connection.lost(f"silent for {monotonic() - begun:.1f} s") from None
            if self._watch.taken_over(self._connection.address):
                raise self._connection.lost("silent, and another server serves now")

    def _comes(self, wait_until: float) -> bool:
        """Wait until a blocked command's answer begins; False when it did not in time. Raises Lost."""
        while not self._connection.readable(self._patience(wait_until)):
            if monotonic() >= wait_until:
                return False
            address = self._connection.address
            if self._watch.taken_over(address) or not self._watch.alive(address):
                raise self._connection.lost("the server no longer serves, or no longer answers")
        return True

    def _withdraw(self) -> Answer:
        """Take back a blocked command: half-close, and take the answer that may be on its way all the same."""
        waiting = self._connection.protocol.waiting
        until = monotonic() + self._limits.server_timeout
        self._connection.finish()
        while True:
            try:
                answers = self._connection.receive(max(until - monotonic(), TINY_S))
            except TimeoutError:
                raise self._connection.lost("it did not take back the blocked command") from None
            except Lost as end:
                if waiting:
                    raise Lost("none came in time", sent=True, waiting=waiting) from end
                return Answer(None)
            if answers:
                return answers[0]

    def _patience(self, until: float) -> float:
        """Seconds to wait for the next byte."""
        return max(min(self._limits.server_timeout, until - monotonic()), TINY_S)


def _is_blocked(connection: Connection, command: Command[Any]) -> bool:
    """Is the server right not to answer? Once the answer has begun, it no longer is."""
    if connection.protocol.amid_answer:
        return False
    if command.blocks is Blocks.AFTER_206:
        return connection.protocol.waiting is not None
    return command.blocks is Blocks.AT_ONCE
