"""The blocking client."""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType

from sockpq import commands
from sockpq.addresses import Address, parse_server, parse_servers
from sockpq.arguments import Then, integer, span
from sockpq.caller import Caller
from sockpq.commands import Block, Command, Data, T
from sockpq.errors import BadArguments, BatchFailed, JobNotFound, OutcomeUnknown, Unavailable
from sockpq.exchange import Limits
from sockpq.job import Job
from sockpq.model import Finished, Leader, NodeStatus, RunningJob, StateHash, Totals
from sockpq.survey import survey


class Client:
    """Talks to whatever server of the cluster serves, and follows when that changes. Thread-safe.

    A call that was surely not executed is repeated until its `timeout` (seconds) is over, then raises a NotExecuted. A
    call whose answer was lost is repeated where that does no harm; PUT, GET without a lease and CLONE raise
    OutcomeUnknown instead, unless `retry_unknown` says that at least once is good enough. errors.py has the tree.
    """

    def __init__(
        self,
        servers: str | Iterable[str],
        *,
        timeout: float = 30.0,
        server_timeout: float = 5.0,
        connect_timeout: float = 1.0,
        retry_unknown: bool = False,
        idle_connections_max: int = 64,
    ) -> None:
        """`servers`: all of the cluster, "host:port" each, or one string with commas. Nothing is sent yet.

        All times in seconds: `timeout` for a whole call with its repetitions, `server_timeout` for one server that owes
        an answer and is silent, `connect_timeout` for connecting and for finding the leader.
        """
        limits = Limits(
            span(timeout, "timeout"),
            span(server_timeout, "server_timeout"),
            span(connect_timeout, "connect_timeout"),
            bool(retry_unknown),
        )
        idle_max = integer(idle_connections_max, "idle_connections_max", 0, 1_000_000)
        self._caller = Caller(parse_servers(servers), limits, idle_max)

    def close(self) -> None:
        """End all connections. Calls under way in other threads end with an error: ClientClosed, or OutcomeUnknown."""
        self._caller.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    # jobs

    def put(
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
        """Queue a job; on return it is on disk on a majority. Greater `priority` first.

        `item` puts it into a group, `new_item` into a new one named by the server. Returns the item's name, or None.
        """
        command = commands.put(queue, data, priority, item, new_item)
        return self._caller.run(command, timeout=timeout, retry_unknown=retry_unknown)

    def put_many(
        self,
        queue: str,
        datas: Iterable[Data],
        priority: int = 0,
        item: str | None = None,
        *,
        timeout: float | None = None,
        retry_unknown: bool | None = None,
    ) -> int:
        """Queue a job for each of `datas`, pipelined: much faster than one by one. Returns their number.

        `timeout` limits the time without progress, not the whole. Raises BatchFailed when some are acknowledged and
        others are not; it says which. The order is kept, except for jobs that had to be repeated.
        """
        puts = commands.puts(queue, datas, priority, item)
        answers = self._caller.run_batch(puts, timeout=timeout, retry_unknown=retry_unknown)
        refused = {position: answer.error for position, answer in enumerate(answers) if answer and answer.error}
        for error in refused.values():
            raise BatchFailed(f"{len(refused)} of {len(puts)} refused: {error}", (), tuple(refused)) from error
        return len(puts)

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
    ) -> Job | None:
        """Take a job from one of `queues` (None: any), the greatest priority first; None when there is none.

        `block=True` waits for one; `block="until_done"` waits until no unfinished job is left in them; both for `wait`
        seconds at most, if given. `expire` is the lease in seconds: when it ends before done(), the job goes back to
        its queue (`then="later"`) or is removed (`then="done"`); the cluster has a default. Without a lease a job whose
        answer is lost would run for ever, so that such a call can raise OutcomeUnknown: give one.
        """
        if wait is not None and block is False:
            raise BadArguments("wait limits a blocking get: it needs block")
        command = commands.get(queues, block, expire, then)
        handed = self._caller.run(command, timeout=timeout, wait=wait, retry_unknown=retry_unknown)
        return Job(self, handed) if handed else None

    def get_many(
        self,
        count: int,
        queues: str | Iterable[str] | None = None,
        *,
        expire: float,
        then: Then | None = None,
        timeout: float | None = None,
    ) -> list[Job]:
        """Take up to `count` jobs at once, pipelined; [] when there is none. The lease `expire` (seconds) is a must."""
        command = commands.get(queues, False, expire, then)
        if not expire:
            raise BadArguments("get_many needs a lease: expire must be positive")
        gets = [command] * integer(count, "count", 1, 10_000)
        answers = self._caller.run_batch(gets, timeout=timeout, partly=True)
        for answer in answers:
            if answer and answer.error:
                raise answer.error
        return [Job(self, answer.value) for answer in answers if answer and answer.value]

    def done(self, job: Job | int, *, timeout: float | None = None, retry_unknown: bool | None = None) -> Finished:
        """Remove a running job; tells whether its queue or its item has come to an end with it.

        Raises JobNotFound when it is not running (any more). When an answer was lost and the repetition finds no such
        job, nobody can tell whether the first try removed it or its lease had ended: OutcomeUnknown, or with
        `retry_unknown` a plain return.
        """
        command = commands.done(job.id if isinstance(job, Job) else job)
        try:
            return self._caller.run(command, timeout=timeout)
        except OutcomeUnknown as error:
            at_least_once = self._caller.limits.retry_unknown if retry_unknown is None else retry_unknown
            if at_least_once and isinstance(error.__cause__, JobNotFound):
                return Finished(False, False)
            raise

    def done_many(self, jobs: Iterable[Job | int], *, timeout: float | None = None) -> list[Finished | None]:
        """Remove many running jobs, pipelined; None in the place of a job that is not running (any more)."""
        dones = [commands.done(job.id if isinstance(job, Job) else job) for job in jobs]
        answers = self._caller.run_batch(dones, timeout=timeout)
        for answer in answers:
            if answer and answer.error and not isinstance(answer.error, JobNotFound):
                raise answer.error
        return [answer.value if answer else None for answer in answers]

    def later(self, job: Job | int, *, timeout: float | None = None) -> None:
        """Put a running job back at the end of its queue. Raises JobNotFound when it is not running (any more)."""
        command = commands.later(job.id if isinstance(job, Job) else job)
        try:
            self._caller.run(command, timeout=timeout)
        except OutcomeUnknown as error:
            if not isinstance(error.__cause__, JobNotFound):    # after a lost answer: it is back, or was done
                raise

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
    ) -> Job:
        """Queue a job and wait for the job of the same item in queue `output`: a remote call.

        Without `item` the server makes a new one. The worker takes the job, PUTs its result into `output` under
        `job.item`, and says DONE. The result is handed out like any job: say done() to it. `wait` in seconds; NoOutput
        when the result did not come, the job itself is queued all the same.
        """
        command = commands.call(queue, data, output, priority, item, expire, then)
        return Job(self, self._caller.run(command, timeout=timeout, wait=wait, retry_unknown=retry_unknown))

    # the state of the queues

    def total(self, queue: str | None = None, *, server: str | None = None, timeout: float | None = None) -> Totals:
        """Counts over all queues or one of them; `server` asks this one, whose answer may lag."""
        return self._ask(commands.total(queue), server, timeout)

    def running(
        self, data: bool = False, *, server: str | None = None, timeout: float | None = None
    ) -> list[RunningJob]:
        """The running jobs in the order of their ids, with their data if asked for."""
        return self._ask(commands.running(data), server, timeout)

    def snapshot(self, *, server: str | None = None, timeout: float | None = None) -> bytes:
        """The whole state, for clone()."""
        return self._ask(commands.SNAPSHOT, server, timeout)

    def clone(self, snapshot: Data, *, timeout: float | None = None, retry_unknown: bool | None = None) -> None:
        """Replace the state of the whole cluster by a snapshot. Raises InvalidSnapshot; nothing is changed then."""
        self._caller.run(commands.clone(snapshot), timeout=timeout, retry_unknown=retry_unknown)

    # the servers

    def ping(self, server: str | None = None, *, timeout: float | None = None) -> None:
        """Does this server (None: the serving leader) answer? Raises Unavailable when it does not."""
        self._ask(commands.PING, server, timeout)

    def caps(self, server: str | None = None, *, timeout: float | None = None) -> tuple[str, ...]:
        """The protocol extensions the server has."""
        return self._ask(commands.CAPS, server, timeout)

    def interconnect(self, server: str | None = None, *, timeout: float | None = None) -> int:
        """The server id; the serving leader has the smallest of all."""
        return self._ask(commands.INTERCONNECT, server, timeout)

    def cluster_status(self, server: str | None = None, *, timeout: float | None = None) -> list[NodeStatus]:
        """All nodes, as `server` knows them; without one as the leader does, or any that answers if there is none."""
        if server is not None:
            return self._ask(commands.CLUSTER_STATUS, server, timeout)
        views = survey(map(str, self._caller.addresses), timeout or self._caller.limits.connect_timeout)
        answered = [view for view in views if view.error is None]
        if not answered:
            raise Unavailable("; ".join(str(view.error) for view in views))
        return min(answered, key=lambda view: view.id or 0).nodes

    def cluster_leader(self, server: str | None = None, *, timeout: float | None = None) -> Leader | None:
        """The leader this server (None: the serving leader) knows of."""
        return self._ask(commands.CLUSTER_LEADER, server, timeout)

    def cluster_hash(self, server: str, *, timeout: float | None = None) -> StateHash:
        """What this server has executed, as a hash: two that answer the same position answer the same hash."""
        return self._ask(commands.CLUSTER_HASH, server, timeout)

    def offline(self, server: str, *, timeout: float | None = None) -> None:
        """Switch one server off for clients; it gives leadership away and goes on replicating."""
        self._ask(commands.OFFLINE, server, timeout)

    def online(self, server: str, *, timeout: float | None = None) -> None:
        """Switch it on again."""
        self._ask(commands.ONLINE, server, timeout)

    def cluster_add(self, name: str, peer: str, client: str, *, timeout: float | None = None) -> int:
        """Add a running server: `peer` is its address for the other servers, `client` for clients, "host:port" both.

        Returns its server id. It counts as soon as it has caught up; until then cluster_status() shows a LEARNER. This
        and the following are for the leader, which is looked for among the client's servers; Refused when it refuses.
        """
        return self._caller.run_at_leader(commands.cluster_add(name, peer, client), timeout=timeout)

    def cluster_remove(self, name: str, *, timeout: float | None = None) -> None:
        """Take a server out of the cluster; on return it may be stopped."""
        self._caller.run_at_leader(commands.cluster_remove(name), timeout=timeout)

    def cluster_transfer(self, name: str | None = None, *, timeout: float | None = None) -> Leader:
        """Let this server lead, or the one that is best prepared; returns the new leader."""
        return self._caller.run_at_leader(commands.cluster_transfer(name), timeout=timeout)

    def cluster_offline(self, *, timeout: float | None = None) -> None:
        """Switch the whole service off for clients, whoever leads, until cluster_online()."""
        self._caller.run_at_leader(commands.CLUSTER_OFFLINE, timeout=timeout)

    def cluster_online(self, *, timeout: float | None = None) -> None:
        """Switch it on again."""
        self._caller.run_at_leader(commands.CLUSTER_ONLINE, timeout=timeout)

    def cluster_snapshot(self, server: str, *, timeout: float | None = None) -> int:
        """Let one server write its state to disk and shorten its log; returns the position in the log."""
        return self._ask(commands.CLUSTER_SNAPSHOT, server, timeout)

    def shutdown(self, server: str, *, timeout: float | None = None) -> None:
        """End one server's process in good order."""
        self._ask(commands.SHUTDOWN, server, timeout)

    def _ask(self, command: Command[T], server: str | None, timeout: float | None) -> T:
        """Run on this server only, or on the serving leader with failover."""
        if server is None:
            return self._caller.run(command, timeout=timeout)
        address: Address = parse_server(server)
        return self._caller.run_at(address, command, timeout=timeout)
