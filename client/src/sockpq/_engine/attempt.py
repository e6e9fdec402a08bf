"""One command or batch over one connection: send it, wait for the answer while that makes sense, or declare it lost.

A server that owes an answer may be silent for `server_timeout`. If another server has begun to serve in the meantime,
waiting ends: the answer could only be "not executed" or never arrive. A server that may delay an answer (a blocked
GETB, the output of a PUT .. WAIT) is probed now and then, on another connection.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol

from sockpq._engine.batch import Batch
from sockpq._engine.connection import Connection
from sockpq._engine.limits import Limits
from sockpq._engine.retry import ForeignServer, GivenUp, Lost, Retry
from sockpq._protocol.addresses import Address
from sockpq._protocol.command import Blocks, Command, Repeat
from sockpq._protocol.commands.cluster import CAPS
from sockpq._protocol.protocol import Answer
from sockpq.errors import BadArguments, NotServing, NotSupported, ProtocolError

DOUBT_S = 0.2           # after this much silence of a server that owes an answer: has another taken over?
TINY_S = 0.001          # a timeout that is over still takes what is there


class Watch(Protocol):
    """Probes other servers, and the same server on another connection, while an answer is outstanding."""

    leaderless: bool        # may a server that has not heard of a leader be used?
    look_s: float           # `waiting` is called after this many seconds, or after each `server_timeout` of silence

    async def taken_over(self, address: Address) -> bool:
        """Return whether another server serves now."""
        ...

    async def vanished(self, address: Address) -> bool:
        """Return whether another server serves now, or this one no longer answers."""
        ...

    async def waiting(self) -> None:
        """Called now and then while a command is blocked; never raises."""
        ...


class Alone:
    """The watch over a server that the caller named: no other matters, and only the caller's deadline ends the wait."""

    leaderless = True
    look_s = math.inf

    async def taken_over(self, address: Address) -> bool:
        return False

    async def vanished(self, address: Address) -> bool:
        return False

    async def waiting(self) -> None:
        pass


class Attempt:
    """One attempt of a call, on one connection."""

    def __init__(self, connection: Connection, limits: Limits, watch: Watch, now: Callable[[], float]) -> None:
        """`now`: the monotonic clock all deadlines are on."""
        self._connection = connection
        self._limits = limits
        self._watch = watch
        self._now = now
        self.blocked_s = 0.0        # how long the server was silent legitimately
        self.first_answered = 0.0   # when the first of two answers came

    async def one(
        self, command: Command[Any], number: int, deadline: float, wait_until: float, *, last: bool = False
    ) -> Answer:
        """Send one command and wait for its answer. `number`: the number of the request, or 0.

        `wait_until` is for commands that block: a numbered GET then raises GivenUp, unless it is the `last` one; others
        are withdrawn, and the answer is None.
        """
        if command.repeat is not Repeat.FREELY and (self._connection.entering or self._connection.leaderless):
            await self.enter(deadline)
        if command.opening:
            opened = await self._before(command.opening, deadline)
            if opened.error:
                return opened
        if not await self._connection.send(command, number, self._patience(deadline)):
            raise Lost(f"{self._connection.address}: the connection broke while sending", sent=False)
        return await self._answer(command, 0 if last else number, deadline, wait_until)

    async def enter(self, deadline: float) -> None:
        """Wait until the commands sent ahead are answered; raises Lost, AuthError, Busy, NotServing."""
        try:
            while self._connection.entering:
                await self._owed(deadline)
        except ForeignServer:
            raise
        except (Lost, ProtocolError) as failure:
            raise Lost(str(failure), sent=False) from failure
        if self._connection.leaderless and not self._watch.leaderless:
            raise NotServing(f"{self._connection.address} has not heard of a leader")

    async def pair(
        self, requests: Sequence[tuple[Command[Any], int]], deadline: float, wait_until: float, answers: list[Answer]
    ) -> None:
        """Send two commands in one packet, of which the second may block, and collect their answers in `answers`.

        When the first is refused the answer to the second is not waited for.
        """
        if await self._connection.send_many(requests, self._patience(deadline)) < len(requests):
            raise self._connection.lost("the connection broke while sending")
        while not answers:
            answers += await self._owed(deadline)
        self.first_answered = self._now()
        if len(answers) == 1 and answers[0].error is None:
            answers.append(await self._answer(*requests[1], deadline, wait_until))

    async def _answer(self, command: Command[Any], number: int, deadline: float, wait_until: float) -> Answer:
        """Wait for the answer to the only command that has none yet.

        The end of a connection does not prove that a blocked command got nothing: the network may have lost the answer.
        A numbered command is repeated (GivenUp). One without a number is withdrawn by a half-close, and the end of the
        connection counts as its answer.
        """
        asked_again = number > 0 and command.unblocked is not None
        while True:
            if _is_blocked(self._connection, command):
                begun = self._now()
                try:
                    answers = await self._blocked(wait_until)
                except Lost as end:
                    if not (self._connection.withdrawn and end.orderly and not end.waiting):
                        raise
                    if asked_again:
                        raise GivenUp(str(end), sent=True) from end
                    return Answer(None)
                finally:
                    self.blocked_s += self._now() - begun
                if answers is None:
                    if asked_again:
                        raise GivenUp(f"{self._connection.address}: its wait is over", sent=True)
                    return await self._withdraw()
                deadline = self._now() + self._limits.timeout       # it has begun: now the rest of it is owed
            else:
                answers = await self._owed(deadline)
            if answers:
                return answers[0]

    async def knows(self, words: Collection[str], deadline: float) -> bool:
        """Return whether the CAPS of the server, which are requested once, contain all these words."""
        connection = self._connection
        if connection.caps is None:
            answer = await self._before(CAPS, deadline)
            if answer.error and not isinstance(answer.error, BadArguments | NotSupported):
                raise answer.error
            connection.caps = frozenset(answer.value or ())
        return connection.caps.issuperset(words)

    async def _before(self, command: Command[Any], deadline: float) -> Answer:
        """Send a command ahead of the actual one: if it is lost, the actual one was not sent."""
        try:
            return await self.one(command, 0, deadline, deadline)
        except ForeignServer:
            raise
        except (Lost, ProtocolError) as failure:
            raise Lost(str(failure), sent=False) from failure

    async def batch(self, batch: Batch, retry: Retry, timeout: float) -> None:
        """Send and receive until the batch is finished with this connection."""
        await self.enter(retry.deadline)
        while True:
            requests = batch.next()
            if requests:
                complete = await self._connection.send_many(requests, self._patience(retry.deadline))
                if complete < len(requests):
                    batch.not_sent(len(requests) - complete)
                    raise self._connection.lost("the connection broke while sending")
            if not batch.in_flight:
                return
            if batch.answered(await self._owed(retry.deadline)):
                retry.progress(self._now() + timeout)
                if not batch.open:
                    retry.settled()

    async def _owed(self, deadline: float) -> list[Answer]:
        """Return the next bytes from a server that owes an answer. Raises Lost if none come, or if they never end."""
        begun = self._now()
        until = begun + self._patience(deadline)
        while True:
            try:
                answers = await self._connection.receive(max(min(DOUBT_S, until - self._now()), TINY_S))
                if answers or self._now() < deadline:
                    return answers
                raise self._connection.lost("its answer was not complete in time")
            except TimeoutError:
                if self._now() >= until:
                    raise self._connection.lost(f"silent for {self._now() - begun:.1f} s") from None
            if await self._watch.taken_over(self._connection.address):
                raise self._connection.lost("silent, and another server serves now")

    async def _blocked(self, wait_until: float) -> list[Answer] | None:
        """Return the next bytes from a server that may be silent, None if none came in time. Raises Lost."""
        doubt_at = self._now() + self._limits.server_timeout
        while True:
            left = min(wait_until, doubt_at) - self._now()
            try:
                return await self._connection.receive(max(min(left, self._watch.look_s), TINY_S))
            except TimeoutError:
                if self._now() >= wait_until:
                    return None
            if self._now() >= doubt_at:
                if await self._watch.vanished(self._connection.address):
                    raise self._connection.lost("the server no longer serves, or no longer answers")
                doubt_at = self._now() + self._limits.server_timeout
            elif self._watch.look_s > left:
                continue
            await self._watch.waiting()

    async def _withdraw(self) -> Answer:
        """Cancel a blocked command: half-close, and take the answer that may already be in flight."""
        waiting = self._connection.protocol.waiting
        until = self._now() + self._limits.server_timeout
        self._connection.finish()
        while True:
            try:
                answers = await self._connection.receive(max(until - self._now(), TINY_S))
            except TimeoutError:
                raise self._connection.lost("it did not take back the blocked command") from None
            except Lost as end:
                if waiting:
                    raise Lost("none came in time", sent=True, waiting=waiting) from end
                if not end.orderly:     # a job may have been on its way
                    raise
                return Answer(None)
            if answers:
                return answers[0]
            if self._now() >= until:
                raise self._connection.lost("its last answer does not end")

    def _patience(self, until: float) -> float:
        """Return the seconds to wait for the next byte."""
        return max(min(self._limits.server_timeout, until - self._now()), TINY_S)


def _is_blocked(connection: Connection, command: Command[Any]) -> bool:
    """Return whether the server may still delay its answer; not once the answer has begun."""
    if command.blocks is Blocks.NEVER or connection.protocol.amid_answer:
        return False
    return command.blocks is Blocks.AT_ONCE or connection.protocol.waiting is not None


def unknown_words(connection: Connection, words: tuple[str, ...]) -> NotSupported:
    """Return the error for a server that lacks some of these words of CAPS."""
    return NotSupported(f"{connection.address}: this server does not know all of: {', '.join(words)}")


def value_of(answer: Answer) -> Any:
    """Return the value of an answer, or raise its error."""
    if answer.error:
        raise answer.error
    return answer.value
