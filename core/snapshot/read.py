"""Restores a state from bytes, piece by piece as they arrive.

A snapshot may come from a damaged disk or from a client (CLONE), and a checksum protects only against accidents. So
everything is verified: the layout by the types of the frames, and the machine's assumptions by explicit checks.
`finish` returns a new state if everything is right; the caller's own state is not touched.

A foreign snapshot, one from a client, must satisfy more: a cluster must be able to read its own snapshots again, even
if rules for names or limits have become stricter since.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import Any, ClassVar

import msgspec
from msgspec.structs import asdict, astuple

from sockpqd.core import limits
from sockpqd.core.clusters.map_text import MapError, read_map
from sockpqd.core.fair.levels import GroupAccount
from sockpqd.core.fair.scheduler import FairScheduler
from sockpqd.core.levels import FIRST_LEVEL
from sockpqd.core.members.membership import Membership
from sockpqd.core.ops.cluster import Address
from sockpqd.core.ops.jobs import Then
from sockpqd.core.ops.queues import GroupBy, Sched
from sockpqd.core.ops.settings import ClusterSettings, QueueSettings
from sockpqd.core.ops.users import User
from sockpqd.core.pages.clone_buffer import CloneBuffer
from sockpqd.core.pages.pager import Pager
from sockpqd.core.pulse.pulse import OWN_PREFIX
from sockpqd.core.sessions.workers import WorkerPool
from sockpqd.core.snapshot import frames
from sockpqd.core.snapshot.fair import check_accounts, count_jobs, restored_account, restored_scheduler
from sockpqd.core.snapshot.frames import LevelError, SnapshotError, check
from sockpqd.core.snapshot.groups import check_rate, restored_group, restored_rate
from sockpqd.core.snapshot.items import ItemBuilder
from sockpqd.core.snapshot.jobs import KINDS, JobBuilder, JobFrame
from sockpqd.core.snapshot.pulses import order_tickets, restored_pulse
from sockpqd.core.snapshot.records import RecordBuilder
from sockpqd.core.snapshot.sessions import restored_session
from sockpqd.core.snapshot.write import CHECKSUM_BYTES, FORMAT, MAGIC
from sockpqd.core.state import Collected, State
from sockpqd.core.store.policies.oldest import OldestFirst

# The frames of each format that is read. No release ever wrote formats before OLDEST.
OLDEST = 5
_decoder: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(frames.Frame)
_head_decoder = msgspec.msgpack.Decoder(frames.AnyHead)
_DECODERS = dict.fromkeys(range(OLDEST, FORMAT + 1), _decoder)

# Names become words in lines of the protocol, so they must not contain a space or a line end.
_name = re.compile(r"[A-Za-z0-9_.+/;$()][A-Za-z0-9_.+/;$():@-]{0,254}")
_pattern = re.compile(r"[A-Za-z0-9_.:@#*-]{1,255}")

# The frames in their order; those in _ONCE occur at most once, Head and End exactly once.
_ORDER: list[type[frames.Frame]] = [
    frames.Head,
    frames.Settings,
    frames.MapFrame,
    frames.RegionFrame,
    frames.PulseTable,
    frames.PulseRow,
    frames.OldestIndex,
    frames.QueueRows,
    frames.Waiting,         # and those that KINDS counts among them
    frames.Delayed,
    frames.Buried,
    frames.Running,
    frames.ItemRows,
    frames.Released,
    frames.ErrorRows,
    frames.BindingRows,
    frames.GroupRows,
    frames.FairTable,
    frames.FairRows,
    frames.RateRows,
    frames.UsedRows,
    frames.CountedRows,
    frames.KeptRows,
    frames.RememberedRows,
    frames.RecordRows,      # and those that KINDS counts among them
    frames.SessionTable,
    frames.SessionRows,
    frames.WorkerRows,
    frames.UserRows,
    frames.CloneFrame,
    frames.Chunk,
    frames.FragmentBytes,
    frames.MirrorTable,
    frames.MirrorBytes,
    frames.PartBytes,
    frames.ArrivingBytes,
    frames.EndFrame,
]
_ONCE = (
    frames.Head, frames.Settings, frames.MapFrame, frames.PulseTable, frames.OldestIndex, frames.FairTable,
    frames.SessionTable, frames.CloneFrame, frames.RegionFrame, frames.MirrorTable, frames.EndFrame,
)
_WITH_DATA = (frames.Waiting, frames.GroupWaiting, frames.Delayed, frames.Buried, frames.Running, frames.ErrorRows)
_BYTES = ("error_bytes", "retain_bytes")         # settings that are not counted on: they have 63 bits
_KINDS = KINDS | {frames.RecordIndex: frames.RecordRows, frames.RecordPages: frames.RecordRows}
_NEEDED: dict[type[frames.Frame], type[frames.Frame]] = {       # which must come before
    frames.PulseRow: frames.PulseTable,
    frames.SessionRows: frames.SessionTable,
    frames.Chunk: frames.CloneFrame,
    frames.FairRows: frames.FairTable,
    frames.RateRows: frames.FairTable,
    frames.MirrorBytes: frames.MirrorTable,
    frames.PartBytes: frames.MirrorTable,
    frames.ArrivingBytes: frames.MirrorTable,
}


class MirrorFrames:
    """The mirror in the snapshot of a replica: its table, the reader of its snapshot, and incomplete uploads to it."""

    def __init__(self, table: frames.MirrorTable, reader: SnapshotReader, pager: Pager | None) -> None:
        """`pager`: keeps pages of the mirror's jobs on the disk; None: all stay in memory."""
        self.table = table
        self.reader = reader
        self.part = bytearray()
        self.chunks = CloneBuffer(None if pager is None or pager.resident else pager.pages)


class SnapshotReader:
    """Takes a snapshot in pieces of any size and returns its state.

    `level`: the highest feature level of a state that is accepted. `foreign`: the bytes come from a client. `pager`:
    of the new state; it keeps its jobs within the memory budget while they are read.
    """

    def __init__(self, level: int, *, foreign: bool = False, pager: Pager | None = None) -> None:
        self.level = level
        self._buffer = bytearray()
        self._digest = blake2b(digest_size=CHECKSUM_BYTES)
        self._builder = _Builder(level, foreign, pager)
        self._decoder = _DECODERS[FORMAT]       # of the format of the snapshot, once that is known
        # The reader of the next part, and that part's size. A plain function: a bound method would make a cycle with
        # the reader, and the state in it, that only the garbage collector could free.
        self._step: Callable[[SnapshotReader, bytes], None] = SnapshotReader._prologue
        self._size = len(MAGIC) + 4
        self._complete = False

    @property
    def pending(self) -> tuple[frames.CloneFrame, CloneBuffer] | None:
        """The CLONE that was in progress, and its chunks; valid after `finish`."""
        return None if self._builder.clone is None else (self._builder.clone, self._builder.chunks)

    @property
    def mirror(self) -> MirrorFrames | None:
        """The mirror of a replica; valid after `finish`."""
        return self._builder.mirror

    def feed(self, data: bytes) -> None:
        """Read the next bytes.

        Raises SnapshotError as soon as they are invalid; the reader must not be used afterwards.
        """
        buffer = self._buffer
        buffer += data
        start = 0
        while len(buffer) - start >= self._size:
            piece = bytes(buffer[start : start + self._size])
            start += self._size
            self._step(self, piece)
        del buffer[:start]

    def finish(self) -> State:
        """Return the state after all bytes. Raises SnapshotError if they are incomplete."""
        if not self._complete:
            raise SnapshotError("snapshot is cut off")
        return self._builder.state

    def _prologue(self, piece: bytes) -> None:
        self._digest.update(piece)
        if not piece.startswith(MAGIC):
            raise SnapshotError("not a snapshot: the magic is missing")
        number = int.from_bytes(piece[len(MAGIC) :], "big")
        if number not in _DECODERS:
            reads = f"this version reads formats {OLDEST} to {FORMAT}"
            if number > FORMAT:
                raise LevelError(f"snapshot of format {number}; {reads}")
            raise SnapshotError(f"snapshot of format {number}, which no release ever wrote; {reads}")
        self._decoder = _DECODERS[number]
        self._step, self._size = SnapshotReader._length, 4

    def _length(self, piece: bytes) -> None:
        self._digest.update(piece)
        self._step, self._size = SnapshotReader._frame, int.from_bytes(piece, "big")

    def _frame(self, piece: bytes) -> None:
        self._digest.update(piece)
        try:
            if self._builder.empty:
                self._check_level(_head_decoder.decode(piece).level)
            frame = self._decoder.decode(piece)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise SnapshotError(f"bad frame in snapshot: {error}") from None
        self._builder.add(frame)
        if isinstance(frame, frames.EndFrame):
            self._step, self._size = SnapshotReader._checksum, CHECKSUM_BYTES
        else:
            self._step, self._size = SnapshotReader._length, 4

    def _check_level(self, level: int) -> None:
        """Refuse a state of a level that is not accepted before its frames are read: their kinds may be unknown."""
        if level > self.level:
            raise LevelError(f"state of feature level {level}, known are those up to {self.level}")

    def _checksum(self, piece: bytes) -> None:
        if piece != self._digest.digest():
            raise SnapshotError("checksum of snapshot is wrong")
        self._complete = True
        self._step, self._size = SnapshotReader._excess, 1

    def _excess(self, piece: bytes) -> None:
        raise SnapshotError("bytes behind the end of the snapshot")


def _check_foreign_name(name: str) -> None:
    check(_name.fullmatch(name) is not None, "a name the protocol does not allow")


def _check_no_name(name: str) -> None:
    """Accept any name: names in our own snapshots were valid when they were created."""


class _Builder:
    """Builds a state from frames. Raises SnapshotError when they contradict each other."""

    def __init__(self, level: int, foreign: bool, pager: Pager | None) -> None:
        self._level = level                             # the highest of a mirror
        self._foreign = foreign
        self.mirror: MirrorFrames | None = None
        self.state = State()
        self.state.keep_in(pager)
        self.clone: frames.CloneFrame | None = None
        self.chunks = CloneBuffer(None)                  # of the clone
        self._last: type[frames.Frame] | None = None           # type of the last frame
        self._seen: set[type[frames.Frame]] = set()            # types of all frames so far
        # Functions, as bound methods would make a cycle: an abandoned state would stay in memory with its jobs.
        self._check_name = _check_foreign_name if foreign else _check_no_name
        self._jobs = JobBuilder(self.state, self._check_name, foreign=foreign)
        self._session = 0                               # number of the last session
        self._sessions = 0                              # how many there are
        self._worker = ""                               # name of the last worker
        self._user = ""                                 # name of the last user
        self._pulses = 0                                # how many there are
        self._pulse = ""                                # name of the last pulse
        self._settings = ""                             # name of the last queue with settings
        self._topic = ""                                # name of the last topic
        self._fair: FairScheduler | None = None
        self._groups: list[GroupAccount] = []                # of FAIR,
        self._group = ""                                # the name of the last one,
        self._accounts = 0                              # and how many there are
        self._unit_ns = 1                               # of their priorities
        self._items = ItemBuilder(self.state.items)
        self._records = RecordBuilder(self.state.records, self._check_name)
        self._used = ""                                 # name of the last queue with IDLE
        self._counted = ""                              # name of the last queue with counters

    @property
    def empty(self) -> bool:
        """True if there has been no frame yet."""
        return self._last is None

    def add(self, frame: frames.Frame) -> None:
        """Add the next frame to the state."""
        if isinstance(frame, frames.BodiesFrame) and not self.empty:         # may be before any one with jobs
            self._add_jobs(frame)
            return
        kind = _KINDS.get(type(frame), type(frame))
        first = _ORDER.index(self._last) if self._last is not None else -1
        right = _ORDER.index(kind) >= first and (kind is not self._last or kind not in _ONCE)
        needed = _NEEDED.get(kind)
        if not right or (first < 0) != (kind is frames.Head) or (needed is not None and needed not in self._seen):
            raise SnapshotError(f"{kind.__name__} frame out of order")
        self._last = kind
        self._seen.add(kind)
        self._add[type(frame)](self, frame)

    def _add_head(self, head: frames.Head) -> None:
        state = self.state
        state.index = head.index
        state.term = head.term
        state.leader = head.leader
        state.clock_ms = head.clock_ms
        state.cluster_id = head.cluster_id
        state.settings = ClusterSettings(expire_default=head.expire_default)
        state.next_id = head.next_id
        state.next_seq = head.next_seq
        state.seqs_since_ms = head.seqs_since_ms
        state.events.seq = head.event_seq
        state.items.next_item = head.next_item
        state.servers.ids = dict(head.servers)
        state.servers.max_id = head.max_id
        numbers = [number for _, number in head.servers]
        check(numbers == sorted(set(numbers)), "server ids do not rise")
        check(len(state.servers.ids) == len(numbers), "two ids of one server")
        check(not numbers or 0 < numbers[0] <= numbers[-1] <= head.max_id, "server id out of range")
        self._add_members(head)
        check(head.expire_default is not Then.DEFAULT, "expire default is not given")
        counters = (head.next_id, head.next_seq, head.next_item)
        check(min(counters) > 0, "counter is zero")
        check(not self._foreign or max(counters) <= limits.NUMBER_MAX, "counter is absurd")

    def _add_members(self, head: frames.Head) -> None:
        names = [name for name, _, _ in head.members]
        check(names == sorted(self.state.servers.ids), "members are not the servers in name order")
        addresses = {name: Address(name, peer, client) for name, peer, client in head.members}
        membership = Membership(addresses, head.learner, head.configuration)
        check(head.learner is None or head.learner in addresses, "learner is no member")
        check(not addresses or bool(membership.voters), "no member is a voter")
        self.state.membership = membership
        self.state.online = head.online
        check(head.level >= FIRST_LEVEL, "there is no such feature level")
        self.state.level = head.level

    def _add_settings(self, frame: frames.Settings) -> None:
        self.state.settings = ClusterSettings(
            self.state.settings.expire_default, frame.autocreate, frame.policy, frame.grace_ms, frame.session_ttl_ms,
            frame.fast_empty, frame.retained_bytes,
        )

    def _add_map(self, frame: frames.MapFrame) -> None:
        check(frame.version > 0, "a map of no version")
        try:
            self.state.cluster_map = read_map(frame.version, frame.text, self.state.cluster_id)
        except MapError as error:
            raise SnapshotError(f"inconsistent snapshot: the map of clusters, {error}") from None

    def _add_oldest(self, frame: frames.OldestIndex) -> None:
        self.state.queues.oldest = OldestFirst(frame.reached)

    def _add_queues(self, frame: frames.QueueRows) -> None:
        for row in frame.rows:
            check(self._settings < row.name, "settings of queues are not in order")
            self._settings = row.name
            self._check_name(row.name)
            if row.dead is not None:
                self._check_name(row.dead)
            check(row.portion > 0 and row.weight > 0, "setting of a queue out of range")
            check(row.pulse is None or row.pulse in self.state.pulses.by_name, "a queue has a pulse that is not there")
            check_rate(row.group_rate, row.group_per_ms)
            of_groups = row.group_limit or row.group_rate or row.group_by or row.group_order
            check(row.sched is not Sched.FIFO or not of_groups, "groups that are not chosen")
            check(row.group_by is GroupBy.HEAD or not row.group_header, "groups that no header decides")
            paused = row.pause_ends_ms > 0
            check(paused == (row.pause_ms > 0) and row.paused_out >= paused, "a pause has no end")
            check(paused >= row.passing, "the settings of no pause")
            values = asdict(row)
            del values["name"]
            self._check_numbers([value for name, value in values.items() if name not in _BYTES])
            self.state.queues.configure(row.name, QueueSettings(**values))

    def _add_pulse_table(self, frame: frames.PulseTable) -> None:
        check(frame.next_ticket > 1 or frame.pulses > 0, "pulses where none has been")
        check(not self._foreign or frame.next_ticket <= limits.NUMBER_MAX, "counter is absurd")
        self.state.pulses.next_ticket = frame.next_ticket
        self._pulses = frame.pulses

    def _add_pulse(self, row: frames.PulseRow) -> None:
        check(self._pulse < row.name, "pulses are not in order")
        self._pulse = row.name
        self._check_name(row.name.removeprefix(OWN_PREFIX))
        self._check_numbers(astuple(row))
        self.state.pulses.add(restored_pulse(row, self.state.pulses.next_ticket))

    def _add_jobs(self, frame: JobFrame) -> None:
        self._jobs.add(frame)
        if self.state.pager is not None and isinstance(frame, _WITH_DATA):
            self.state.pager.relieve(self.state.queues, self.state.delays)

    def _add_items(self, frame: frames.ItemRows) -> None:
        for row in frame.rows:
            self._check_name(row.name)
            self._check_numbers(astuple(row))
            self._items.add(row)

    def _add_bindings(self, frame: frames.BindingRows) -> None:
        topics = self.state.topics
        for topic, queue, pattern in frame.rows:
            check(self._topic <= topic, "topics are not in order")
            check((queue, pattern) not in topics.by_name.get(topic, ()), "a queue is bound twice")
            self._topic = topic
            self._check_name(topic)
            self._check_name(queue)
            check(pattern is None or _pattern.fullmatch(pattern) is not None, "a pattern the protocol does not allow")
            topics.bind(topic, queue, pattern)
            self.state.queues.join_topic(queue)

    def _add_used(self, frame: frames.UsedRows) -> None:
        for name, used_ms in frame.rows:
            check(self._used < name, "uses of queues are not in order")
            self._used = name
            queue = self.state.queues.expiring.get(name)
            if queue is None:
                raise SnapshotError("inconsistent snapshot: last use of a queue without IDLE")
            queue.used_ms = used_ms

    def _add_fair(self, table: frames.FairTable) -> None:
        for name in [name for task in table.tasks for name in task if name]:
            self._check_name(name)
        self._check_numbers([table.next_turn, *[selected for _, _, selected in table.levels]])
        self._fair = restored_scheduler(self.state, table, self.state.clock_ms)
        self._accounts, self._unit_ns = table.accounts, table.unit_ns

    def _add_groups(self, frame: frames.FairRows) -> None:
        assert self._fair is not None
        for row in frame.rows:
            account = restored_account(row, self._fair, self._unit_ns)
            check(self._group < account.name, "groups are not in order")
            self._group = account.name
            self._check_name(account.name)
            self._groups.append(account)

    def _add_group_settings(self, frame: frames.GroupRows) -> None:
        for row in frame.rows:
            self._check_name(row.name)
            self._check_numbers(astuple(row))
            restored_group(row, self.state.groups)

    def _add_rates(self, frame: frames.RateRows) -> None:
        assert self._fair is not None
        for row in frame.rows:
            self._check_name(row.group)
            if row.queue:
                self._check_name(row.queue)
            numbers = [number for slot in row.slots for number in slot]
            self._check_numbers([row.slot_ms, row.sleep_until_ms, row.due_ms, *numbers])
            restored_rate(row, self._fair.open.gates.windows)

    def _end_fair(self) -> None:
        """Restore the jobs and the offers of the groups after the last frame."""
        scheduler = self._fair
        if scheduler is None:
            check(not self._jobs.grouped, "a job has a group, and there are none")
            return
        check(len(self._groups) == self._accounts, "groups are missing")
        count_jobs(self.state, scheduler)
        for account in self._groups:
            scheduler.restore(account)
        check(len(scheduler.accounts) == self._accounts, "groups are missing")
        check_accounts(scheduler)
        scheduler.end_restore()
        self.state.fair = self.state.queues.fair = scheduler

    def _add_counted(self, frame: frames.CountedRows) -> None:
        for row in frame.rows:
            name, *counters = astuple(row)
            check(self._counted < name, "counters of queues are not in order")
            self._counted = name
            queue = self.state.queues.find(name)
            if queue is None:
                raise SnapshotError("inconsistent snapshot: counters of a queue that is not there")
            check(any(counters), "nothing was counted")
            self._check_numbers(counters)
            queue.counters = counters

    def _add_kept(self, frame: frames.KeptRows) -> None:
        for queue, key, until_ms in frame.rows:
            check(until_ms > 0 and not self.state.retained_keys.until_ms(queue, key), "a key is remembered twice")
            self._check_name(queue)
            self._check_name(key)
            self.state.retained_keys.retain(queue, key, until_ms)

    def _add_remembered(self, frame: frames.RememberedRows) -> None:
        keys = self.state.remembered_keys
        for queue, key, until_ms, number in frame.rows:
            check(until_ms > 0 and not keys.until_ms(queue, key), "a key of DEDUP comes twice")
            check(number < self.state.next_seq, "number of a job out of range")
            self._check_name(queue)
            self._check_name(key)
            keys.set(queue, key, until_ms, number)

    def _add_records(self, frame: frames.RecordRows) -> None:
        self._records.add_rows(frame, self.state.next_seq)

    def _add_record_index(self, frame: frames.RecordIndex) -> None:
        self._records.add_index(frame)

    def _add_record_pages(self, frame: frames.RecordPages) -> None:
        self._records.add_pages(frame)

    def _add_session_table(self, frame: frames.SessionTable) -> None:
        check(frame.next_session > 1, "sessions where none has been")
        check(not self._foreign or frame.next_session <= limits.NUMBER_MAX, "counter is absurd")
        self.state.sessions.next_session = frame.next_session
        self._sessions = frame.sessions

    def _add_sessions(self, frame: frames.SessionRows) -> None:
        for row in frame.rows:
            check(self._session < row.number < self.state.sessions.next_session, "session number out of order")
            self._session = row.number
            self.state.sessions.resume(restored_session(row, self.state.running, self.state.next_id))

    def _add_workers(self, frame: frames.WorkerRows) -> None:
        for row in frame.rows:
            check(self._worker < row.name, "workers are not in order")
            self._worker = row.name
            session = self.state.sessions.get(row.session)
            check(session is not None or (row.session == 0 and row.unheard), "a worker without a session")
            check(row.most is None or row.least is None or row.least <= row.most, "the bounds of a worker cross")
            self.state.workers.add(WorkerPool(*astuple(row)))

    def _add_users(self, frame: frames.UserRows) -> None:
        for row in frame.rows:
            check(self._user < row.name, "users are not in order")
            self._user = row.name
            self.state.users[row.name] = User(row.rights, row.key)

    def _check_numbers(self, values: Iterable[object]) -> None:
        """Check that counting on from these numbers stays within 63 bits."""
        check(not self._foreign or all(value <= limits.NUMBER_MAX for value in values if isinstance(value, int)),
              "counter is absurd")

    def _check_sums(self, end: frames.EndFrame) -> None:
        self._jobs.check_sums(end)
        self._items.end()
        self.state.events.endings.clear()       # of what has not happened now
        self.state.errors.end_restore(self.state.queues.settings)
        self._end_fair()
        check(self._pulses == len(self.state.pulses.by_name), "pulses are missing")
        own = [name for name in self.state.pulses.by_name if name.startswith(OWN_PREFIX)]
        check(all(name in self.state.queues.of_pulse for name in own), "the pulse of a queue that does not have it")
        order_tickets(self.state.pulses)
        sessions = self.state.sessions.by_number
        check(self._sessions == len(sessions), "sessions are missing")
        check(all(number in sessions for number in self.state.queues.bound), "a queue is bound to no session")

    def _set_clone(self, frame: frames.CloneFrame) -> None:
        self.clone = frame
        pager = self.state.pager
        if pager is not None and not pager.resident:
            self.chunks = CloneBuffer(pager.pages)

    def _add_chunk(self, frame: frames.Chunk) -> None:
        self.chunks.add(frame.data)

    def _add_fragments(self, frame: frames.FragmentBytes) -> None:
        collected = self.state.fragments
        if collected is None:
            collected = self.state.fragments = Collected(frame.number, bytearray())
        check(frame.number == collected.number, "fragments of two operations")
        check(len(collected.data) + len(frame.data) <= limits.OPERATION_BYTES_MAX, "an operation is too large")
        collected.data += frame.data

    def _add_region(self, frame: frames.RegionFrame) -> None:
        self.state.promoted, self.state.fenced = frame.promoted, frame.fenced

    def _add_mirror(self, frame: frames.MirrorTable) -> None:
        check(not self._foreign, "a mirror from a client")
        pager = self.state.pager
        self.mirror = MirrorFrames(frame, SnapshotReader(self._level, pager=pager), pager)

    def _add_mirror_bytes(self, frame: frames.MirrorBytes) -> None:
        assert self.mirror is not None
        self.mirror.reader.feed(frame.data)

    def _add_part(self, frame: frames.PartBytes) -> None:
        assert self.mirror is not None
        self.mirror.part += frame.data

    def _add_arriving(self, frame: frames.ArrivingBytes) -> None:
        assert self.mirror is not None
        self.mirror.chunks.add(frame.data)

    _add: ClassVar[dict[type[frames.Frame], Callable[[_Builder, Any], None]]] = {
        frames.Head: _add_head,
        frames.Settings: _add_settings,
        frames.MapFrame: _add_map,
        frames.PulseTable: _add_pulse_table,
        frames.PulseRow: _add_pulse,
        frames.OldestIndex: _add_oldest,
        frames.QueueRows: _add_queues,
        frames.Waiting: _add_jobs,
        frames.Paged: _add_jobs,
        frames.NumberIndex: _add_jobs,
        frames.NumberedPaged: _add_jobs,
        frames.SeqRanks: _add_jobs,
        frames.GroupWaiting: _add_jobs,
        frames.GroupPaged: _add_jobs,
        frames.PageIndex: _add_jobs,
        frames.PagedDelayed: _add_jobs,
        frames.Delayed: _add_jobs,
        frames.Buried: _add_jobs,
        frames.Running: _add_jobs,
        frames.ItemRows: _add_items,
        frames.Released: _add_jobs,
        frames.ErrorRows: _add_jobs,
        frames.BindingRows: _add_bindings,
        frames.GroupRows: _add_group_settings,
        frames.FairTable: _add_fair,
        frames.FairRows: _add_groups,
        frames.RateRows: _add_rates,
        frames.UsedRows: _add_used,
        frames.CountedRows: _add_counted,
        frames.KeptRows: _add_kept,
        frames.RememberedRows: _add_remembered,
        frames.RecordIndex: _add_record_index,
        frames.RecordPages: _add_record_pages,
        frames.RecordRows: _add_records,
        frames.SessionTable: _add_session_table,
        frames.SessionRows: _add_sessions,
        frames.WorkerRows: _add_workers,
        frames.UserRows: _add_users,
        frames.CloneFrame: _set_clone,
        frames.Chunk: _add_chunk,
        frames.FragmentBytes: _add_fragments,
        frames.RegionFrame: _add_region,
        frames.MirrorTable: _add_mirror,
        frames.MirrorBytes: _add_mirror_bytes,
        frames.PartBytes: _add_part,
        frames.ArrivingBytes: _add_arriving,
        frames.EndFrame: _check_sums,
    }
