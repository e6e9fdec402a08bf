"""The attempts of a call, until one succeeds or it gives up; attempt.py has a single attempt."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Generic, TypeVar, cast

from sockpq._engine.attempt import Attempt, unknown_words, value_of
from sockpq._engine.connection import Connection
from sockpq._engine.leader_connections import LeaderConnections
from sockpq._engine.pool import Slot
from sockpq._engine.retry import ForeignLeader, GivenUp, Lost, Retry, as_unknown, is_final_wait, least_s
from sockpq._protocol.arguments import span, switch
from sockpq._protocol.command import Command, Repeat
from sockpq._protocol.protocol import Answer
from sockpq._protocol.session import NumberUsed, Request, SessionLost
from sockpq.errors import NotServing, OutcomeUnknown, SockpqError

T = TypeVar("T")
PutBack = Callable[[T], Sequence[Command[Any]]]     # gives back what a GET has got
LOG = logging.getLogger("sockpq")

LATE_S = 1.0            # how late a server may end a wait whose limit it knows, or give again what it has given
INTERRUPTED_S = 2.0     # what a call that is interrupted may take to give back a job
LAST_ATTEMPTS = 3       # that it makes when the client was closed
REFUSED_S = 1.0         # a call that no server executes for this long asks for a reason that will not pass
SILENT_S = 3.0          # a call that finds no server for this long says so; failovers are over by then


class Call(Generic[T]):
    """A command in progress, with all its attempts."""

    __slots__ = (
        "_request", "answer", "answered", "bound", "cancelling", "command", "number", "retry", "sent", "taken",
        "timeout", "wait", "wait_until",
    )

    def __init__(self, command: Command[T], retry: Retry, timeout: float, wait: float) -> None:
        """`timeout` and `wait` in seconds."""
        self.command = command
        self.retry = retry
        self.timeout = timeout
        self.wait = wait
        self.wait_until = 0.0           # on the monotonic clock; 0 before the first attempt
        self.number = 0                 # of the request in this attempt, 0 without a session
        self.sent = False               # an attempt has begun to send it
        self.bound = False              # jobs that it gets are bound to the session: they end, or go back
        self.taken = False              # its number tells that it was handed out something
        self.cancelling = False            # its caller is interrupted: it is to end soon
        self.answer: Answer | None = None       # when it was sent in one packet with another call
        self.answered = 0.0             # then: when its answer came, on the monotonic clock; 0 without one
        self._request = Request()

    def number_on(self, connection: Connection) -> int:
        """Return its number in the session of the connection, 0 without a session."""
        if self.command.logged and connection.session:
            self.number = self._request.number(connection.session)
        return self.number

    def command_now(self, now: float) -> tuple[Command[T], float]:
        """Return the command of this attempt, and the time until which it may block, counted from the first attempt.

        When the wait of a numbered call is over, its number is reused for a GET that does not block. If that is
        executed, the first command no longer can be, even if it still waits on some server. If the number was used, the
        first command has got a job, which is returned again. If no job is returned, that job no longer runs, and the
        command waits again; it is then cancelled by a half-close if the job is certain to be back in its queue
        (`bound`).
        """
        self.wait_until = self.wait_until or now + self.wait
        if self.number and self.command.unblocked and self.retry.attempts and now >= self.wait_until:
            return (self.command, min(now + LATE_S, self.retry.deadline)) if self.taken else (
                self.command.unblocked, math.inf)
        late = LATE_S if "within" in self.command.needs and not self.retry.attempts else 0.0
        return self.command, self.wait_until + late

    def downgrade(self, connection: Connection) -> None:
        """Switch to the form that older servers know.

        Raises NotSupported if there is none, even if the command may have been executed.
        """
        if self.command.older is None or self.retry.in_doubt:
            raise unknown_words(connection, self.command.needs)
        self.command, self._request = self.command.older, Request()


class CallRunner:
    """Executes calls in slots, with as many attempts as they need."""

    def __init__(self, connections: LeaderConnections) -> None:
        self.network = connections.network
        self.limits = connections.limits
        self.counters = connections.counters
        self._connections = connections
        self._blocking: dict[Call[Any], Slot] = {}      # GETs that may wait, with their slots

    @property
    def blocking(self) -> list[Call[Any]]:
        """The calls in progress that may wait for a job."""
        return list(self._blocking)

    def withdraw(self, call: Call[Any]) -> None:
        """End the wait of a call, which returns the job that it has, if any. Callable from any thread."""
        call.wait, call.wait_until = 0.0, self.network.now()
        slot = self._blocking.get(call)
        connection = slot.connection if slot else None
        if connection:
            connection.withdraw()

    def call(
        self, command: Command[T], *, timeout: float | None = None, wait: float | None = None,
        retry_unknown: bool | None = None,
    ) -> Call[T]:
        """Return a call that is not started yet; its time limit counts from now."""
        timeout = self.timeout(timeout)
        wait = math.inf if wait is None else span(wait, "wait")
        return Call(command, self.retry(command.repeat, timeout, retry_unknown), timeout, wait)

    async def run_in(self, slot: Slot, call: Call[T], put_back: PutBack[T] | None = None) -> T:
        """Execute a call in this slot, which stays the caller's. `put_back`: see run."""
        if call.command.unblocked:
            self._blocking[call] = slot
        try:
            return await self._counted(slot, call)
        except BaseException as error:
            # An abandoned coroutine (GeneratorExit) cannot wait for anything.
            interrupted = not isinstance(error, Exception | GeneratorExit)
            if put_back and (interrupted or self.network.closed):
                try:
                    await self._take_back(slot, None, call, put_back, error)
                finally:
                    slot.leaving = False
            raise
        finally:
            self._blocking.pop(call, None)

    async def _counted(self, slot: Slot, call: Call[T]) -> T:
        """Execute the call, and count its outcome."""
        begun = self.network.now()
        ok = False
        try:
            value = await self._execute(slot, call)
            ok = True
        finally:
            self.counters.called(call.command.line, self.network.now() - begun, ok)
        return value

    async def run_attached(self, slot: Slot, command: Command[T], timeout: float) -> T:
        """Execute a command about the slot's session itself on a connection attached to it: PING, SESSION CLOSE."""
        call = self.call(command, timeout=timeout)
        while True:
            try:
                connection = await self._connections.connection(slot, call.retry, numbered=True)
                attempt = self._connections.attempt(connection)
                return cast(T, value_of(await attempt.one(command, 0, call.retry.deadline, math.inf)))
            except (Lost, SockpqError) as failure:
                self._connections.note(slot, failure)
                await self.pause(call.retry, failure, exact=False)

    async def run_behind(
        self,
        first: Command[Any] | None,
        command: Command[T],
        put_back: PutBack[T],
        *,
        timeout: float | None = None,
        wait: float | None = None,
    ) -> T:
        """Execute `command`, a GET that may block, directly after `first`, a DONE, in one packet.

        Each is executed exactly once in a session: a command without an answer is sent again under its number. When
        `first` is refused, or when the caller is interrupted, a job that `command` has taken goes back by `put_back`.
        """
        before = self.call(first, timeout=timeout) if first else None
        call = self.call(command, timeout=timeout, wait=wait)
        slot = self._connections.take()
        begun = self.network.now()
        ok = False
        if command.unblocked:
            self._blocking[call] = slot
        try:
            try:
                failure = await self._together(slot, before, call) if before else None
                if before:
                    await self._settle(slot, before, failure)
                    call.retry.bound = True
                value = await self._settle(slot, call, failure)
                ok = True
            except BaseException as error:
                await self._take_back(slot, before, call, put_back, error)
                raise
        finally:
            now = self.network.now()
            self._blocking.pop(call, None)
            self._connections.give_back(slot)
            for one in (before, call) if before else (call,):
                self.counters.called(one.command.line, (one.answered or now) - begun, ok)
        return value

    async def _together(self, slot: Slot, before: Call[Any], call: Call[Any]) -> Exception | None:
        """Make the first attempt for both, and fill in their answers; returns why one is missing, None if none is."""
        attempt: Attempt | None = None
        answers: list[Answer] = []
        try:
            connection = await self._connections.connection(slot, before.retry, numbered=True)
            attempt = self._connections.attempt(connection)
            needs = {*before.command.needs, *call.command.needs}
            if needs and not await attempt.knows(needs, before.retry.deadline):
                return None             # one after the other, each as this server knows it
            await attempt.enter(before.retry.deadline)
            requests = [(one.command, one.number_on(connection)) for one in (before, call)]
            before.sent = call.sent = True
            await attempt.pair(requests, before.retry.deadline, call.command_now(self.network.now())[1], answers)
        except (Lost, SockpqError) as failure:
            self._connections.note(slot, failure)
            self._was_blocked(call, attempt)
            return failure
        finally:
            for one, answer in zip((before, call), answers, strict=False):
                one.answer = answer
            if before.answer and attempt:
                before.answered = attempt.first_answered
        return None

    async def _settle(self, slot: Slot, call: Call[T], failure: Exception | None) -> T:
        """Return the value of one of two calls, after their attempt together, whose failure this was."""
        answer = call.answer
        if answer is None or answer.error:
            if answer and answer.error:
                failure = answer.error
                self._connections.note(slot, failure)
            answer = call.answer = Answer(await self._execute(slot, call, failure if call.sent else None))
            call.answered = self.network.now()
        return cast(T, answer.value)

    async def _take_back(
        self, slot: Slot, before: Call[Any] | None, call: Call[T], put_back: PutBack[T], error: BaseException,
    ) -> None:
        """Put back jobs that a call has taken although it ends with `error`, if that does not take long.

        After an interruption, such as the cancellation of a task, `before` is still executed.
        """
        if before and not isinstance(error, Exception):
            await self._cancel(slot, before)
        if call.sent:
            await self._cancel(slot, call)
        if call.answer and call.answer.error is None and call.answer.value:
            for command in put_back(call.answer.value):
                await self._cancel(slot, self.call(command, timeout=INTERRUPTED_S))

    async def _cancel(self, slot: Slot, call: Call[Any]) -> None:
        """Bring a call that must be completed to its end, without waiting for a job."""
        if call.answer:
            return
        call.cancelling = slot.leaving = True
        call.retry.progress(self.network.now() + INTERRUPTED_S)     # until now nothing was amiss
        call.wait_until = self.network.now()
        failure = None
        if call.sent:
            slot.drop_connection()
            failure = GivenUp("its answer was not waited for", sent=True)
        with suppress(Lost, SockpqError):
            call.answer = Answer(await self._execute(slot, call, failure))

    async def _execute(self, slot: Slot, call: Call[T], failure: Exception | None = None) -> T:
        """Make all attempts of a call, and return its value; `failure`: of an attempt that was made already."""
        while True:
            attempt: Attempt | None = None
            try:
                if failure:
                    raise failure
                call.number = 0
                connection = await self._connections.connection(slot, call.retry, call.command.logged)
                attempt = self._connections.attempt(connection)
                while call.command.needs and not await attempt.knows(call.command.needs, call.retry.deadline):
                    call.downgrade(connection)
                number = call.number_on(connection)
                call.sent = True
                command, until = call.command_now(self.network.now())
                answer = await attempt.one(command, number, call.retry.deadline, until, last=call.taken and call.bound)
                if isinstance(answer.error, NumberUsed) and command is call.command.unblocked:
                    call.taken = True
                    continue
                return cast(T, value_of(answer))
            except (Lost, SockpqError) as error:
                if failure is None:
                    self._connections.note(slot, error)
                    self._was_blocked(call, attempt)
                failure = None
                if isinstance(error, SessionLost):
                    call.taken = False
                if call.wait_until and self.network.now() >= call.wait_until and is_final_wait(error):
                    raise as_unknown(error) from error
                try:
                    await self.pause(call.retry, error, call.number > 0, last_words=call.cancelling)
                except OutcomeUnknown as unknown:
                    if call.command.gone and call.retry.excuses(unknown, call.command.gone):
                        return cast(T, call.command.gone.value)
                    raise

    def _was_blocked(self, call: Call[Any], attempt: Attempt | None) -> None:
        """Do not count the time during which the server was allowed to be silent. It owes a `taken` job at once."""
        if attempt and attempt.blocked_s and not call.taken:
            call.retry.blocked(attempt.blocked_s)
            if attempt.blocked_s > self.limits.server_timeout:
                call.retry.progress(self.network.now() + call.timeout)      # the search starts over

    async def pause(self, retry: Retry, failure: Exception, exact: bool, last_words: bool = False) -> None:
        """Wait before the next attempt; raises what the caller must see instead.

        With `last_words` a few attempts are made even when the client was closed.
        """
        if self.network.closed and not (last_words and retry.attempts < LAST_ATTEMPTS):
            raise retry.interrupted(failure) from failure
        pause = retry.pause(failure, self.network.now(), exact=exact)
        self.counters.retries += 1
        LOG.log(
            logging.INFO if retry.attempts == 1 and not last_words else logging.DEBUG,
            "attempt %d failed, the next one begins in %.3f s: %s", retry.attempts, pause, failure,
        )
        if not retry.told and self.network.now() - retry.failing_since >= SILENT_S:
            retry.told = True
            LOG.warning(
                "no server has executed a command for %.0f s, it is tried for another %.0f s: %s",
                self.network.now() - retry.failing_since, retry.deadline - self.network.now(), failure,
            )
        refused = isinstance(failure, NotServing) and not isinstance(failure, ForeignLeader)
        if refused and retry.region_part is None and self.network.now() - retry.failing_since >= REFUSED_S:
            retry.region_part = await self._connections.discovery.region_part()
        await self.network.sleep(pause)

    def retry(self, repeat: Repeat, timeout: float, retry_unknown: bool | None) -> Retry:
        """Return the rules for repeating a command: how often, and for how long."""
        at_least_once = self.limits.retry_unknown if retry_unknown is None else switch(retry_unknown, "retry_unknown")
        deadline = self.network.now() + timeout
        return Retry(repeat, retry_unknown=at_least_once, deadline=deadline, least_s=least_s(timeout))

    def timeout(self, timeout: float | None) -> float:
        """Return the time limit of a call, seconds."""
        return self.limits.timeout if timeout is None else span(timeout, "timeout")
