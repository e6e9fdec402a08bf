"""The queues, their settings and counters, and the queues that have a job to hand out.

A queue exists while it has settings or a job. One without unfinished jobs (DELAYED, READY or RUNNING:
spec/state-machine 5.1), with settings or BURIED jobs only, is kept apart, in `idle`, so that searches for jobs do not
meet it. The names of the queues that can hand out a job are kept sorted, and also sorted by the rank of their next job,
so a choice among a hundred thousand queues costs no more than one among two; so are WEIGHTs above 1. The order of
READY times is indexed from the first time it is needed (policies/oldest.py).

The counters of a queue are deleted with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from heapq import merge
from itertools import islice
from typing import Protocol

from msgspec import Struct, field
from msgspec.structs import replace
from sortedcontainers import SortedDict, SortedList

from sockpqd.core import limits
from sockpqd.core.ops.queues import GroupBy, Order
from sockpqd.core.ops.settings import QueueSettings
from sockpqd.core.store.body import Body
from sockpqd.core.store.job import AnyJob, BuriedJob, DelayedJob, Job
from sockpqd.core.store.job_list import JobList
from sockpqd.core.store.policies.oldest import OldestFirst
from sockpqd.core.store.policies.weights import Weights
from sockpqd.core.store.ready import ReadyJobs, place_of
from sockpqd.core.store.timer_index import TimerIndex

# Positions in Queue.counters: jobs that came, hand-outs and how they ended, dead jobs, jobs whose TTL ended, jobs that
# were deleted; pauses. A list, because counting in it is cheapest.
PUT, TAKEN, DONE, LATER, EXPIRED, DEAD, TTL_ENDED, DELETED, PAUSES = range(9)
NOTHING_COUNTED = (0,) * 9

URGENT_RANK = 1024      # beanstalkd's jobs with a pri below are urgent; ours with a priority above -1024


class DelayedJobs(Protocol):
    """The DELAYED jobs of a queue, the next one first: a JobList, or a list that is partly paged (core/pages)."""

    size: int

    def __iter__(self) -> Iterator[DelayedJob]: ...

    def behind(self, job: DelayedJob, place: Callable[[DelayedJob], tuple[int, int]]) -> Iterator[DelayedJob]:
        """Return the jobs after the place of `job`, which need not be here."""

    @property
    def first(self) -> DelayedJob:
        """The job that is due next; there must be one."""

    @property
    def last(self) -> DelayedJob:
        """The job that is due last; there must be one."""

    def add(self, job: DelayedJob) -> None:
        """Insert `job` at its place."""

    def remove(self, job: DelayedJob) -> None:
        """Remove `job`; it must be here."""


class Queue(Struct, gc=False, eq=False):
    """The unfinished jobs of one queue."""

    name: str
    settings: QueueSettings | None = None
    shaped: bool = False                                    # they concern how jobs come and are handed out
    ready: ReadyJobs = field(default_factory=ReadyJobs)
    taken: dict[int, None] = field(default_factory=dict)    # ids of the running jobs, in rising order, unless
    disordered: bool = False                                # an undone batch brought some back
    ranks: dict[int, int] = field(default_factory=dict)     # rank -> READY and DELAYED jobs, for TOTAL's priorities
    blocked: JobList[Job] | None = None                     # READY, but blocked by ITEMLIMIT (see items.py)
    delayed: DelayedJobs | None = None
    buried: JobList[BuriedJob] | None = None
    keys: dict[str, AnyJob] | None = None                   # the jobs that have a key
    indexed_ms: int | None = None                           # due time of the first DELAYED job, as indexed in Delays
    seqs: SortedDict | None = None                          # all READY jobs by seq, if their order is another
    counters: list[int] = field(default_factory=lambda: [*NOTHING_COUNTED])
    in_topic: bool = False                                  # bound to one, so that it exists without jobs
    used_ms: int = 0                                        # its last use, if it has settings (IDLE)
    granted: bool = False                                   # a grant of its pulse is free for the present operation
    ready_for: str | None = None                            # the pulse for which it is in `ready_of_pulse`
    front: int | None = None                                # rank of the job to hand out next; None: there is none
    withheld: int = 0                                       # cancelled items with READY jobs here: nothing is given
    others: int = 0                                         # READY jobs that are not urgent: only a few, usually

    @property
    def running(self) -> int:
        """The number of its running jobs."""
        return len(self.taken)

    @property
    def ready_count(self) -> int:
        """The number of READY jobs, including blocked ones."""
        return self.ready.size if self.blocked is None else self.ready.size + self.blocked.size

    @property
    def urgent(self) -> int:
        """The number of READY jobs that beanstalkd calls urgent."""
        return self.ready_count - self.others

    @property
    def deferred(self) -> int:
        """The number of its DELAYED jobs."""
        return 0 if self.delayed is None else self.delayed.size

    @property
    def finished(self) -> bool:
        """True if it has no unfinished job."""
        return not (self.taken or self.ready_count or self.deferred)

    @property
    def closed(self) -> bool:
        """True if LIMIT, PAUSE or RATE forbid hand-outs; a rate does unless a grant is free (GetWith.free).

        So do READY jobs of cancelled items.
        """
        settings = self.settings
        return self.withheld > 0 or (settings is not None and (
            settings.paused_out or 0 < settings.limit <= self.running
            or (settings.pulse is not None and not self.granted)
        ))

    def available(self) -> int:
        """Return the number of jobs that could be handed out now, one after the other."""
        settings = self.settings
        if self.withheld:
            return 0
        if settings is None:
            return self.ready.size
        if settings.paused_out:
            return 0
        return min(self.ready.size, max(0, settings.limit - self.running)) if settings.limit else self.ready.size

    def oldest_seq(self) -> int | None:
        """Return the smallest seq of a READY job, which was there first; None if there is none."""
        if self.seqs is not None:
            return self.seqs.peekitem(0)[0] if self.seqs else None
        return self.ready.oldest_seq() if self.ready.size else None

    def find_ready(self, seq: int) -> Job | None:
        """Return the READY job with this seq; None if there is none."""
        return self.ready.find(seq) if self.seqs is None else self.seqs.get(seq)

    def all_ready(self) -> Iterator[Job]:
        """Return the READY jobs in order."""
        return iter(self.ready) if self.blocked is None else merge(self.ready, self.blocked)

    def ready_behind(self, job: Job) -> Iterator[Job]:
        """Return the READY jobs after the place of `job`, in order. Raises PageLost."""
        behind = self.ready.behind(job)
        return behind if self.blocked is None else merge(behind, self.blocked.behind(job, place_of))


class ReadyWatcher(Protocol):
    """Notified of changes to READY jobs: the groups of FAIR, once they are used (core/fair)."""

    def added(self, queue: Queue, job: Job, *, blocked: bool) -> None:
        """Called after `job` became READY; `blocked`: ITEMLIMIT withholds it."""

    def removed(self, queue: Queue, job: Job, *, blocked: bool) -> None:
        """Called after `job` stopped being READY."""

    def eligible(self, queue: Queue, job: Job, *, now: bool) -> None:
        """Called when ITEMLIMIT stops withholding this READY job (`now`), or starts to."""

    def refresh(self, queue: Queue) -> None:
        """Called when the queue was closed or opened, or has another job to hand out next."""


class Queues:
    """All queues by name, their settings, and the sums that TOTAL reports."""

    __slots__ = (
        "bound", "buried", "by_name", "by_rank", "by_user", "delayed", "ends", "expiring", "fair", "gone", "grouped",
        "idle", "nonempty", "of_pulse", "oldest", "others", "paused", "priorities", "ready_of_pulse", "settings",
        "waiting", "waiting_bytes", "weights", "with_buried",
    )

    def __init__(self) -> None:
        self.by_name: dict[str, Queue] = {}         # those with an unfinished job
        self.idle: dict[str, Queue] = {}            # those with settings, bindings or BURIED jobs only
        self.settings: dict[str, QueueSettings] = {}
        self.expiring: dict[str, Queue] = {}        # those with IDLE
        self.bound: dict[int, dict[str, None]] = {}     # names of those that end with a session, by its number
        self.of_pulse: dict[str, dict[str, None]] = {}  # names of those with a rate, by the pulse they name
        self.ready_of_pulse: dict[str, SortedList] = {}     # those of them that need no more to give a job
        self.nonempty: SortedList = SortedList()    # names of the queues that can hand out a job
        self.grouped: SortedList = SortedList()     # those of them that choose by groups
        self.by_rank: SortedList = SortedList()     # all of them as pairs (front, name)
        self.weights = Weights()                    # of those with a WEIGHT above 1
        self.fair: ReadyWatcher | None = None       # the groups, once there are any
        self.oldest: OldestFirst | None = None      # the same by the READY time of the first job, once asked for
        self.by_user = 0                            # queues that group their jobs by who puts them
        self.paused = 0                             # queues that hand out nothing as QUEUE PAUSE says
        # Timers: ends of the TTLs of READY jobs, (end, seq, job), and of pauses of queues, (end, 0, name).
        self.ends: TimerIndex[tuple[int, int, Job | str]] = TimerIndex(limits.DUE_BITS)
        self.priorities = 0                         # pairs (queue, priority) with a READY or DELAYED job
        self.waiting = 0                            # READY and DELAYED jobs,
        self.waiting_bytes = 0                      # and their data
        self.delayed = 0                            # the DELAYED ones of them,
        self.others = 0                             # and the READY ones that are not urgent
        self.buried = 0                             # BURIED jobs,
        self.with_buried: dict[str, None] = {}      # and the names of the queues that have some
        # The counters of removed queues, by name, until they are taken; None before they are first taken. Local to this
        # node, not part of the state. Needed for queues whose workers keep up, as these are removed whenever they are
        # empty.
        self.gone: dict[str, list[int]] | None = None

    def get_or_create(self, name: str) -> Queue:
        """Return the queue of this name, creating it if necessary; the caller must put a job into it."""
        queue = self.by_name.get(name)
        if queue is None:
            queue = self.by_name[name] = self.idle.pop(name) if name in self.idle else Queue(name)
        return queue

    def find(self, name: str) -> Queue | None:
        """Return the queue of this name, even one without unfinished jobs."""
        return self.by_name.get(name) or self.idle.get(name)

    def get_any(self, name: str) -> Queue:
        """Return the queue, creating it without jobs if necessary; the caller must give it a reason to exist."""
        queue = self.find(name)
        if queue is None:
            queue = self.idle[name] = Queue(name)
        return queue

    def drop_unused(self, name: str) -> None:
        """Remove the queue if it has no reason left to exist."""
        queue = self.idle.get(name)
        if queue is not None and not _is_kept(queue):
            del self.idle[name]
            self._note_gone(queue)

    def add(self, queue: Queue, job: Job, blocked: bool = False) -> None:
        """Add `job` to the READY jobs of `queue`."""
        if not queue.shaped:
            front = queue.front
            if front is None or job.rank < front:
                self._list(queue, job.rank)
            queue.ready.add(job)
            if self.oldest is not None and queue.ready.first is job:
                self._reindex_oldest(queue)
        else:
            if queue.seqs is not None:
                queue.seqs[job.seq] = job
            if blocked:
                if queue.blocked is None:
                    queue.blocked = JobList()
                queue.blocked.add(job)
            else:
                queue.ready.add(job)
                self._find_front(queue)
            if self.oldest is not None:
                self._reindex_oldest(queue)
        if self.fair is not None:
            self.fair.added(queue, job, blocked=blocked)
        if job.rank >= URGENT_RANK:
            queue.others += 1
            self.others += 1
        self.count(queue, job)

    def remove(self, queue: Queue, job: Job, blocked: bool = False) -> None:
        """Remove `job` from the READY jobs of `queue`."""
        if blocked:
            assert queue.blocked is not None
            queue.blocked.remove(job)
        else:
            queue.ready.remove(job)
        self.removed(queue, job, blocked)

    def removed(self, queue: Queue, job: Job, blocked: bool = False) -> None:
        """Stop counting a job that was already removed from its list."""
        if queue.shaped:
            if queue.seqs is not None:
                del queue.seqs[job.seq]
            self._find_front(queue)
        elif not queue.ready.size:
            self._list(queue, None)
        elif queue.ready.front != queue.front:
            self._list(queue, queue.ready.front)
        if self.oldest is not None:
            self._reindex_oldest(queue)
        if self.fair is not None:
            self.fair.removed(queue, job, blocked=blocked)
        if job.rank >= URGENT_RANK:
            queue.others -= 1
            self.others -= 1
        self.uncount(queue, job)

    def count_page(self, queue: Queue, rank: int, jobs: int, data_bytes: int) -> None:
        """Count `jobs` READY jobs in a page, which come after others of their rank."""
        queue.ready.count_page(jobs)
        self.count_group_page(queue, rank, jobs, data_bytes)

    def count_group_page(self, queue: Queue, rank: int, jobs: int, data_bytes: int) -> None:
        """Count `jobs` READY jobs of this rank in a page of a group, which the list of the queue has counted."""
        self.waiting += jobs
        self.waiting_bytes += data_bytes
        before = queue.ranks.get(rank, 0)
        queue.ranks[rank] = before + jobs
        self.priorities += not before
        if rank >= URGENT_RANK:
            queue.others += jobs
            self.others += jobs

    def uncount_page(self, queue: Queue, rank: int, jobs: int, data_bytes: int) -> None:
        """Stop counting the jobs of a page."""
        self.count_page(queue, rank, -jobs, -data_bytes)

    def count_delayed_pages(self, queue: Queue, ranks: dict[int, int], data_bytes: int) -> None:
        """Count the DELAYED jobs of pages, by rank."""
        jobs_in_all = sum(ranks.values())
        self.waiting += jobs_in_all
        self.delayed += jobs_in_all
        self.waiting_bytes += data_bytes
        for rank, jobs in ranks.items():
            before = queue.ranks.get(rank, 0)
            queue.ranks[rank] = before + jobs
            self.priorities += not before

    def count(self, queue: Queue, job: Job | DelayedJob) -> None:
        """Count `job`, which becomes READY or DELAYED."""
        self.waiting += 1
        data = job.data
        self.waiting_bytes += len(data)
        if type(data) is Body:          # cheaper than isinstance() of such a class
            data.waits(queue.name)
        ranks, rank = queue.ranks, job.rank
        count = ranks.get(rank)
        if count is None:
            ranks[rank] = 1
            self.priorities += 1
        else:
            ranks[rank] = count + 1

    def uncount(self, queue: Queue, job: Job | DelayedJob) -> None:
        """Stop counting `job` as a waiting one."""
        self.waiting -= 1
        data = job.data
        self.waiting_bytes -= len(data)
        if type(data) is Body:          # cheaper than isinstance() of such a class
            data.leaves(queue.name)
        rank = job.rank
        count = queue.ranks[rank]
        if count == 1:
            del queue.ranks[rank]
            self.priorities -= 1
        else:
            queue.ranks[rank] = count - 1

    def reindex(self, queue: Queue) -> None:
        """Determine the next job of the queue again, after its limits have changed."""
        if self._find_front(queue) and self.fair is not None:
            self.fair.refresh(queue)
        if self.oldest is not None:
            self._reindex_oldest(queue)

    def _find_front(self, queue: Queue) -> bool:
        """Determine the next job of the queue; returns whether it has changed."""
        settings = queue.settings
        if settings is not None and (settings.pulse is not None or queue.ready_for is not None):
            self._list_for_pulse(queue, settings.pulse if queue.available() else None)
        front = queue.ready.front if queue.ready.size and not queue.closed else None
        if front == queue.front:
            return False
        self._list(queue, front)
        return True

    def _list_for_pulse(self, queue: Queue, pulse: str | None) -> None:
        """Set the pulse whose grants the queue can use; None: it has no READY jobs, or may not hand them out."""
        before = queue.ready_for
        if pulse == before:
            return
        queue.ready_for = pulse
        if before is not None:
            names = self.ready_of_pulse[before]
            names.remove(queue.name)
            if not names:
                del self.ready_of_pulse[before]
        if pulse is not None:
            self.ready_of_pulse.setdefault(pulse, SortedList()).add(queue.name)

    def with_rate(self, names: Iterable[str]) -> list[tuple[str, str]]:
        """Return the queues among these, as (pulse, queue), that have a READY job and need only a grant."""
        found = map(self.by_name.get, names)
        return [(queue.ready_for, queue.name) for queue in found if queue is not None and queue.ready_for is not None]

    def of_pulse_behind(self, pulse: str, name: str, most: int) -> list[str]:
        """Return the first `most` names after this one in the pulse's `ready_of_pulse`."""
        names = self.ready_of_pulse.get(pulse)
        return [] if names is None else list(islice(names.irange(name, inclusive=(False, True)), most))

    def some_of_pulse(self, pulse: str, start: int, most: int) -> list[str]:
        """Return the queues of the pulse that have a READY job, at most `most`, cyclically from index `start` on."""
        names = self.ready_of_pulse.get(pulse, ())
        if len(names) <= most:
            return list(names)
        begin = start % len(names)
        found = list(names[begin:begin + most])
        return found + list(names[:most - len(found)])

    def withhold(self, name: str, more: int) -> None:
        """Add `more` to the number of cancelled items with READY jobs here; with any, the queue hands out nothing."""
        queue = self.by_name[name]
        queue.withheld += more
        queue.shaped = queue.withheld > 0 or (queue.settings is not None and queue.settings.shaping)
        self.reindex(queue)

    def hide(self, queue: Queue) -> None:
        """Keep the queue from handing out anything until `reindex`."""
        self._list(queue, None)
        if self.fair is not None:
            self.fair.refresh(queue)
        if self.oldest is not None:
            self._reindex_oldest(queue)

    def rank_behind(self, queue: Queue, job: Job) -> bool:
        """List the queue by the rank of this job instead of its first one, until `reindex` or its next change.

        Returns False if it is listed there or behind it already, and then changes nothing.
        """
        if queue.front is None or job.rank <= queue.front:
            return False
        self._list(queue, job.rank)
        return True

    def date_behind(self, queue: Queue, job: Job) -> bool:
        """Like `rank_behind`, in the index by READY time."""
        return self.index_oldest().move_behind(queue.name, job)

    def _reindex_oldest(self, queue: Queue) -> None:
        """Update the READY time of the queue's first job, which may have changed."""
        assert self.oldest is not None
        self.oldest.update(queue.name, None if queue.front is None else queue.ready.first)

    def index_oldest(self) -> OldestFirst:
        """Return the index of the queues by the READY time of their first job; the first call begins to build it."""
        if self.oldest is None:
            self.oldest = OldestFirst()
            self.grow_index()
        return self.oldest

    @property
    def indexing(self) -> bool:
        """True if the next entry must list another portion."""
        return self.oldest is not None and self.oldest.reached is not None

    def grow_index(self) -> None:
        """Add another portion of queues to the index by READY time."""
        assert self.oldest is not None
        for name in self.oldest.portion(self.nonempty):
            self._reindex_oldest(self.by_name[name])

    def _list(self, queue: Queue, front: int | None) -> None:
        """Re-index the queue under this rank, which must differ from `queue.front`; None: remove it."""
        before, queue.front = queue.front, front
        if before is None:
            self.nonempty.add(queue.name)
            if queue.settings is not None:
                self._list_by(queue.name, queue.settings)
        else:
            self.by_rank.remove((before, queue.name))
        if front is None:
            self.nonempty.remove(queue.name)
            if queue.settings is not None:
                self._unlist_by(queue.name, queue.settings)
        else:
            self.by_rank.add((front, queue.name))

    def _list_by(self, name: str, settings: QueueSettings) -> None:
        """List a queue that can now hand out a job as its settings require."""
        if settings.weight > 1:
            self.weights.add(name, settings.weight)
        if settings.by_groups:
            self.grouped.add(name)

    def _unlist_by(self, name: str, settings: QueueSettings) -> None:
        self.weights.remove(name)
        if settings.by_groups:
            self.grouped.remove(name)

    def first_without_groups(self) -> str | None:
        """Return the first queue by name that can hand out a job and does not choose by groups; None: there is none."""
        names, grouped = self.nonempty, self.grouped
        low, high = 0, len(grouped)         # at least, and at most, this many of the first names choose by groups
        while low < high:
            middle = (low + high + 1) // 2
            if names[middle - 1] == grouped[middle - 1]:
                low = middle
            else:
                high = middle - 1
        name: str | None = names[low] if low < len(names) else None
        return name

    def configure(self, name: str, settings: QueueSettings) -> None:
        """Set the settings of the queue. If its order or ITEMLIMIT changes it must have no READY job."""
        before = self.settings.get(name)
        self.paused += settings.paused_out - (before is not None and before.paused_out)
        self.by_user += _by_user(settings) - _by_user(before)
        self._set_pause_end(name, before, settings)
        if before is not None and before.pulse is not None and before.pulse != settings.pulse:
            self._leave_pulse(before.pulse, name)
        if settings.pulse is not None:
            self.of_pulse.setdefault(settings.pulse, {})[name] = None
        self.settings[name] = settings
        queue = self.get_any(name)
        if queue.front is not None:
            if before is not None:
                self._unlist_by(name, before)
            self._list_by(name, settings)
        queue.settings, queue.shaped = settings, settings.shaping or queue.withheld > 0
        if settings.idle_ms:
            self.expiring[name] = queue
        else:
            self.expiring.pop(name, None)
        if settings.bound:
            self.bound.setdefault(settings.bound, {})[name] = None
        # By default the first job of a priority is the oldest; see ready.py.
        reordered = settings.order is Order.TIME or settings.item_limit > 0
        if reordered != (queue.seqs is not None):
            queue.seqs = SortedDict() if reordered else None
        self.reindex(queue)

    def forget(self, name: str) -> None:
        """Remove the settings of a queue without unfinished jobs, and so the queue."""
        settings = self.settings.pop(name, None)
        self.paused -= settings is not None and settings.paused_out
        self.by_user -= _by_user(settings)
        self._set_pause_end(name, settings, None)
        queue = self.idle.pop(name, None)
        if queue is not None:
            self._note_gone(queue)
        self.expiring.pop(name, None)
        if settings is not None and settings.bound:
            self._unbind(settings.bound, name)
        if settings is not None and settings.pulse is not None:
            self._leave_pulse(settings.pulse, name)

    def unset(self, queue: Queue) -> None:
        """Remove settings that existed for a pause only; the queue may exist without them."""
        settings = self.settings.pop(queue.name)
        self.paused -= settings.paused_out
        self._set_pause_end(queue.name, settings, None)
        queue.settings, queue.shaped = None, queue.withheld > 0
        self.reindex(queue)
        self.drop_unused(queue.name)

    def _set_pause_end(self, name: str, before: QueueSettings | None, settings: QueueSettings | None) -> None:
        was_ms = 0 if before is None else before.pause_ends_ms
        ends_ms = 0 if settings is None else settings.pause_ends_ms
        if was_ms != ends_ms:
            if was_ms:
                self.ends.remove((was_ms, 0, name))
            if ends_ms:
                self.ends.add((ends_ms, 0, name))

    def _leave_pulse(self, pulse: str, name: str) -> None:
        names = self.of_pulse[pulse]
        del names[name]
        if not names:
            del self.of_pulse[pulse]

    def unbind(self, name: str) -> None:
        """Unbind the queue from its session, so that it is not deleted with it."""
        settings = self.settings[name]
        self._unbind(settings.bound, name)
        self.configure(name, replace(settings, bound=0))

    def _unbind(self, session: int, name: str) -> None:
        names = self.bound[session]
        del names[name]
        if not names:
            del self.bound[session]

    def close(self, queue: Queue) -> bool:
        """Close the queue that a job has left. Returns whether it was the last one, so that the queue is finished."""
        if not queue.finished:
            return False
        del self.by_name[queue.name]
        if _is_kept(queue):
            self.idle[queue.name] = queue
        elif self.gone is not None:
            self._note_gone(queue)
        return True

    def _note_gone(self, queue: Queue) -> None:
        gone = self.gone
        if gone is not None and len(gone) < limits.GONE_MAX:
            before = gone.get(queue.name)
            gone[queue.name] = queue.counters if before is None else [
                old + new for old, new in zip(before, queue.counters, strict=True)]

    def join_topic(self, name: str) -> None:
        """Record the first binding of the queue, which makes it exist."""
        self.get_any(name).in_topic = True

    def leave_topics(self, name: str) -> None:
        """Record that the queue is no longer bound to any topic."""
        queue = self.find(name)
        if queue is not None:
            queue.in_topic = False
            self.drop_unused(name)


def _is_kept(queue: Queue) -> bool:
    """Return whether the queue exists without unfinished jobs."""
    return queue.settings is not None or queue.in_topic or queue.buried is not None


def _by_user(settings: QueueSettings | None) -> bool:
    return settings is not None and settings.group_by is GroupBy.USER
