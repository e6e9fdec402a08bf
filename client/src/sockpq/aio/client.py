"""The asyncio client."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncIterator, Iterable
from contextlib import nullcontext, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Unpack, overload

from sockpq._backends.access import access
from sockpq._backends.asyncio import LoopNetwork
from sockpq._engine.limits import Limits
from sockpq._engine.probe import ServerView, view_all
from sockpq._protocol.addresses import parse_servers
from sockpq._protocol.arguments import Then, span, switch
from sockpq._protocol.commands import Block, Command
from sockpq.aio.heartbeat import kept_alive
from sockpq.aio.job import Getting, Job
from sockpq.aio.transaction import Transaction
from sockpq.calls import Calls
from sockpq.errors import SockpqError
from sockpq.model import Handed
from sockpq.options import Data, GetOptions

if TYPE_CHECKING:
    from sockpq._backends.access import Tls

FAREWELL_S = 1.0        # so long close() waits until the last bytes have left


class Client(Calls[Job]):
    """`sockpq.Client` for asyncio: the same calls with the same meaning, as coroutines. For any number of tasks.

    It belongs to the event loop of its first call. A call whose task is cancelled may be executed all the same.
    """

    def __init__(
        self,
        servers: str | Iterable[str],
        *,
        tls: Tls = None,
        user: str | None = None,
        secret: str | None = None,
        timeout: float = 30.0,
        server_timeout: float = 5.0,
        connect_timeout: float = 1.0,
        retry_unknown: bool = False,
        sessions: bool = True,
        session_ttl: float = 900.0,
        idle_connections_max: int = 1000,
    ) -> None:
        """See sockpq.Client."""
        limits = Limits(
            timeout, server_timeout, connect_timeout, retry_unknown, sessions, session_ttl, idle_connections_max
        ).checked()
        self._network = LoopNetwork(access(tls, user, secret))
        self._leaving: set[asyncio.Task[None]] = set()
        super().__init__(self._network, Job, servers, limits)

    async def close(self) -> None:
        """End all connections. Calls under way in other tasks end with an error: ClientClosed, or OutcomeUnknown."""
        if self._leaving:
            await asyncio.wait(self._leaving, timeout=FAREWELL_S)
        await super().close()
        await self._network.drain(FAREWELL_S)

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    @overload
    def get(
        self,
        queues: str | Iterable[str] | None = None,
        *,
        block: Literal[True],
        expire: float | None = None,
        then: Then | None = None,
        wait: None = None,
        timeout: float | None = None,
        retry_unknown: bool | None = None,
        **options: Unpack[GetOptions],
    ) -> Getting[Job]: ...

    @overload
    def get(
        self,
        queues: str | Iterable[str] | None = None,
        *,
        block: Block = False,
        expire: float | None = None,
        then: Then | None = None,
        wait: float | None = None,
        timeout: float | None = None,
        retry_unknown: bool | None = None,
        **options: Unpack[GetOptions],
    ) -> Getting[Job | None]: ...

    def get(
        self,
        queues: str | Iterable[str] | None = None,
        *,
        block: Block = False,
        expire: float | None = None,
        then: Then | None = None,
        wait: float | None = None,
        timeout: float | None = None,
        retry_unknown: bool | None = None,
        **options: Unpack[GetOptions],
    ) -> Getting[Job | None]:
        """Take a job: `job = await client.get(..)`, or `async with client.get(..) as job:`. See sockpq.Client.get."""
        return Getting(super().get(
            queues, block=block, expire=expire, then=then, wait=wait, timeout=timeout, retry_unknown=retry_unknown,
            **options,
        ))

    def consume(
        self,
        queues: str | Iterable[str] | None = None,
        *,
        expire: float,
        then: Then | None = None,
        until_done: bool = False,
        wait: float | None = None,
        heartbeat: bool = False,
        timeout: float | None = None,
        **options: Unpack[GetOptions],
    ) -> AsyncIterator[Job]:
        """`async for job in client.consume("q", expire=30)`: one job after the other. See sockpq.Client.consume."""
        command = self._consuming(queues, expire, then, until_done, wait, options)
        lease = expire if switch(heartbeat, "heartbeat") else None
        current: list[Job] = []
        jobs = self._consume(command, wait, timeout, lease, current)
        weakref.finalize(jobs, self._left, current).atexit = False
        return jobs

    async def _consume(
        self,
        command: Command[Handed | None],
        wait: float | None,
        timeout: float | None,
        lease: float | None,
        current: list[Job],
    ) -> AsyncIterator[Job]:
        """`lease`: how long it is when it is to be kept up."""
        failures: list[SockpqError] = []
        while job := await self._take(command, wait, timeout, None):
            current[:] = [job]
            async with job, kept_alive(self, job, lease, failures) if lease else nullcontext():
                yield job
            if failures:
                raise failures[0]

    def _left(self, current: list[Job]) -> None:
        """Nobody goes on with a loop over consume(). asyncio ends it some time later; close() must not be faster."""
        with suppress(RuntimeError):        # no loop runs here: the garbage collector of another thread has found it
            loop = asyncio.get_running_loop()
            for job in current:
                task = loop.create_task(job.__aexit__(None, GeneratorExit(), None))
                self._leaving.add(task)
                task.add_done_callback(self._leaving.discard)

    def transaction(self, *, timeout: float | None = None) -> Transaction:
        """`async with client.transaction() as t: t.done(job); t.put(..)`: all or nothing. See sockpq.Client."""
        return Transaction(self._caller, timeout)

    def call(
        self,
        queue: str,
        data: Data,
        output: str,
        *,
        priority: int = 0,
        item: str | None = None,
        expire: float | None = None,
        then: Then | None = None,
        wait: float | None = None,
        timeout: float | None = None,
        retry_unknown: bool | None = None,
    ) -> Getting[Job]:
        """Queue a job and wait for its output, with `await` or `async with`. See sockpq.Client.call."""
        return Getting(super().call(
            queue, data, output, priority=priority, item=item, expire=expire, then=then, wait=wait, timeout=timeout,
            retry_unknown=retry_unknown,
        ))


async def survey(
    servers: str | Iterable[str],
    timeout: float = 0.5,
    *,
    tls: Tls = None,
    user: str | None = None,
    secret: str | None = None,
) -> list[ServerView]:
    """`sockpq._engine.probe` for asyncio."""
    network = LoopNetwork(access(tls, user, secret))
    views = await view_all(network, parse_servers(servers), span(timeout, "timeout"))
    await network.drain(FAREWELL_S)
    return views
