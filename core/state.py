"""The replicated state, and the transitions of a job in it (the table stands in job.py).

All that alters the state of a job goes through the methods here: `wait`; `take` and `hand_out`; `stop` and then
`requeue` or `end`. So the counters of queues and items cannot drift from the jobs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.items import Items
from core.job import Job, RunningJob
from core.leases import Leases
from core.membership import Membership
from core.job_operations import Then
from core.queues import Queue, Queues
from core.servers import Servers
from core.sessions import Sessions
from core.users import User

if TYPE_CHECKING:
    from core.clone import PendingClone

EXPIRE_MS_MAX = 100 * 366 * 86_400_000      # PROTOCOL.md A15: 100 years


class State:
    """Everything the log determines. Two states are equal iff their snapshots are equal bytes."""

    __slots__ = (
        "clock_ms",
        "clone",
        "cluster_id",
        "expire_default",
        "index",
        "items",
        "leader",
        "leases",
        "membership",
        "next_id",
        "next_seq",
        "online",
        "put_item",
        "queues",
        "running",
        "servers",
        "sessions",
        "term",
        "users",
    )

    def __init__(self) -> None:
        self.index = 0                              # of the last applied log entry
        self.term = 0                               # of the last Lead
        self.leader: str | None = None              # of the last Lead
        self.clock_ms = 0                           # replicated time, never goes back
        self.cluster_id: bytes | None = None        # of the first Lead
        self.expire_default = Then.LATER            # of the first Lead
        self.membership = Membership()              # none before the first Lead
        self.servers = Servers()                    # the same names as in the membership
        self.online = True                          # the service as a whole, see SwitchService
        self.next_id = 1
        self.next_seq = 1
        self.queues = Queues()
        self.items = Items()
        self.running: dict[int, RunningJob] = {}    # in rising id: ids only grow
        self.leases = Leases()
        self.sessions = Sessions()
        self.users: dict[str, User] = {}            # never altered: a change makes a new one
        self.clone: PendingClone | None = None
        # Not part of the state between two entries: the item of the last Put of the entry being applied.
        self.put_item: str | None = None

    def new_seq(self) -> int:
        """The place behind all others."""
        seq = self.next_seq
        self.next_seq = seq + 1
        return seq

    def wait(self, queue_name: str, rank: int, seq: int, data: bytes, item_name: str | None) -> None:
        """A job waits at the place (rank, seq) of its queue from now on."""
        queue = self.queues.open(queue_name)
        if item_name is None:
            self.queues.add(queue, Job(rank, seq, queue.name, data, None))
        else:
            item = self.items.open(item_name)
            job = Job(rank, seq, queue.name, data, item.name)   # names of long-lived objects: one string for all jobs
            self.queues.add(queue, job)
            self.items.add(item, job)

    def take(self, queue: Queue, item_name: str | None) -> Job:
        """Take out the first waiting job of `queue`, of this item when one is named; there must be one."""
        if item_name is None:
            job = queue.ready.take_first()
            if job.item is not None:
                self.items.by_name[job.item].parts[job.queue].ready.remove(job)
        else:
            job = self.items.by_name[item_name].parts[queue.name].ready.take_first()
            queue.ready.remove(job)
        self.queues.taken(queue, job)
        if job.item is not None:
            self.items.taken(job.item, job.queue)
        return job

    def hand_out(self, job: Job, lease_ms: int | None, then: Then) -> RunningJob:
        """The job just taken runs under a new id, for `lease_ms` or without limit."""
        number = self.next_id
        self.next_id = number + 1
        deadline_ms = None if lease_ms is None else self.clock_ms + lease_ms
        running = RunningJob(number, job.queue, -job.rank, job.data, job.item, deadline_ms, then, job.seq)
        self.running[number] = running
        if deadline_ms is not None:
            self.leases.add(running)
        return running

    def resume(self, job: RunningJob) -> None:
        """A job of a restored snapshot runs on; ids must come in rising order."""
        queue = self.queues.open(job.queue)
        queue.running += 1
        job.queue = queue.name
        if job.item is not None:
            item = self.items.open(job.item)
            self.items.resume(item, job.queue)
            job.item = item.name
        self.running[job.id] = job
        if job.deadline_ms is not None:
            self.leases.add(job)

    def stop(self, number: int) -> RunningJob | None:
        """The hand-out `number` is over and its id void; None when there is no such. `requeue` or `end` must follow."""
        running = self.running.pop(number, None)
        if running is not None:
            if running.deadline_ms is not None:
                self.leases.remove(running)
            if running.session is not None:
                self.sessions.unbind(running)
        return running

    def requeue(self, job: RunningJob, seq: int) -> None:
        """The stopped job waits again, at `seq` of its priority."""
        self.wait(job.queue, -job.priority, seq, job.data, job.item)
        self.end(job)

    def end(self, job: RunningJob) -> tuple[bool, bool]:
        """The stopped job runs no more: is its queue finished (FINQ), is its item finished (FINI)?"""
        item_done = job.item is not None and self.items.ended(job.item, job.queue)
        return self.queues.ended(job.queue), item_done

    def grant_grace(self, grace_ms: int) -> None:
        """Leases and sessions that would end sooner end in `grace_ms`: nobody could use them for a while."""
        if grace_ms > 0:
            self.leases.extend(self.clock_ms + grace_ms)
            self.sessions.extend(self.clock_ms + grace_ms)

    def adopt(self, other: State) -> None:
        """Replace the jobs by those of a restored snapshot (CLONE, DECISIONS.md 4).

        What belongs to this cluster stays: its index, term, clock, members, server ids, cluster id, expire default and
        whether it is online, its users, and its sessions, to which those of their jobs stay bound that are still there.
        Counters only grow. A running job of another cluster whose id may have been issued here gets no chance to be
        mistaken for that one: it waits again, at its old place.
        """
        if other.cluster_id is None or other.cluster_id != self.cluster_id:
            issued = [number for number in other.running if number < self.next_id]
            for number in issued:
                job = other.stop(number)
                assert job is not None
                other.requeue(job, job.seq)
        self.sessions.rebind(other.running)
        self.sessions.next_session = max(self.sessions.next_session, other.sessions.next_session)
        self.queues = other.queues
        self.running = other.running
        self.leases = other.leases
        other.items.next_item = max(self.items.next_item, other.items.next_item)
        self.items = other.items
        self.next_id = max(self.next_id, other.next_id)
        self.next_seq = max(self.next_seq, other.next_seq)
        self.clone = None
