"""What the blocking client has for whole queues, their settings, and jobs that nobody has."""

from __future__ import annotations

from typing import Literal, Unpack

from sockpq._backends.sync import run
from sockpq._protocol.job_commands import State
from sockpq._protocol.queue_commands import ClusterSettings, Direction, QueueSettings
from sockpq.job import Job
from sockpq.model import Key, PeekedJob, QueueTotals, RunningJob, Totals
from sockpq.options import Data
from sockpq.server_client import ServerClient


class QueueClient(ServerClient):
    """The queues."""

    # the state of the queues

    def total(self, queue: str | None = None, *, server: str | None = None, timeout: float | None = None) -> Totals:
        """Counts over all queues or one of them; `server` asks this one, whose answer may lag."""
        return run(self._calls.total(queue, server=server, timeout=timeout))

    def queues(
        self, prefix: str = "", *, server: str | None = None, timeout: float | None = None
    ) -> list[QueueTotals]:
        """The queues whose names begin with `prefix`, in no particular order; `server` as for total()."""
        return run(self._calls.queues(prefix, server=server, timeout=timeout))

    def running(
        self, data: bool = False, *, server: str | None = None, timeout: float | None = None
    ) -> list[RunningJob]:
        """The running jobs in the order of their ids, with their data if asked for."""
        return run(self._calls.running(data, server=server, timeout=timeout))

    def snapshot(self, *, server: str | None = None, timeout: float | None = None) -> bytes:
        """The whole state, for clone()."""
        return run(self._calls.snapshot(server=server, timeout=timeout))

    def clone(self, snapshot: Data, *, timeout: float | None = None, retry_unknown: bool | None = None) -> None:
        """Replace the state of the whole cluster by a snapshot. Raises InvalidSnapshot; nothing is changed then."""
        run(self._calls.clone(snapshot, timeout=timeout, retry_unknown=retry_unknown))

    # jobs in whatever state

    def peek(
        self, job: Job | int | Key, *, server: str | None = None, timeout: float | None = None
    ) -> PeekedJob | None:
        """Look at a running job, or the one with this `Key`, without taking it; None when there is none."""
        return run(self._calls.peek(job, server=server, timeout=timeout))

    def peek_queue(
        self,
        queue: str,
        state: State = "ready",
        count: int = 1,
        *,
        server: str | None = None,
        timeout: float | None = None,
    ) -> list[PeekedJob]:
        """Look at the first `count` jobs of a queue that are "ready", "delayed", "running" or "dead".

        The dead ones are those that were given up in this queue.
        """
        return run(self._calls.peek_queue(queue, state, count, server=server, timeout=timeout))

    def kick(
        self, queue: str, count: int, *, timeout: float | None = None, retry_unknown: bool | None = None
    ) -> int:
        """Let up to `count` jobs that were given up in this queue wait there again, as if new; returns how many."""
        return run(self._calls.kick(queue, count, timeout=timeout, retry_unknown=retry_unknown))

    # queues and settings

    def queue_create(self, queue: str, *, timeout: float | None = None, **settings: Unpack[QueueSettings]) -> None:
        """Make a queue with these settings (sockpq.QueueSettings). Raises QueueExists."""
        run(self._calls.queue_create(queue, timeout=timeout, **settings))

    def queue_config(
        self, queue: str, *, timeout: float | None = None, **settings: Unpack[QueueSettings]
    ) -> dict[str, str]:
        """Change settings of a queue, which need not exist; without any only look.

        Returns all of them in the protocol's words: {"limit": "3", ..}. Raises QueueNotFound when it has none and none
        were given, QueueNotEmpty when it has too many jobs for another order.
        """
        return run(self._calls.queue_config(queue, timeout=timeout, **settings))

    def queue_delete(self, queue: str, *, force: bool = False, timeout: float | None = None) -> None:
        """Remove a queue with its settings, and with `force` also with its jobs, the running ones too.

        Raises QueueNotFound, QueueNotEmpty.
        """
        run(self._calls.queue_delete(queue, force=force, timeout=timeout))

    def queue_purge(
        self,
        queue: str,
        state: State | Literal["all"],
        *,
        timeout: float | None = None,
        retry_unknown: bool | None = None,
    ) -> int:
        """Remove the jobs that are "ready", "delayed" or "dead", or all of these; running ones never.

        Returns how many. Raises QueueNotFound.
        """
        return run(self._calls.queue_purge(queue, state, timeout=timeout, retry_unknown=retry_unknown))

    def queue_pause(self, queue: str, direction: Direction = "all", *, timeout: float | None = None) -> None:
        """Let no job in (put() raises QueuePaused), none out (get() finds it empty), or both."""
        run(self._calls.queue_pause(queue, direction, timeout=timeout))

    def queue_resume(self, queue: str, *, timeout: float | None = None) -> None:
        """End the pause. Raises QueueNotFound."""
        run(self._calls.queue_resume(queue, timeout=timeout))

    def queue_stat(
        self, queue: str, *, server: str | None = None, timeout: float | None = None
    ) -> dict[str, int]:
        """The counters of a queue, in the protocol's words. Raises QueueNotFound."""
        return run(self._calls.queue_stat(queue, server=server, timeout=timeout))

    def config(self, *, timeout: float | None = None, **settings: Unpack[ClusterSettings]) -> dict[str, str]:
        """Change settings of the cluster (sockpq.ClusterSettings), one after the other; without any only look.

        Returns all of them in the protocol's words.
        """
        return run(self._calls.config(timeout=timeout, **settings))
