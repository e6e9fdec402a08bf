"""Puts the jobs of a snapshot into a state, and verifies the machine's assumptions (read.py gives the reasons)."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from itertools import accumulate

from msgspec.structs import astuple

from sockpqd.core import limits
from sockpqd.core.ops.jobs import Then, Until
from sockpqd.core.ops.queues import Order
from sockpqd.core.pages.delayed_pages import DelayedPages, jobs_in, place
from sockpqd.core.pages.extras import with_shared_extras
from sockpqd.core.pages.grouped_ready import GroupedReady, own_jobs
from sockpqd.core.pages.paged_delays import PagedDelays
from sockpqd.core.pages.paged_run import PagedRun
from sockpqd.core.pages.pager import Pager
from sockpqd.core.pages.pages import DelayedPage, Page
from sockpqd.core.pages.seq_index import SeqIndex
from sockpqd.core.snapshot.frames import (
    BodiesFrame,
    Buried,
    Delayed,
    EndFrame,
    ErrorRows,
    ExtrasRow,
    Frame,
    GroupPaged,
    GroupWaiting,
    NumberedPaged,
    NumberIndex,
    Paged,
    PagedDelayed,
    PageIndex,
    Released,
    Running,
    RunningRow,
    SeqRanks,
    SnapshotError,
    Waiting,
    check,
)
from sockpqd.core.snapshot.rows import extras_of
from sockpqd.core.state import State
from sockpqd.core.store.body import Data
from sockpqd.core.store.items.dependents import ItemRelease, Outcome
from sockpqd.core.store.job import (
    NEVER_MS,
    BuriedJob,
    DelayedJob,
    Extras,
    Job,
    RunningJob,
    group_of,
)
from sockpqd.core.store.job_list import JobList
from sockpqd.core.store.queues import Queue

JobFrame = (
    Waiting | NumberIndex | Paged | NumberedPaged | SeqRanks | GroupWaiting | GroupPaged | PageIndex | PagedDelayed
    | Delayed | Buried | Running | BodiesFrame | Released | ErrorRows
)

SEQ_PARTS = 256
# The kinds of frames between which, in the order of the queues, there may be frames with pages.
KINDS: dict[type[Frame], type[Frame]] = {
    NumberIndex: Waiting, Paged: Waiting, NumberedPaged: Waiting, SeqRanks: Waiting, GroupWaiting: Waiting,
    GroupPaged: Waiting,
    PageIndex: Delayed, PagedDelayed: Delayed,
}

# The possible decisions of an item, by the event for which jobs wait.
_DECISIONS = {
    Until.DONE: (Outcome.MET, Outcome.CANCELLED), Until.END: (Outcome.MET,),
    Until.FAILED: (Outcome.UNMET, Outcome.AT_ONCE),
}

_NO_JOB = "inconsistent snapshot: bodies without their jobs"
_ALONE = "inconsistent snapshot: pages of delayed jobs without one in memory before them"


class JobBuilder:
    """Puts jobs into `state`. `check_name` raises SnapshotError for a name that is not allowed.

    `foreign`: the snapshot comes from a client, so more is verified.
    """

    def __init__(self, state: State, check_name: Callable[[str], None], *, foreign: bool) -> None:
        self._state = state
        self._check_name = check_name
        self._foreign = foreign
        self._kind: type[object] = Waiting
        self._queue: str | None = None                  # of the last frame of this kind
        self._place: tuple[int, ...] = ()               # of the last job of this queue; those of other groups apart
        self._others = False                            # whether its jobs of other groups come, before its own
        self._id = 0                                    # of the last running job
        self.grouped = False                            # whether a job was put with a GROUP
        self._seqs = tuple(array("Q") for _ in range(SEQ_PARTS))    # each seq in one of them: a set would take 60 bytes
        self._bodies: dict[int, Data] = {}              # shared ones by number
        self._named: dict[int, tuple[int, bytes]] = {}  # bodies of the next frame outside memory, by seq
        self._delayed = 0
        self._pages: list[DelayedPage] = []             # of the present queue, until one of its jobs is in memory,
        self._ranks: dict[int, int] = {}                # and the ranks of their jobs,
        self._groups: dict[str, int] = {}               # and their groups, the queue's own left out
        self._error_queues: dict[int, str] = {}         # where jobs with texts lie, by the numbers of these
        self._error = 0                                 # the number of the last text
        self._buried = 0
        self._burials: set[int] = set()
        self._released: ItemRelease | None = None           # the release that the next frame continues

    def add(self, frame: JobFrame) -> None:
        """Add the next frame, which must be in the right order. Raises SnapshotError."""
        if isinstance(frame, BodiesFrame):
            self._name(frame)
            return
        if self._pages and not (isinstance(frame, Delayed | PagedDelayed) and frame.queue == self._queue):
            raise SnapshotError(_ALONE)
        if isinstance(frame, Running):
            for row in frame.jobs:
                self._add_running(row)
        elif isinstance(frame, Released):
            self._add_released(frame)
        elif isinstance(frame, ErrorRows):
            self._add_errors(frame)
        elif isinstance(frame, NumberIndex):
            _fill(self._paging().pages.index, frame)
        elif isinstance(frame, PageIndex):
            self._add_index(frame)
        else:
            kind = KINDS.get(type(frame), type(frame))
            if kind is not self._kind:
                self._kind, self._queue = kind, None
            if frame.queue != self._queue:
                check(self._queue is None or self._queue < frame.queue, "queues are not in order")
                self._check_name(frame.queue)
                self._queue, self._place, self._others = frame.queue, (), isinstance(frame, GroupWaiting)
            elif self._others and isinstance(frame, Waiting | Paged | NumberedPaged):
                self._place, self._others = (), False
            if isinstance(frame, GroupWaiting | GroupPaged):
                self._paging()
                check(self._others, "jobs of groups are behind the own jobs of a queue")
            if isinstance(frame, GroupPaged):
                self._add_group_pages(frame)
            elif isinstance(frame, Waiting | GroupWaiting):
                self._add_waiting(frame)
            elif isinstance(frame, Paged | NumberedPaged):
                self._add_pages(frame)
            elif isinstance(frame, SeqRanks):
                self._add_seq_ranks(frame)
            elif isinstance(frame, PagedDelayed):
                self._add_delayed_pages(frame)
            elif isinstance(frame, Delayed):
                self._add_delayed(frame)
            else:
                self._add_buried(frame)
        check(not self._named, _NO_JOB)

    def check_sums(self, end: EndFrame) -> None:
        """Verify the sums after the last frame. Raises SnapshotError."""
        state = self._state
        check(all(len(set(part)) == len(part) for part in self._seqs), "two jobs have one place")
        check(not self._pages, _ALONE)
        check(not self._named, _NO_JOB)
        check(end.waiting == state.queues.waiting, "waiting jobs are missing")
        check(end.running == len(state.running), "running jobs are missing")
        check(end.delayed == self._delayed, "delayed jobs are missing")
        check(end.buried == self._buried == len(self._burials), "buried jobs are missing")
        check(self._released is None, "a batch of released jobs is cut off")
        for item, _ in state.delays.dependents.waiting:
            check(item in state.items.by_name, "a job waits for an item that is finished")

    def _add_waiting(self, frame: Waiting | GroupWaiting) -> None:
        for priority, when, seq, item, data, attempts, at_ms, extras_row in frame.jobs:
            place = (-priority, when, seq)
            check(self._place < place, "jobs are not in order")
            self._place = place
            queue = self._state.queues.get_or_create(frame.queue)
            item, extras = self._checked(queue, seq, item, at_ms, extras_row)
            check(extras is None or not extras.after, "a waiting job waits for items")
            # 1.0.0rc1 forgot the end of a TTL when a hand-out by number was undone: such a job never expires.
            check(extras is None or extras.expires_at_ms is None or extras.ttl_ms is not None, "an end without a TTL")
            if self._foreign:
                in_time = queue.settings is not None and queue.settings.order is Order.TIME
                check(in_time or not when, "a job has a time in a queue without an order by time")
                _check_numbers(priority, attempts, at_ms, extras)
            body = self._body(seq, extras, data)
            job = Job(-priority, when, seq, queue.name, body, item, attempts, at_ms, extras)
            check(not self._others or group_of(job) != queue.name, "a job of a queue is among those of other groups")
            self._state.add(queue, job)
            if queue.seqs is None and group_of(job) != queue.name and not isinstance(queue.ready, GroupedReady):
                GroupedReady.split(queue, (job,))       # so that those that follow may leave memory

    def _add_pages(self, frame: Paged | NumberedPaged) -> None:
        """Add pages of this node after the jobs added so far.

        Their own jobs were verified when they were put there.
        """
        pager = self._paging()
        for priority, count, data_bytes, when, seq, *numbered, reference in frame.pages:
            place = (-priority, when, seq)
            check(self._place < place and count > 0, "pages of jobs are not in order")
            check(seq < self._state.next_seq, "place of a job out of range")
            check(self._place[:1] == place[:1], "a page is the first of its priority")
            self._place = place
            queue = self._state.queues.get_or_create(frame.queue)
            page: Page = (
                pager.pages.adopt_numbered(reference, count, data_bytes, when, seq, *numbered) if numbered
                else pager.pages.adopt(reference, count, data_bytes, when, seq)
            )
            if pager.resident:
                for job in pager.pages.take(page):
                    self._state.add(queue, job)
                continue
            ready = own_jobs(queue)
            run = ready.split_run(-priority)
            assert run is not None
            if not isinstance(run, PagedRun):
                run = PagedRun.of_run(run, pager.pages)
                ready.replace_run(-priority, run)
            run.append_page(page)
            self._state.queues.count_page(queue, -priority, count, data_bytes)

    def _add_seq_ranks(self, frame: SeqRanks) -> None:
        """Take over the ranks of jobs that are found by their seqs, as those in pages are not read."""
        self._paging()
        ready = own_jobs(self._state.queues.get_or_create(frame.queue))
        searched = None if frame.searched is None else [-priority for priority in frame.searched]
        try:
            ready.restore_seq_ranks(searched, [(-priority, accumulate(seqs)) for priority, seqs in frame.seqs])
        except KeyError:
            raise SnapshotError("inconsistent snapshot: jobs by seq of a priority without jobs") from None

    def _add_group_pages(self, frame: GroupPaged) -> None:
        """Add pages of this node with jobs of groups, each of which has a job in memory before them."""
        pager = self._paging()
        queue = self._state.queues.get_or_create(frame.queue)
        for group, priority, count, data_bytes, first, seq, reference in frame.pages:
            check(count > 0 and first <= seq < self._state.next_seq, "place of a job out of range")
            page = pager.pages.adopt_group(reference, count, data_bytes, (group, -priority, first, seq))
            if pager.resident:
                for job in pager.pages.take(page):
                    self._state.add(queue, job)
                continue
            listed = isinstance(queue.ready, GroupedReady) and queue.ready.adopt(page, pager.pages)
            check(listed, "pages of a group without a job in memory before them")
            self._state.queues.count_group_page(queue, -priority, count, data_bytes)

    def _add_delayed(self, frame: Delayed) -> None:
        for due_ms, seq, priority, item, data, attempts, at_ms, extras_row in frame.jobs:
            check(self._place < (due_ms, seq), "jobs are not in order")
            self._place = (due_ms, seq)
            queue = self._state.queues.get_or_create(frame.queue)
            item, extras = self._checked(queue, seq, item, at_ms, extras_row)
            dependent = extras is not None and bool(extras.after)
            check(dependent == (due_ms == NEVER_MS), "a delayed job waits neither for items nor for a time")
            check(extras is None or extras.expires_at_ms is None, "a TTL goes on while its job is delayed")
            if self._foreign:
                _check_numbers(priority, attempts, at_ms, extras)
            body = self._body(seq, extras, data)
            job = DelayedJob(due_ms, seq, -priority, queue.name, body, item, attempts, at_ms, extras)
            self._state.defer(queue, job)
            self._delayed += 1
        if self._pages:
            self._append_delayed_pages(self._state.queues.by_name[frame.queue])

    def _paging(self) -> Pager:
        """Return the pager that takes over pages of this node. Raises SnapshotError if there cannot be any."""
        pager = self._state.pager
        if self._foreign or pager is None:
            raise SnapshotError("inconsistent snapshot: it names pages of jobs, and there can be none")
        return pager

    def _add_index(self, frame: PageIndex) -> None:
        pager = self._paging()
        if not pager.resident:
            _fill(DelayedPages.of(self._state.delays, pager.pages).index, frame)

    def _add_delayed_pages(self, frame: PagedDelayed) -> None:
        """Collect pages of this node with DELAYED jobs.

        The first job in memory, due before them, is in the next frame.
        """
        pager = self._paging()
        for priority, count in frame.priorities:
            self._ranks[-priority] = self._ranks.get(-priority, 0) + count
        for group, count in frame.groups:
            check(group != frame.queue and group not in self._groups, "delayed jobs of a group are counted twice")
            self._groups[group] = count
            self.grouped = True
        for count, data_bytes, first_ms, first_seq, due_ms, seq, reference in frame.pages:
            first = (first_ms, first_seq)
            check(count > 0 and (not self._pages or self._pages[-1].first < first <= (due_ms, seq)),
                  "pages of delayed jobs are not in order")
            self._pages.append(pager.pages.adopt_delayed(reference, count, data_bytes, due_ms, seq, first))

    def _append_delayed_pages(self, queue: Queue) -> None:
        """Append the collected pages of the queue, now that its first job is in memory."""
        pager, pages = self._paging(), self._pages
        check(queue.delayed is not None and place(queue.delayed.first) < pages[0].first, _ALONE)
        check(sum(self._ranks.values()) == sum([page.count for page in pages]), "delayed jobs in pages are missing")
        check(sum(self._groups.values()) <= sum(self._ranks.values()), "there are fewer delayed jobs than of groups")
        self._delayed += sum([page.count for page in pages])
        if pager.resident:
            for page in pages:
                for job in with_shared_extras(jobs_in(pager.pages.data(page), page)):
                    self._state.defer(queue, job)
                pager.pages.free(page)
        else:
            jobs = PagedDelays.of_queue(queue, DelayedPages.of(self._state.delays, pager.pages))
            jobs.append_pages(pages, self._ranks, self._groups)
            self._state.queues.count_delayed_pages(queue, self._ranks, sum([page.data_bytes for page in pages]))
        self._pages, self._ranks, self._groups = [], {}, {}

    def _add_buried(self, frame: Buried) -> None:
        for burial, seq, priority, item, data, attempts, at_ms, extras_row in frame.jobs:
            check(self._place < (burial,), "jobs are not in order")
            check(burial < self._state.next_seq, "burial of a job out of range")
            self._place = (burial,)
            self._burials.add(burial)
            queue = self._state.queues.get_any(frame.queue)
            item, extras = self._checked(queue, seq, item, at_ms, extras_row, buried=True)
            check(extras is None or not extras.after, "a buried job waits for items")
            check(extras is None or extras.expires_at_ms is None, "a TTL goes on while its job is buried")
            if self._foreign:
                _check_numbers(priority, attempts, at_ms, extras)
            body = self._body(seq, extras, data)
            self._state.bury(BuriedJob(burial, seq, -priority, queue.name, body, item, attempts, at_ms, extras))
            self._buried += 1

    def _add_running(self, row: RunningRow) -> None:
        check(self._id < row.id < self._state.next_id, "job id out of order")
        check(row.then is not Then.DEFAULT, "end of lease is not given")
        check(row.attempts > 0, "a running job was never handed out")
        check(row.progress is None or row.progress <= limits.PROGRESS_MAX, "more progress than there can be")
        self._id = row.id
        self._check_name(row.queue)
        queue = self._state.queues.get_or_create(row.queue)
        item, extras = self._checked(queue, row.seq, row.item, row.at_ms, row.extras)
        check(extras is None or not extras.after, "a running job waits for items")
        if self._foreign:
            handed_out = extras is None or extras.counts is None or extras.counts.reserves > 0
            check(handed_out, "a running job was never handed out")
            _check_numbers(row.priority, max(row.attempts, row.lease_ms or 0, row.started_ms), row.at_ms, extras)
        self._state.start(queue, RunningJob(
            id=row.id,
            queue=queue.name,
            priority=row.priority,
            data=self._body(row.seq, extras, row.data),
            item=item,
            deadline_ms=row.deadline_ms,
            then=row.then,
            when=row.when,
            seq=row.seq,
            attempts=row.attempts,
            at_ms=row.at_ms,
            extras=extras,
            lease_ms=row.lease_ms,
            graced=row.graced,
            pulse=row.pulse,
            since_ms=row.since_ms,
            progress=row.progress,
            started_ms=row.started_ms,
        ))

    def _checked(
        self, queue: Queue, seq: int, item: str | None, at_ms: int | None, row: ExtrasRow | None, *,
        buried: bool = False,
    ) -> tuple[str | None, Extras | None]:
        """Return the name of a job's item (one string for all its jobs), and its extras."""
        state = self._state
        check(seq < state.next_seq, "place of a job out of range")
        self._seqs[seq % SEQ_PARTS].append(seq)
        if item is not None:
            if item not in state.items.by_name:
                self._check_name(item)
            item = state.items.open(item).name
        if row is None:
            return item, None
        extras = extras_of(row)
        self.grouped = self.grouped or extras.group is not None
        for name in (extras.key, extras.origin, extras.group, *extras.after):
            if name is not None:
                self._check_name(name)
        if extras.error is not None:
            check(extras.error < state.next_seq, "number of a text out of range")
            check(extras.error not in self._error_queues, "two jobs have one text")
            self._error_queues[extras.error] = queue.name
        reason = extras.reason or ""
        check(reason.isascii() and reason.isprintable() and " " not in reason, "a reason is no word")
        taken = queue.keys is not None and extras.key in queue.keys
        check(buried or not taken, "two jobs of a queue have one key")
        periodic = extras.every_ms is not None and extras.origin is None
        check(extras.every_ms != 0 and (not periodic or at_ms is not None), "a periodic job has no time")
        check(len(set(extras.after)) == len(extras.after), "a job waits twice for an item")
        if extras.counts is not None:
            first_ms, last_ms = extras.counts.first_ms, extras.counts.last_ms
            # The last may be before the first: a state that CLONE brought had the clock of its own cluster.
            check((first_ms is None) == (last_ms is None), "only one of two hand-outs is known")
            number = extras.counts.number
            if number:
                check(number < seq, "a job has left the place of its number for one before it")
                self._seqs[number % SEQ_PARTS].append(number)       # no job has, or will have, this place
        return item, extras

    def _name(self, frame: BodiesFrame) -> None:
        """Store the references of the bodies of the next frame's jobs, if they are from this node."""
        self._paging()
        check(not self._named, _NO_JOB)
        self._named = {seq: (length, reference) for seq, length, reference in frame.bodies}
        check(len(self._named) == len(frame.bodies) > 0, "two bodies of one job")

    def _body(self, seq: int, extras: Extras | None, row_data: bytes) -> Data:
        """Return the data of a job, shared with the first job that has the same body, if any."""
        data = self._state.held(row_data) if self._named.get(seq) is None else self._outside(seq, row_data)
        if extras is None:
            return data
        if extras.body is not None:
            check(extras.body < self._state.next_seq, "number of a body out of range")
            check(bool(data) == (extras.body not in self._bodies), "a shared body comes twice, or not at all")
            data = self._bodies.setdefault(extras.body, data)
        check(extras.head <= len(data), "the headers of a job are longer than its data")
        return data

    def _outside(self, seq: int, row_data: bytes) -> Data:
        """Return the data of a job by reference, if its row has none."""
        length, reference = self._named.pop(seq)
        check(not row_data, "a job has its body twice")
        pager = self._paging()
        bodies = pager.pages.bodies
        return bodies.take(reference, length) if pager.resident else bodies.adopt(reference, length)

    def _add_errors(self, frame: ErrorRows) -> None:
        for number, text in frame.rows:
            check(self._error < number, "texts are not in order")
            self._error = number
            queue = self._error_queues.get(number)
            if queue is None:
                raise SnapshotError("inconsistent snapshot: a text without a job")
            data = self._state.held(text) if self._named.get(number) is None else self._outside(number, text)
            check(0 < len(data) <= limits.ERROR_BYTES_MAX, "a text is empty, or too long")
            self._state.errors.restore(number, data, queue)

    def _add_released(self, frame: Released) -> None:
        dependents, kind = self._state.delays.dependents, (frame.item, frame.until, frame.outcome)
        batch = self._released
        if batch is None:
            batch = dependents.begin_release(*kind, JobList())
        check((batch.item, batch.until, batch.outcome) == kind, "a batch of released jobs is cut off")
        check(frame.outcome in _DECISIONS[frame.until], "an item decided what is not asked")
        for seq in frame.seqs:
            check(dependents.wait(frame.item, frame.until, seq), "a released job did not wait")
            dependents.forget(frame.item, frame.until, seq)
            batch.seqs.add(seq)
        check(batch.seqs.size > 0, "a batch of released jobs is empty")
        self._released = batch if frame.more else None


def _fill(index: SeqIndex, frame: PageIndex | NumberIndex) -> None:
    """Fill an index with the pages left by an earlier process."""
    for span, lows, numbers in frame.spans:
        try:
            index.restore(span, lows, numbers)
        except ValueError as error:
            raise SnapshotError(f"inconsistent snapshot: {error}") from None


def _check_numbers(priority: int, attempts: int, at_ms: int | None, extras: Extras | None) -> None:
    """Check numbers that no client could have sent: counting on from them must stay within 63 bits."""
    check(limits.PRIORITY_MIN <= priority <= limits.PRIORITY_MAX, "a priority is absurd")
    numbers: tuple[int, ...] = (attempts, at_ms or 0)
    if extras is not None:
        numbers += (extras.tries or 0, extras.ttl_ms or 0, extras.every_ms or 0, extras.lease_ms or 0)
        numbers += () if extras.counts is None else tuple([number or 0 for number in astuple(extras.counts)])
    check(max(numbers) <= limits.NUMBER_MAX, "a number of a job is absurd")
