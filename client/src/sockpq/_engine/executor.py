"""How a call reaches the serving leader: attempts, failover, giving up. attempt.py has what happens in one attempt."""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Generic, TypeVar, cast

from sockpq._backends.base import Network
from sockpq._engine.attempt import TINY_S, Alone, Attempt
from sockpq._engine.batch import Batch
from sockpq._engine.connection import Connection
from sockpq._engine.discovery import Discovery
from sockpq._engine.identity import Identity
from sockpq._engine.limits import Limits
from sockpq._engine.pool import Pool, Slot
from sockpq._engine.probe import hopeless, status_of_best
from sockpq._engine.retry import (
    ForeignServer,
    GivenUp,
    Lost,
    NoLeader,
    Retry,
    as_unknown,
    is_final_wait,
    is_unknown,
    least_s,
    pause_s,
)
from sockpq._engine.tracing import Tracing
from sockpq._protocol.addresses import Address, parse_server
from sockpq._protocol.arguments import Bodies, Codec, span, switch
from sockpq._protocol.command import Command, Repeat, Steps
from sockpq._protocol.commands.cluster import CLUSTER_STATUS, PING
from sockpq._protocol.commands.connection import session_attach, session_open
from sockpq._protocol.protocol import Answer
from sockpq._protocol.session import NumberUsed, Request, Session, SessionLost
from sockpq.errors import (
    AuthError,
    BadArguments,
    BatchFailed,
    Busy,
    ForeignCluster,
    NotExecuted,
    NotServing,
    NotSupported,
    OutcomeUnknown,
    ProtocolError,
    SockpqError,
    Unavailable,
    Untrusted,
)
from sockpq.model import NodeStatus

T = TypeVar("T")
PutBack = Callable[[T], Sequence[Command[Any]]]     # what gives back what a GET has got
LOG = logging.getLogger("sockpq")

LATE_S = 1.0            # how late a server may end a wait whose limit it knows, or give again what it has given
INTERRUPTED_S = 2.0     # what a call that is interrupted may take to give back a job
LAST_ATTEMPTS = 3       # that it makes when the client was closed
SILENT_S = 3.0          # a call that finds no server for this long says so; failovers are over by then
SESSIONLESS_S = 10.0    # how long a connection goes without a session after one was refused

# Failures after which another server may be the one to ask, or a new connection to the same one.
LEAVE = Lost, ProtocolError, NotServing, OutcomeUnknown, AuthError


class Call(Generic[T]):
    """A command on its way, in all its attempts."""

    __slots__ = (
        "_request", "answer", "answered", "bound", "command", "hurried", "number", "retry", "sent", "taken", "timeout",
        "wait", "wait_until",
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
        self.hurried = False            # its caller is interrupted: it is to end soon
        self.answer: Answer | None = None       # when it was sent in one packet with another call
        self.answered = 0.0             # then: when its answer came, on the monotonic clock; 0 without one
        self._request = Request()

    def number_on(self, connection: Connection) -> int:
        """Its number in the session that the connection speaks for, 0 without one."""
        if self.command.logged and connection.session:
            self.number = self._request.number(connection.session)
        return self.number

    def words(self, now: float) -> tuple[Command[T], float]:
        """What to say in this attempt, and until when it may stay blocked; the wait counts from the first attempt.

        A numbered call whose wait is over takes its number with a GET that does not block. Either that is executed, and
        then the first command can no longer be, whatever still waits somewhere. Or the number is used: then the first
        command has got something, and gets it again. If nothing comes, what it got no longer runs, and the command
        waits anew. It is taken back by a half-close then if the job is sure to be in its queue again (`bound`).
        """
        self.wait_until = self.wait_until or now + self.wait
        if self.number and self.command.unblocked and self.retry.attempts and now >= self.wait_until:
            return (self.command, min(now + LATE_S, self.retry.deadline)) if self.taken else (
                self.command.unblocked, math.inf)
        late = LATE_S if "within" in self.command.needs and not self.retry.attempts else 0.0
        return self.command, self.wait_until + late

    def fall_back(self, connection: Connection) -> None:
        """Say it as an older server knows it; raises NotSupported. In doubt it could be done twice."""
        if self.command.older is None or self.retry.in_doubt:
            raise _unknown_words(connection, self.command.needs)
        self.command, self._request = self.command.older, Request()


class Executor:
    """Executes commands on whatever server serves. For as many threads or tasks at once as its network is for."""

    def __init__(
        self, network: Network, addresses: tuple[Address, ...], limits: Limits, codec: Codec | None = None,
        tracing: Tracing | None = None, cluster: str | None = None,
    ) -> None:
        """`codec`, `tracing` and `cluster` are the client's; Job reaches the first two through the executor."""
        self.bodies = Bodies(codec, tracing.mark if tracing else None)
        self.tracing = tracing
        self.limits = limits
        self.network = network
        self.identity = Identity(cluster)
        self._discovery = Discovery(network, addresses, self.identity, limits.connect_timeout, limits.server_timeout)
        self.counters = self._discovery.counters
        self._pool = Pool(limits.idle_max)
        self._process = os.getpid()

    @property
    def leader(self) -> Address | None:
        """The server that calls go to now; None while it is looked for."""
        return self._discovery.known_leader

    @property
    def addresses(self) -> tuple[Address, ...]:
        """All servers that are known."""
        return self._discovery.addresses

    def close(self) -> None:
        """End all connections and sessions and all calls under way."""
        self._own()
        self.network.close()
        self._pool.close()

    async def connect(self, *, timeout: float | None = None) -> None:
        """Have a connection to the serving leader, and a session, ready for the next call."""
        slot = self._take()
        try:
            await self.run_attached(slot, PING, self._timeout(timeout))
        finally:
            self._pool.give_back(slot, self.network.now())

    async def run(
        self,
        command: Command[T],
        *,
        timeout: float | None = None,
        wait: float | None = None,
        retry_unknown: bool | None = None,
        put_back: PutBack[T] | None = None,
    ) -> T:
        """Execute one command on the serving leader.

        `timeout` limits the time without a server that executes it, `wait` the time a blocked command stays blocked
        (None: without limit); a GET whose wait ends without a job is worth None. `put_back`: what to do with what it
        has got when its caller is interrupted, or the client is closed.
        """
        if self.tracing:
            with self.tracing.call(command):
                return await self._run(command, timeout, wait, retry_unknown, put_back)
        return await self._run(command, timeout, wait, retry_unknown, put_back)

    async def _run(
        self, command: Command[T], timeout: float | None, wait: float | None, retry_unknown: bool | None,
        put_back: PutBack[T] | None,
    ) -> T:
        call = self.call(command, timeout=timeout, wait=wait, retry_unknown=retry_unknown)
        slot = self._take()
        try:
            return await self.run_in(slot, call, put_back)
        finally:
            self._pool.give_back(slot, self.network.now())

    async def run_in(self, slot: Slot, call: Call[T], put_back: PutBack[T] | None = None) -> T:
        """Execute a call in this slot, which stays the caller's. `put_back`: see run."""
        try:
            return await self._counted(slot, call)
        except BaseException as error:
            # A coroutine that nobody goes on with (GeneratorExit) cannot wait for anything.
            interrupted = not isinstance(error, Exception | GeneratorExit)
            if put_back and (interrupted or self.network.closed):
                try:
                    await self._take_back(slot, None, call, put_back, error)
                finally:
                    slot.leaving = False
            raise

    async def _counted(self, slot: Slot, call: Call[T]) -> T:
        """Execute it, and count how that went."""
        begun = self.network.now()
        ok = False
        try:
            value = await self._execute(slot, call)
            ok = True
        finally:
            self.counters.called(call.command.line, self.network.now() - begun, ok)
        return value

    async def run_attached(self, slot: Slot, command: Command[T], timeout: float) -> T:
        """Execute a command about the slot's session itself on a connection that speaks for it: PING, SESSION CLOSE."""
        call = self.call(command, timeout=timeout)
        while True:
            try:
                connection = await self._connection(slot, call.retry, numbered=True)
                return cast(T, _value(await self._attempt(connection).one(command, 0, call.retry.deadline, math.inf)))
            except (Lost, SockpqError) as failure:
                self._note(slot, failure)
                await self._pause(call.retry, failure, exact=False)

    async def run_behind(
        self,
        first: Command[Any] | None,
        command: Command[T],
        put_back: PutBack[T],
        *,
        timeout: float | None = None,
        wait: float | None = None,
    ) -> T:
        """Execute `command`, a GET that may block, directly behind `first`, a DONE, in one packet.

        Each is executed exactly once in a session: what has no answer is sent again under its number. When `first` is
        refused, or when the caller is interrupted, a job that `command` has taken goes back by `put_back`.
        """
        before = self.call(first, timeout=timeout) if first else None
        call = self.call(command, timeout=timeout, wait=wait)
        slot = self._take()
        begun = self.network.now()
        ok = False
        try:
            try:
                failure = await self._together(slot, before, call) if before else None
                if before:
                    await self._settle(slot, before, failure)
                value = await self._settle(slot, call, failure)
                ok = True
            except BaseException as error:
                await self._take_back(slot, before, call, put_back, error)
                raise
        finally:
            now = self.network.now()
            self._pool.give_back(slot, now)
            for one in (before, call) if before else (call,):
                self.counters.called(one.command.line, (one.answered or now) - begun, ok)
        return value

    async def _together(self, slot: Slot, before: Call[Any], call: Call[Any]) -> Exception | None:
        """The first attempt for both: fills in their answers; returns why one is missing."""
        attempt: Attempt | None = None
        answers: list[Answer] = []
        try:
            connection = await self._connection(slot, before.retry, numbered=True)
            attempt = self._attempt(connection)
            needs = {*before.command.needs, *call.command.needs}
            if needs and not await attempt.knows(needs, before.retry.deadline):
                return None             # one after the other, each as this server knows it
            await attempt.enter(before.retry.deadline)
            requests = [(one.command, one.number_on(connection)) for one in (before, call)]
            before.sent = call.sent = True
            await attempt.pair(requests, before.retry.deadline, call.words(self.network.now())[1], answers)
        except (Lost, SockpqError) as failure:
            self._note(slot, failure)
            self._was_blocked(call, attempt)
            return failure
        finally:
            for one, answer in zip((before, call), answers, strict=False):
                one.answer = answer
            if before.answer and attempt:
                before.answered = attempt.first_answered
        return None

    async def _settle(self, slot: Slot, call: Call[T], failure: Exception | None) -> T:
        """The value of one of two calls, after their attempt together, whose failure this was."""
        answer = call.answer
        if answer is None or answer.error:
            if answer and answer.error:
                failure = answer.error
                self._note(slot, failure)
            answer = call.answer = Answer(await self._execute(slot, call, failure if call.sent else None))
            call.answered = self.network.now()
        return cast(T, answer.value)

    async def _take_back(
        self, slot: Slot, before: Call[Any] | None, call: Call[T], put_back: PutBack[T], error: BaseException,
    ) -> None:
        """A call ends by `error`: what it has taken all the same goes back, as far as that is quick.

        When it is an interruption, such as the cancellation of a task, `before` is executed all the same.
        """
        if before and not isinstance(error, Exception):
            await self._hurry(slot, before)
        if call.sent:
            await self._hurry(slot, call)
        if call.answer and call.answer.error is None and call.answer.value:
            for command in put_back(call.answer.value):
                await self._hurry(slot, self.call(command, timeout=INTERRUPTED_S))

    async def _hurry(self, slot: Slot, call: Call[Any]) -> None:
        """Get the answer to a call that must come to its end, if it has none; do not wait for a job."""
        if call.answer:
            return
        call.hurried = slot.leaving = True
        call.retry.deadline = self.network.now() + INTERRUPTED_S
        call.wait_until = self.network.now()
        failure = None
        if call.sent:
            slot.drop_connection()
            failure = GivenUp("its answer was not waited for", sent=True)
        with suppress(Lost, SockpqError):
            call.answer = Answer(await self._execute(slot, call, failure))

    async def _execute(self, slot: Slot, call: Call[T], failure: Exception | None = None) -> T:
        """All attempts of a call; `failure`: of one that was made already."""
        while True:
            attempt: Attempt | None = None
            try:
                if failure:
                    raise failure
                call.number = 0
                connection = await self._connection(slot, call.retry, call.command.logged)
                attempt = self._attempt(connection)
                if call.command.needs and not await attempt.knows(call.command.needs, call.retry.deadline):
                    call.fall_back(connection)
                number = call.number_on(connection)
                call.sent = True
                command, until = call.words(self.network.now())
                answer = await attempt.one(command, number, call.retry.deadline, until, last=call.taken and call.bound)
                if isinstance(answer.error, NumberUsed) and command is call.command.unblocked:
                    call.taken = True
                    continue
                return cast(T, _value(answer))
            except (Lost, SockpqError) as error:
                if failure is None:
                    self._note(slot, error)
                    self._was_blocked(call, attempt)
                failure = None
                if isinstance(error, SessionLost):
                    call.taken = False
                if call.wait_until and self.network.now() >= call.wait_until and is_final_wait(error):
                    raise as_unknown(error) from error
                try:
                    await self._pause(call.retry, error, call.number > 0, last_words=call.hurried)
                except OutcomeUnknown as unknown:
                    if call.command.gone and call.retry.excuses(unknown, call.command.gone):
                        return cast(T, call.command.gone.value)
                    raise

    def call(
        self, command: Command[T], *, timeout: float | None = None, wait: float | None = None,
        retry_unknown: bool | None = None,
    ) -> Call[T]:
        """A call that was not begun; its time begins now."""
        timeout = self._timeout(timeout)
        wait = math.inf if wait is None else span(wait, "wait")
        return Call(command, self._retry(command.repeat, timeout, retry_unknown), timeout, wait)

    def _was_blocked(self, call: Call[Any], attempt: Attempt | None) -> None:
        """Time during which the server was legitimately silent does not count. What is `taken` it owes at once."""
        if attempt and attempt.blocked_s and not call.taken:
            call.retry.blocked(attempt.blocked_s)
            if attempt.blocked_s > self.limits.server_timeout:
                call.retry.progress(self.network.now() + call.timeout)      # the search begins anew

    async def run_batch(
        self,
        commands: Sequence[Command[Any]],
        *,
        timeout: float | None = None,
        retry_unknown: bool | None = None,
        partly: bool = False,
    ) -> list[Answer | None]:
        """Execute commands pipelined on one connection; returns their answers, which may be errors, in order.

        `timeout` limits the time without any answer. `partly`: after a failure that nobody can tell the outcome of
        return what was answered so far, None for the rest, instead of going on. Raises BatchFailed, or what `run`
        raises when nothing at all was executed.
        """
        timeout = self._timeout(timeout)
        if not commands:
            return []
        batch = Batch(commands, brings_jobs=partly)
        retry = self._retry(commands[0].repeat, timeout, retry_unknown)
        slot = self._take()
        try:
            while True:
                failure = await self._try_batch(slot, batch, retry, timeout)
                if failure is None or (partly and not batch.exact and any(batch.answers)):
                    break
                self._note(slot, failure)
                try:
                    await self._pause(retry, failure, batch.exact)
                except (NotExecuted, OutcomeUnknown) as error:
                    if partly and any(batch.answers):
                        break
                    if batch.unknown or any(batch.answers):
                        raise BatchFailed(str(error), batch.unknown, batch.not_executed) from error
                    raise
                batch.again()
        finally:
            self._pool.give_back(slot, self.network.now())
        return batch.answers

    async def _try_batch(self, slot: Slot, batch: Batch, retry: Retry, timeout: float) -> Exception | None:
        """One attempt for all that has no answer yet; returns why it must be followed by another."""
        try:
            connection = await self._connection(slot, retry, numbered=True)
            attempt = self._attempt(connection)
            if batch.needs and not await attempt.knows(batch.needs, retry.deadline):
                raise _unknown_words(connection, batch.needs)
            batch.begin(connection.session)
            await attempt.batch(batch, retry, timeout)
        except (Lost, SockpqError) as error:
            return error if batch.lost() or not is_unknown(error) else Lost(str(error), sent=False)
        return batch.refusal

    async def run_steps(self, steps: Steps[T], *, timeout: float | None = None) -> T:
        """Execute commands one after the other, each with this time limit; returns what the last one does."""
        for command in steps.before:
            await self.run(command, timeout=timeout)
        return await self.run(steps.last, timeout=timeout)

    async def run_where(self, command: Command[T], server: str | None, *, timeout: float | None = None) -> T:
        """Execute one command on this server only, or on the serving leader with failover."""
        if server is None:
            return await self.run(command, timeout=timeout)
        return await self.run_at(parse_server(server), command, timeout=timeout)

    async def run_at(self, address: Address, command: Command[T], *, timeout: float | None = None) -> T:
        """Execute one command on exactly this server, once, on a connection of its own."""
        timeout = self._timeout(timeout)
        deadline = self.network.now() + timeout
        limits = self.limits._replace(server_timeout=timeout) if command.slow else self.limits
        slot = self._take(new=True)
        try:
            connection = await self._connect(slot, address, deadline)
            if self.network.now() + least_s(timeout) > deadline:
                raise Lost(f"{address}: no time is left for it", sent=False)
            answer = await Attempt(connection, limits, Alone(), self.network.now).one(command, 0, deadline, math.inf)
        except ForeignServer as failure:
            raise ForeignCluster(str(failure)) from failure
        except (Lost, ProtocolError) as failure:
            if is_unknown(failure) and command.repeat is not Repeat.FREELY:
                raise as_unknown(failure) from failure
            raise Unavailable(str(failure)) from failure
        finally:
            slot.drop_connection()
            self._pool.give_back(slot, self.network.now())
        value: T = _value(answer)
        return value

    async def run_at_leader(self, command: Command[T], *, timeout: float | None = None) -> T:
        """Execute one command on the server that leads, also while it serves no jobs.

        Every other one refuses it, so they are asked in turn. What got no answer is not repeated.
        """
        timeout = self._timeout(timeout)
        deadline = self.network.now() + timeout
        attempts = 0
        refusals: list[str] = []
        failures: dict[Address, Exception | None] = {}
        while True:
            for address in self.addresses:
                left = deadline - self.network.now()
                if refusals and left < least_s(timeout):        # too short for more than making it unknown
                    raise Unavailable(f"no server leads: {'; '.join(refusals)}")
                try:
                    return await self.run_at(address, command, timeout=max(left, TINY_S))
                except (NotServing, Unavailable, ForeignCluster) as refusal:
                    refusals.append(f"{address}: {refusal}")
                    failures[address] = refusal
            if final := hopeless(failures):
                raise final
            await self._discovery.learn(deadline)
            refusals = refusals[-len(self.addresses) :]
            attempts += 1
            await self.network.sleep(min(pause_s(attempts), max(deadline - self.network.now(), 0)))

    async def status_of_best(self, timeout: float) -> list[NodeStatus]:
        """What CLUSTER STATUS says at the best server of the client's cluster. Raises Unavailable, AuthError."""
        return await status_of_best(self.network, self.addresses, timeout, self.identity.check)

    # for what lasts longer than a call (_long_lived)

    def take_slot(self, session_ttl: float | None = None) -> Slot:
        """A place with a connection, and if need be a session, of its own. Raises ClientClosed."""
        slot = self._take(new=True)
        slot.session_ttl = session_ttl
        return slot

    def give_back(self, slot: Slot) -> None:
        """Nobody needs the slot any more."""
        self._pool.give_back(slot, self.network.now())

    async def connect_to(self, slot: Slot, address: Address, deadline: float) -> Connection:
        """A new connection to this server; raises what Connection.open raises, and ClientClosed."""
        slot.drop_connection()
        return await self._connect(slot, address, deadline)

    async def event_servers(self, deadline: float) -> list[Address]:
        """All servers that are known; a single one is asked first who else is there."""
        if self._discovery.wants_members():
            await self._discovery.learn(deadline)
        return list(self.addresses)

    def _take(self, new: bool = False) -> Slot:
        self.network.enter()
        self._own()
        return self._pool.take(new)

    def _own(self) -> None:
        """In a child process: share nothing with the parent, not even a lock that one of its threads held."""
        if self._process != os.getpid():
            self._pool.forget_all()
            self._discovery.new_locks()
            self._process = os.getpid()

    async def _connection(self, slot: Slot, retry: Retry, numbered: bool) -> Connection:
        """A connection to the leader, for `numbered` requests one that speaks for the slot's session."""
        address = await self._discovery.leader(retry.deadline, retry.attempts)
        connection = slot.connection
        if connection is not None and connection.address == address and not connection.usable():
            # It was closed while nobody used it. Its server may be back, follow another, and answer TOTAL all the same.
            slot.drop_connection()
            connection = None
            self._leave(address)
            address = await self._discovery.leader(retry.deadline, retry.attempts)
        if connection is None or connection.address != address:
            slot.drop_connection()
            try:
                connection = await self._connect(slot, address, retry.deadline)
            except Lost as failure:
                self._leave(address, isinstance(failure, ForeignServer))
                raise
            except Untrusted as failure:        # perhaps the others know another leader
                self._leave(address)
                if len(self.addresses) == 1:
                    raise
                raise Lost(str(failure), sent=False) from failure
        if (
            numbered and self.limits.sessions and not connection.session
            and self.network.now() >= connection.sessionless_until
        ):
            try:
                await self._attach(slot, connection, retry)
            except ForeignServer:
                raise
            except (Lost, ProtocolError, OutcomeUnknown) as failure:    # it is not the command that was lost
                self._note(slot, failure)
                raise Lost(str(failure), sent=False) from failure
        if retry.too_late(self.network.now()):
            raise retry.last or Lost("no time is left for it", sent=False)
        return connection

    async def _connect(self, slot: Slot, address: Address, deadline: float) -> Connection:
        timeout = max(min(self.limits.connect_timeout, deadline - self.network.now()), TINY_S)
        connection = await Connection.open(self.network, address, timeout, self.identity.use)
        self._pool.connected(slot, connection)
        self.counters.connects += 1
        LOG.debug("connected to %s", address)
        return connection

    async def _attach(self, slot: Slot, connection: Connection, retry: Retry) -> None:
        """Let the connection speak for the slot's session, or for a new one. Raises SessionLost."""
        attempt = self._attempt(connection)
        if slot.session:
            await attempt.enter(retry.deadline)         # it is of no other cluster's concern
            command = session_attach(slot.session.sid)
            answer = await attempt.one(command, 0, retry.deadline, math.inf)
            if isinstance(answer.error, BadArguments | NotSupported):
                raise SessionLost("this server has no sessions")
            _value(answer)
        else:
            ttl = slot.session_ttl or self.limits.session_ttl
            answer = await attempt.one(session_open(ttl), 0, retry.deadline, math.inf)
            if isinstance(answer.error, BadArguments | NotSupported):
                connection.sessionless_until = math.inf
                return
            if isinstance(answer.error, Busy):
                await self._do_without(slot, connection, retry, answer.error)
                return
            slot.session = Session(_value(answer))
            if self._discovery.wants_members():
                told = await attempt.one(CLUSTER_STATUS, 0, retry.deadline, math.inf)
                self._discovery.learned(told.value or [])
        connection.session = slot.session

    async def _do_without(self, slot: Slot, connection: Connection, retry: Retry, refusal: Busy) -> None:
        """There are too many sessions: go on without, for a while. Raises `refusal` when it means the connection.

        A server with too many connections says the same and closes. A command that is sent into that would have an
        unknown outcome for nothing.
        """
        try:
            await self._attempt(connection).one(PING, 0, retry.deadline, math.inf)
        except (Lost, ProtocolError, OutcomeUnknown):
            slot.drop_connection()
            raise refusal from None
        connection.sessionless_until = self.network.now() + SESSIONLESS_S

    def _attempt(self, connection: Connection) -> Attempt:
        return Attempt(connection, self.limits, self._discovery, self.network.now)

    def _note(self, slot: Slot, failure: Exception) -> None:
        """Draw the conclusions of a failed attempt: about the server, the connection, the session."""
        if isinstance(failure, SessionLost):
            slot.session = None
            if slot.connection:
                slot.connection.session = None
        elif isinstance(failure, GivenUp) or self.network.closed:
            slot.drop_connection()
        elif slot.connection and isinstance(failure, LEAVE) and not isinstance(failure, NoLeader):
            self._leave(slot.connection.address, isinstance(failure, NotServing | ForeignServer))
            if not isinstance(failure, NotServing):
                slot.drop_connection()

    def _leave(self, address: Address, refused: bool = False) -> None:
        self._discovery.failed(address, refused)
        self._pool.forget(address)

    async def _pause(self, retry: Retry, failure: Exception, exact: bool, last_words: bool = False) -> None:
        """Wait before the next attempt; raises what the caller must see instead.

        With `last_words` a few attempts are made even when the client was closed.
        """
        if self.network.closed and not (last_words and retry.attempts < LAST_ATTEMPTS):
            raise retry.interrupted(failure) from failure
        pause = retry.pause(failure, self.network.now(), exact=exact)
        self.counters.retries += 1
        LOG.info("attempt %d failed, the next one begins in %.3f s: %s", retry.attempts, pause, failure)
        if not retry.told and self.network.now() - retry.failing_since >= SILENT_S:
            retry.told = True
            LOG.warning(
                "no server has executed a command for %.0f s, it is tried for another %.0f s: %s",
                self.network.now() - retry.failing_since, retry.deadline - self.network.now(), failure,
            )
        await self.network.sleep(pause)

    def _retry(self, repeat: Repeat, timeout: float, retry_unknown: bool | None) -> Retry:
        at_least_once = self.limits.retry_unknown if retry_unknown is None else switch(retry_unknown, "retry_unknown")
        deadline = self.network.now() + timeout
        return Retry(repeat, retry_unknown=at_least_once, deadline=deadline, least_s=least_s(timeout))

    def _timeout(self, timeout: float | None) -> float:
        return self.limits.timeout if timeout is None else span(timeout, "timeout")


def _unknown_words(connection: Connection, words: tuple[str, ...]) -> NotSupported:
    return NotSupported(f"{connection.address}: this server does not know all of: {', '.join(words)}")


def _value(answer: Answer) -> Any:
    if answer.error:
        raise answer.error
    return answer.value
