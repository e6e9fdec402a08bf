"""The blocking client."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Literal, overload

from sockpq.access import access
from sockpq.addresses import parse_servers
from sockpq.arguments import Then, span
from sockpq.calls import Calls
from sockpq.commands import Block, Command, Data
from sockpq.job import Job
from sockpq.limits import Limits
from sockpq.model import Finished, Handed, Leader, NodeStatus, QueueTotals, RunningJob, StateHash, Totals, User
from sockpq.survey import ServerView, view_all
from sockpq.threads import ThreadNetwork, run

if TYPE_CHECKING:
    from sockpq.access import Tls


class Client:
    """Talks to whatever server of the cluster serves, and follows when that changes. Thread-safe.

    A call is executed exactly once, through failovers, by a session that the cluster keeps. It returns, or raises a
    NotExecuted, e.g. when nobody executes it before its `timeout` (seconds). OutcomeUnknown says that the answer was
    lost and nobody can tell any more: the session is lost too, `timeout` is over, or the servers have no sessions. What
    does no harm is repeated even then (not PUT, GET without a lease, CLONE), and everything with `retry_unknown`, which
    says that at least once is good enough. errors.py has the tree.
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
        """`servers`: all of the cluster, "host:port" each, or one string with commas. Nothing is sent yet.

        All times in seconds: `timeout` for a whole call with its repetitions, `server_timeout` for one server that owes
        an answer and is silent, `connect_timeout` for connecting and for finding the leader. The cluster forgets a
        session that was not used for `session_ttl`.

        `tls`: the file with the CA that the servers' certificates are from, True for the system's CAs, or an
        ssl.SSLContext; None for plain TCP. `user` and `secret` if the servers ask for them.
        """
        limits = Limits(
            timeout, server_timeout, connect_timeout, retry_unknown, sessions, session_ttl, idle_connections_max
        ).checked()
        self._calls = Calls(ThreadNetwork(access(tls, user, secret)), Job, servers, limits)

    def close(self) -> None:
        """End all connections. Calls under way in other threads end with an error: ClientClosed, or OutcomeUnknown."""
        run(self._calls.close())

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
        return run(
            self._calls.put(queue, data, priority, item, new_item, timeout=timeout, retry_unknown=retry_unknown)
        )

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
        return run(self._calls.put_many(queue, datas, priority, item, timeout=timeout, retry_unknown=retry_unknown))

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
        timeout: float | None = None,
        retry_unknown: bool | None = None,
    ) -> Job | None:
        """Take a job from one of `queues` (None: any), the greatest priority first; None when there is none.

        `block=True` waits for one; `block="until_done"` waits until no unfinished job is left in them; both for `wait`
        seconds at most, if given. `expire` is the lease in seconds: when it ends before done(), the job goes back to
        its queue (`then="later"`) or is removed (`then="done"`); the cluster has a default. Without a lease a job whose
        answer is lost would run for ever, so that such a call can raise OutcomeUnknown: give one.
        """
        return run(self._calls.get(
            queues, block=block, expire=expire, then=then, wait=wait, timeout=timeout, retry_unknown=retry_unknown
        ))

    def consume(
        self,
        queues: str | Iterable[str] | None = None,
        *,
        expire: float,
        then: Then | None = None,
        until_done: bool = False,
        wait: float | None = None,
        timeout: float | None = None,
    ) -> Iterator[Job]:
        """`for job in client.consume("q", expire=30)`: one job after the other, each with a lease of `expire` seconds.

        A job is DONE when the loop comes back for the next one, and LATER when the loop is left before, by an error or
        by `break`, unless its done() or later() was called. The loop ends when no job comes for `wait` seconds, and
        with `until_done` when no unfinished job is left in the queues; otherwise it never does.
        """
        return self._consume(self._calls._consuming(queues, expire, then, until_done, wait), wait, timeout)

    def _consume(
        self, command: Command[Handed | None], wait: float | None, timeout: float | None
    ) -> Iterator[Job]:
        while job := run(self._calls._take(command, wait, timeout, None)):
            with job:
                yield job

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
        return run(self._calls.get_many(count, queues, expire=expire, then=then, timeout=timeout))

    def done(self, job: Job | int, *, timeout: float | None = None, retry_unknown: bool | None = None) -> Finished:
        """Remove a running job; tells whether its queue or its item has come to an end with it.

        Raises JobNotFound when it is not running (any more). When an answer was lost and the repetition finds no such
        job, nobody can tell whether the first try removed it or its lease had ended: OutcomeUnknown, or with
        `retry_unknown` a plain return.
        """
        return run(self._calls.done(job, timeout=timeout, retry_unknown=retry_unknown))

    def done_many(self, jobs: Iterable[Job | int], *, timeout: float | None = None) -> list[Finished | None]:
        """Remove many running jobs, pipelined; None in the place of a job that is not running (any more)."""
        return run(self._calls.done_many(jobs, timeout=timeout))

    def later(self, job: Job | int, *, timeout: float | None = None) -> None:
        """Put a running job back at the end of its queue. Raises JobNotFound when it is not running (any more)."""
        run(self._calls.later(job, timeout=timeout))

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
        return run(self._calls.call(
            queue, data, output, priority=priority, item=item, expire=expire, then=then, wait=wait, timeout=timeout,
            retry_unknown=retry_unknown,
        ))

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

    # the users

    def users(self, *, timeout: float | None = None) -> list[User]:
        """The users the servers know, with their rights. For these three one needs the right admin."""
        return run(self._calls.users(timeout=timeout))

    def set_user(self, name: str, rights: str | Iterable[str], secret: str, *, timeout: float | None = None) -> None:
        """Make a user, or give him other rights and another secret, on all servers.

        `rights`: put, get, queue, admin, each for all queues or with a prefix: "put:mail*,get". `secret`: 16 to 64
        visible characters. Raises Refused when he is in the servers' files.
        """
        run(self._calls.set_user(name, rights, secret, timeout=timeout))

    def delete_user(self, name: str, *, timeout: float | None = None) -> None:
        """Take a user away; what he has open gets AuthError. Raises Refused when there is none, or in a file."""
        run(self._calls.delete_user(name, timeout=timeout))

    # the servers

    def ping(self, server: str | None = None, *, timeout: float | None = None) -> None:
        """Does this server (None: the serving leader) answer? Raises Unavailable when it does not."""
        run(self._calls.ping(server, timeout=timeout))

    def caps(self, server: str | None = None, *, timeout: float | None = None) -> tuple[str, ...]:
        """The protocol extensions the server has."""
        return run(self._calls.caps(server, timeout=timeout))

    def interconnect(self, server: str | None = None, *, timeout: float | None = None) -> int:
        """The server id; the serving leader has the smallest of all."""
        return run(self._calls.interconnect(server, timeout=timeout))

    def cluster_status(self, server: str | None = None, *, timeout: float | None = None) -> list[NodeStatus]:
        """All nodes, as `server` knows them; without one as the leader does, or any that answers if there is none."""
        return run(self._calls.cluster_status(server, timeout=timeout))

    def cluster_leader(self, server: str | None = None, *, timeout: float | None = None) -> Leader | None:
        """The leader this server (None: the serving leader) knows of."""
        return run(self._calls.cluster_leader(server, timeout=timeout))

    def cluster_hash(self, server: str, *, timeout: float | None = None) -> StateHash:
        """What this server has executed, as a hash: two that answer the same position answer the same hash."""
        return run(self._calls.cluster_hash(server, timeout=timeout))

    def offline(self, server: str, *, timeout: float | None = None) -> None:
        """Switch one server off for clients; it gives leadership away and goes on replicating."""
        run(self._calls.offline(server, timeout=timeout))

    def online(self, server: str, *, timeout: float | None = None) -> None:
        """Switch it on again."""
        run(self._calls.online(server, timeout=timeout))

    def cluster_add(self, name: str, peer: str, client: str, *, timeout: float | None = None) -> int:
        """Add a running server: `peer` is its address for the other servers, `client` for clients, "host:port" both.

        Returns its server id. It counts as soon as it has caught up; until then cluster_status() shows a LEARNER. This
        and the following are for the leader, which is looked for among the client's servers; Refused when it refuses.
        """
        return run(self._calls.cluster_add(name, peer, client, timeout=timeout))

    def cluster_remove(self, name: str, *, timeout: float | None = None) -> None:
        """Take a server out of the cluster; on return it may be stopped."""
        run(self._calls.cluster_remove(name, timeout=timeout))

    def cluster_transfer(self, name: str | None = None, *, timeout: float | None = None) -> Leader:
        """Let this server lead, or the one that is best prepared; returns the new leader."""
        return run(self._calls.cluster_transfer(name, timeout=timeout))

    def cluster_offline(self, *, timeout: float | None = None) -> None:
        """Switch the whole service off for clients, whoever leads, until cluster_online()."""
        run(self._calls.cluster_offline(timeout=timeout))

    def cluster_online(self, *, timeout: float | None = None) -> None:
        """Switch it on again."""
        run(self._calls.cluster_online(timeout=timeout))

    def cluster_snapshot(self, server: str, *, timeout: float | None = None) -> int:
        """Let one server write its state to disk and shorten its log; returns the position in the log."""
        return run(self._calls.cluster_snapshot(server, timeout=timeout))

    def shutdown(self, server: str, *, timeout: float | None = None) -> None:
        """End one server's process in good order."""
        run(self._calls.shutdown(server, timeout=timeout))


def survey(
    servers: str | Iterable[str],
    timeout: float = 0.5,
    *,
    tls: Tls = None,
    user: str | None = None,
    secret: str | None = None,
) -> list[ServerView]:
    """The view of every server, asked in parallel within `timeout` seconds; in the order of `servers`.

    `tls`, `user` and `secret` as for Client. A server may take 1.5 s longer to refuse the secret. Raises BadArguments
    and TypeError for what is no list of servers, no CA file, no secret, and nothing else.
    """
    network = ThreadNetwork(access(tls, user, secret))
    return run(view_all(network, parse_servers(servers), span(timeout, "timeout")))
