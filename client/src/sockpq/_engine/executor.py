"""Executes commands on whichever server serves: single ones, batches, and commands for a named server."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from sockpq._backends.base import Network
from sockpq._engine.attempt import TINY_S, Alone, Attempt, unknown_words, value_of
from sockpq._engine.batch import Batch
from sockpq._engine.call_runner import Call, CallRunner, PutBack
from sockpq._engine.connection import Connection
from sockpq._engine.identity import Identity
from sockpq._engine.leader_connections import LeaderConnections
from sockpq._engine.limits import Limits
from sockpq._engine.pool import Slot
from sockpq._engine.probe import hopeless, status_of_best
from sockpq._engine.retry import ForeignServer, Lost, Retry, as_unknown, is_unknown, least_s, pause_s
from sockpq._engine.stats import Counters
from sockpq._engine.tracing import Tracing
from sockpq._protocol.addresses import Address
from sockpq._protocol.arguments import Bodies, Codec, HeadersWanted, switch
from sockpq._protocol.command import Command, Repeat
from sockpq._protocol.commands.cluster import PING
from sockpq._protocol.protocol import Answer
from sockpq.errors import (
    BatchFailed,
    ForeignCluster,
    NotExecuted,
    NotServing,
    OutcomeUnknown,
    ProtocolError,
    SockpqError,
    Unavailable,
)
from sockpq.model import NodeStatus

T = TypeVar("T")


class Executor:
    """Executes commands on whichever server serves. As many threads or tasks as its network allows may share it."""

    def __init__(
        self, network: Network, addresses: tuple[Address, ...], limits: Limits, codec: Codec | None = None,
        tracing: Tracing | None = None, cluster: str | None = None, counters: Counters | None = None,
    ) -> None:
        """`codec` and `tracing` are the client's; `cluster`: the id of the only one to use, if it is known.

        `counters`: shared by all clusters of a client.
        """
        self.bodies = Bodies(codec, tracing.headers if tracing else None)
        self.tracing = tracing
        self.limits = limits
        self.network = network
        self._connections = LeaderConnections(network, addresses, limits, Identity(cluster), counters)
        self.calls = CallRunner(self._connections)
        self.identity = self._connections.identity
        self.counters = self._connections.counters
        self.guard: Callable[[], None] | None = None    # called before each call, in the thread of the caller

    @property
    def leader(self) -> Address | None:
        """The server to which calls are sent now; None while it is being searched for."""
        return self._connections.discovery.known_leader

    @property
    def addresses(self) -> tuple[Address, ...]:
        """All servers that are known."""
        return self._connections.addresses

    def also_at(self, addresses: tuple[Address, ...]) -> None:
        """Use these servers as well as those that are known."""
        self._connections.discovery.also_at(addresses)

    def close(self) -> None:
        """Close all connections and sessions, and end all calls in flight."""
        self._connections.close()

    def asks_for(self, headers: bool) -> HeadersWanted:
        """Return how to ask for headers when taking jobs: True, False, or "if_known", as a client that traces does."""
        return switch(headers, "headers") or ("if_known" if self.tracing else False)

    async def connect(self, *, timeout: float | None = None) -> None:
        """Prepare a connection to the serving leader, and a session, for the next call."""
        slot = self._connections.take()
        try:
            await self.calls.run_attached(slot, PING, self.calls.timeout(timeout))
        finally:
            self._connections.give_back(slot)

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
        (None: without limit); a GET whose wait ends without a job returns None. `put_back`: puts a job back if the
        caller is interrupted, or the client is closed.
        """
        if self.guard:
            self.guard()
        if self.tracing:
            with self.tracing.call(command):
                return await self._run(command, timeout, wait, retry_unknown, put_back)
        return await self._run(command, timeout, wait, retry_unknown, put_back)

    async def _run(
        self, command: Command[T], timeout: float | None, wait: float | None, retry_unknown: bool | None,
        put_back: PutBack[T] | None,
    ) -> T:
        return await self.run_call(
            self.calls.call(command, timeout=timeout, wait=wait, retry_unknown=retry_unknown), put_back
        )

    async def run_call(self, call: Call[T], put_back: PutBack[T] | None) -> T:
        """Execute a call that was made before, so that it can be withdrawn. `put_back`: see run."""
        slot = self._connections.take()
        try:
            return await self.calls.run_in(slot, call, put_back)
        finally:
            self._connections.give_back(slot)

    async def run_batch(
        self,
        commands: Sequence[Command[Any]],
        *,
        timeout: float | None = None,
        retry_unknown: bool | None = None,
        partly: bool = False,
    ) -> list[Answer | None]:
        """Execute commands pipelined on one connection; returns their answers, which may be errors, in order.

        `timeout` limits the time without any answer. `partly`: after a failure with an unknown outcome return the
        answers so far, None for the rest, instead of continuing. Raises BatchFailed, or what `run` raises when nothing
        at all was executed.
        """
        timeout = self.calls.timeout(timeout)
        if not commands:
            return []
        batch = Batch(commands, brings_jobs=partly)
        retry = self.calls.retry(commands[0].repeat, timeout, retry_unknown)
        slot = self._connections.take()
        try:
            while True:
                retry.bound = any(batch.answers)
                failure = await self._try_batch(slot, batch, retry, timeout)
                if failure is None or (partly and not batch.exact and any(batch.answers)):
                    break
                self._connections.note(slot, failure)
                try:
                    await self.calls.pause(retry, failure, batch.exact)
                except (NotExecuted, OutcomeUnknown) as error:
                    if partly and any(batch.answers):
                        break
                    if batch.unknown or any(batch.answers):
                        raise BatchFailed(str(error), batch.unknown, batch.not_executed) from error
                    raise
                batch.again()
        finally:
            self._connections.give_back(slot)
        return batch.answers

    async def _try_batch(self, slot: Slot, batch: Batch, retry: Retry, timeout: float) -> Exception | None:
        """Make one attempt for all commands without an answer; returns why another is needed, None if none is."""
        try:
            connection = await self._connections.connection(slot, retry, numbered=True)
            attempt = self._connections.attempt(connection)
            if batch.needs and not await attempt.knows(batch.needs, retry.deadline):
                raise unknown_words(connection, batch.needs)
            batch.begin(connection.session)
            await attempt.batch(batch, retry, timeout)
        except (Lost, SockpqError) as error:
            return error if batch.lost() or not is_unknown(error) else Lost(str(error), sent=False)
        return batch.refusal

    async def run_at(self, address: Address, command: Command[T], *, timeout: float | None = None) -> T:
        """Execute one command on exactly this server, once, on a connection of its own."""
        timeout = self.calls.timeout(timeout)
        deadline = self.network.now() + timeout
        limits = self.limits._replace(server_timeout=timeout) if command.slow else self.limits
        slot = self._connections.take(new=True)
        try:
            connection = await self._connections.connect(slot, address, deadline)
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
            self._connections.give_back(slot)
        value: T = value_of(answer)
        return value

    async def run_at_leader(self, command: Command[T], *, timeout: float | None = None) -> T:
        """Execute one command on the server that leads, even while it serves no jobs.

        All others refuse it, so they are asked in turn. A command that got no answer is not repeated.
        """
        timeout = self.calls.timeout(timeout)
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
            await self._connections.discovery.learn(deadline)
            refusals = refusals[-len(self.addresses) :]
            attempts += 1
            await self.network.sleep(min(pause_s(attempts), max(deadline - self.network.now(), 0)))

    async def status_of_best(self, timeout: float) -> list[NodeStatus]:
        """Return CLUSTER STATUS of the best server of the client's cluster. Raises Unavailable, AuthError."""
        return await status_of_best(self.network, self.addresses, timeout, self.identity.check)

    def look_around(self, look: Callable[[], Awaitable[None]], every: float) -> None:
        """Call `look` every `every` seconds, or less often, while a command is blocked; it must not raise."""
        self._connections.discovery.look_around = look
        self._connections.discovery.look_s = every

    # for uses that last longer than a call (_streaming)

    def take_slot(self, session_ttl: float | None = None) -> Slot:
        """Return a slot with its own connection and, if necessary, session. Raises ClientClosed."""
        slot = self._connections.take(new=True)
        slot.session_ttl = session_ttl
        return slot

    def give_back(self, slot: Slot) -> None:
        """Return a slot that is no longer used."""
        self._connections.give_back(slot)

    async def connect_to(self, slot: Slot, address: Address, deadline: float) -> Connection:
        """Return a new connection to this server; raises what Connection.open raises, and ClientClosed."""
        slot.drop_connection()
        return await self._connections.connect(slot, address, deadline)

    async def event_servers(self, deadline: float) -> list[Address]:
        """Return all servers that are known; if there is only one, it is first asked for the others."""
        if self._connections.discovery.wants_members():
            await self._connections.discovery.learn(deadline)
        return list(self.addresses)
