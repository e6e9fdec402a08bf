"""The blocking client."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Unpack, overload

from sockpq._backends.access import access
from sockpq._backends.sync import ThreadNetwork, run
from sockpq._engine.limits import Limits
from sockpq._engine.probe import ServerView, view_all
from sockpq._protocol.addresses import parse_servers
from sockpq._protocol.arguments import Then, span, switch
from sockpq._protocol.commands import Block, Command
from sockpq.calls import Calls
from sockpq.heartbeat import Heartbeat
from sockpq.job import Job
from sockpq.model import Finished, Handed, Key
from sockpq.options import ChangeOptions, Data, GetOptions, LaterOptions, MoveOptions, PutOptions
from sockpq.queue_client import QueueClient
from sockpq.transaction import Transaction

if TYPE_CHECKING:
    from sockpq._backends.access import Tls


class Client(QueueClient):
    """Talks to whatever server of the cluster serves, and follows when that changes. Thread-safe.

    A call is executed exactly once, through failovers, by a session that the cluster keeps. It returns, or raises a
    NotExecuted, e.g. when nobody executes it before its `timeout` (seconds). OutcomeUnknown says that the answer was
    lost and nobody can tell any more: the session is lost too, `timeout` is over, or the servers have no sessions. What
    does no harm is repeated even then (not PUT, GET without a lease, CLONE), and everything with `retry_unknown`, which
    says that at least once is good enough. errors.py has the tree.
    """

    _calls: Calls[Job]

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
        **options: Unpack[PutOptions],
    ) -> str | None:
        """Queue a job; on return it is on disk on a majority. Greater `priority` first.

        `item` puts it into a group, `new_item` into a new one named by the server. Returns the item's name, or None.
        `options`: `delay`, `at`, `ttl`, `every`, `after`, `key`, `on_duplicate`, `tries` (see sockpq.PutOptions).
        Raises JobExists, QueueFull, QueuePaused and QueueNotFound where these or the queue's settings ask for it.
        """
        return run(self._calls.put(
            queue, data, priority, item, new_item, timeout=timeout, retry_unknown=retry_unknown, **options
        ))

    def put_many(
        self,
        queue: str,
        datas: Iterable[Data],
        priority: int = 0,
        item: str | None = None,
        *,
        keys: Iterable[str] | None = None,
        timeout: float | None = None,
        retry_unknown: bool | None = None,
        **options: Unpack[PutOptions],
    ) -> int:
        """Queue a job for each of `datas`, thousands in one command: much faster than one by one.

        `keys`: one for each; `options` as for put(), for all. Returns how many are there because of it: all, or with
        `on_duplicate="ignore"` those whose keys were new. `timeout` limits the time without progress, not the whole.
        Raises BatchFailed when some are acknowledged and others are not; it says which.
        """
        return run(self._calls.put_many(
            queue, datas, priority, item, keys=keys, timeout=timeout, retry_unknown=retry_unknown, **options
        ))

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
        **options: Unpack[GetOptions],
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
        **options: Unpack[GetOptions],
    ) -> Job | None:
        """Take a job from one of `queues` (None: any), the greatest priority first; None when there is none.

        `block=True` waits for one; `block="until_done"` waits until no unfinished job is left in them; both for `wait`
        seconds at most, if given. `expire` is the lease in seconds: when it ends before done(), the job goes back to
        its queue (`then="later"`), is removed (`then="done"`) or given up (`then="dead"`); the cluster has a default.
        Without a lease a job whose answer is lost would run for ever, so that such a call can raise OutcomeUnknown:
        give one. `options`: `item`, `meta`, `policy` (see sockpq.GetOptions).
        """
        return run(self._calls.get(
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
    ) -> Iterator[Job]:
        """`for job in client.consume("q", expire=30)`: one job after the other, each with a lease of `expire` seconds.

        A job is DONE when the loop comes back for the next one, and LATER when the loop is left before, by an error or
        by `break`, unless its done() or later() was called. The loop ends when no job comes for `wait` seconds, and
        with `until_done` when no unfinished job is left in the queues; otherwise it never does.

        With `heartbeat` the lease begins anew every third of it, by a thread, while the job is worked on: the job stays
        here however long it takes, and is free `expire` seconds after this process has died. `job.lost` becomes True
        if the lease was lost all the same, as when nobody served for longer.
        """
        command = self._calls._consuming(queues, expire, then, until_done, wait, options)
        beat = Heartbeat(self._calls, expire) if switch(heartbeat, "heartbeat") else None
        return self._consume(command, wait, timeout, beat)

    def _consume(
        self, command: Command[Handed | None], wait: float | None, timeout: float | None, beat: Heartbeat | None
    ) -> Iterator[Job]:
        try:
            while job := run(self._calls._take(command, wait, timeout, None)):
                with job, beat.of(job) if beat else nullcontext():
                    yield job
                if beat:
                    beat.check()
        finally:
            if beat:
                beat.stop()

    def get_many(
        self,
        count: int,
        queues: str | Iterable[str] | None = None,
        *,
        expire: float,
        then: Then | None = None,
        block: Block = False,
        wait: float | None = None,
        timeout: float | None = None,
        **options: Unpack[GetOptions],
    ) -> list[Job]:
        """Take up to `count` jobs at once; [] when there is none. The lease `expire` (seconds) is a must.

        `block` and `wait` as for get(): it waits until there is one job at least. Bodies of more than 16 MiB together
        are not given at once.
        """
        return run(self._calls.get_many(
            count, queues, expire=expire, then=then, block=block, wait=wait, timeout=timeout, **options
        ))

    def done(
        self,
        job: Job | int,
        *,
        last: bool = False,
        timeout: float | None = None,
        retry_unknown: bool | None = None,
    ) -> Finished:
        """Remove a running job; tells whether its queue or its item has come to an end with it.

        A periodic job (`put(every=)`) is not removed, unless it is the `last` time: the answer's `next_at` says when it
        is active again.

        Raises JobNotFound when it is not running (any more). When an answer was lost and the repetition finds no such
        job, nobody can tell whether the first try removed it or its lease had ended: OutcomeUnknown, or with
        `retry_unknown` a plain return.
        """
        return run(self._calls.done(job, last=last, timeout=timeout, retry_unknown=retry_unknown))

    def done_many(self, jobs: Iterable[Job | int], *, timeout: float | None = None) -> list[Finished | None]:
        """Remove many running jobs at once; None in the place of a job that is not running (any more)."""
        return run(self._calls.done_many(jobs, timeout=timeout))

    def later(self, job: Job | int, *, timeout: float | None = None, **options: Unpack[LaterOptions]) -> None:
        """Put a running job back at the end of its queue. Raises JobNotFound when it is not running (any more).

        `options`: `delay` or `at`, when it is active; `priority`, its new one; `first`, to its old place instead;
        `yielded`, a slice of the work is over, and the attempt is not counted.
        """
        run(self._calls.later(job, timeout=timeout, **options))

    def later_many(self, jobs: Iterable[Job | int], *, timeout: float | None = None) -> list[bool]:
        """Put many running jobs back at once; False in the place of a job that is not running (any more)."""
        return run(self._calls.later_many(jobs, timeout=timeout))

    def touch(
        self, job: Job | int, expire: float | None = None, then: Then | None = None, *, timeout: float | None = None
    ) -> int | None:
        """Let the lease of a running job begin anew, with the same length or `expire` seconds (0: none any more).

        Returns when it ends, in Unix time, None for never. Raises JobNotFound when it is not running (any more).
        """
        return run(self._calls.touch(job, expire, then, timeout=timeout))

    def change(
        self, job: Job | int | Key, *, timeout: float | None = None, **options: Unpack[ChangeOptions]
    ) -> None:
        """Change a running job by its id, or one that waits by its `Key`: `data`, `priority`, `delay` or `at`, `item`.

        `no_item` takes its item away. Raises JobNotFound; and JobRunning when somebody has the job with this key.
        """
        run(self._calls.change(job, timeout=timeout, **options))

    def delete(
        self, job: Job | int | Key, *, timeout: float | None = None, retry_unknown: bool | None = None
    ) -> Finished:
        """Remove a running job by its id, or one that waits by its `Key`. Raises JobNotFound, JobRunning."""
        return run(self._calls.delete(job, timeout=timeout, retry_unknown=retry_unknown))

    def move(
        self, job: Job | int, queue: str, *, timeout: float | None = None, **options: Unpack[MoveOptions]
    ) -> Finished:
        """Finish a running job here and put it into `queue`, in one piece: a step of a cascade.

        Item and key go with it; `data`, `priority`, `delay` or `at` change it. Raises JobNotFound, and what put() does.
        """
        return run(self._calls.move(job, queue, timeout=timeout, **options))

    def bury(self, job: Job | int, reason: str | None = None, *, timeout: float | None = None) -> Finished:
        """Give a running job up: it goes to its queue's dead queue; kick() brings it back. `reason`: for the log."""
        return run(self._calls.bury(job, reason, timeout=timeout))

    def transaction(self, *, timeout: float | None = None) -> Transaction:
        """`with client.transaction() as t: t.done(job); t.put("next", data)`: all of it or nothing, in one piece.

        Nothing is sent before the end of the block, and nothing at all when it raises. Raises Aborted when one of the
        commands would be refused.
        """
        return Transaction(self._calls._caller, timeout)

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
