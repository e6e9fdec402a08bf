"""Transactions: commands that are collected, sent together and executed as one entry of the log, or not at all."""

# Made from _async/transaction.py by client/tools/faces.py: edit there.

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any

from sockpq._backends.sync import run
from sockpq._process import check_own
from sockpq._protocol.arguments import ABSENT, AfterWhen, Data, HoldThen, OnDuplicate, Then
from sockpq._protocol.command import Command
from sockpq._protocol.commands import batches, items, jobs
from sockpq._routing.router import Router
from sockpq._sync.job import Job
from sockpq.errors import BadArguments, OutcomeUnknown
from sockpq.model import Key, Number, Place


class Transaction:
    """Collects commands: `with client.transaction() as t: t.done(job); t.put("next", data)`.

    The end of the block sends all, unless the block raises: then nothing is sent. `results` then has the result of each
    call: Stored for put, Finished for done, move, delete and bury, and so on.
    """

    def __init__(self, router: Router, timeout: float | None) -> None:
        self.results: list[Any] = []
        self._router = router
        self._timeout = timeout
        self._process = os.getpid()
        self._over = False
        self._commands: list[Command[Any]] = []
        self._ended: list[Job] = []         # jobs that nobody holds once it is executed

    def __enter__(self) -> Transaction:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._over = True
        if error is None and self._commands:
            self._commit()

    def _commit(self) -> None:
        """Send all commands and set `results`. Raises Aborted, Inherited."""
        check_own(self._process, "this transaction")
        command = batches.transaction(self._commands)
        try:
            self.results = run(self._router.run(command, timeout=self._timeout))
        except OutcomeUnknown:
            self._release()
            raise
        self._release()

    def _release(self) -> None:
        for job in self._ended:
            job._ended = True

    def _add(self, command: Command[Any], ends: object = None) -> None:
        """Collect a command; `ends`: the job that the client no longer has after it."""
        if self._over:
            raise BadArguments("this transaction is over")
        self._commands.append(command)
        if isinstance(ends, Job):
            self._ended.append(ends)

    # declared: Transaction jobs items

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
    ) -> None:
        """Queue a job. See Client.put."""
        self._add(
            jobs.put(queue, data, priority, item, new_item, json=json, value=value, delay=delay, at=at, ttl=ttl,
            every=every, after=after, when=when, key=key, on_duplicate=on_duplicate, tries=tries, group=group,
            number=number, lease=lease, headers=headers, dedup=dedup, bodies=self._router.bodies)
        )

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
    ) -> None:
        """Queue the same job in several queues (at most 1,000), in all of them or in none. See Client.put_to."""
        self._add(
            jobs.put_to(queues, data, priority, item, json=json, value=value, delay=delay, at=at, ttl=ttl, every=every,
            after=after, when=when, key=key, tries=tries, group=group, headers=headers, dedup=dedup,
            bodies=self._router.bodies)
        )

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
    ) -> None:
        """Queue a job in all queues that are bound to `topic` (topic_bind()), or in none. See Client.publish."""
        self._add(
            jobs.publish(topic, data, priority, item, route=route, json=json, value=value, delay=delay, at=at, ttl=ttl,
            every=every, after=after, when=when, key=key, tries=tries, group=group, headers=headers, dedup=dedup,
            bodies=self._router.bodies)
        )

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
    ) -> None:
        """Remove a running job. See Client.done."""
        self._add(jobs.done(job, last=last, slow=slow, sleep=sleep, reason=reason, ran=ran, result=result), job)

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
    ) -> None:
        """Put a running job back at the end of its queue. See Client.later."""
        self._add(
            jobs.later(job, delay=delay, at=at, priority=priority, first=first, yielded=yielded, reason=reason,
            error=error, slow=slow, sleep=sleep, ran=ran), job
        )

    def touch(
        self,
        job: Job | int,
        expire: float | None = None,
        then: Then | None = None,
        *,
        ran: float | None = None,
        progress: int | None = None,
    ) -> None:
        """Renew the lease of a running job, with the same length or `expire` seconds (0: without limit). See
        Client.touch.
        """
        self._add(jobs.touch(job, expire, then, ran=ran, progress=progress))

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
    ) -> None:
        """Change a running job by its id, or another one by its `Key`, `Place` or `Number`. See Client.change."""
        self._add(
            jobs.change(job, data=data, json=json, value=value, priority=priority, delay=delay, at=at, item=item,
            no_item=no_item, headers=headers, bodies=self._router.bodies)
        )

    def delete(self, job: Job | int | Key | Place | Number, *, untaken: bool = False) -> None:
        """Remove a running job by its id, or another one by its `Key`, `Place` or `Number`. See Client.delete."""
        self._add(jobs.delete(job, untaken=untaken), job)

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
    ) -> None:
        """Finish a running job here and put it into `queue`, atomically. See Client.move."""
        self._add(
            jobs.move(job, queue, data=data, json=json, value=value, priority=priority, delay=delay, at=at,
            headers=headers, bodies=self._router.bodies), job
        )

    def bury(
        self,
        job: Job | int,
        reason: str | None = None,
        *,
        here: bool = False,
        priority: int | None = None,
        error: str | None = None,
    ) -> None:
        """Give up a running job. See Client.bury."""
        self._add(jobs.bury(job, reason, here=here, priority=priority, error=error), job)

    def kick_job(self, job: Number | Place | int) -> None:
        """Make a buried or delayed job ready, by its number, or a dead or delayed one by its place. See
        Client.kick_job.
        """
        self._add(jobs.kick_job(job))

    def item_hold(
        self,
        item: str | None = None,
        *,
        expire: float | None = None,
        then: HoldThen | None = None,
        queue: str | None = None,
    ) -> None:
        """Hold an item, without `item` a new one that the server names. See Client.item_hold."""
        self._add(items.item_hold(item, expire=expire, then=then, queue=queue))

    def item_release(self, item: str) -> None:
        """End the hold of an item. See Client.item_release."""
        self._add(items.item_release(item))
