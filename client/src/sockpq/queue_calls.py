"""The calls for queues, their settings, and jobs that nobody has; sockpq.Client tells what each is for."""

from __future__ import annotations

from typing import Literal, Unpack

from sockpq._protocol import commands, job_commands, queue_commands
from sockpq._protocol.job_commands import State
from sockpq._protocol.queue_commands import ClusterSettings, Direction, QueueSettings
from sockpq.job import TakenJob
from sockpq.model import Key, PeekedJob, QueueTotals, RunningJob, Totals
from sockpq.options import Data
from sockpq.server_calls import ServerCalls
from sockpq.transaction import id_of


class QueueCalls(ServerCalls):
    """What a client has for whole queues."""

    async def total(
        self, queue: str | None = None, *, server: str | None = None, timeout: float | None = None
    ) -> Totals:
        """Counts over all queues or one of them."""
        return await self._ask(commands.total(queue), server, timeout)

    async def queues(
        self, prefix: str = "", *, server: str | None = None, timeout: float | None = None
    ) -> list[QueueTotals]:
        """The queues whose names begin with `prefix`."""
        return await self._ask(commands.queues(prefix), server, timeout)

    async def running(
        self, data: bool = False, *, server: str | None = None, timeout: float | None = None
    ) -> list[RunningJob]:
        """The running jobs in the order of their ids, with their data if asked for."""
        return await self._ask(commands.running(data), server, timeout)

    async def snapshot(self, *, server: str | None = None, timeout: float | None = None) -> bytes:
        """The whole state, for clone()."""
        return await self._ask(commands.SNAPSHOT, server, timeout)

    async def clone(self, snapshot: Data, *, timeout: float | None = None, retry_unknown: bool | None = None) -> None:
        """Replace the state of the whole cluster by a snapshot."""
        await self._caller.run(commands.clone(snapshot), timeout=timeout, retry_unknown=retry_unknown)

    # single jobs, in whatever state

    async def peek(
        self, job: TakenJob | int | Key, *, server: str | None = None, timeout: float | None = None
    ) -> PeekedJob | None:
        """Look at a job; None when there is none."""
        command = job_commands.peek(job if isinstance(job, Key) else id_of(job))
        return await self._ask(command, server, timeout)

    async def peek_queue(
        self, queue: str, state: State = "ready", count: int = 1, *, server: str | None = None,
        timeout: float | None = None,
    ) -> list[PeekedJob]:
        """Look at the first jobs of a queue that are in this state."""
        return await self._ask(job_commands.peek_queue(queue, state, count), server, timeout)

    async def kick(
        self, queue: str, count: int, *, timeout: float | None = None, retry_unknown: bool | None = None
    ) -> int:
        """Let dead jobs of a queue wait in it again; returns how many."""
        return await self._caller.run(job_commands.kick(queue, count), timeout=timeout, retry_unknown=retry_unknown)

    # queues and settings

    async def queue_create(
        self, queue: str, *, timeout: float | None = None, **settings: Unpack[QueueSettings]
    ) -> None:
        """Make a queue."""
        await self._caller.run(queue_commands.create(queue, settings), timeout=timeout)

    async def queue_config(
        self, queue: str, *, timeout: float | None = None, **settings: Unpack[QueueSettings]
    ) -> dict[str, str]:
        """Change settings; returns all of them."""
        if settings:
            await self._caller.run(queue_commands.configure(queue, settings), timeout=timeout)
        return await self._caller.run(queue_commands.config(queue), timeout=timeout)

    async def queue_delete(self, queue: str, *, force: bool = False, timeout: float | None = None) -> None:
        """Remove a queue."""
        await self._caller.run(queue_commands.delete(queue, force), timeout=timeout)

    async def queue_purge(
        self, queue: str, state: State | Literal["all"], *, timeout: float | None = None,
        retry_unknown: bool | None = None,
    ) -> int:
        """Remove the jobs of a queue that are in this state; returns how many."""
        command = queue_commands.purge(queue, state)
        return await self._caller.run(command, timeout=timeout, retry_unknown=retry_unknown)

    async def queue_pause(self, queue: str, direction: Direction = "all", *, timeout: float | None = None) -> None:
        """Let nothing in, out, or both."""
        await self._caller.run(queue_commands.pause(queue, direction), timeout=timeout)

    async def queue_resume(self, queue: str, *, timeout: float | None = None) -> None:
        """End the pause."""
        await self._caller.run(queue_commands.resume(queue), timeout=timeout)

    async def queue_stat(
        self, queue: str, *, server: str | None = None, timeout: float | None = None
    ) -> dict[str, int]:
        """The counters of a queue."""
        return await self._ask(queue_commands.stat(queue), server, timeout)

    async def config(self, *, timeout: float | None = None, **settings: Unpack[ClusterSettings]) -> dict[str, str]:
        """Change settings of the cluster; returns all of them."""
        for command in queue_commands.cluster_configure(settings):
            await self._caller.run(command, timeout=timeout)
        return await self._caller.run(queue_commands.CONFIG, timeout=timeout)
