"""How a call reaches the serving leader: attempts, failover, giving up. exchange.py has what happens in one attempt."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
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
from sockpq.exchange import TINY_S, Exchange, Limits, Watch
from sockpq.finder import Finder
from sockpq.pool import Pool
from sockpq.protocol import Answer
from sockpq.retry import Lost, Retry, as_unknown, is_unknown, pause_s

T = TypeVar("T")


ALONE = Watch(taken_over=lambda address: False, alive=lambda address: True)     # the caller named the server


class Caller:
    """Executes commands on whatever server serves. Thread-safe."""

    def __init__(self, addresses: tuple[Address, ...], limits: Limits, idle_max: int) -> None:
        self.limits = limits
        self.addresses = addresses
        self._finder = Finder(addresses, limits.connect_timeout)
        self._pool = Pool(limits.connect_timeout, idle_max)
        self._watch = Watch(self._finder.taken_over, self._alive)

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
                    answer = Exchange(connection, self.limits, self._watch).one(command, retry.deadline, wait_until)
                if isinstance(answer.error, NotServing | OutcomeUnknown):
                    self._leave(connection.address)
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
                    Exchange(connection, self.limits, self._watch).batch(batch, retry, timeout)
                if isinstance(batch.refusal, NotServing):
                    self._leave(connection.address)
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
        timeout = self._timeout(timeout)
        deadline = monotonic() + timeout
        limits = replace(self.limits, server_timeout=timeout) if command.slow else self.limits
        try:
            with self._pool.connection(address) as connection:
                answer = Exchange(connection, limits, ALONE).one(command, deadline, math.inf)
        except (Lost, ProtocolError) as failure:
            if is_unknown(failure) and command.repeat is not Repeat.FREELY:
                raise as_unknown(failure) from failure
            raise Unavailable(str(failure)) from failure
        value: T = _value(answer)
        return value

    def run_at_leader(self, command: Command[T], *, timeout: float | None = None) -> T:
        """Execute one command on the server that leads, also while it serves no jobs.

        Every other one refuses it, so they are asked in turn. What got no answer is not repeated.
        """
        deadline = monotonic() + self._timeout(timeout)
        attempts = 0
        while True:
            refusals = []
            for address in self.addresses:
                try:
                    return self.run_at(address, command, timeout=max(deadline - monotonic(), TINY_S))
                except (NotServing, Unavailable) as refusal:
                    refusals.append(f"{address}: {refusal}")
            attempts += 1
            self._pool.closed.wait(min(pause_s(attempts), max(deadline - monotonic(), 0)))
            if monotonic() >= deadline:
                raise Unavailable(f"no server leads: {'; '.join(refusals)}")

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

    def _alive(self, address: Address) -> bool:
        """Does the server answer on another connection?"""
        try:
            self.run_at(address, PING, timeout=self.limits.server_timeout)
        except Unavailable:
            return False
        except SockpqError:     # a server without PING is alive too
            return True
        return True

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


def _value(answer: Answer) -> Any:
    if answer.error:
        raise answer.error
    return answer.value
