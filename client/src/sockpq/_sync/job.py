"""A job that the caller has taken."""

# Made from _async/job.py by client/tools/faces.py: edit there.

from __future__ import annotations

import os
from collections.abc import Mapping
from json import loads
from types import TracebackType
from typing import Any

from sockpq._backends.stopwatch import Stopwatch
from sockpq._backends.sync import at_once, run
from sockpq._process import is_inherited
from sockpq._protocol.arguments import ABSENT, Data, Then
from sockpq._protocol.commands import jobs
from sockpq._protocol.headers import header_block
from sockpq._routing.router import Router
from sockpq.errors import BadArguments, JobNotFound, SockpqError
from sockpq.model import Finished, Handed, Meta, PeekedJob

REPR_BYTES_MAX = 40


class Job:
    """A running job: this client has it until done(), later(), move(), bury() or the end of its lease.

    `id` is its number for this hand-out only; `item` is the name of the item it belongs to, or None; `meta` has more if
    get(meta=True) requested it. `key`, `number`, `group`, `attempt` and `reason` are taken from `meta`; for a job that
    was taken without it the blocking client asks the server once, at the first access; likewise for `headers`. `lost`:
    consume(heartbeat=True) has found that its lease has ended, so that another worker may have it. As a context manager
    it is DONE at the end of the block, and LATER when the block raises.
    """

    __slots__ = (
        "__weakref__", "_ended", "_headers", "_process", "_ran", "_router", "_stopwatch", "data", "id", "item", "lost",
        "meta", "priority", "queue",
    )

    def __init__(self, router: Router, handed: Handed) -> None:
        self._router = router
        self._ended = False
        self._process = os.getpid()             # a child that this one forks does not hold it
        self._ran: float | None = None          # how long the work on it took, in consume(policy="fair")
        self._stopwatch: Stopwatch | None = None    # its end tells the server all of the time, so nothing else may
        self.lost = False
        self.id, self.queue, self.priority, self.data, self.item, self.meta, self._headers = handed

    @property
    def text(self) -> str:
        """Its data decoded from UTF-8; raises UnicodeDecodeError."""
        return self.data.decode()

    def json(self) -> Any:
        """Return its data decoded as JSON, for put(json=); raises ValueError when they are not JSON."""
        return loads(self.data)

    @property
    def value(self) -> Any:
        """Its data decoded by the client's `codec`, for put(value=). Raises BadArguments without one."""
        codec = self._router.bodies.codec
        if codec is None:
            raise BadArguments("job.value needs a client with a codec: Client(.., codec=..)")
        return codec.decode(self.data)

    @property
    def key(self) -> str | None:
        """Its key in its queue. Raises JobNotFound if the server must be asked and the job no longer runs."""
        return self._told.key

    @property
    def number(self) -> int | None:
        """Its number of put(number=True), by which it is found in every state."""
        return self._told.number

    @property
    def group(self) -> str | None:
        """Its group of put(group=), for fair shares."""
        return self._told.group

    @property
    def attempt(self) -> int:
        """The number of hand-outs of the job so far, this one included."""
        return self._told.attempt

    @property
    def reason(self) -> str | None:
        """The reason why a worker put it back last, if it gave one."""
        return self._told.reason

    @property
    def headers(self) -> dict[str, str]:
        """Its headers, of put(headers=). Raises JobNotFound if the server must be asked and the job no longer runs."""
        if self._headers is None:
            self._headers = self._look("headers", headers=True).headers or {}
        return self._headers

    def _look(self, option: str, *, headers: bool = False) -> PeekedJob:
        """Fetch data not requested when the job was taken; `option`: the option of get() for them."""
        peeked = at_once(
            self._router.run(jobs.peek(self, headers=headers)), f"take the job with {option}=True to read this"
        )
        if peeked is None:
            raise JobNotFound(f"job {self.id} is not running any more, and was taken without {option}=True")
        return peeked

    @property
    def _told(self) -> Meta:
        """The metadata, fetched once if the job was taken without them."""
        if self.meta is None:
            peeked = self._look("meta")
            self.meta = Meta(
                peeked.key, peeked.attempt, peeked.at, peeked.expires_at, peeked.reason, peeked.group, peeked.number
            )
        return self.meta

    def touch(
        self, expire: float | None = None, then: Then | None = None, *, ran: float | None = None,
        progress: int | None = None, timeout: float | None = None,
    ) -> int | None:
        """Renew its lease, with the same length or `expire` seconds (0: without limit). See Client.touch."""
        command = jobs.touch(self, expire, then, ran=ran, progress=progress)
        try:
            return run(self._router.run(command, timeout=timeout))
        except JobNotFound:
            self.lost = True
            raise

    def progress(self, percent: int, *, timeout: float | None = None) -> int | None:
        """Report how much of the work is done, 0 to 100, for everybody who looks at the job; renews its lease too."""
        return self.touch(progress=percent, timeout=timeout)

    def change(
        self,
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
        """Change the running job, for example its data for the next worker. See Client.change."""
        command = jobs.change(
            self, data=data, json=json, value=value, priority=priority, delay=delay, at=at, item=item,
            no_item=no_item, headers=headers, bodies=self._router.bodies,
        )
        run(self._router.run(command, timeout=timeout))
        if headers is not None:
            self._headers = dict(headers)
        if data is not None or json is not ABSENT or value is not ABSENT:
            self.data = command.data[len(header_block(headers)) :]
        self.priority = self.priority if priority is None else priority
        self.item = None if no_item else item or self.item

    def __enter__(self) -> Job:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._ended or is_inherited(self._process):
            return
        if error is None:
            self.done()
            return
        try:
            self.later()
        except SockpqError as failure:      # the block's own error is the one to see
            error.add_note(f"and the job could not be put back: {failure}")

    def __repr__(self) -> str:
        told = [f"priority {self.priority}"] if self.priority else []
        told += [f"item {self.item!r}"] if self.item else []
        if self.meta:
            told.append(f"attempt {self.meta.attempt}")
            told += [f"lease until {self.meta.expires_at}"] if self.meta.expires_at else []
        data = bytes(self.data[:REPR_BYTES_MAX])
        told.append(f"{data!r}{'..' if len(self.data) > len(data) else ''}")
        return f"<Job {self.id} of {self.queue!r}, {', '.join(told)}>"

    # declared: Job jobs

    def done(
        self,
        *,
        last: bool = False,
        slow: bool = False,
        sleep: float | None = None,
        reason: str | None = None,
        ran: float | None = None,
        result: Data | None = None,
        timeout: float | None = None,
    ) -> Finished:
        """Remove a running job. See Client.done."""
        self._ended = True
        return run(self._router.run(
            jobs.done(self, last=last, slow=slow, sleep=sleep, reason=reason, ran=ran, result=result), timeout=timeout
        ))

    def later(
        self,
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
        """Put a running job back at the end of its queue. See Client.later."""
        self._ended = True
        run(self._router.run(
            jobs.later(self, delay=delay, at=at, priority=priority, first=first, yielded=yielded, reason=reason,
            error=error, slow=slow, sleep=sleep, ran=ran), timeout=timeout
        ))

    def move(
        self,
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
        """Finish a running job here and put it into `queue`, atomically. See Client.move."""
        self._ended = True
        return run(self._router.run(
            jobs.move(self, queue, data=data, json=json, value=value, priority=priority, delay=delay, at=at,
            headers=headers, bodies=self._router.bodies), timeout=timeout
        ))

    def bury(
        self,
        reason: str | None = None,
        *,
        here: bool = False,
        priority: int | None = None,
        error: str | None = None,
        timeout: float | None = None,
    ) -> Finished:
        """Give up a running job. See Client.bury."""
        self._ended = True
        return run(self._router.run(
            jobs.bury(self, reason, here=here, priority=priority, error=error), timeout=timeout
        ))
