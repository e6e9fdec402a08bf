"""The blocking client: every call, with its signature."""

# Made from _async/client.py by client/tools/faces.py: edit there.

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike
from types import TracebackType
from typing import Any, BinaryIO, Literal, overload

from sockpq._backends.access import Access, Tls
from sockpq._backends.sync import ThreadNetwork, run
from sockpq._engine.limits import Limits
from sockpq._engine.stats import Stats
from sockpq._engine.tracing import Tracing
from sockpq._protocol.addresses import parse_server, parse_servers
from sockpq._protocol.arguments import (
    ABSENT,
    AfterWhen,
    Block,
    Codec,
    Data,
    Direction,
    EndedState,
    GroupBy,
    HoldThen,
    MetaWanted,
    OnDuplicate,
    Policy,
    State,
    Then,
    WorkerState,
    cluster_of,
    given,
    integer,
    span,
    switch,
)
from sockpq._protocol.cluster_map import ClusterMap
from sockpq._protocol.command import Command
from sockpq._protocol.commands import batches, cluster, clusters, groups, items, jobs, pulses, records
from sockpq._protocol.commands import events as event_commands
from sockpq._protocol.commands import queues as queue_commands
from sockpq._protocol.commands.batches import Put
from sockpq._routing import batches as batch_calls
from sockpq._routing.pages import Pages
from sockpq._routing.router import Router
from sockpq._streaming.event_stream import EventStream
from sockpq._sync.consume import LEASE_S, Consumption, consume
from sockpq._sync.consumer import Consumer
from sockpq._sync.events import Events
from sockpq._sync.hold import Hold
from sockpq._sync.job import Job
from sockpq._sync.pulse import Pulse
from sockpq._sync.transaction import Transaction
from sockpq.configuration import configuration
from sockpq.errors import BadArguments, NoOutput, SockpqError
from sockpq.model import (
    Awaited,
    Binding,
    ClusterId,
    EventType,
    FairGroup,
    FairLevel,
    Finished,
    FoundJob,
    GroupConfig,
    GroupTotals,
    Handed,
    ItemStat,
    ItemTotals,
    JobStat,
    Key,
    Leader,
    Moved,
    NodeStatus,
    Number,
    PeekedJob,
    Place,
    QueueTotals,
    ReplicaStatus,
    RunningJob,
    SessionInfo,
    StateHash,
    Stored,
    Totals,
    User,
    Waiting,
    WorkerBounds,
    WorkerInfo,
)

PREFETCH_MAX = 1000
FAREWELL_S = 1.0        # how long close() waits for the last bytes to leave


class Client:
    """Sends commands to the serving leader of the cluster, and follows it when it changes. Safe to share.

    A blocking client may be shared by any number of threads, an asyncio client by the tasks of one event loop: the loop
    of its first call.

    A call is executed exactly once, through failovers, by a session that the cluster keeps. It returns, or raises a
    NotExecuted, for example when no server executes it before its `timeout` (seconds). OutcomeUnknown means that the
    answer was lost and cannot be recovered: the session is lost too, `timeout` is over, or the servers have no
    sessions. Commands that are safe to repeat are repeated even then; PUT, GET without a lease and CLONE only where
    `retry_unknown` says that at-least-once is good enough. errors.py has the tree of errors.

    An asyncio call whose task is cancelled may still be executed. A GET that is interrupted (a cancelled task,
    KeyboardInterrupt, close()) ends within two seconds: a job that it has received goes back to its place, if a server
    answers by then. The same holds for a consumer's GET.
    """

    def __init__(
        self,
        servers: str | Iterable[str] | None = None,
        *,
        tls: Tls = None,
        user: str | None = None,
        secret: str | None = None,
        secret_file: str | PathLike[str] | None = None,
        timeout: float = 30.0,
        server_timeout: float = 5.0,
        connect_timeout: float = 1.0,
        retry_unknown: bool = False,
        sessions: bool = True,
        session_ttl: float = 900.0,
        idle_connections_max: int = 1000,
        codec: Codec | None = None,
        tracing: bool = False,
        cluster: str | None = None,
        follow_map: bool | None = None,
    ) -> None:
        """`servers`: of the cluster, "host:port" each, or one string with commas. Nothing is sent yet.

        One server is enough, and need not be the leader: it reports the others. Name more of them in case one is down
        when the client starts. Without `servers` the configuration is used, also for `tls`, `user` and `secret`: the
        variable SOCKPQ_SERVERS, the file ~/.config/sockpq/config.toml or /etc/sockpq.toml, as for pqctl; without any
        the server is 127.0.0.1:11361.

        All times in seconds: `timeout` for a whole call with its repetitions, `server_timeout` for one server that has
        not answered, `connect_timeout` for connecting and for finding the leader. The cluster forgets a session that
        has not been used for `session_ttl`.

        `tls`: the file with the CA of the servers' certificates, True for the system's CAs, or an ssl.SSLContext; None
        for plain TCP. `user` with `secret`, or `secret_file`, if the servers require them. Files are read again when
        they change, so that a client continues when an authority or a secret is replaced.

        `codec`: an object with `encode(value)` to bytes and `decode(data)`, for `put(value=)` and `job.value`.
        `tracing`: make OpenTelemetry spans, and continue traces where jobs are processed (sockpq[otel]). `cluster`: the
        id of the cluster to use; by default the cluster of the first server. Servers of other clusters are refused with
        ForeignCluster. `follow_map=False`: use only this cluster, whatever the map of clusters says, so that names of
        other clusters raise Elsewhere. By default a client follows the map unless it is given a `cluster`.
        """
        if servers is None:
            configured = configuration()
            servers = configured.servers
            tls = configured.tls if tls is None else tls
            if user is None:
                user, secret, secret_file = configured.user, configured.secret, configured.secret_file
        limits = Limits(
            timeout, server_timeout, connect_timeout, retry_unknown, sessions, session_ttl, idle_connections_max
        ).checked()
        traced = Tracing() if switch(tracing, "tracing") else None
        self._network = ThreadNetwork(Access(tls, user, secret, secret_file))
        self._router = Router(
            self._network, parse_servers(servers), limits, codec, traced, cluster_of(cluster),
            follows_map=cluster is None if follow_map is None else switch(follow_map, "follow_map"),
        )

    def close(self) -> None:
        """Close all connections. Calls in other threads or tasks end with an error: ClientClosed, or OutcomeUnknown."""
        run(self._network.settle(FAREWELL_S))
        self._router.close()
        run(self._network.drain(FAREWELL_S))

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def connect(self, *, timeout: float | None = None) -> None:
        """Connect to the serving leader now instead of with the first call. Raises Unavailable when there is none."""
        run(self._router.connect(timeout=timeout))

    @property
    def cluster(self) -> str | None:
        """The id of the cluster to which this client is bound; None before it has used a server that reports one."""
        return self._router.identity.cluster

    def stats(self) -> Stats:
        """Return statistics of this client: counts and latencies by command, retries, connections, leader changes."""
        return self._router.counters.snapshot()

    def __repr__(self) -> str:
        servers = ",".join(map(str, self._router.addresses))
        return f"<Client of {servers}, leader {self._router.leader or 'not known'}>"

    # taking jobs

    @overload
    def get(
        self,
        queues: str | Iterable[str] | None = None,
        *,
        block: Literal[True],
        expire: float | None = None,
        then: Then | None = None,
        wait: None = None,
        item: str | None = None,
        meta: MetaWanted = False,
        headers: bool = False,
        policy: Policy | None = None,
        timeout: float | None = None,
        retry_unknown: bool | None = None,
    ) -> Job: ...

    @overload
    def get(
        self,
        queues: str | Iterable[str] | None = None,
        *,
        block: Block = False,
        expire: float | None = None,
        then: Then | None = None,
        wait: float | None = None,
        item: str | None = None,
        meta: MetaWanted = False,
        headers: bool = False,
        policy: Policy | None = None,
        timeout: float | None = None,
        retry_unknown: bool | None = None,
    ) -> Job | None: ...

    def get(
        self,
        queues: str | Iterable[str] | None = None,
        *,
        block: Block = False,
        expire: float | None = None,
        then: Then | None = None,
        wait: float | None = None,
        item: str | None = None,
        meta: MetaWanted = False,
        headers: bool = False,
        policy: Policy | None = None,
        timeout: float | None = None,
        retry_unknown: bool | None = None,
    ) -> Job | None:
        """Take a job from one of `queues` (None: any), the greatest priority first; None when there is none.

        `block=True` waits for one; `block="until_done"` waits until no unfinished job is left in them; both for `wait`
        seconds at most, if given; `wait` alone blocks as well. `expire` is the lease (visibility timeout) in seconds:
        when it ends before done(), the job goes back to its queue (`then="later"`), is removed (`then="done"`) or given
        up (`then="dead"`); the cluster has a default. Give one: without a lease a job whose answer is lost would run
        for ever, so such a call can raise OutcomeUnknown.

        `item`: only jobs of this item. `meta`: fill the job's `meta` with its attempt, key and times; "life": also
        with when it was put and handed out, if it has a number. `headers`: fetch
        the job's `headers` with it; otherwise the first access to them sends another command. `policy`: the choice
        among several queues: "random", or "priority" for the greatest priority; the cluster has a default.

        In asyncio `job = client.get(..)`, or `with client.get(..) as job:`.
        """
        command = jobs.get(
            queues, block, expire, then, wait, item=item, meta=meta, headers=self._router.asks_for(headers),
            policy=policy,
        )
        return self._take(command, wait, timeout, retry_unknown)

    def _take(
        self, command: Command[Handed | None], wait: float | None, timeout: float | None, retry_unknown: bool | None
    ) -> Job | None:
        handed = run(self._router.run(
            command, timeout=timeout, wait=wait, retry_unknown=retry_unknown, put_back=jobs.untaken
        ))
        return Job(self._router, handed) if handed else None

    def get_number(
        self,
        number: Number | int,
        expire: float | None = None,
        then: Then | None = None,
        *,
        meta: MetaWanted = False,
        headers: bool = False,
        timeout: float | None = None,
        retry_unknown: bool | None = None,
    ) -> Job:
        """Take the job with this number (put(number=True)), whether it is ready, delayed or buried.

        Neither a pause nor the limits of its queue prevent it. Raises JobNotFound, JobRunning. The other options are
        as for get().
        """
        command = jobs.get_number(number, expire, then, meta=meta, headers=self._router.asks_for(headers))
        return self._take_one(command, timeout, retry_unknown)

    def _take_one(self, command: Command[Handed], timeout: float | None, retry_unknown: bool | None) -> Job:
        handed = run(self._router.run(
            command, timeout=timeout, retry_unknown=retry_unknown, put_back=jobs.untaken
        ))
        return Job(self._router, handed)

    def get_many(
        self,
        count: int,
        queues: str | Iterable[str] | None = None,
        *,
        expire: float,
        then: Then | None = None,
        block: Block = False,
        wait: float | None = None,
        item: str | None = None,
        meta: MetaWanted = False,
        headers: bool = False,
        policy: Policy | None = None,
        timeout: float | None = None,
    ) -> list[Job]:
        """Take up to `count` jobs at once; [] when there is none. The lease `expire` (seconds) is mandatory.

        `block` and `wait` as for get(): it waits until there is at least one job. Bodies of more than 16 MiB together
        are not delivered at once. The other options are as for get().
        """
        count = integer(count, "count", 1, 10_000)
        taking = batches.TakeSource(
            batches.as_queues(queues), block, expire, then, wait, item, meta, self._router.asks_for(headers), policy
        )
        handed = run(batch_calls.get_many(self._router, count, taking, timeout))
        return [Job(self._router, one) for one in handed]

    def consume(
        self,
        queues: str | Iterable[str] | None = None,
        *,
        expire: float | None = None,
        then: Then | None = None,
        until_done: bool = False,
        wait: float | None = None,
        heartbeat: bool = False,
        prefetch: int = 1,
        item: str | None = None,
        meta: MetaWanted = False,
        headers: bool = False,
        policy: Policy | None = None,
        ran: Literal["wall", "cpu"] = "wall",
        timeout: float | None = None,
    ) -> Iterator[Job]:
        """Iterate over jobs, each with a lease: `for job in client.consume("q", expire=30)`.

        A job is DONE when the loop asks for the next one, and LATER when the loop is left before that, by an error or
        by `break`, unless its done() or later() was called. The DONE and the request for the next job are sent in one
        packet. The loop ends when no job comes for `wait` seconds, and with `until_done` when no unfinished job is left
        in the queues; otherwise it never ends.

        Without `expire` each job has the lease of its queue, if one queue is named and has one; otherwise 60 s, which
        are renewed as with `heartbeat`. The logger `sockpq` reports which (INFO).

        With `heartbeat` the lease is renewed every third of it while the job is processed: the job stays here however
        long it takes, and is handed out again `expire` seconds after this process has died. `job.lost` becomes True if
        the lease was lost nevertheless, for example because no server served for longer.

        `prefetch`: take up to that many jobs at once, which is much faster if jobs take little time. Heartbeats renew
        the waiting ones; when the loop returns a job, at least two thirds of its lease are left. The DONE of a job that
        took less than a tenth of a second may wait for the following ones. When the loop is left, jobs that were not
        begun go back to their places. The other options are as for get().

        With policy="fair" each job's group is charged for the time of the work on it, which is measured here and sent
        with DONE and LATER; waiting time here and heartbeats are not charged. `ran`: "wall", the time that
        passes, or "cpu", the processor time of this thread; other tasks of the same thread count as well.
        """
        block: Block = "until_done" if switch(until_done, "until_done") else True
        taking = batches.TakeSource(
            batches.as_queues(queues), block, LEASE_S if expire is None else expire, then, wait, item, meta,
            self._router.asks_for(headers), policy,
        )
        loop = Consumption(
            self._router, taking, timeout, switch(heartbeat, "heartbeat"),
            integer(prefetch, "prefetch", 1, PREFETCH_MAX), ran, finds_lease=expire is None,
        )
        taken = consume(loop)
        self._network.when_abandoned(taken, loop.leave)
        return taken

    def consumer(self, ttl: float = 30.0) -> Consumer:
        """Take jobs without leases: `with client.consumer() as c: jobs = c.get_many(10, "q")`.

        They belong to a separate session: they stay here however long the work takes, and go back when this process has
        given no sign of life for `ttl` seconds, or when the block ends. done() and later() work as for any job, in any
        thread or task.
        """
        return Consumer(self._router, ttl)

    def events(
        self,
        types: EventType | Iterable[EventType],
        names: str | Iterable[str] | None = None,
        *,
        after: int | None = None,
        wait: float | None = None,
        timeout: float | None = None,
    ) -> Events:
        """Iterate over events instead of polling: `for event in client.events("FINI", "order_*")`.

        `types`: of the events; `names`: of queues, items and so on, by default all; a name that ends in `*` is a
        prefix. Any server sends the same events in the same order, under the same numbers. When one dies the loop
        continues at another one, after the last event, so that none is missed or repeated (messages, "MSG", are
        delivered at most once). Other calls of this client are not held up.

        `after`: begin after the event of this number, e.g. the `position` of an earlier loop. `wait`: the loop ends
        when no event comes for this many seconds. `timeout`: how long to search for a server before Unavailable is
        raised. Raises EventsLost when events may have been missed: read the state again; the loop may be continued.
        """
        about = None if names is None else (names,) if isinstance(names, str) else tuple(names)
        words = event_commands.words_of(types, about)
        if after is not None:
            integer(after, "after", 0, 2**63 - 1)
        return Events(EventStream(
            self._router, words, about, after, None if wait is None else span(wait, "wait"),
            self._router.limits.timeout if timeout is None else span(timeout, "timeout"),
        ))

    # many jobs at once

    @overload
    def put_many(
        self, queue: str, *, jobs: Iterable[Put], timeout: float | None = None, retry_unknown: bool | None = None,
    ) -> list[Stored | SockpqError]: ...

    @overload
    def put_many(
        self,
        queue: str,
        datas: Iterable[Data] | None = None,
        priority: int = 0,
        item: str | None = None,
        *,
        json: Iterable[Any] | None = None,
        values: Iterable[Any] | None = None,
        keys: Iterable[str] | None = None,
        delay: float | None = None,
        at: float | None = None,
        ttl: float | None = None,
        every: float | None = None,
        after: str | Iterable[str] | None = None,
        when: AfterWhen | None = None,
        key: str | None = None,
        on_duplicate: OnDuplicate | None = None,
        tries: int | None = None,
        group: str | None = None,
        number: bool = False,
        lease: float | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        retry_unknown: bool | None = None,
    ) -> int: ...

    def put_many(
        self,
        queue: str,
        datas: Iterable[Data] | None = None,
        priority: int = 0,
        item: str | None = None,
        *,
        jobs: Iterable[Put] | None = None,
        json: Iterable[Any] | None = None,
        values: Iterable[Any] | None = None,
        keys: Iterable[str] | None = None,
        delay: float | None = None,
        at: float | None = None,
        ttl: float | None = None,
        every: float | None = None,
        after: str | Iterable[str] | None = None,
        when: AfterWhen | None = None,
        key: str | None = None,
        on_duplicate: OnDuplicate | None = None,
        tries: int | None = None,
        group: str | None = None,
        number: bool = False,
        lease: float | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        retry_unknown: bool | None = None,
    ) -> int | list[Stored | SockpqError]:
        """Queue a job for each of `datas`, thousands in one command: much faster than one by one.

        `json`, or `values` for the client's `codec`: other bodies, as for put(). `keys`: one for each; the other
        options are as for put(), and apply to all. Returns how many jobs were added: all, or with
        `on_duplicate="ignore"` those whose keys were new; only `jobs` has their numbers returned. `timeout` limits the
        time without progress, not the whole. Raises BatchFailed when some are acknowledged and others are not; it says
        which.

        `jobs`, and no other option: each a `Put` with options of its own. Returns for each of them what put() would,
        or the error that it would raise; BatchFailed is raised when servers did not answer.
        """
        if jobs is not None:
            others = (datas, item, json, values, keys, delay, at, ttl, every, after, when, key, on_duplicate, tries,
                      group, lease, headers)
            if priority or number or any(other is not None for other in others):
                raise BadArguments("put_many(jobs=) takes no other option: each Put has its own")
            each = batches.puts_of(queue, jobs, self._router.bodies)
            return run(batch_calls.put_each(self._router, each, timeout, retry_unknown))
        bodies = batches.bodies_of(datas, json, values, self._router.bodies)
        puts = batches.puts(
            queue, bodies, priority, item, keys=keys, delay=delay, at=at, ttl=ttl, every=every, after=after, when=when,
            key=key, on_duplicate=on_duplicate, tries=tries, group=group, number=number, lease=lease, headers=headers,
            of_client=self._router.bodies,
        )
        return run(batch_calls.put_many(self._router, puts, timeout, retry_unknown))

    def done_many(
        self, finished: Iterable[Job | int], *, timeout: float | None = None
    ) -> list[Finished | None]:
        """Remove many running jobs at once; returns None in the place of a job that is not running (any more)."""
        held = list(finished)
        singles = [jobs.done(job) for job in held]
        found = run(batch_calls.end_many(self._router, batches.ends("DONE", held), singles, timeout))
        return [one if isinstance(one, Finished) else None for one in found]

    def later_many(
        self,
        returned: Iterable[Job | int],
        *,
        first: bool = False,
        yielded: bool = False,
        timeout: float | None = None,
    ) -> list[bool]:
        """Put many running jobs back at once; returns False in the place of a job that is not running (any more).

        `first`: each to its old place; `yielded`: a slice of the work on each is finished: the attempt is not counted.
        """
        held = list(returned)
        option = " FIRST" if switch(first, "first") else ""
        singles = [jobs.later(job, first=first, yielded=yielded) for job in held]
        # LATER of several jobs has no YIELD: those are sent one by one, without waiting for the answers in between.
        parts = [batches.Part(one, 1) for one in singles] if yielded else batches.ends("LATER", held, option)
        found = run(batch_calls.end_many(self._router, parts, singles, timeout))
        return [not isinstance(one, SockpqError) for one in found]

    def touch_many(
        self,
        running: Iterable[Job | int],
        expire: float | Iterable[float] | None = None,
        then: Then | None = None,
        *,
        timeout: float | None = None,
    ) -> list[bool]:
        """Renew the leases of up to 2,000 running jobs; returns for each whether it is still running. See touch().

        `expire`: a time for all, or one for each.
        """
        if isinstance(expire, Iterable):
            return run(batch_calls.touch_each(self._router, batches.touches(running, expire, then), timeout))
        return run(self._router.run(jobs.touch_many(running, expire, then), timeout=timeout))

    def transaction(self, *, timeout: float | None = None) -> Transaction:
        """Collect commands that are executed atomically: `with client.transaction() as t: t.done(job)`.

        Nothing is sent before the end of the block, and nothing at all when it raises. Raises Aborted when one of the
        commands would be refused.
        """
        return Transaction(self._router, timeout)

    def hold(
        self,
        item: str | None = None,
        *,
        expire: float | None = None,
        then: HoldThen | None = None,
        queue: str | None = None,
        timeout: float | None = None,
    ) -> Hold:
        """Hold an item while its jobs are put: `with client.hold() as item: client.put(.., item=item)`.

        The item, without `item` a new one, does not end before the block does, and is cancelled when that raises.
        `expire` and `then` as for item_hold(), for the case that this program dies; `queue`: if several clusters are in
        use, a queue into which the jobs are put.
        """
        return Hold(self._router, item, expire, then, queue, timeout)

    def pulse(self, name: str) -> Pulse:
        """Return a pulse, a rate that many programs share: `with client.pulse("ga").turn(within=30) as turn:`."""
        return Pulse(self._router, name)

    # remote calls

    def call(
        self,
        queue: str,
        data: Data | None = None,
        output: str = "",
        *,
        json: Any = ABSENT,
        value: Any = ABSENT,
        priority: int = 0,
        item: str | None = None,
        expire: float | None = None,
        then: Then | None = None,
        headers: Mapping[str, str] | None = None,
        wait: float | None = None,
        timeout: float | None = None,
        retry_unknown: bool | None = None,
    ) -> Job:
        """Queue a job and wait for the job of the same item in `output`: a remote call. Body and headers as for put().

        Without `item` the server generates one. The worker takes the job, puts its result into `output` under
        `job.item`, and calls done(). The result is handed out like any job: call its done(). `wait` in seconds;
        raises NoOutput if there is no result in time; the job itself is still queued.

        In asyncio `job = client.call(..)`, or `with client.call(..) as job:`.
        """
        command = jobs.remote_call(
            queue, data, output, priority, item, expire, then, wait, json=json, value=value, headers=headers,
            bodies=self._router.bodies,
        )
        return self._call(command, wait, timeout, retry_unknown)

    def _call(
        self, command: Command[Handed | Waiting], wait: float | None, timeout: float | None, retry_unknown: bool | None
    ) -> Job:
        handed = run(self._router.run(command, timeout=timeout, wait=wait, retry_unknown=retry_unknown))
        if isinstance(handed, Waiting):
            raise NoOutput("the job is queued, its output did not come in time", handed.item)
        return Job(self._router, handed)

    # jobs that have ended

    def await_job(
        self,
        job: Number | int | Key,
        *,
        wait: float | None = None,
        timeout: float | None = None,
    ) -> Awaited | None:
        """Wait until a job has ended or was given up, for `wait` seconds at most; None when it has not.

        The job by its number (put(number=True)), or by its `Key`: the unfinished job that has this key now. It is
        "done", with the result of done(result=); "cancelled" or "expired"; or "dead" or "buried", with the text of its
        error. Raises JobNotFound when there is no such job, which includes jobs that were purged, and ended ones that
        their queue does not keep.
        """
        return run(self._router.run(records.await_job(job, wait), timeout=timeout, wait=wait))

    def find(
        self,
        queues: str | Iterable[str] | None = None,
        *,
        state: State | EndedState | Iterable[State | EndedState] | None = None,
        header: tuple[str, str] | None = None,
        key: str | None = None,
        item: str | None = None,
        group: str | None = None,
        reason: str | None = None,
        since: float | None = None,
        until: float | None = None,
        count: int = 100,
        server: str | None = None,
        timeout: float | None = None,
    ) -> Iterator[FoundJob]:
        """Iterate over the jobs of `queues` (None: of all) with all these properties, as the leader or `server` has
        them.

        `state`: one or several; None: all but those that have ended ("done", "cancelled", "expired"), which a queue
        keeps if its settings say so. `header`: a name and its value. `key`: a prefix of its key. `since` and `until`:
        the Unix time, both included, at which it was put, took its place, or, of one that has ended, ended. `count`:
        how many are fetched at once. Each job that does not change is returned exactly once.
        """
        search = records.search(queues, state, header, key, item, group, reason, since, until, count)
        return self._found(search, server, timeout)

    def _found(
        self, search: records.Search, server: str | None, timeout: float | None
    ) -> Iterator[FoundJob]:
        pages = Pages(self._router, search, server, timeout)
        while (found := run(pages.next())) is not None:
            for job in found:
                yield job

    # ids of several clusters

    def id_text(self, job: int) -> str:
        """Return the id or number of a job as text for other programs: `a.17` where a map of clusters is in use.

        Without a map it is `17`. The integer itself is good in this process; other clients may have begun with another
        cluster of the map.
        """
        return self._router.id_text(job)

    def id_of(self, text: str) -> int:
        """Return the id or number of a job that id_text() of any client has written.

        Raises BadArguments, and JobNotFound when its cluster is not, or no longer, in the map.
        """
        return run(self._router.id_of(text))

    # the cluster

    def cluster_status(self, server: str | None = None, *, timeout: float | None = None) -> list[NodeStatus]:
        """Return all nodes as `server` knows them; by default as the leader does, or any server if there is none."""
        if server is not None:
            return run(self._router.run_at(parse_server(server), cluster.CLUSTER_STATUS, timeout=timeout))
        limit = self._router.limits.connect_timeout if timeout is None else span(timeout, "timeout")
        return run(self._router.status_of_best(limit))

    # declared: Client jobs records items queue_commands groups cluster clusters event_commands pulses

    def put(
        self,
        queue: str,
        data: Data | None = None,
        priority: int = 0,
        item: str | None = None,
        new_item: bool = False,
        *,
        json: Any = ABSENT,
        value: Any = ABSENT,
        delay: float | None = None,
        at: float | None = None,
        ttl: float | None = None,
        every: float | None = None,
        after: str | Iterable[str] | None = None,
        when: AfterWhen | None = None,
        key: str | None = None,
        on_duplicate: OnDuplicate | None = None,
        tries: int | None = None,
        group: str | None = None,
        number: bool = False,
        lease: float | None = None,
        headers: Mapping[str, str] | None = None,
        dedup: tuple[str, float] | None = None,
        timeout: float | None = None,
        retry_unknown: bool | None = None,
    ) -> Stored:
        """Queue a job; on return it is on the disks of a majority. Greater `priority` first.

        Its body is `data`, bytes or a string (UTF-8); or `json`, any JSON value; or `value`, which the
        client's `codec` encodes. `item` puts it into a group, `new_item` into a new group named by the server. The
        result has the `item` and the `key`.

        Times in seconds. `delay`: it becomes active that much later; or `at`: at this Unix time. `ttl`: it is removed
        unless it is taken within that time (0: never, whatever the queue's TTL). `every`: DONE makes it active again
        after this period, until it is deleted. `after`: an item, or several: it waits until each of these has had no
        unfinished job, or with `when="end"` none but dead and buried ones; with `when="failed"` until one of them has
        such a job, and is removed when all have ended without any, or not queued when they had ended before (`outcome`
        "dropped"). `key`: its name in its queue; if an unfinished job has that name, `on_duplicate` decides: "fail"
        (JobExists), "ignore", or "replace". `tries`: it is given up after that many hand-outs without done(). `group`:
        its owner, for queues that choose by groups and for get(policy="fair"); by default the queue's name. `number`:
        it gets a number, the `number` of the result, by which `Number` finds it in any state and queue, and it always
        returns to its old place. `lease`: the lease for clients that take it without `expire` (0: none), instead of its
        queue's. `headers`: names and values in addition to its body, which a consumer reads as `job.headers` and find()
        looks for. `dedup`: a key and seconds: while the queue remembers an accepted put() with this key, another one
        queues nothing and returns `outcome` "exists", even if the job has ended.

        Raises JobExists, QueueFull, QueuePaused, QueueNotFound according to these options and the queue's settings.
        """
        return run(self._router.run(
            jobs.put(queue, data, priority, item, new_item, json=json, value=value, delay=delay, at=at, ttl=ttl,
            every=every, after=after, when=when, key=key, on_duplicate=on_duplicate, tries=tries, group=group,
            number=number, lease=lease, headers=headers, dedup=dedup, bodies=self._router.bodies), timeout=timeout,
            retry_unknown=retry_unknown
        ))

    def put_to(
        self,
        queues: Iterable[str],
        data: Data | None = None,
        priority: int = 0,
        item: str | None = None,
        *,
        json: Any = ABSENT,
        value: Any = ABSENT,
        delay: float | None = None,
        at: float | None = None,
        ttl: float | None = None,
        every: float | None = None,
        after: str | Iterable[str] | None = None,
        when: AfterWhen | None = None,
        key: str | None = None,
        tries: int | None = None,
        group: str | None = None,
        headers: Mapping[str, str] | None = None,
        dedup: tuple[str, float] | None = None,
        timeout: float | None = None,
        retry_unknown: bool | None = None,
    ) -> int:
        """Queue the same job in several queues (at most 1,000), in all of them or in none; returns in how many.

        The options are those of put() with the same names. There is no `number`: in a queue with the setting NUMBERED
        each job has one, and a transaction may put() into each queue with `number`. Raises the errors of put(), for the
        first queue that refuses.
        """
        return run(self._router.run(
            jobs.put_to(queues, data, priority, item, json=json, value=value, delay=delay, at=at, ttl=ttl, every=every,
            after=after, when=when, key=key, tries=tries, group=group, headers=headers, dedup=dedup,
            bodies=self._router.bodies), timeout=timeout, retry_unknown=retry_unknown
        ))

    def publish(
        self,
        topic: str,
        data: Data | None = None,
        priority: int = 0,
        item: str | None = None,
        *,
        route: str | None = None,
        json: Any = ABSENT,
        value: Any = ABSENT,
        delay: float | None = None,
        at: float | None = None,
        ttl: float | None = None,
        every: float | None = None,
        after: str | Iterable[str] | None = None,
        when: AfterWhen | None = None,
        key: str | None = None,
        tries: int | None = None,
        group: str | None = None,
        headers: Mapping[str, str] | None = None,
        dedup: tuple[str, float] | None = None,
        timeout: float | None = None,
        retry_unknown: bool | None = None,
    ) -> int:
        """Queue a job in all queues that are bound to `topic` (topic_bind()), or in none; returns in how many.

        `route`: its routing key, words with dots between them; queues bound with a pattern get it only if that matches.
        The other options are those of put() with the same names. There is no `number`: in a queue with the setting
        NUMBERED each job has one. Raises the errors of put(), for the first queue that refuses.
        """
        return run(self._router.run(
            jobs.publish(topic, data, priority, item, route=route, json=json, value=value, delay=delay, at=at, ttl=ttl,
            every=every, after=after, when=when, key=key, tries=tries, group=group, headers=headers, dedup=dedup,
            bodies=self._router.bodies), timeout=timeout, retry_unknown=retry_unknown
        ))

    def done(
        self,
        job: Job | int,
        *,
        last: bool = False,
        slow: bool = False,
        sleep: float | None = None,
        reason: str | None = None,
        ran: float | None = None,
        result: Data | None = None,
        timeout: float | None = None,
        retry_unknown: bool | None = None,
    ) -> Finished:
        """Remove a running job; returns whether it was the last unfinished one of its queue or its item.

        A periodic job (`put(every=)`) is not removed unless this was the `last` time; `next_at` of the result is when
        it is active again.

        For a queue with a rate: `slow`, this was too fast; `sleep`, no hand-outs for this long, in seconds. `reason`:
        why, for the server's log. `ran`: how many seconds the work took, for get(policy="fair"), instead of the time
        since the hand-out. `result`: for await_job(), and for job_result() where its queue keeps jobs that have ended.

        Raises JobNotFound when it is not running (any more). When an answer was lost and the repetition finds no such
        job, it is unknown whether the first attempt removed it or its lease had ended: OutcomeUnknown, or with
        `retry_unknown` a plain return.
        """
        return run(self._router.run(
            jobs.done(job, last=last, slow=slow, sleep=sleep, reason=reason, ran=ran, result=result), timeout=timeout,
            retry_unknown=retry_unknown
        ))

    def later(
        self,
        job: Job | int,
        *,
        delay: float | None = None,
        at: float | None = None,
        priority: int | None = None,
        first: bool = False,
        yielded: bool = False,
        reason: str | None = None,
        error: str | None = None,
        slow: bool = False,
        sleep: float | None = None,
        ran: float | None = None,
        timeout: float | None = None,
    ) -> None:
        """Put a running job back at the end of its queue. Raises JobNotFound when it is not running (any more).

        `delay` (seconds) or `at` (Unix time): when it is active again; `priority`: its new one; `first`: put it back to
        its old place instead; `yielded`: a slice of the work is finished: the attempt is not counted. `reason`: why, in
        a word of 1 to 64 letters, digits and _ . : -, kept with the job until kick(). `error`: the text of the error,
        for example a traceback, for job_error(); beyond 16,384 bytes its middle is left out. `slow`, `sleep` and `ran`:
        see done().
        """
        run(self._router.run(
            jobs.later(job, delay=delay, at=at, priority=priority, first=first, yielded=yielded, reason=reason,
            error=error, slow=slow, sleep=sleep, ran=ran), timeout=timeout
        ))

    def touch(
        self,
        job: Job | int,
        expire: float | None = None,
        then: Then | None = None,
        *,
        ran: float | None = None,
        progress: int | None = None,
        timeout: float | None = None,
    ) -> int | None:
        """Renew the lease of a running job, with the same length or `expire` seconds (0: without limit).

        `progress`: the percentage of the work that is done, 0 to 100, shown with the job.
        `ran`: how many seconds the work has taken since the hand-out or the last touch(), for get(policy="fair").

        Returns the end of the lease in Unix time, None for never. Raises JobNotFound if the job is no longer running.
        """
        return run(self._router.run(jobs.touch(job, expire, then, ran=ran, progress=progress), timeout=timeout))

    def progress(self, job: Job | int, percent: int, *, timeout: float | None = None) -> int | None:
        """Report how much of the work on a running job is done, 0 to 100; renews its lease too. See touch()."""
        return run(self._router.run(jobs.progress(job, percent), timeout=timeout))

    def change(
        self,
        job: Job | int | Key | Place | Number,
        *,
        data: Data | None = None,
        json: Any = ABSENT,
        value: Any = ABSENT,
        priority: int | None = None,
        delay: float | None = None,
        at: float | None = None,
        item: str | None = None,
        no_item: bool = False,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> None:
        """Change a running job by its id, or another one by its `Key`, `Place` or `Number`; other properties stay.

        `data`, `json` or `value` is its new body, as for put(). `headers` replaces all its headers; {} removes them.
        `no_item` removes it from its item. Raises JobNotFound, and JobRunning when the job with this key is running.
        """
        run(self._router.run(
            jobs.change(job, data=data, json=json, value=value, priority=priority, delay=delay, at=at, item=item,
            no_item=no_item, headers=headers, bodies=self._router.bodies), timeout=timeout
        ))

    def delete(
        self,
        job: Job | int | Key | Place | Number,
        *,
        untaken: bool = False,
        timeout: float | None = None,
        retry_unknown: bool | None = None,
    ) -> Finished:
        """Remove a running job by its id, or another one by its `Key`, `Place` or `Number`.

        Raises JobNotFound, and JobRunning when the job with this key is running. `untaken`, with a `Number`: raises
        JobRunning even when that job is running; without it a running job is removed.
        """
        return run(self._router.run(
            jobs.delete(job, untaken=untaken), timeout=timeout, retry_unknown=retry_unknown
        ))

    def move(
        self,
        job: Job | int,
        queue: str,
        *,
        data: Data | None = None,
        json: Any = ABSENT,
        value: Any = ABSENT,
        priority: int | None = None,
        delay: float | None = None,
        at: float | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> Finished:
        """Finish a running job here and put it into `queue`, atomically: a step of a cascade.

        Its item, key and headers go with it; a new body (`data`, `json` or `value`), `headers`, `priority`, `delay` or
        `at` change it. Raises JobNotFound, and the errors of put().
        """
        return run(self._router.run(
            jobs.move(job, queue, data=data, json=json, value=value, priority=priority, delay=delay, at=at,
            headers=headers, bodies=self._router.bodies), timeout=timeout
        ))

    def bury(
        self,
        job: Job | int,
        reason: str | None = None,
        *,
        here: bool = False,
        priority: int | None = None,
        error: str | None = None,
        timeout: float | None = None,
    ) -> Finished:
        """Give up a running job: it goes to its queue's dead-letter queue; kick() brings it back.

        `reason`: why, in a word of 1 to 64 letters, digits and _ . : -, kept with the job until kick(), and logged.
        `error`: the text of what went wrong, as for later().
        `here`: it stays in its own queue, buried, until kick(here=True), with another `priority` if one is given.
        """
        return run(self._router.run(
            jobs.bury(job, reason, here=here, priority=priority, error=error), timeout=timeout
        ))

    def peek(
        self,
        job: Job | int | Key | Place | Number,
        *,
        headers: bool = False,
        server: str | None = None,
        timeout: float | None = None,
    ) -> PeekedJob | None:
        """Look at a running job, or one with this `Key`, `Place` or `Number`, without taking it; None if there is none.

        `headers`: fill its `headers`.
        """
        return run(self._router.run_where(jobs.peek(job, headers=headers), server, timeout=timeout))

    def job_error(
        self,
        job: Job | int | Key | Place | Number,
        *,
        server: str | None = None,
        timeout: float | None = None,
    ) -> str | None:
        """Return the text of the last error of a job: of its last later() or bury() with `error`; None without one.

        Raises JobNotFound.
        """
        return run(self._router.run_where(jobs.job_error(job), server, timeout=timeout))

    def peek_queue(
        self,
        queue: str,
        state: State = "ready",
        count: int = 1,
        *,
        places: bool = False,
        headers: bool = False,
        server: str | None = None,
        timeout: float | None = None,
    ) -> list[PeekedJob]:
        """Look at the first `count` jobs of a queue that are "ready", "delayed", "running", "dead" or "buried".

        Dead ones are jobs that were given up in this queue. With `places` each job has its `place`, by which
        peek(), change() and delete() find it; a server that is too old sends none. `headers`: fill their `headers`.
        """
        return run(self._router.run_where(
            jobs.peek_queue(queue, state, count, places=places, headers=headers), server, timeout=timeout
        ))

    def kick(
        self,
        queue: str,
        count: int,
        *,
        here: bool = False,
        timeout: float | None = None,
        retry_unknown: bool | None = None,
    ) -> int:
        """Put up to `count` jobs that were given up in this queue back into it, as if new; returns how many.

        `here`: make the queue's own buried jobs ready (bury(here=True)), or if there are none its delayed ones.
        """
        return run(self._router.run(
            jobs.kick(queue, count, here=here), timeout=timeout, retry_unknown=retry_unknown
        ))

    def kick_job(self, job: Number | Place | int, *, timeout: float | None = None) -> int:
        """Make a buried or delayed job ready, by its number, or a dead or delayed one by its place; returns 1.

        A dead job goes back to the queue in which it died. Raises JobNotFound when the job is in none of these states.
        """
        return run(self._router.run(jobs.kick_job(job), timeout=timeout))

    def job_stat(
        self,
        number: Number | int,
        *,
        server: str | None = None,
        timeout: float | None = None,
    ) -> JobStat:
        """Return the state and the history of a job, by its number. Raises JobNotFound."""
        return run(self._router.run_where(jobs.job_stat(number), server, timeout=timeout))

    def job_result(
        self,
        number: Number | int,
        *,
        server: str | None = None,
        timeout: float | None = None,
    ) -> bytes:
        """Return the result of a job that has ended, of done(result=), by its number; b"" without one.

        Raises JobNotFound when it has not ended, or is no longer kept.
        """
        return run(self._router.run_where(records.job_result(number), server, timeout=timeout))

    def ended(
        self,
        number: Number | int,
        *,
        headers: bool = False,
        life: bool = False,
        server: str | None = None,
        timeout: float | None = None,
    ) -> PeekedJob | None:
        """Look at a job by its number, even when it has ended and its queue keeps such jobs; None if it is not found.

        `headers`, `life`: fill these.
        """
        return run(self._router.run_where(
            records.ended(number, headers=headers, life=life), server, timeout=timeout
        ))

    def ended_jobs(
        self,
        queue: str,
        count: int = 1,
        *,
        headers: bool = False,
        server: str | None = None,
        timeout: float | None = None,
    ) -> list[PeekedJob]:
        """Look at the last `count` jobs of a queue that have ended, the newest first, if it keeps them (RETAIN)."""
        return run(self._router.run_where(
            records.ended_jobs(queue, count, headers=headers), server, timeout=timeout
        ))

    def retry_ended(
        self,
        number: Number | int,
        *,
        timeout: float | None = None,
        retry_unknown: bool | None = None,
    ) -> int:
        """Make an ended job ready again, as it was put, by its number; returns 1. Raises JobNotFound."""
        return run(self._router.run(records.retry_ended(number), timeout=timeout, retry_unknown=retry_unknown))

    def delete_ended(self, number: Number | int, *, timeout: float | None = None) -> None:
        """Remove the record of an ended job from its queue, by its number. Raises JobNotFound."""
        run(self._router.run(records.delete_ended(number), timeout=timeout))

    def item_stat(self, item: str, *, server: str | None = None, timeout: float | None = None) -> ItemStat:
        """Count the jobs of an item in each state, those that ended since it began, and those that wait for it.

        Raises ItemNotFound.
        """
        return run(self._router.run_where(items.item_stat(item), server, timeout=timeout))

    def items(
        self,
        prefix: str = "",
        *,
        held: bool = False,
        server: str | None = None,
        timeout: float | None = None,
    ) -> list[ItemTotals]:
        """List the items whose names begin with `prefix`, in no particular order; a `server` that is named may lag.

        `held`: only those with a hold.
        """
        return run(self._router.run_where(items.items(prefix, held=held), server, timeout=timeout))

    def item_retry(self, item: str, *, timeout: float | None = None, retry_unknown: bool | None = None) -> int:
        """Put back all dead and buried jobs of an item, each into the queue in which it was given up; returns how many.

        Their attempts start over. Raises ItemNotFound when it has neither a job nor a hold, ItemCancelled.
        """
        return run(self._router.run(items.item_retry(item), timeout=timeout, retry_unknown=retry_unknown))

    def item_hold(
        self,
        item: str | None = None,
        *,
        expire: float | None = None,
        then: HoldThen | None = None,
        queue: str | None = None,
        timeout: float | None = None,
        retry_unknown: bool | None = None,
    ) -> str:
        """Hold an item, without `item` a new one that the server names: it does not end before item_release().

        So jobs can be put one by one even if the first ones are done early. After `expire` seconds (600) the item is
        cancelled, as the producer of an incomplete batch has died, or with `then="release"` released; another hold
        resets both. `queue`: if several clusters are in use, a queue into which the jobs are put: its cluster keeps the
        hold. In a transaction the other commands determine the cluster. Returns the item. Raises ItemCancelled. hold()
        does this around a block.
        """
        return run(self._router.run(
            items.item_hold(item, expire=expire, then=then, queue=queue), timeout=timeout, retry_unknown=retry_unknown
        ))

    def item_release(self, item: str, *, timeout: float | None = None, retry_unknown: bool | None = None) -> bool:
        """End the hold of an item; returns whether this has ended the item. Raises ItemNotHeld."""
        return run(self._router.run(items.item_release(item), timeout=timeout, retry_unknown=retry_unknown))

    def item_cancel(self, item: str, reason: str | None = None, *, timeout: float | None = None) -> int:
        """Remove all jobs of an item, and jobs that wait for it to be done; returns how many it has.

        No more of them are handed out, and none can be added. Workers of running ones are notified ("CANCEL" of
        events()), and may end them in any way. A hold stays: the item ends with it at the earliest. `reason`: a word
        for records and logs. Raises ItemNotFound when it has neither a job nor a hold.
        """
        return run(self._router.run(items.item_cancel(item, reason), timeout=timeout))

    def sched_levels(self, server: str | None = None, *, timeout: float | None = None) -> list[FairLevel]:
        """List the levels of fair shares (get(policy="fair")); a `server` that is named may lag."""
        return run(self._router.run_where(queue_commands.sched_levels(), server, timeout=timeout))

    def sched_group(self, group: str, *, server: str | None = None, timeout: float | None = None) -> FairGroup:
        """Return the time that a group has used so far. Raises GroupNotFound; a `server` that is named may lag."""
        return run(self._router.run_where(queue_commands.sched_group(group), server, timeout=timeout))

    def sched_config(
        self,
        *,
        levels: Sequence[int] | None = None,
        cap: float | None = None,
        multiplier: int | None = None,
        group_keep: float | None = None,
        timeout: float | None = None,
    ) -> dict[str, str]:
        """Change the settings of fair shares (sockpq.FairSettings), or only read them. Returns all settings."""
        return run(self._router.run_steps(
            queue_commands.sched_config(given(levels=levels, cap=cap, multiplier=multiplier, group_keep=group_keep)),
            timeout=timeout
        ))

    def total(
        self,
        queue: str | None = None,
        *,
        server: str | None = None,
        timeout: float | None = None,
    ) -> Totals:
        """Count the jobs of all queues or of one; a `server` that is named may lag behind the leader."""
        return run(self._router.run_where(queue_commands.total(queue), server, timeout=timeout))

    def queues(
        self,
        prefix: str = "",
        *,
        server: str | None = None,
        timeout: float | None = None,
    ) -> list[QueueTotals]:
        """List the queues whose names begin with `prefix`, in no particular order; a `server` that is named may lag."""
        return run(self._router.run_where(queue_commands.queues(prefix), server, timeout=timeout))

    def running(
        self,
        data: bool = False,
        *,
        server: str | None = None,
        timeout: float | None = None,
    ) -> list[RunningJob]:
        """List the running jobs in the order of their ids, with their data if `data`."""
        return run(self._router.run_where(queue_commands.running(data), server, timeout=timeout))

    def snapshot(self, server: str | None = None, *, timeout: float | None = None) -> bytes:
        """Return the whole state, for clone()."""
        return run(self._router.run_where(queue_commands.snapshot(), server, timeout=timeout))

    def snapshot_into(
        self,
        file: BinaryIO,
        *,
        users: bool = False,
        server: str | None = None,
        timeout: float | None = None,
    ) -> int:
        """Write the whole state into a file that can be truncated, piece by piece; returns its number of bytes.

        `users`: with the users of the cluster and their keys; clone() leaves users as they are in any case.
        """
        return run(self._router.run_where(
            queue_commands.snapshot_into(file, users=users), server, timeout=timeout
        ))

    def clone(self, snapshot: Data, *, timeout: float | None = None, retry_unknown: bool | None = None) -> None:
        """Replace the state of the whole cluster with a snapshot. Raises InvalidSnapshot; nothing is changed then.

        A read-only memoryview, for example of a mapped file, is sent without a copy.
        """
        run(self._router.run(queue_commands.clone(snapshot), timeout=timeout, retry_unknown=retry_unknown))

    def queue_create(
        self,
        queue: str,
        *,
        bound: bool = False,
        expire: float | None = None,
        then: Then | None = None,
        order: Literal["fifo", "time"] | None = None,
        tries: int | None = None,
        dead: str | None = None,
        weight: int | None = None,
        limit: int | None = None,
        item_limit: int | None = None,
        capacity: int | None = None,
        data_bytes_max: int | None = None,
        batch: int | None = None,
        portion: int | None = None,
        keep: float | None = None,
        ttl: float | None = None,
        idle: float | None = None,
        overflow: Literal["refuse", "drop_oldest"] | None = None,
        alarm: int | None = None,
        sched: Literal["fifo", "fair", "groups"] | None = None,
        group_limit: int | None = None,
        group_rate: int | None = None,
        group_per: float | None = None,
        group_by: GroupBy | None = None,
        group_order: bool | None = None,
        rate: int | None = None,
        per: float | None = None,
        spread: bool | None = None,
        pulse: str | None = None,
        retain: float | None = None,
        retain_max: int | None = None,
        retain_bytes: int | None = None,
        numbered: bool | None = None,
        backoff: tuple[float, float] | None = None,
        error_bytes: int | None = None,
        dedup_max: int | None = None,
        timeout: float | None = None,
    ) -> None:
        """Create a queue with these settings (sockpq.QueueSettings). Raises QueueExists.

        `bound`: it is deleted, with its jobs, when the session of this client ends, for example for answers to it.
        """
        run(self._router.run(
            queue_commands.queue_create(queue, given(expire=expire, then=then, order=order, tries=tries, dead=dead,
            weight=weight, limit=limit, item_limit=item_limit, capacity=capacity, data_bytes_max=data_bytes_max,
            batch=batch, portion=portion, keep=keep, ttl=ttl, idle=idle, overflow=overflow, alarm=alarm, sched=sched,
            group_limit=group_limit, group_rate=group_rate, group_per=group_per, group_by=group_by,
            group_order=group_order, rate=rate, per=per, spread=spread, pulse=pulse, retain=retain,
            retain_max=retain_max, retain_bytes=retain_bytes, numbered=numbered, backoff=backoff,
            error_bytes=error_bytes, dedup_max=dedup_max), bound=bound), timeout=timeout
        ))

    def queue_config(
        self,
        queue: str,
        *,
        expire: float | None = None,
        then: Then | None = None,
        order: Literal["fifo", "time"] | None = None,
        tries: int | None = None,
        dead: str | None = None,
        weight: int | None = None,
        limit: int | None = None,
        item_limit: int | None = None,
        capacity: int | None = None,
        data_bytes_max: int | None = None,
        batch: int | None = None,
        portion: int | None = None,
        keep: float | None = None,
        ttl: float | None = None,
        idle: float | None = None,
        overflow: Literal["refuse", "drop_oldest"] | None = None,
        alarm: int | None = None,
        sched: Literal["fifo", "fair", "groups"] | None = None,
        group_limit: int | None = None,
        group_rate: int | None = None,
        group_per: float | None = None,
        group_by: GroupBy | None = None,
        group_order: bool | None = None,
        rate: int | None = None,
        per: float | None = None,
        spread: bool | None = None,
        pulse: str | None = None,
        retain: float | None = None,
        retain_max: int | None = None,
        retain_bytes: int | None = None,
        numbered: bool | None = None,
        backoff: tuple[float, float] | None = None,
        error_bytes: int | None = None,
        dedup_max: int | None = None,
        timeout: float | None = None,
    ) -> dict[str, str]:
        """Change settings of a queue (sockpq.QueueSettings), which need not exist; without any only read them.

        Returns all of them in the protocol's words: {"limit": "3", ..}. Raises QueueNotFound when it has none and none
        were given, QueueNotEmpty when it has too many jobs for another order.
        """
        return run(self._router.run_steps(
            queue_commands.queue_config(queue, given(expire=expire, then=then, order=order, tries=tries, dead=dead,
            weight=weight, limit=limit, item_limit=item_limit, capacity=capacity, data_bytes_max=data_bytes_max,
            batch=batch, portion=portion, keep=keep, ttl=ttl, idle=idle, overflow=overflow, alarm=alarm, sched=sched,
            group_limit=group_limit, group_rate=group_rate, group_per=group_per, group_by=group_by,
            group_order=group_order, rate=rate, per=per, spread=spread, pulse=pulse, retain=retain,
            retain_max=retain_max, retain_bytes=retain_bytes, numbered=numbered, backoff=backoff,
            error_bytes=error_bytes, dedup_max=dedup_max)), timeout=timeout
        ))

    def queue_delete(
        self,
        queue: str,
        *,
        force: bool = False,
        leave: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Remove a queue with its settings, and with `force` also with its jobs, the running ones too.

        `leave`, with `force`: its dead jobs stay in the dead-letter queues, as if they had been put there. Raises
        QueueNotFound, QueueNotEmpty.
        """
        run(self._router.run(queue_commands.queue_delete(queue, force=force, leave=leave), timeout=timeout))

    def queue_purge(
        self,
        queue: str,
        state: State | Literal["all", "ended", "own"],
        *,
        timeout: float | None = None,
        retry_unknown: bool | None = None,
    ) -> int:
        """Remove the jobs that are "ready", "delayed", "running", "dead" or "buried", or "all" but running ones.

        "own": all jobs in the queue itself, including running ones, but no dead ones. "ended": the records of ended
        jobs, which "all" removes, too. Returns how many. Raises QueueNotFound.
        """
        return run(self._router.run(
            queue_commands.queue_purge(queue, state), timeout=timeout, retry_unknown=retry_unknown
        ))

    def queue_move(
        self,
        queue: str,
        to: str,
        count: int | None = None,
        *,
        died: str | None = None,
        seq: int | None = None,
        timeout: float | None = None,
        retry_unknown: bool | None = None,
    ) -> Moved:
        """Move ready jobs to the end of another queue, in order: the first `count`, or all.

        `died`: only the dead ones among them that came from this queue. They keep their options, and their attempts
        start over. If `to` refuses a job, it and all later ones stay, and the result has the reason. `seq`: only the
        ready job at this place. Raises QueueNotFound if there is no `queue`, with `seq` JobNotFound if there is no such
        job, and what `to` refuses.
        """
        return run(self._router.run(
            queue_commands.queue_move(queue, to, count, died=died, seq=seq), timeout=timeout,
            retry_unknown=retry_unknown
        ))

    def queue_pause(
        self,
        queue: str,
        direction: Direction = "all",
        *,
        seconds: float | None = None,
        timeout: float | None = None,
    ) -> None:
        """Make put() raise QueuePaused ("in"), get() find the queue empty ("out"), or both.

        `seconds`, with "out": for this long, replacing any earlier "out" pause (0 ends it).
        """
        run(self._router.run(queue_commands.queue_pause(queue, direction, seconds=seconds), timeout=timeout))

    def queue_resume(self, queue: str, *, timeout: float | None = None) -> None:
        """End the pause of a queue. Raises QueueNotFound."""
        run(self._router.run(queue_commands.queue_resume(queue), timeout=timeout))

    def queue_stat(
        self,
        queue: str,
        *,
        server: str | None = None,
        timeout: float | None = None,
    ) -> dict[str, int]:
        """Return the counters of a queue in the protocol's words. Raises QueueNotFound.

        `waiters`, the number of clients that wait for it by name, is known to the leader only. `on_disk` jobs with
        `on_disk_bytes` of data are not in the memory of the node that answers.
        """
        return run(self._router.run_where(queue_commands.queue_stat(queue), server, timeout=timeout))

    def topic_bind(
        self,
        topic: str,
        queue: str,
        pattern: str | None = None,
        *,
        timeout: float | None = None,
    ) -> None:
        """Bind `queue` to `topic`: it gets all jobs published there, or only those whose routing key matches `pattern`.

        A pattern is words with dots between them; `*` is any one word, `#` any number of words.
        """
        run(self._router.run(queue_commands.topic_bind(topic, queue, pattern), timeout=timeout))

    def topic_unbind(
        self,
        topic: str,
        queue: str,
        pattern: str | None = None,
        *,
        timeout: float | None = None,
    ) -> None:
        """Undo a topic_bind(). Raises TopicNotFound, BindingNotFound."""
        run(self._router.run(queue_commands.topic_unbind(topic, queue, pattern), timeout=timeout))

    def topic_delete(self, topic: str, *, timeout: float | None = None) -> None:
        """Remove all bindings of the topic; the queues stay. Raises TopicNotFound."""
        run(self._router.run(queue_commands.topic_delete(topic), timeout=timeout))

    def topic_list(
        self,
        prefix: str = "",
        *,
        server: str | None = None,
        timeout: float | None = None,
    ) -> list[Binding]:
        """List the bindings of the topics whose names begin with `prefix`; a `server` that is named may lag."""
        return run(self._router.run_where(queue_commands.topic_list(prefix), server, timeout=timeout))

    def config(
        self,
        *,
        expire_default: Literal["later", "done"] | None = None,
        autocreate: bool | None = None,
        policy: Policy | None = None,
        grace: float | None = None,
        session_ttl: float | None = None,
        fast_empty: bool | None = None,
        retained_bytes: int | None = None,
        timeout: float | None = None,
    ) -> dict[str, str]:
        """Change settings of the cluster (sockpq.ClusterSettings), one after the other; without any only read them.

        Returns all of them in the protocol's words.
        """
        return run(self._router.run_steps(
            queue_commands.config(given(expire_default=expire_default, autocreate=autocreate, policy=policy,
            grace=grace, session_ttl=session_ttl, fast_empty=fast_empty, retained_bytes=retained_bytes)),
            timeout=timeout
        ))

    def group_config(
        self,
        group: str,
        *,
        limit: int | None = None,
        rate: int | None = None,
        per: float | None = None,
        weight: int | None = None,
        timeout: float | None = None,
    ) -> GroupConfig:
        """Change settings of a group of jobs (sockpq.GroupSettings); without any only read them.

        They hold in queues with `sched` "fair" or "groups" and for get(policy="fair"). Returns all of them. Raises Busy
        if the maximum number of groups has settings.
        """
        return run(self._router.run_steps(
            groups.group_config(group, given(limit=limit, rate=rate, per=per, weight=weight)), timeout=timeout
        ))

    def group_pause(self, group: str, *, seconds: float | None = None, timeout: float | None = None) -> None:
        """Hand out no more jobs of a group until group_resume() or for some seconds; replaces an earlier pause."""
        run(self._router.run(groups.group_pause(group, seconds=seconds), timeout=timeout))

    def group_resume(self, group: str, *, timeout: float | None = None) -> None:
        """End the pause of a group, and its sleep in all queues. Raises GroupNotFound when it has neither."""
        run(self._router.run(groups.group_resume(group), timeout=timeout))

    def group_delete(self, group: str, *, timeout: float | None = None) -> None:
        """Remove the settings and the pause of a group; its jobs stay. Raises GroupNotFound when it has none."""
        run(self._router.run(groups.group_delete(group), timeout=timeout))

    def groups(
        self,
        prefix: str = "",
        *,
        server: str | None = None,
        timeout: float | None = None,
    ) -> list[GroupTotals]:
        """List the groups with settings or unfinished jobs, whose names begin with `prefix`; a named `server` may lag.

        A queue whose jobs were put without a group is listed only if there are settings for its name.
        """
        return run(self._router.run_where(groups.groups(prefix), server, timeout=timeout))

    def ping(self, server: str | None = None, *, timeout: float | None = None) -> None:
        """Check that this server (None: the serving leader) answers. Raises Unavailable when it does not."""
        run(self._router.run_where(cluster.ping(), server, timeout=timeout))

    def caps(self, server: str | None = None, *, timeout: float | None = None) -> tuple[str, ...]:
        """Return the protocol extensions that the server supports."""
        return run(self._router.run_where(cluster.caps(), server, timeout=timeout))

    def help_lines(
        self,
        verb: str | None = None,
        *,
        server: str | None = None,
        timeout: float | None = None,
    ) -> tuple[str, ...]:
        """Return the forms of a command, one line each: of this verb, or of all."""
        return run(self._router.run_where(cluster.help_lines(verb), server, timeout=timeout))

    def cluster_id(self, server: str | None = None, *, timeout: float | None = None) -> ClusterId:
        """Return the cluster to which this server belongs."""
        return run(self._router.run_where(cluster.cluster_id(), server, timeout=timeout))

    def interconnect(self, server: str | None = None, *, timeout: float | None = None) -> int:
        """Return the server's id; the serving leader has the smallest of all."""
        return run(self._router.run_where(cluster.interconnect(), server, timeout=timeout))

    def cluster_leader(self, server: str | None = None, *, timeout: float | None = None) -> Leader | None:
        """Return the leader that this server (None: the serving leader) knows; None if it knows none."""
        return run(self._router.run_where(cluster.cluster_leader(), server, timeout=timeout))

    def cluster_hash(self, server: str, *, timeout: float | None = None) -> StateHash:
        """Return a hash of everything this server has executed; at the same position it is the same on all servers."""
        return run(self._router.run_where(cluster.cluster_hash(), server, timeout=timeout))

    def cluster_replica(self, server: str, *, timeout: float | None = None) -> ReplicaStatus | None:
        """Return how this server of a copy in another region follows its origin; None if its cluster is not a copy.

        Raises Refused (`409 Fenced <id>`) when the cluster was switched off for good, as a copy has taken its place.
        """
        return run(self._router.run_where(cluster.cluster_replica(), server, timeout=timeout))

    def feed_check(self, server: str, *, timeout: float | None = None) -> None:
        """Check that this server would feed a copy of its cluster in another region to this user.

        Raises ForbiddenError without the right admin, or over a connection that can be overheard; NotServing if the
        cluster is a copy itself; Busy if it feeds as many copies as it may.
        """
        run(self._router.run_where(cluster.feed_check(), server, timeout=timeout))

    def offline(self, server: str, *, timeout: float | None = None) -> None:
        """Switch one server off for clients; it hands leadership over and continues to replicate."""
        run(self._router.run_where(cluster.offline(), server, timeout=timeout))

    def online(self, server: str, *, timeout: float | None = None) -> None:
        """Put an offline server back in service."""
        run(self._router.run_where(cluster.online(), server, timeout=timeout))

    def cluster_snapshot(self, server: str, *, timeout: float | None = None) -> int:
        """Make one server write a snapshot and shorten its log; returns the position in the log."""
        return run(self._router.run_where(cluster.cluster_snapshot(), server, timeout=timeout))

    def shutdown(self, server: str, *, timeout: float | None = None) -> None:
        """Stop one server's process in an orderly way."""
        run(self._router.run_where(cluster.shutdown(), server, timeout=timeout))

    def cluster_add(self, name: str, peer: str, client: str, *, timeout: float | None = None) -> int:
        """Add a running server: `peer` is its address for the other servers, `client` for clients, "host:port" both.

        Returns its server id. It counts as soon as it has caught up; until then cluster_status() shows a LEARNER. This
        and the following calls are for the leader, which is searched for among the client's servers. Raises Refused.
        """
        return run(self._router.run_at_leader(cluster.cluster_add(name, peer, client), timeout=timeout))

    def cluster_remove(self, name: str, *, timeout: float | None = None) -> None:
        """Remove a server from the cluster; when this returns, it may be stopped."""
        run(self._router.run_at_leader(cluster.cluster_remove(name), timeout=timeout))

    def cluster_transfer(self, name: str | None = None, *, timeout: float | None = None) -> Leader:
        """Transfer leadership to this server, or to the most up-to-date one; returns the new leader."""
        return run(self._router.run_at_leader(cluster.cluster_transfer(name), timeout=timeout))

    def cluster_offline(self, *, timeout: float | None = None) -> None:
        """Switch the whole service off for clients, whichever server leads, until cluster_online()."""
        run(self._router.run_at_leader(cluster.cluster_offline(), timeout=timeout))

    def cluster_online(self, *, timeout: float | None = None) -> None:
        """Put the whole service back in operation after cluster_offline()."""
        run(self._router.run_at_leader(cluster.cluster_online(), timeout=timeout))

    def cluster_promote(self, grace: float | None = None, *, timeout: float | None = None) -> int:
        """Make this replica of another cluster a cluster of its own, with the state that it has (docs/REGIONS.md).

        Returns how many entries of the origin's log are in it. What still runs has `grace` seconds more, 60 by default.
        Raises Refused if this cluster is not a replica.
        """
        return run(self._router.run_at_leader(cluster.cluster_promote(grace), timeout=timeout))

    def cluster_fence(self, replica: str, *, timeout: float | None = None) -> None:
        """Switch the service of this cluster off for good, because the replica with this id takes its place.

        The configuration of the servers must name the replica (`feed.replica`), otherwise Refused is raised.
        """
        run(self._router.run_at_leader(cluster.cluster_fence(replica), timeout=timeout))

    def sessions(self, server: str | None = None, *, timeout: float | None = None) -> list[SessionInfo]:
        """List the sessions of all clients; a `server` that is named may lag."""
        return run(self._router.run_where(cluster.sessions(), server, timeout=timeout))

    def end_session(self, number: int, *, timeout: float | None = None) -> bool:
        """End the session of this number; returns whether it existed. Its bound jobs go back to their queues.

        Its client notices that at its next use.
        """
        return run(self._router.run(cluster.end_session(number), timeout=timeout))

    def worker_beat(self, name: str, slots: int, busy: int, *, timeout: float | None = None) -> WorkerBounds:
        """Announce the pool of workers `name`, with `slots` places for jobs, of which `busy` are in use.

        Returns the operator's settings (worker_set()). The pool keeps the name until this client's session ends or is
        not used for 30 s. Raises WorkerExists when another pool has the name, SessionLost without sessions.
        """
        return run(self._router.run(cluster.worker_beat(name, slots, busy), timeout=timeout))

    def workers(self, server: str | None = None, *, timeout: float | None = None) -> list[WorkerInfo]:
        """List the pools of workers by name; a `server` that is named may lag."""
        return run(self._router.run_where(cluster.workers(), server, timeout=timeout))

    def worker_set(
        self,
        name: str,
        *,
        most: int | None = None,
        least: int | None = None,
        state: WorkerState | None = None,
        timeout: float | None = None,
    ) -> None:
        """Limit a pool to `most` jobs at a time and to `least` at least, or let it "run", "pause" or "stop".

        The pool receives that with its next heartbeat, and at once if it listens to events, as pqworker does. Needs the
        right admin. Raises WorkerNotFound.
        """
        run(self._router.run(cluster.worker_set(name, most=most, least=least, state=state), timeout=timeout))

    def users(self, *, timeout: float | None = None) -> list[User]:
        """List the users that the servers know, with their rights. This and the next two calls need the right admin."""
        return run(self._router.run(cluster.users(), timeout=timeout))

    def set_user(
        self,
        name: str,
        rights: str | Iterable[str],
        secret: str | bytes,
        *,
        timeout: float | None = None,
    ) -> None:
        """Create a user, or give them other rights and another secret, on all servers.

        `rights`: put, get, queue, item, admin, each for all or with a prefix: "put:mail*,get". `secret`: 16 to 64
        visible characters, or as many bytes of a key. Raises Refused when the user is in the servers' files.
        """
        run(self._router.run(cluster.set_user(name, rights, secret), timeout=timeout))

    def delete_user(self, name: str, *, timeout: float | None = None) -> None:
        """Delete a user; their open connections get AuthError. Raises Refused for an unknown user or one in a file."""
        run(self._router.run(cluster.delete_user(name), timeout=timeout))

    def cluster_map(self, server: str | None = None, *, timeout: float | None = None) -> ClusterMap:
        """Return the map of which cluster owns which names; its version is 0 without a map."""
        return run(self._router.run_where(clusters.cluster_map(), server, timeout=timeout))

    def set_cluster_map(self, new: ClusterMap, *, timeout: float | None = None) -> None:
        """Replace the map of this cluster with one of a greater version; the same map again is accepted, too.

        Other clusters keep theirs. Raises MapChanged when the cluster has this version or a greater one.
        """
        run(self._router.run(clusters.set_cluster_map(new), timeout=timeout))

    def notify(
        self,
        channel: str,
        data: Data = b"",
        *,
        timeout: float | None = None,
        retry_unknown: bool | None = None,
    ) -> int:
        """Send a message to all current subscribers to `"MSG"` of this channel; returns how many, as far as known.

        Delivered at most once, up to 1 MiB, and not stored: later subscribers do not get it.
        """
        return run(self._router.run(
            event_commands.notify(channel, data), timeout=timeout, retry_unknown=retry_unknown
        ))

    def pulse_create(
        self,
        pulse: str,
        *,
        rate: int | None = None,
        per: float | None = None,
        step: float | None = None,
        max_pause: float | None = None,
        max_run: float | None = None,
        together: bool | None = None,
        spread: bool | None = None,
        max_wait: float | None = None,
        timeout: float | None = None,
    ) -> None:
        """Create a pulse with these settings (sockpq.PulseSettings). Raises PulseExists, TooManyPulses."""
        run(self._router.run(
            pulses.pulse_create(pulse, given(rate=rate, per=per, step=step, max_pause=max_pause, max_run=max_run,
            together=together, spread=spread, max_wait=max_wait)), timeout=timeout
        ))

    def pulse_config(
        self,
        pulse: str,
        *,
        rate: int | None = None,
        per: float | None = None,
        step: float | None = None,
        max_pause: float | None = None,
        max_run: float | None = None,
        together: bool | None = None,
        spread: bool | None = None,
        max_wait: float | None = None,
        timeout: float | None = None,
    ) -> None:
        """Change settings of a pulse; with `rate` or `per` it restarts at its full rate. Raises PulseNotFound."""
        run(self._router.run(
            pulses.pulse_config(pulse, given(rate=rate, per=per, step=step, max_pause=max_pause, max_run=max_run,
            together=together, spread=spread, max_wait=max_wait)), timeout=timeout
        ))

    def pulse_delete(self, pulse: str, *, timeout: float | None = None) -> None:
        """Remove a pulse. Raises PulseNotFound, PulseInUse when a queue uses it."""
        run(self._router.run(pulses.pulse_delete(pulse), timeout=timeout))

    def pulse_set(
        self,
        pulse: str,
        payload: Data = b"",
        *,
        deny: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Set the data of each turn from now on, up to 64 KiB; with `deny` turns raise Denied. Raises PulseNotFound."""
        run(self._router.run(pulses.pulse_set(pulse, payload, deny=deny), timeout=timeout))

    def pulses(self, server: str | None = None, *, timeout: float | None = None) -> list[str]:
        """List the names of all pulses that the user may see."""
        return run(self._router.run_where(pulses.pulses(), server, timeout=timeout))

    def pulse_stat(
        self,
        pulse: str,
        *,
        server: str | None = None,
        timeout: float | None = None,
    ) -> dict[str, float | None]:
        """Return settings and figures of a pulse by the protocol's words. Raises PulseNotFound.

        `now` turns in `per` + `pause` seconds at present, none before `sleepuntil`; clients `waiting` (None: unknown to
        this server), turns `granted` so far, `errors` among their results, results still `open`.
        """
        return run(self._router.run_where(pulses.pulse_stat(pulse), server, timeout=timeout))

    def pulse_result(
        self,
        ticket: int,
        feedback: Literal["ok", "fail", "slow", "sleep"] = "ok",
        *,
        sleep: float = 0.0,
        reason: str | None = None,
        timeout: float | None = None,
    ) -> None:
        """Report the outcome of a turn by its `ticket`, in another program than the one that has waited for it.

        `feedback`: "ok", "fail" for a failure that is not due to the rate, "slow" if this was too fast, or "sleep": no
        client may have a turn for `sleep` seconds. Raises TicketNotFound if it has one, or it is too late.
        """
        run(self._router.run(pulses.pulse_result(ticket, feedback, sleep=sleep, reason=reason), timeout=timeout))
