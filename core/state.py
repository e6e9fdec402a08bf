"""The replicated state, and the transitions of a job in it (the table stands in job.py).

All that alters the state of a job goes through a few pairs of methods that undo each other: `add` and `remove` (READY),
`defer` and `undefer` (DELAYED), `start` and `stop` (RUNNING), and `swap`. They keep all counters and lists right, so
that none can drift from the jobs. Whoever has taken a job away without putting it back into the same queue and item
closes these, which tells whether they are finished.
"""

from __future__ import annotations

from typing import Protocol

from core.ops.effects import Effects
from core.ops.jobs import Then
from core.ops.queues import Order
from core.ops.settings import ClusterSettings
from core.ops.users import User
from core.store.delayed import Delays, Release
from core.store.item_limit import balance
from core.store.items import Items, Part
from core.store.job import AnyJob, DelayedJob, Job, More, RunningJob, fading
from core.store.job_list import JobList
from core.store.leases import Leases
from core.store.membership import Membership
from core.store.queues import TAKEN, Queue, Queues
from core.store.retained_keys import Kept
from core.store.server_ids import Servers
from core.store.sessions import Sessions
from core.store.ttl import Fading


class Upload(Protocol):
    """The CLONE under way: a snapshot that arrives in chunks (snapshot/upload.py)."""

    clone: int
    total_bytes: int
    chunks: list[bytes]

    def add(self, data: bytes) -> None:
        """The next chunk."""

    def finish(self) -> State:
        """The state in the snapshot."""


class UndoLog(Protocol):
    """What is told of each step of a batch, so that there is a way back (undo.py)."""

    def added(self, job: Job) -> None:
        """`job` became READY."""

    def removed(self, job: Job) -> None:
        """`job` was READY."""

    def deferred(self, job: DelayedJob) -> None:
        """`job` became DELAYED."""

    def undeferred(self, job: DelayedJob, releases: list[Release]) -> None:
        """`job` was DELAYED, and among these releases."""

    def stopped(self, job: RunningJob) -> None:
        """`job` runs no more; it is still bound to its session."""

    def swapped(self, old: RunningJob, new: RunningJob) -> None:
        """`new` took the place of `old`."""

    def kept(self, queue: str, key: str, before_ms: int, forgotten: tuple[int, str] | None) -> None:
        """The key was kept; it had been until `before_ms`. Another one was `forgotten` for it."""


class State:
    """Everything the log determines. Two states are equal iff their snapshots are equal bytes."""

    __slots__ = (
        "clock_ms",
        "clone",
        "cluster_id",
        "dead",
        "delays",
        "disordered",
        "effects",
        "fading",
        "finished_items",
        "index",
        "items",
        "kept",
        "leader",
        "leases",
        "membership",
        "next_id",
        "next_seq",
        "online",
        "put_item",
        "queues",
        "running",
        "seqs_since_ms",
        "servers",
        "sessions",
        "settings",
        "spent",
        "term",
        "undo",
        "users",
    )

    def __init__(self) -> None:
        self.index = 0                              # of the last applied log entry
        self.term = 0                               # of the last Lead
        self.leader: str | None = None              # of the last Lead
        self.clock_ms = 0                           # replicated time, never goes back
        self.cluster_id: bytes | None = None        # of the first Lead
        self.settings = ClusterSettings()           # never altered: a change makes a new one
        self.membership = Membership()              # none before the first Lead
        self.servers = Servers()                    # the same names as in the membership
        self.online = True                          # the service as a whole, see SwitchService
        self.next_id = 1
        self.next_seq = 1
        self.seqs_since_ms = 0                      # the seqs of jobs that are older do not tell since when (job.py)
        self.queues = Queues()
        self.items = Items()
        self.running: dict[int, RunningJob] = {}    # in rising id (ids only grow), unless
        self.disordered = False                     # a batch was undone: see in_order()
        self.leases = Leases()
        self.delays = Delays()
        self.fading = Fading()
        self.dead: dict[str, JobList[Job]] = {}     # the READY dead jobs, by the queue they come from
        self.kept = Kept()
        self.sessions = Sessions()
        self.users: dict[str, User] = {}            # never altered: a change makes a new one
        self.clone: Upload | None = None
        # No part of the state between two entries: the item of the last Put of the entry being applied; what the entry
        # has cost (settings.py) and brought about; items that were finished in the operation being executed; the way
        # back to before it.
        self.put_item: str | None = None
        self.spent = 0
        self.effects = Effects()
        self.finished_items: list[str] = []
        self.undo: UndoLog | None = None

    def new_seq(self) -> int:
        """The place behind all others."""
        seq = self.next_seq
        self.next_seq = seq + 1
        return seq

    # ---- READY

    def wait(
        self, queue: Queue, rank: int, seq: int, data: bytes, item_name: str | None,
        attempts: int = 0, at_ms: int | None = None, more: More | None = None, active_ms: int | None = None,
    ) -> None:
        """A job is READY from now on, at `seq` of its priority.

        `active_ms`: since when, for queues in the order of time; None: since now.
        """
        when = 0
        if queue.settings is not None and queue.settings.order is Order.TIME:
            when = self.clock_ms if active_ms is None else active_ms
        if more is not None and more.ttl_ms is not None:
            more = fading(more, self.clock_ms + more.ttl_ms)
        if item_name is not None:
            item_name = self.items.open(item_name).name     # names of long-lived objects: one string for all jobs
        self.add(queue, Job(rank, when, seq, queue.name, data, item_name, attempts, at_ms, more))

    def add(self, queue: Queue, job: Job) -> None:
        """`job` is READY from now on."""
        effects, name = self.effects, job.queue
        effects.ready[name] = None
        if job.item is None:
            self.queues.add(queue, job)
        else:
            effects.ready_items[name, job.item] = None
            part = self.items.add(self.items.open(job.item), job)
            if queue.settings is None or not queue.settings.item_limit:
                self.queues.add(queue, job)
            else:
                withheld = part.ready.position(job) >= part.given
                part.given += not withheld
                self.queues.add(queue, job, withheld)
                balance(self.queues, self.effects, queue, part)
        if job.more is not None:
            self._note(queue, job, job.more)
        if self.undo is not None:
            self.undo.added(job)

    def remove(self, queue: Queue, job: Job) -> None:
        """`job` is not READY any more, or not with this content."""
        self._take_out(queue, job)
        if job.more is not None:
            self._strike(queue, job, job.more)
        if self.undo is not None:
            self.undo.removed(job)

    def _take_out(self, queue: Queue, job: Job) -> None:
        if job.item is None:
            self.queues.remove(queue, job)
            return
        part = self.items.part(job.item, job.queue)
        assert part is not None
        if queue.settings is None or not queue.settings.item_limit:
            self.items.remove(job)
            self.queues.remove(queue, job)
            return
        withheld = part.ready.position(job) >= part.given
        part.given -= not withheld
        self.items.remove(job)
        self.queues.remove(queue, job, withheld)
        balance(self.queues, self.effects, queue, part)

    def take(self, queue: Queue, item_name: str | None) -> Job:
        """Take out the first job of `queue` that can be given, of this item when one is named; there must be one."""
        if item_name is not None:
            job = self.items.by_name[item_name].parts[queue.name].ready[0]
            self._take_out(queue, job)
        elif queue.settings is not None and queue.settings.item_limit:
            job = queue.ready.first
            self._take_out(queue, job)
        else:
            job = queue.ready.take_first()
            self.queues.removed(queue, job)
            if job.item is not None:
                self.items.remove(job)
        if job.more is not None:
            self._strike(queue, job, job.more)
        return job

    # ---- DELAYED

    def defer(self, queue: Queue, job: DelayedJob) -> None:
        """`job` is DELAYED from now on."""
        if job.item is not None:
            self.items.defer(self.items.open(job.item), job.queue)
        self.delays.add(queue, job)
        self.queues.count(queue, job.rank)
        if job.more is not None:
            self._note(queue, job, job.more)
        if self.undo is not None:
            self.undo.deferred(job)

    def undefer(self, queue: Queue, job: DelayedJob) -> None:
        """It is no longer, or not with this content."""
        releases = self.delays.remove(queue, job)
        self.queues.uncount(queue, job.rank)
        if job.item is not None:
            self.items.undefer(job.item, job.queue)
        if job.more is not None:
            self._strike(queue, job, job.more)
        if self.undo is not None:
            self.undo.undeferred(job, releases)

    # ---- RUNNING

    def hand_out(self, queue: Queue, job: Job, lease_ms: int | None, then: Then) -> RunningJob:
        """The job just taken runs under a new id, for `lease_ms` or without limit."""
        number = self.next_id
        self.next_id = number + 1
        self.spent += len(job.data)
        deadline_ms = None if lease_ms is None else self.clock_ms + lease_ms
        running = RunningJob(
            number, job.queue, -job.rank, job.data, job.item, deadline_ms, then, job.when, job.seq, job.attempts + 1,
            job.at_ms, job.more, lease_ms,
        )
        queue.counters[TAKEN] += 1
        if queue.settings is None and job.item is None and job.more is None:    # as in `start`, which has more to ask
            queue.taken[number] = None
            self.running[number] = running
            if deadline_ms is not None:
                self.leases.add(running)
        else:
            self.start(queue, running)
        return running

    def start(self, queue: Queue, job: RunningJob) -> None:
        """`job` runs from now on; of those that run its id is the greatest (but see undo.py)."""
        queue.taken[job.id] = None
        if queue.settings is not None:
            self.queues.relist(queue)
        if job.item is not None:
            part = self.items.start(self.items.open(job.item), job.queue)
            if queue.settings is not None and queue.settings.item_limit:
                balance(self.queues, self.effects, queue, part)
        self.running[job.id] = job
        if job.deadline_ms is not None:
            self.leases.add(job)
        if job.more is not None and job.more.key is not None:
            _keys(queue)[job.more.key] = job

    def stop(self, number: int) -> RunningJob | None:
        """The hand-out `number` is over and its id void; None when there is no such. Its job must go somewhere."""
        job = self.running.pop(number, None)
        if job is None:
            return None
        queue = self.queues.by_name[job.queue]
        del queue.taken[number]
        if self.undo is not None:
            self.undo.stopped(job)
        if queue.settings is not None:
            self.queues.relist(queue)
            if queue.settings.limit and queue.ready.size:
                self.effects.reopened[job.queue] = None
        if job.item is not None:
            part = self.items.stop(job.item, job.queue)
            if queue.settings is not None and queue.settings.item_limit:
                balance(self.queues, self.effects, queue, part)
        if job.deadline_ms is not None:
            self.leases.remove(job)
        if job.session is not None:
            self.sessions.unbind(job)
        if job.more is not None and job.more.key is not None:
            _drop_key(queue, job.more.key)
        return job

    def in_order(self) -> dict[int, RunningJob]:
        """The running jobs in rising id."""
        if self.disordered:
            self.running = dict(sorted(self.running.items()))
            self.disordered = False
        return self.running

    def swap(self, old: RunningJob, new: RunningJob) -> None:
        """The running job is `new` from now on: under the same id, in the same queue, with the same key."""
        queue = self.queues.by_name[old.queue]
        if self.undo is not None:
            self.undo.swapped(old, new)
        if old.item != new.item:
            if new.item is not None:
                part = self.items.start(self.items.open(new.item), new.queue)
                self._balance_if_limited(queue, part)
            if old.item is not None:
                self._balance_if_limited(queue, self.items.stop(old.item, old.queue))
        self.running[new.id] = new
        if old.deadline_ms is not None:
            self.leases.remove(old)
        if new.deadline_ms is not None:
            self.leases.add(new)
        if new.more is not None and new.more.key is not None:
            _keys(queue)[new.more.key] = new

    def _balance_if_limited(self, queue: Queue, part: Part) -> None:
        if queue.settings is not None and queue.settings.item_limit:
            balance(self.queues, self.effects, queue, part)

    # ---- what few jobs have

    def _note(self, queue: Queue, job: Job | DelayedJob, more: More) -> None:
        if more.key is not None:
            _keys(queue)[more.key] = job
        if isinstance(job, Job):
            if more.fade_ms is not None:
                self.fading.add(job)
            if more.origin is not None:
                self.dead.setdefault(more.origin, JobList()).add(job)

    def _strike(self, queue: Queue, job: Job | DelayedJob, more: More) -> None:
        if more.key is not None:
            _drop_key(queue, more.key)
        if isinstance(job, Job):
            if more.fade_ms is not None:
                self.fading.remove(job)
            if more.origin is not None:
                jobs = self.dead[more.origin]
                jobs.remove(job)
                if not jobs.size:
                    del self.dead[more.origin]

    # ---- the end

    def close(self, queue_name: str, item_name: str | None) -> tuple[bool, bool]:
        """A job of these has ended: is the queue finished (FINQ), is the item finished (FINI)?"""
        item_done = item_name is not None and self.close_item(item_name, queue_name)
        queue = self.queues.by_name.get(queue_name)
        if queue is None:
            return True, item_done
        if queue.taken or queue.ready.size or not self.queues.close(queue):
            return False, item_done
        self.effects.ended[queue_name] = None
        return True, item_done

    def close_item(self, item_name: str, queue_name: str) -> bool:
        """A job of the item has ended in the queue, or has left it: is the item finished (FINI)?"""
        item = self.items.by_name.get(item_name)
        if item is None:
            return True
        part = item.parts.get(queue_name)
        if part is not None and part.finished:
            del item.parts[queue_name]
            self.effects.ended_items[queue_name, item_name] = None
        if item.unfinished:
            return False
        del self.items.by_name[item_name]
        if self.delays.dependents:
            self.finished_items.append(item_name)
        return True

    def grant_grace(self, grace_ms: int, *, once: bool = True) -> None:
        """Leases and sessions that would end sooner end in `grace_ms`: nobody could use them for a while.

        `once`: those that had it since they were used last do not get it again.
        """
        if grace_ms > 0:
            self.leases.extend(self.clock_ms + grace_ms, once=once)
            self.sessions.extend(self.clock_ms + grace_ms, once=once)


def _keys(queue: Queue) -> dict[str, AnyJob]:
    if queue.keys is None:
        queue.keys = {}
    return queue.keys


def _drop_key(queue: Queue, key: str) -> None:
    assert queue.keys is not None
    del queue.keys[key]
    if not queue.keys:
        queue.keys = None
