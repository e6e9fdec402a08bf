"""The state as bytes. Equal states give equal bytes, whatever their history.

    magic       8 bytes     PQRAFT1 and a newline
    format      4 bytes     big endian; any change of what follows gets a new number
    frames                  each: length of its body (4 bytes, big endian), body (MessagePack)
    checksum    32 bytes    BLAKE2b of everything before

The frames are, in this order: one Head; Settings, when any was given; MapFrame, when there is a map of clusters;
RegionFrame, when the cluster was promoted or fenced; PulseTable, and PulseRows in name order, when there are pulses or
have been; OldestIndex, when there is one; QueueRows, in name order; Waiting, queues in name order and the jobs of a
queue in the order of their places; Delayed, likewise in the order in which they become active; Buried, likewise in the
order of their burials; Running, in rising id; ItemRows, in name order; Released, in the order in which the items were
finished; ErrorRows, in rising number, when workers have left texts; BindingRows, topics in name order and the bindings
of each in their order; GroupRows, in name order; FairTable and FairRows, in name order, when groups are in use, and
RateRows, queues and groups in name order; UsedRows and CountedRows, in name order; KeptRows and RememberedRows, queues
in name order and the keys of a queue in the order of their expiry; RecordRows, queues in name order and the records of
a queue in the order in which their jobs ended; SessionTable and SessionRows, in rising number, when there has been a
session; WorkerRows and UserRows, in name order; Clone and its Chunks, when a CLONE is in progress; FragmentBytes, when
an operation in fragments is; of a replica MirrorTable and MirrorBytes, and PartBytes and ArrivingBytes, when some have
come; one End. Long lists are cut into several frames. A body that jobs of several queues share (Extras.body) is in the
first row that has its number.

A node may write a snapshot by reference for its own use: pages of jobs (core/pages) are named, in Paged and
NumberedPaged frames between the Waiting ones, instead of read, with NumberIndex frames before all of them. In a queue
that several groups share, jobs of other groups precede its own ones, in GroupWaiting frames, followed by GroupPaged
frames that name their pages, because the places of these pages overlap. Behind the jobs of a queue with very many
priorities are SeqRanks frames. Pages of DELAYED jobs are named in PagedDelayed
frames before the Delayed ones of the same queue, with PageIndex frames before all of them. Large bodies are named too:
a BodiesFrame has the places of the bodies of the next frame, whose rows have no data for them. Pages of records are
named in RecordPages frames before the other records of their queue, with RecordIndex frames before all of them. Such a
snapshot is smaller, and differs from node to node; it is never sent to another node or a client.

To change the layout of a released format: raise FORMAT and record a data directory of the new one
(tests/upgrade/scenario.py). A row may get new last fields with defaults, so that today's frames can read older formats.
Any other change keeps the old frames and converts them (read.py has the table of formats). Format 6 is not released
yet, so new features are added to it. From release 1.0 on each addition belongs to a feature level (levels.py) and
occurs only in states of that level. Programs that do not know it refuse them by the format, or by the `level` of the
head.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from itertools import islice, pairwise
from typing import TypeVar

import msgspec
from msgspec.structs import asdict, astuple

from sockpqd.core import limits
from sockpqd.core.ops.settings import ClusterSettings
from sockpqd.core.ops.users import User
from sockpqd.core.pages.delayed_pages import DelayedPages
from sockpqd.core.pages.grouped_ready import GroupedReady, own_jobs
from sockpqd.core.pages.paged_delays import PagedDelays
from sockpqd.core.pages.paged_run import Block, PagedRun
from sockpqd.core.pages.pages import NumberedPage, Page, Pages
from sockpqd.core.pages.seq_index import SeqIndex
from sockpqd.core.snapshot import frames
from sockpqd.core.snapshot.fair import fair_frames
from sockpqd.core.snapshot.groups import group_frames, rate_frames
from sockpqd.core.snapshot.items import item_frames
from sockpqd.core.snapshot.pulses import pulse_frames
from sockpqd.core.snapshot.records import record_frames
from sockpqd.core.snapshot.rows import extras_row
from sockpqd.core.snapshot.sessions import session_frames
from sockpqd.core.state import State
from sockpqd.core.store.body import Body, Data, bytes_of
from sockpqd.core.store.job import AnyJob, BuriedJob, DelayedJob, Job, RunningJob
from sockpqd.core.store.queues import Queue
from sockpqd.core.store.ready import ReadyJobs

_Index = TypeVar("_Index", frames.PageIndex, frames.NumberIndex)

MAGIC = b"PQRAFT1\n"
FORMAT = 6
CHECKSUM_BYTES = 32

_encoder = msgspec.msgpack.Encoder()


def write(state: State, *, users: bool, by_reference: bool = False) -> Iterator[bytes]:
    """Yield the snapshot of `state` in chunks, with the users and their keys if `users`.

    `by_reference`: pages of jobs are named instead of read. Only this node can read such a snapshot, while it has the
    pages. The state must not change before the last chunk is taken.
    """
    digest = blake2b(digest_size=CHECKSUM_BYTES)
    chunk = bytearray(MAGIC + FORMAT.to_bytes(4, "big"))
    for frame in _frames(state, users, by_reference):
        body = _encoder.encode(frame)
        chunk += len(body).to_bytes(4, "big")
        chunk += body
        if len(chunk) >= limits.CHUNK_BYTES:
            digest.update(chunk)
            yield from _cut(chunk)
            chunk.clear()
    digest.update(chunk)
    yield bytes(chunk) + digest.digest()


def _cut(chunk: bytearray) -> Iterator[bytes]:
    for start in range(0, len(chunk), limits.CHUNK_BYTES_MAX):
        yield bytes(chunk[start : start + limits.CHUNK_BYTES_MAX])


def _frames(state: State, users: bool, by_reference: bool) -> Iterator[frames.Frame]:
    yield _head(state)
    yield from _settings_frames(state)
    if state.cluster_map is not None:
        yield frames.MapFrame(state.cluster_map.version, state.cluster_map.text)
    if state.promoted or state.fenced is not None:
        yield frames.RegionFrame(state.promoted, state.fenced)
    yield from pulse_frames(state.pulses)
    yield from _queue_frames(state)
    names = sorted(state.queues.by_name)
    bodies = _Bodies(by_reference)
    buried = [
        queue for group in (state.queues.by_name, state.queues.idle) for queue in group.values() if queue.buried
    ]
    yield from _waiting_frames(state, names, bodies, by_reference)
    yield from _delayed_frames(state, names, bodies, by_reference)
    yield from _buried_frames(buried, bodies)
    for running in _portions(state.in_order().values()):
        yield from bodies.before(frames.Running([_running_row(job, bodies.data(job)) for job in running]))
    yield from item_frames(state.items)
    yield from _released_frames(state)
    yield from _error_frames(state, bodies)
    yield from _binding_frames(state)
    yield from group_frames(state.groups)
    yield from fair_frames(state.fair)
    yield from rate_frames(state.fair)
    yield from _used_frames(state)
    yield from _counted_frames(state)
    yield from _kept_frames(state)
    yield from _remembered_frames(state)
    yield from record_frames(state.records, by_reference=by_reference)
    yield from session_frames(state.sessions)
    yield from _worker_frames(state)
    if users:
        yield from _user_frames(state.users)
    yield from _clone_frames(state)
    yield from _fragment_frames(state)
    yield from _mirror_frames(state, by_reference)
    delayed_jobs = sum(queue.deferred for queue in state.queues.by_name.values())
    buried_jobs = sum(queue.buried.size for queue in buried if queue.buried is not None)
    yield frames.EndFrame(state.queues.waiting, len(state.running), delayed_jobs, buried_jobs)


def _waiting_frames(
    state: State, names: list[str], bodies: _Bodies, by_reference: bool,
) -> Iterator[frames.Frame]:
    if by_reference and state.pager is not None:
        yield from _index_frames(state.pager.pages.index, frames.NumberIndex, _unnamed(state))
    for name in names:
        queue = state.queues.by_name[name]
        if by_reference and state.pager is not None and isinstance(queue.ready, GroupedReady) and queue.seqs is None:
            yield from _group_waiting_frames(name, queue.ready, bodies, state.pager.pages)
        for part in _parts(state, queue) if by_reference else (queue.all_ready(),):
            if isinstance(part, frames.Paged | frames.NumberedPaged):
                yield part
                continue
            for jobs in _portions(part):
                yield from bodies.before(frames.Waiting(name, _waiting_rows(jobs, bodies)))
        if by_reference and state.pager is not None and _may_be_named(queue) and own_jobs(queue).searched_by_seq:
            yield from _seq_rank_frames(name, own_jobs(queue))


def _seq_rank_frames(name: str, ready: ReadyJobs) -> Iterator[frames.SeqRanks]:
    """Yield frames by which the jobs in pages are found by their seqs, without reading the pages."""
    searched, rank_of = ready.seq_ranks
    seqs_of: dict[int, list[int]] = {}
    for seq, rank in rank_of.items():
        seqs_of.setdefault(rank, []).append(seq)
    first: list[int] | None = [-rank for rank in searched]
    rows: list[tuple[int, list[int]]] = []
    room = limits.FRAME_JOBS_MAX
    for rank, seqs in seqs_of.items():
        seqs.sort()
        start = 0
        while start < len(seqs):
            piece = seqs[start : start + room]
            rows.append((-rank, [piece[0], *(after - before for before, after in pairwise(piece))]))
            start += len(piece)
            room -= len(piece)
            if not room:
                yield frames.SeqRanks(name, first, rows)
                first, rows, room = None, [], limits.FRAME_JOBS_MAX
    if rows or first is not None:
        yield frames.SeqRanks(name, first, rows)


def _waiting_rows(jobs: list[Job], bodies: _Bodies) -> list[frames.WaitingRow]:
    return [
        (-job.rank, job.when, job.seq, job.item, bodies.data(job), job.attempts, job.at_ms, extras_row(job.extras))
        for job in jobs
    ]


def _group_waiting_frames(
    name: str, ready: GroupedReady, bodies: _Bodies, pages: Pages,
) -> Iterator[frames.Frame]:
    """Yield frames with the READY jobs of other groups than the queue's own: jobs in memory, and names of pages."""
    for jobs in _portions(ready.others):
        yield from bodies.before(frames.GroupWaiting(name, _waiting_rows(jobs, bodies)))
    outside = iter(ready.outside or ())
    while piece := list(islice(outside, limits.FRAME_JOBS_MAX)):
        yield frames.GroupPaged(name, [
            (page.group, -page.rank, page.count, page.data_bytes, page.first, page.seq, pages.reference(page))
            for page in piece
        ])


def _delayed_frames(
    state: State, names: list[str], bodies: _Bodies, by_reference: bool,
) -> Iterator[frames.Frame]:
    outside = state.delays.outside if by_reference else None
    if isinstance(outside, DelayedPages):
        yield from _index_frames(outside.index, frames.PageIndex, set())
    for name in names:
        jobs: Iterable[DelayedJob] = state.queues.by_name[name].delayed or ()
        if by_reference and isinstance(jobs, PagedDelays):
            yield from _delayed_page_frames(name, jobs)
            jobs = jobs.near
        for delayed in _portions(jobs):
            yield from bodies.before(frames.Delayed(name, [
                (job.due_ms, job.seq, -job.rank, job.item, bodies.data(job), job.attempts, job.at_ms,
                 extras_row(job.extras))
                for job in delayed
            ]))


def _buried_frames(queues: list[Queue], bodies: _Bodies) -> Iterator[frames.Frame]:
    for queue in sorted(queues, key=lambda queue: queue.name):
        for jobs in _portions(queue.buried or ()):
            yield from bodies.before(frames.Buried(queue.name, [
                (job.burial, job.seq, -job.rank, job.item, bodies.data(job), job.attempts, job.at_ms,
                 extras_row(job.extras))
                for job in jobs
            ]))


def _index_frames(index: SeqIndex, frame: type[_Index], without: set[int]) -> Iterator[_Index]:
    rows: list[tuple[int, bytes, bytes]] = []
    size = 0
    for row in index.spans(without):
        rows.append(row)
        size += len(row[1]) + len(row[2])
        if size >= limits.FRAME_DATA_BYTES or len(rows) >= limits.FRAME_JOBS_MAX:
            yield frame(rows)
            rows, size = [], 0
    if rows:
        yield frame(rows)


def _delayed_page_frames(name: str, jobs: PagedDelays) -> Iterator[frames.PagedDelayed]:
    pages, groups = jobs.pages(), iter(sorted(jobs.groups.items()))
    priorities = [(-rank, count) for rank, count in sorted(jobs.ranks.items())]
    while True:
        piece = list(islice(pages, limits.FRAME_JOBS_MAX))
        counts = list(islice(groups, limits.FRAME_JOBS_MAX))
        if not (piece or counts):
            return
        yield frames.PagedDelayed(name, priorities, [
            (page.count, page.data_bytes, *page.first, page.when, page.seq, jobs.outside.reference(page))
            for page in piece
        ], counts)
        priorities = []


def _parts(state: State, queue: Queue) -> Iterator[Iterable[Job] | frames.Paged | frames.NumberedPaged]:
    """Yield the READY jobs of the queue in order, as jobs or as frames that name their pages.

    Jobs of other groups are not among them in a queue that may have pages: they come before (_group_waiting_frames).
    """
    pages = None if state.pager is None else state.pager.pages
    if pages is None or not _may_be_named(queue):
        yield queue.all_ready() if pages is None or queue.seqs is not None else own_jobs(queue)
        return
    jobs: list[Job] = []
    named = _Named(queue.name, pages)
    rank = 0                            # of the last job
    for run in own_jobs(queue).runs():
        if isinstance(run, Job):
            blocks: Iterable[Block] = ([run],)
        else:
            blocks = run.blocks()
        for block in blocks:
            if isinstance(block, Page):
                if jobs:
                    yield jobs
                    jobs = []
                yield from named.add(-rank, block)
            else:
                yield from named.end()
                jobs += block
                rank = block[-1].rank
    yield from named.end()
    if jobs:
        yield jobs


def _may_be_named(queue: Queue) -> bool:
    return queue.seqs is None


def _unnamed(state: State) -> set[int]:
    """Return the pages with numbered READY jobs that the snapshot does not name."""
    others = [queue for queue in state.queues.by_name.values() if not _may_be_named(queue)]
    return {
        block.number for queue in others for run in own_jobs(queue).runs() if isinstance(run, PagedRun)
        for block in run.blocks() if isinstance(block, NumberedPage)
    }


class _Named:
    """Names pages of one queue: each frame has consecutive pages of one kind."""

    def __init__(self, queue: str, pages: Pages) -> None:
        self._queue = queue
        self._pages = pages
        self._plain: list[frames.PageRow] = []
        self._numbered: list[frames.NumberedPageRow] = []

    def add(self, priority: int, page: Page) -> Iterator[frames.Paged | frames.NumberedPaged]:
        """Add the next page; yields the frame of the pages before it if that is complete."""
        is_numbered = isinstance(page, NumberedPage)
        if max(len(self._plain), len(self._numbered)) == limits.FRAME_JOBS_MAX or (
                self._plain if is_numbered else self._numbered):
            yield from self.end()
        row = priority, page.count, page.data_bytes, page.when, page.seq
        if isinstance(page, NumberedPage):
            self._numbered.append((*row, page.numbered, self._pages.reference(page)))
        else:
            self._plain.append((*row, self._pages.reference(page)))

    def end(self) -> Iterator[frames.Paged | frames.NumberedPaged]:
        """Yield the frame of the last pages, if there are any."""
        if self._plain:
            yield frames.Paged(self._queue, self._plain)
        if self._numbered:
            yield frames.NumberedPaged(self._queue, self._numbered)
        self._plain, self._numbered = [], []


def _head(state: State) -> frames.Head:
    return frames.Head(
        index=state.index,
        term=state.term,
        leader=state.leader,
        clock_ms=state.clock_ms,
        cluster_id=state.cluster_id,
        expire_default=state.settings.expire_default,
        servers=sorted(state.servers.ids.items(), key=lambda server: server[1]),
        max_id=state.servers.max_id,
        next_id=state.next_id,
        next_seq=state.next_seq,
        next_item=state.items.next_item,
        members=[(one.name, one.peer, one.client) for one in state.membership.addresses.values()],
        learner=state.membership.learner,
        configuration=state.membership.configuration,
        online=state.online,
        seqs_since_ms=state.seqs_since_ms,
        event_seq=state.events.seq,
        level=state.level,
    )


def _running_row(job: RunningJob, data: bytes) -> frames.RunningRow:
    return frames.RunningRow(
        job.id, job.queue, job.priority, job.seq, job.item, data, job.deadline_ms, job.then, job.graced, job.when,
        job.attempts, job.at_ms, job.lease_ms, extras_row(job.extras), job.pulse, job.since_ms,
        job.progress, job.started_ms,
    )


class _Bodies:
    """The data of the jobs of one snapshot: written, named or shared."""

    def __init__(self, by_reference: bool) -> None:
        self._by_reference = by_reference
        self._shared: set[int] = set()          # numbers of shared bodies that are written
        self._named: list[tuple[int, int, bytes]] = []      # the rows of a BodiesFrame frame

    def data(self, job: AnyJob) -> bytes:
        """Return the data of the job; none if a frame names them, or if an earlier job shares them."""
        number = None if job.extras is None else job.extras.body
        if number is not None:
            if number in self._shared:
                return b""
            self._shared.add(number)
        return self.named(job.seq, job.data)

    def named(self, number: int, data: Data) -> bytes:
        """Return the data of the row with this number; none if a frame names them."""
        if self._by_reference and type(data) is Body:
            reference = data.reference
            if reference is not None:
                self._named.append((number, len(data), reference))
                return b""
        return bytes_of(data)

    def before(self, frame: frames.Frame) -> Iterator[frames.Frame]:
        """Yield the frame with these jobs, preceded by one that names their bodies, if any."""
        if self._named:
            yield frames.BodiesFrame(self._named)
            self._named = []
        yield frame


def _settings_frames(state: State) -> Iterator[frames.Settings]:
    known = state.settings
    if known != ClusterSettings(expire_default=known.expire_default):
        yield frames.Settings(
            known.autocreate, known.policy, known.grace_ms, known.session_ttl_ms, known.fast_empty,
            known.retained_bytes,
        )


def _queue_frames(state: State) -> Iterator[frames.OldestIndex | frames.QueueRows]:
    rows = [frames.QueueRow(name, **asdict(settings)) for name, settings in sorted(state.queues.settings.items())]
    if state.queues.oldest is not None:
        yield frames.OldestIndex(state.queues.oldest.reached)
    for start in range(0, len(rows), limits.FRAME_ROWS_MAX):
        yield frames.QueueRows(rows[start : start + limits.FRAME_ROWS_MAX])


def _released_frames(state: State) -> Iterator[frames.Released]:
    for batch in state.delays.dependents.released.values():
        seqs = list(batch.seqs)
        for start in range(0, len(seqs), limits.FRAME_JOBS_MAX):
            end = start + limits.FRAME_JOBS_MAX
            yield frames.Released(batch.item, seqs[start:end], end < len(seqs), batch.until, batch.outcome)


def _error_frames(state: State, bodies: _Bodies) -> Iterator[frames.Frame]:
    rows: list[tuple[int, bytes]] = []
    size = 0
    for number, data in state.errors:
        rows.append((number, bodies.named(number, data)))
        size += len(data)
        if size >= limits.FRAME_DATA_BYTES or len(rows) >= limits.FRAME_JOBS_MAX:
            yield from bodies.before(frames.ErrorRows(rows))
            rows, size = [], 0
    if rows:
        yield from bodies.before(frames.ErrorRows(rows))


def _binding_frames(state: State) -> Iterator[frames.BindingRows]:
    topics = sorted(state.topics.by_name.items())
    rows = [(topic, *binding) for topic, bindings in topics for binding in bindings]
    for start in range(0, len(rows), limits.FRAME_JOBS_MAX):
        yield frames.BindingRows(rows[start : start + limits.FRAME_JOBS_MAX])


def _used_frames(state: State) -> Iterator[frames.UsedRows]:
    rows = [(name, queue.used_ms) for name, queue in sorted(state.queues.expiring.items())]
    for start in range(0, len(rows), limits.FRAME_JOBS_MAX):
        yield frames.UsedRows(rows[start : start + limits.FRAME_JOBS_MAX])


def _counted_frames(state: State) -> Iterator[frames.CountedRows]:
    queues = state.queues
    names = iter(sorted((*queues.by_name, *queues.idle)))
    while piece := list(islice(names, limits.FRAME_JOBS_MAX)):
        counted = ((name, queue.counters) for name in piece if (queue := queues.find(name)) is not None)
        rows = [frames.CountedRow(name, *counters) for name, counters in counted if any(counters)]
        if rows:
            yield frames.CountedRows(rows)


def _kept_frames(state: State) -> Iterator[frames.KeptRows]:
    kept = iter(state.retained_keys)
    while rows := list(islice(kept, limits.FRAME_JOBS_MAX)):
        yield frames.KeptRows(rows)


def _remembered_frames(state: State) -> Iterator[frames.RememberedRows]:
    remembered = state.remembered_keys.rows()
    while rows := list(islice(remembered, limits.FRAME_JOBS_MAX)):
        yield frames.RememberedRows(rows)


def _worker_frames(state: State) -> Iterator[frames.WorkerRows]:
    workers = state.workers.by_name | state.workers.left
    rows = [frames.WorkerRow(*astuple(workers[name])) for name in sorted(workers)]
    for start in range(0, len(rows), limits.FRAME_JOBS_MAX):
        yield frames.WorkerRows(rows[start : start + limits.FRAME_JOBS_MAX])


def _user_frames(users: Mapping[str, User]) -> Iterator[frames.UserRows]:
    rows = [frames.UserRow(name, users[name].rights, users[name].key) for name in sorted(users)]
    for start in range(0, len(rows), limits.FRAME_ROWS_MAX):
        yield frames.UserRows(rows[start : start + limits.FRAME_ROWS_MAX])


def _clone_frames(state: State) -> Iterator[frames.CloneFrame | frames.Chunk]:
    if state.clone is not None:
        yield frames.CloneFrame(state.clone.clone, state.clone.total_bytes)
        for data in state.clone.chunks:
            yield frames.Chunk(data)


def _fragment_frames(state: State) -> Iterator[frames.FragmentBytes]:
    if state.fragments is not None:
        number, data = state.fragments.number, memoryview(state.fragments.data)
        for start in range(0, len(data), limits.CHUNK_BYTES_MAX):
            yield frames.FragmentBytes(number, bytes(data[start : start + limits.CHUNK_BYTES_MAX]))


def _mirror_frames(state: State, by_reference: bool) -> Iterator[frames.Frame]:
    mirror = state.mirror
    if mirror is None:
        return
    arriving = mirror.arriving
    yield frames.MirrorTable(
        None if mirror.part is None else mirror.part.number,
        None if arriving is None else (arriving.index, arriving.hash, arriving.upload.total_bytes),
    )
    for chunk in write(mirror.state, users=True, by_reference=by_reference):
        yield frames.MirrorBytes(chunk)
    if mirror.part is not None:
        data = memoryview(mirror.part.data)
        for start in range(0, len(data), limits.CHUNK_BYTES_MAX):
            yield frames.PartBytes(bytes(data[start : start + limits.CHUNK_BYTES_MAX]))
    if arriving is not None:
        for chunk in arriving.upload.chunks:
            yield frames.ArrivingBytes(chunk)


_AnyJob = TypeVar("_AnyJob", Job, DelayedJob, BuriedJob, RunningJob)


def _portions(jobs: Iterable[_AnyJob]) -> Iterator[list[_AnyJob]]:
    """Split the jobs into lists of a size that fits a frame."""
    portion: list[_AnyJob] = []
    data_bytes = 0
    for job in jobs:
        portion.append(job)
        data_bytes += len(job.data)
        if data_bytes >= limits.FRAME_DATA_BYTES or len(portion) >= limits.FRAME_JOBS_MAX:
            yield portion
            portion = []
            data_bytes = 0
    if portion:
        yield portion
