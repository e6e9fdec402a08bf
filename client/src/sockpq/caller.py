"""How a call reaches the serving leader: attempts, failover, waiting. The blocking half of the client without names."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Any, TypeVar

from sockpq.addresses import Address
from sockpq.arguments import span
from sockpq.batch import Batch
from sockpq.commands import PING, Blocks, Command, Repeat
from sockpq.connection import Connection
from sockpq.errors import (
    BatchFailed,
    ClientClosed,
    NotExecuted,
    NotServing,
    OutcomeUnknown,
    ProtocolError,
    SockpqError,
    Unavailable,
)
from sockpq.finder import Finder
from sockpq.pool import Pool
from sockpq.protocol import Answer
from sockpq.retry import Lost, Retry, as_unknown, is_unknown

T = TypeVar("T")


@dataclass(frozen=True)
class Limits:
    """Time limits in seconds, and what to do with unknown outcomes."""

    timeout: float              # a whole call, all its attempts together
    server_timeout: float       # one server's silence while it owes an answer
    connect_timeout: float
    retry_unknown: bool


class Caller:
    """Executes commands on whatever server serves. Thread-safe."""

    def __init__(self, addresses: tuple[Address, ...], limits: Limits, idle_max: int) -> None:
        self.limits = limits
        self.addresses = addresses
        self._finder = Finder(addresses, limits.connect_timeout)
        self._pool = Pool(limits.connect_timeout, idle_max)

    def close(self) -> None:
        """End all connections and all calls under way."""
        self._pool.close()

    def run(
        self,
        command: Command[T],
        *,
        timeout: float | None = None,
        wait: float | None = None,
        retry_unknown: bool | None = None,
    ) -> T:
        """Execute one command on the serving leader.

        `timeout` limits the time without a server that executes it, `wait` the time a blocked command stays blocked
        (None: without limit); a GET whose wait ends without a job is worth None.
        """
        timeout = self._timeout(timeout)
        wait = math.inf if wait is None else span(wait, "wait")
        wait_until: float | None = None
        retry = self._retry(command.repeat, timeout, retry_unknown)
        while True:
            begun = monotonic()
            try:
                with self._serving(retry) as connection:
                    wait_until = wait_until or monotonic() + wait
                    answer = self._exchange(connection, command, retry.deadline, wait_until)
                value: T = _value(answer)
                return value
            except (Lost, SockpqError) as failure:
                now = monotonic()
                if command.blocks is not Blocks.NEVER and now - begun > self.limits.server_timeout:
                    retry.progress(now + timeout)       # it was blocked, as it should be: the search begins anew
                self._pause(retry, failure)

    def run_batch(
        self,
        commands: Sequence[Command[Any]],
        *,
        timeout: float | None = None,
        retry_unknown: bool | None = None,
        partly: bool = False,
    ) -> list[Answer | None]:
        """Execute commands pipelined on one connection; returns their answers, which may be errors, in order.

        `timeout` limits the time without any answer. `partly`: after a failure return what was answered so far, None
        for the rest, instead of going on. Raises BatchFailed, or what `run` raises when nothing at all was executed.
        """
        timeout = self._timeout(timeout)
        batch = Batch(commands)
        retry = self._retry(commands[0].repeat if commands else Repeat.FREELY, timeout, retry_unknown)
        failure: Exception | None
        while commands:
            try:
                with self._serving(retry) as connection:
                    self._exchange_batch(connection, batch, retry, timeout)
                    failure = batch.refusal
            except (Lost, SockpqError) as error:
                failure = error if batch.lost() or not is_unknown(error) else Lost(str(error), sent=False)
            if failure is None or (partly and any(batch.answers)):
                break
            try:
                self._pause(retry, failure)
            except (NotExecuted, OutcomeUnknown) as error:
                if batch.unknown or any(batch.answers):
                    raise BatchFailed(str(error), batch.unknown, batch.not_executed) from error
                raise
            batch.again()
        return batch.answers

    def run_at(self, address: Address, command: Command[T], *, timeout: float | None = None) -> T:
        """Execute one command on exactly this server, once."""
        deadline = monotonic() + self._timeout(timeout)
        try:
            with self._pool.connection(address) as connection:
                answer = self._exchange(connection, command, deadline, math.inf)
        except (Lost, ProtocolError) as failure:
            if is_unknown(failure) and command.repeat is not Repeat.FREELY:
                raise as_unknown(failure) from failure
            raise Unavailable(str(failure)) from failure
        value: T = _value(answer)
        return value

    @contextmanager
    def _serving(self, retry: Retry) -> Iterator[Connection]:
        """A connection to the leader; a failure inside the block makes the next attempt look for another."""
        address = self._finder.leader(retry.deadline, retry.attempts)
        try:
            with self._pool.connection(address) as connection:
                yield connection
        except (Lost, ProtocolError):
            self._leave(address)
            raise

    def _leave(self, address: Address) -> None:
        self._finder.failed(address)
        self._pool.forget(address)

    def _exchange(self, connection: Connection, command: Command[Any], deadline: float, wait_until: float) -> Answer:
        """Send one command and wait for its answer."""
        if connection.send([command], self._patience(deadline)) == 0:
            raise Lost(f"{connection.address}: the connection broke while sending", sent=False)
        while True:
            blocked = _is_blocked(connection, command)
            patience = self._patience(wait_until if blocked else deadline)
            try:
                answers = connection.receive(patience)
            except TimeoutError:
                if not blocked:
                    raise connection.lost(f"silent for {patience:.1f} s") from None
                if monotonic() >= wait_until:
                    return self._withdraw(connection)
                self._probe(connection)
                continue
            if answers:
                if isinstance(answers[0].error, NotServing | OutcomeUnknown):
                    self._leave(connection.address)
                return answers[0]

    def _withdraw(self, connection: Connection) -> Answer:
        """Take back a blocked command: half-close, and take the answer that may be on its way all the same."""
        waiting = connection.protocol.waiting
        until = monotonic() + self.limits.server_timeout
        connection.finish()
        while True:
            try:
                answers = connection.receive(max(until - monotonic(), 0.001))
            except TimeoutError:
                raise connection.lost("it did not take back the blocked command") from None
            except Lost as end:
                if waiting:
                    raise Lost("none came in time", sent=True, waiting=waiting) from end
                return Answer(None)
            if answers:
                return answers[0]

    def _probe(self, connection: Connection) -> None:
        """Is the server of this blocked connection still alive? Raises Lost when it is not."""
        try:
            self.run_at(connection.address, PING, timeout=self.limits.server_timeout)
        except (NotExecuted, OutcomeUnknown) as error:
            if isinstance(error, Unavailable):
                raise connection.lost(f"it no longer answers: {error}") from error

    def _exchange_batch(self, connection: Connection, batch: Batch, retry: Retry, timeout: float) -> None:
        """Send and receive until the batch has nothing more to do on this connection."""
        while True:
            commands = batch.next()
            if commands:
                complete = connection.send(commands, self._patience(retry.deadline))
                if complete < len(commands):
                    batch.not_sent(len(commands) - complete)
                    raise connection.lost("the connection broke while sending")
            if not batch.in_flight:
                return
            patience = self._patience(retry.deadline)
            try:
                answers = connection.receive(patience)
            except TimeoutError:
                raise connection.lost(f"silent for {patience:.1f} s") from None
            if batch.answered(answers):
                retry.progress(monotonic() + timeout)
            if isinstance(batch.refusal, NotServing):
                self._leave(connection.address)

    def _pause(self, retry: Retry, failure: Exception) -> None:
        """Wait before the next attempt; raises what the caller must see instead."""
        if self._pool.closed.is_set():
            raise as_unknown(failure) if is_unknown(failure) else ClientClosed("the client was closed") from failure
        self._pool.closed.wait(retry.pause(failure, monotonic()))

    def _retry(self, repeat: Repeat, timeout: float, retry_unknown: bool | None) -> Retry:
        at_least_once = self.limits.retry_unknown if retry_unknown is None else retry_unknown
        return Retry(repeat, retry_unknown=at_least_once, deadline=monotonic() + timeout)

    def _timeout(self, timeout: float | None) -> float:
        return self.limits.timeout if timeout is None else span(timeout, "timeout")

    def _patience(self, until: float) -> float:
        """How long to wait for the next byte."""
        return max(min(self.limits.server_timeout, until - monotonic()), 0.001)


def _is_blocked(connection: Connection, command: Command[Any]) -> bool:
    """Is the server right not to answer?"""
    if command.blocks is Blocks.AFTER_206:
        return connection.protocol.waiting is not None
    return command.blocks is Blocks.AT_ONCE


def _value(answer: Answer) -> Any:
    if answer.error:
        raise answer.error
    return answer.value
