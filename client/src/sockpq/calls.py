"""The calls both clients offer: arguments to commands, answers to values. sockpq.Client tells what each is for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from sockpq import commands
from sockpq.addresses import parse_server, parse_servers
from sockpq.arguments import Then, integer, span, switch
from sockpq.caller import Caller
from sockpq.commands import Block, Command, Data, Repeat
from sockpq.errors import (
    AuthError,
    BadArguments,
    BatchFailed,
    ForbiddenError,
    JobNotFound,
    OutcomeUnknown,
    Unavailable,
)
from sockpq.job import TakenJob
from sockpq.limits import Limits
from sockpq.model import Finished, Handed, Leader, NodeStatus, QueueTotals, RunningJob, StateHash, Totals, User
from sockpq.network import Network
from sockpq.survey import hopeless, view_all

T = TypeVar("T")
J = TypeVar("J", bound=TakenJob)


class Calls(Generic[J]):
    """Every call of a client, over whatever network. `J` is the kind of job it hands out."""

    def __init__(
        self, network: Network, job: Callable[[Calls[Any], Handed], J], servers: str | Iterable[str], limits: Limits
    ) -> None:
        self._caller = Caller(network, parse_servers(servers), limits)
        self._job = job

    async def close(self) -> None:
        """End all connections and sessions, and all calls under way with an error."""
        self._caller.close()

    # jobs

    async def put(
        self,
        queue: str,
        data: Data,
        priority: int = 0,
        item: str | None = None,
        new_item: bool = False,
        *,
        timeout: float | None = None,
        retry_unknown: bool | None = None,
    ) -> str | None:
        """Queue a job; returns the item's name, or None."""
        command = commands.put(queue, data, priority, item, new_item)
        return await self._caller.run(command, timeout=timeout, retry_unknown=retry_unknown)

    async def put_many(
        self,
        queue: str,
        datas: Iterable[Data],
        priority: int = 0,
        item: str | None = None,
        *,
        timeout: float | None = None,
        retry_unknown: bool | None = None,
    ) -> int:
        """Queue a job for each of `datas`, pipelined; returns their number."""
        puts = commands.puts(queue, datas, priority, item)
        answers = await self._caller.run_batch(puts, timeout=timeout, retry_unknown=retry_unknown)
        refused = {position: answer.error for position, answer in enumerate(answers) if answer and answer.error}
        for error in refused.values():
            if len(refused) == len(puts) and isinstance(error, AuthError | ForbiddenError):
                raise error
            raise BatchFailed(f"{len(refused)} of {len(puts)} refused: {error}", (), tuple(refused)) from error
        return len(puts)

    async def get(
        self,
        queues: str | Iterable[str] | None = None,
        *,
        block: Block = False,
        expire: float | None = None,
        then: Then | None = None,
        wait: float | None = None,
        timeout: float | None = None,
        retry_unknown: bool | None = None,
    ) -> J | None:
        """Take a job, the greatest priority first; None when there is none."""
        if wait is not None and block is False:
            raise BadArguments("wait limits a blocking get: it needs block")
        command = commands.get(queues, block, expire, then)
        return await self._take(command, wait, timeout, retry_unknown)

    def _consuming(
        self, queues: str | Iterable[str] | None, expire: float, then: Then | None, until_done: bool, wait: float | None
    ) -> Command[Handed | None]:
        """What consume() says to get each of its jobs; checks its arguments."""
        block: Block = "until_done" if switch(until_done, "until_done") else True
        if wait is not None:
            span(wait, "wait")
        return _leased(commands.get(queues, block, expire, then), "consume")

    async def _take(
        self, command: Command[Handed | None], wait: float | None, timeout: float | None, retry_unknown: bool | None
    ) -> J | None:
        """Take a job with this command."""
        handed = await self._caller.run(command, timeout=timeout, wait=wait, retry_unknown=retry_unknown)
        return self._job(self, handed) if handed else None

    async def get_many(
        self,
        count: int,
        queues: str | Iterable[str] | None = None,
        *,
        expire: float,
        then: Then | None = None,
        timeout: float | None = None,
    ) -> list[J]:
        """Take up to `count` jobs at once, pipelined; [] when there is none."""
        command = _leased(commands.get(queues, False, expire, then), "get_many")
        gets = [command] * integer(count, "count", 1, 10_000)
        answers = await self._caller.run_batch(gets, timeout=timeout, partly=True)
        for answer in answers:
            if answer and answer.error:
                raise answer.error
        return [self._job(self, answer.value) for answer in answers if answer and answer.value]

    async def done(
        self, job: J | int, *, timeout: float | None = None, retry_unknown: bool | None = None
    ) -> Finished:
        """Remove a running job; tells whether its queue or its item has come to an end with it."""
        command = commands.done(job.id if isinstance(job, TakenJob) else job)
        at_least_once = self._caller.limits.retry_unknown if retry_unknown is None else retry_unknown
        try:
            return await self._caller.run(command, timeout=timeout, retry_unknown=retry_unknown)
        except OutcomeUnknown as error:
            if at_least_once and isinstance(error.__cause__, JobNotFound):
                return Finished(False, False)
            raise

    async def done_many(self, jobs: Iterable[J | int], *, timeout: float | None = None) -> list[Finished | None]:
        """Remove many running jobs, pipelined; None in the place of a job that is not running (any more)."""
        dones = [commands.done(job.id if isinstance(job, TakenJob) else job) for job in jobs]
        answers = await self._caller.run_batch(dones, timeout=timeout)
        for answer in answers:
            if answer and answer.error and not isinstance(answer.error, JobNotFound):
                raise answer.error
        return [answer.value if answer else None for answer in answers]

    async def later(self, job: J | int, *, timeout: float | None = None) -> None:
        """Put a running job back at the end of its queue."""
        command = commands.later(job.id if isinstance(job, TakenJob) else job)
        try:
            await self._caller.run(command, timeout=timeout)
        except OutcomeUnknown as error:
            if not isinstance(error.__cause__, JobNotFound):    # after a lost answer: it is back, or was done
                raise

    async def call(
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
    ) -> J:
        """Queue a job and wait for the job of the same item in queue `output`."""
        command = commands.call(queue, data, output, priority, item, expire, then)
        handed = await self._caller.run(command, timeout=timeout, wait=wait, retry_unknown=retry_unknown)
        return self._job(self, handed)

    # the state of the queues

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

    # the servers

    async def ping(self, server: str | None = None, *, timeout: float | None = None) -> None:
        """Does this server (None: the serving leader) answer?"""
        await self._ask(commands.PING, server, timeout)

    async def caps(self, server: str | None = None, *, timeout: float | None = None) -> tuple[str, ...]:
        """The protocol extensions the server has."""
        return await self._ask(commands.CAPS, server, timeout)

    async def interconnect(self, server: str | None = None, *, timeout: float | None = None) -> int:
        """The server id; the serving leader has the smallest of all."""
        return await self._ask(commands.INTERCONNECT, server, timeout)

    async def cluster_status(self, server: str | None = None, *, timeout: float | None = None) -> list[NodeStatus]:
        """All nodes, as `server` knows them, or the best of all servers that answer."""
        if server is not None:
            return await self._ask(commands.CLUSTER_STATUS, server, timeout)
        caller = self._caller
        timeout = caller.limits.connect_timeout if timeout is None else span(timeout, "timeout")
        views = await view_all(caller.network, caller.addresses, timeout)
        answered = [view for view in views if view.error is None]
        if not answered:
            failures = {address: view.error for address, view in zip(caller.addresses, views, strict=True)}
            raise hopeless(failures) or Unavailable("; ".join(str(view.error) for view in views))
        return min(answered, key=lambda view: view.id or 0).nodes

    async def cluster_leader(self, server: str | None = None, *, timeout: float | None = None) -> Leader | None:
        """The leader this server (None: the serving leader) knows of."""
        return await self._ask(commands.CLUSTER_LEADER, server, timeout)

    async def cluster_hash(self, server: str, *, timeout: float | None = None) -> StateHash:
        """What this server has executed, as a hash."""
        return await self._ask(commands.CLUSTER_HASH, server, timeout)

    async def offline(self, server: str, *, timeout: float | None = None) -> None:
        """Switch one server off for clients."""
        await self._ask(commands.OFFLINE, server, timeout)

    async def online(self, server: str, *, timeout: float | None = None) -> None:
        """Switch it on again."""
        await self._ask(commands.ONLINE, server, timeout)

    async def cluster_add(self, name: str, peer: str, client: str, *, timeout: float | None = None) -> int:
        """Add a running server; returns its server id."""
        return await self._caller.run_at_leader(commands.cluster_add(name, peer, client), timeout=timeout)

    async def cluster_remove(self, name: str, *, timeout: float | None = None) -> None:
        """Take a server out of the cluster."""
        await self._caller.run_at_leader(commands.cluster_remove(name), timeout=timeout)

    async def cluster_transfer(self, name: str | None = None, *, timeout: float | None = None) -> Leader:
        """Let this server lead, or the one that is best prepared; returns the new leader."""
        return await self._caller.run_at_leader(commands.cluster_transfer(name), timeout=timeout)

    async def cluster_offline(self, *, timeout: float | None = None) -> None:
        """Switch the whole service off for clients."""
        await self._caller.run_at_leader(commands.CLUSTER_OFFLINE, timeout=timeout)

    async def cluster_online(self, *, timeout: float | None = None) -> None:
        """Switch it on again."""
        await self._caller.run_at_leader(commands.CLUSTER_ONLINE, timeout=timeout)

    async def cluster_snapshot(self, server: str, *, timeout: float | None = None) -> int:
        """Let one server write its state to disk and shorten its log; returns the position in the log."""
        return await self._ask(commands.CLUSTER_SNAPSHOT, server, timeout)

    async def shutdown(self, server: str, *, timeout: float | None = None) -> None:
        """End one server's process in good order."""
        await self._ask(commands.SHUTDOWN, server, timeout)

    # the users

    async def users(self, *, timeout: float | None = None) -> list[User]:
        """The users the servers know."""
        return await self._caller.run(commands.USER_LIST, timeout=timeout)

    async def set_user(
        self, name: str, rights: str | Iterable[str], secret: str, *, timeout: float | None = None
    ) -> None:
        """Make a user, or change him."""
        await self._caller.run(commands.user_set(name, rights, secret), timeout=timeout)

    async def delete_user(self, name: str, *, timeout: float | None = None) -> None:
        """Take a user away."""
        await self._caller.run(commands.user_delete(name), timeout=timeout)

    async def _ask(self, command: Command[T], server: str | None, timeout: float | None) -> T:
        """Run on this server only, or on the serving leader with failover."""
        if server is None:
            return await self._caller.run(command, timeout=timeout)
        return await self._caller.run_at(parse_server(server), command, timeout=timeout)


def _leased(command: Command[Handed | None], caller: str) -> Command[Handed | None]:
    """Insists on a lease: with it a lost hand-out does no harm."""
    if command.repeat is not Repeat.HARMLESS:
        raise BadArguments(f"{caller} needs a lease: expire must be positive")
    return command
