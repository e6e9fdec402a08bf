"""Snapshots by reference: what they name stays, is durable and is checked, and other nodes get whole ones."""

from __future__ import annotations

import errno
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sockpqd.cluster.damage.scrubber import FileToRead, examine
from sockpqd.cluster.journal.journal import Journal
from sockpqd.cluster.limits import SNAPSHOT_RETRY_S
from sockpqd.cluster.paging import file_space
from sockpqd.cluster.paging.page_files import PageFiles
from sockpqd.cluster.snapshots.snapshot_file import SnapshotFile
from sockpqd.cluster.snapshots.snapshot_store import (
    FAILED,
    NOT_SERIALIZING,
    SERIALIZING,
    SUCCESS,
    SnapshotDamaged,
    SnapshotStore,
)
from sockpqd.cluster.storage.disk import Disk
from sockpqd.cluster.storage.fork import InlineTask
from sockpqd.core import (
    Due,
    End,
    Get,
    GetWith,
    How,
    Machine,
    Operation,
    Pager,
    Pages,
    Purged,
    PurgeQueue,
    Put,
    PutWith,
)
from sockpqd.core.pages.pager import Stage
from tests.cluster.helpers.faulty_disk import Crash, FaultyDisk
from tests.core.helpers.paging import small_collections

FOLDER = Path("/data/pages")
SNAPSHOTS = Path("/data/snapshots")
KEEP_LITTLE = (Stage(1, 3, 1),)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    small_collections(monkeypatch)
    monkeypatch.setattr(file_space, "SEGMENT_BYTES", 1000)
    monkeypatch.setattr(file_space, "WRITE_BYTES", 100)


class Log:
    """The entries that all nodes apply; entry 1 is empty."""

    def __init__(self) -> None:
        self.entries: list[list[Operation]] = [[]]

    def add(self, *operations: Operation) -> None:
        self.entries.append([*operations])

    def put(self, count: int) -> None:
        puts = [Put("q", 0, b"%d of entry %d" % (number, len(self.entries))) for number in range(count)]
        whens = [None if number % 2 else Due(10**9 * (number * 7 % 10 + 1)) for number in range(count)]
        self.add(*[put if when is None else PutWith(put, when) for put, when in zip(puts, whens, strict=True)])

    def take(self, count: int) -> None:
        self.add(GetWith(Get(None), count))

    def state(self) -> bytes:
        """Return the final state of a node without pages."""
        machine = Machine()
        apply(machine, self, len(self.entries))
        return b"".join(machine.snapshot())


def apply(machine: Machine, log: Log, end: int) -> None:
    for index in range(machine.index + 1, end + 1):
        machine.apply(index, 1000 + index, index, log.entries[index - 1])


class Node:
    """The journal, the snapshots, the machine and the page files of one process."""

    def __init__(self, log: Log, disk: Disk, *, fork: bool = False, resident: bool = False, root: Path = Path("/data")):
        self.log = log
        self.now = 0.0
        self.pages = PageFiles(root / "pages", disk)
        self.machine = Machine(None, lambda: Pager(Pages(self.pages), 0, KEEP_LITTLE, resident=resident))
        self.journal = Journal.open(root / "journal", disk, segment_bytes=1 << 16)
        try:
            self.store = SnapshotStore.open(root / "snapshots", disk, self.journal, self.machine, fork=fork,
                                            clock=lambda: self.now, pages=self.pages)
        except BaseException:
            self.journal.close()
            raise
        if self.store.newest_index:
            self.store.deserialize()
        self.follow(self.journal.last_index)

    def follow(self, end: int = 0) -> None:
        """Take new entries of the log into the journal, apply them, and page out all that can be."""
        end = end or len(self.log.entries)
        for index in range(self.journal.last_index + 1, end + 1):
            self.journal.add(b"entry %d" % index, index, 1)
        self.journal.sync()
        apply(self.machine, self.log, end)
        while self.machine.page_out() or self.pages.tidy():
            pass

    def begin(self) -> int:
        prev, last = self.journal[-2:]
        self.store.serialize((None, last, prev, set()), prev[1])
        return int(prev[1])

    def compact(self) -> int:
        """Write a snapshot and cut the journal; returns the outcome."""
        number = self.begin()
        while (told := self.store.checkSerializing())[0] == SERIALIZING:
            pass
        if told[0] == SUCCESS:
            self.journal.deleteEntriesTo(number - self.journal.first_index)
            self.journal.sync()
        return told[0]

    def state(self) -> bytes:
        return b"".join(self.machine.snapshot())

    def by_reference(self) -> list[bool]:
        """Return of each kept snapshot whether it names pages."""
        return [bool(self.pages.named.get(index)) for index in self.store.kept()]

    def close(self) -> None:
        self.store.close()
        self.journal.close()


@pytest.fixture
def log() -> Log:
    return Log()


def filled(log: Log, disk: Disk, **options: Any) -> Node:
    """Return a node with two snapshots by reference, and jobs put and taken after them."""
    node = Node(log, disk, **options)
    for _ in range(2):
        log.put(60)
        log.take(7)
        node.follow()
        assert node.compact() == SUCCESS
    assert node.by_reference() == [True, True]
    log.put(20)
    log.take(5)
    node.follow()
    return node


def power_loss(disk: FaultyDisk, seed: int = 1) -> None:
    disk.crash(random.Random(seed))


def test_the_next_process_goes_on_with_the_pages(log: Log, disk: FaultyDisk) -> None:
    filled(log, disk)
    power_loss(disk)
    node = Node(log, disk)
    assert node.machine.pages is not None
    assert node.machine.pages.read < 10
    assert node.machine.pages.jobs > 100
    assert node.state() == log.state()
    log.take(130)
    node.follow()
    assert node.state() == log.state()


@pytest.mark.parametrize("seed", range(4))
def test_power_may_fail_at_any_step(seed: int, log: Log) -> None:
    chance = random.Random(seed)
    for step in range(chance.randrange(4), 90, 4):
        disk = FaultyDisk()
        node = filled(log, disk)
        log.put(10)
        log.take(chance.randrange(60))
        disk.crash_at = disk.steps + step
        try:
            node.follow()
            node.compact()
            log.take(chance.randrange(30))
            node.follow()
            node.compact()
        except Crash:
            pass
        power_loss(disk, step)
        node = Node(log, disk)
        node.follow()
        assert node.state() == log.state()
        node.compact()
        disk.restart()
        node = Node(log, disk)
        assert node.state() == log.state()
        log.entries[1:] = []


def test_files_stay_as_long_as_a_snapshot_names_them(log: Log, disk: FaultyDisk) -> None:
    node = filled(log, disk)
    named = {number for numbers in node.pages.named.values() for number in numbers}
    log.take(1000)
    log.add(PurgeQueue("q", Purged.DELAYED), End(tuple(range(1, 200)), How.DONE))
    node.follow()
    present = {int(name.removeprefix("pages-")) for name in disk.names(FOLDER)}
    assert named <= present
    assert not named & set(node.pages.segments) - {max(node.pages.segments, default=0)}
    assert node.pages.count == len(present)
    for _ in range(2):
        log.put(1)
        node.follow()
        assert node.compact() == SUCCESS
    assert len(disk.names(FOLDER)) <= 1
    assert node.state() == log.state()


def test_the_file_that_is_written_stays_if_a_snapshot_names_it_though_nothing_lives_in_it(
    log: Log, disk: FaultyDisk,
) -> None:
    node = Node(log, disk)
    log.add(*[Put("q", 0, b"%d" % number) for number in range(60)])
    node.follow()
    assert node.compact() == SUCCESS
    state = node.state()
    names = set(disk.names(FOLDER))
    log.take(1000)
    apply(node.machine, log, len(log.entries))          # what is not in the journal yet is lost
    assert (node.pages.live_bytes, node.pages.held_bytes > 0) == (0, True)
    assert names <= set(disk.names(FOLDER))
    power_loss(disk)
    log.entries[2:] = []
    assert Node(log, disk).state() == state


class Later(InlineTask):
    """A task that is done when its progress is asked for the second time, as a child is."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._asked = False

    def poll(self) -> int | None:
        if not self._asked:
            self._asked = True
            return None
        super().__init__(self._work)
        return super().poll()


def test_older_snapshots_are_given_up_while_one_is_written(log: Log, disk: FaultyDisk) -> None:
    """Its pages stay: it is the only snapshot after the next release."""
    node = filled(log, disk)
    node.store._start_task = Later                  # type: ignore[assignment]
    node.begin()
    assert node.store.checkSerializing()[0] == SERIALIZING
    node.store.release()
    assert node.store.checkSerializing()[0] == SUCCESS
    newest = node.store.newest_index
    assert node.pages.named[newest]
    node.store.release()
    log.take(1000)
    node.follow()                                   # frees the files that no snapshot names
    assert node.store.kept() == [newest]
    power_loss(disk)
    again = Node(log, disk)
    assert again.store.newest_index == newest
    assert again.state() == log.state()


def test_a_node_that_is_short_of_room_goes_on_from_the_newest_snapshot_alone(log: Log, disk: FaultyDisk) -> None:
    node = filled(log, disk)
    only_older = set.difference(*[set(node.pages.named[index]) for index in node.store.kept()])
    log.take(1000)
    log.add(PurgeQueue("q", Purged.DELAYED), End(tuple(range(1, 200)), How.DONE))
    node.follow()
    newest = node.store.newest_index
    assert node.store.older_bytes > 0
    node.store.release()
    node.journal.release()
    node.journal.sync()
    assert (node.store.kept(), node.store.older_bytes, node.journal.first_index) == ([newest], 0, newest - 1)
    assert not only_older & {int(name.removeprefix("pages-")) for name in disk.names(FOLDER)}
    power_loss(disk)
    again = Node(log, disk)
    assert again.state() == log.state()
    again.close()
    disk.file(SNAPSHOTS / f"snapshot-{newest:016}")[40] ^= 2
    with pytest.raises(SnapshotDamaged, match=r"too old for the journal|no sound snapshot"):
        Node(log, disk)                 # so it is a node whose files are damaged, and rejoins the others


def test_a_snapshot_reads_no_page(log: Log, disk: FaultyDisk) -> None:
    node = filled(log, disk)
    assert node.machine.pages is not None
    before = node.machine.pages.read
    assert node.compact() == SUCCESS
    assert node.machine.pages.read == before


def test_files_of_a_snapshot_that_was_not_completed_are_removed(log: Log, disk: FaultyDisk) -> None:
    node = filled(log, disk)
    before = set(disk.names(FOLDER))
    log.put(200)
    node.follow()
    disk.crash_at = disk.steps + 6
    with pytest.raises(Crash):
        node.compact()
    disk.crash(random.Random(3))
    node = Node(log, disk)
    kept = {number for numbers in node.pages.named.values() for number in numbers}
    names = {int(name.removeprefix("pages-")) for name in disk.names(FOLDER)}
    assert names == kept | set(node.pages.segments)
    assert before
    assert node.state() == log.state()


def test_a_file_that_cannot_be_synced_is_written_again(log: Log, disk: FaultyDisk) -> None:
    node = filled(log, disk)
    log.put(40)
    node.follow()
    before = set(node.pages.segments)
    unsynced = {number for number, one in node.pages.segments.items() if one.synced < one.written}
    assert unsynced
    failing = disk.sync
    page = {segment.file for segment in node.pages.segments.values()}

    def sync(file: int) -> None:
        if file in page:
            raise OSError(errno.EIO, "Input/output error")
        failing(file)
    disk.sync = sync        # type: ignore[method-assign]
    assert node.compact() == FAILED
    disk.sync = failing     # type: ignore[method-assign]
    assert not node.store.names_pages
    node.now += SNAPSHOT_RETRY_S + 1
    log.put(1)
    apply(node.machine, log, len(log.entries))
    node.journal.add(b"more", len(log.entries), 1)
    node.journal.sync()
    assert node.compact() == SUCCESS
    assert node.by_reference() == [True, False]
    node.follow()
    assert not unsynced & set(node.pages.segments)
    assert before
    log.put(1)
    node.follow()
    assert node.compact() == SUCCESS
    assert node.by_reference() == [False, True]
    power_loss(disk)
    assert Node(log, disk).state() == log.state()


def flip(disk: FaultyDisk, file: Path) -> None:
    disk.file(file)[40] ^= 2


def cut(disk: FaultyDisk, file: Path) -> None:
    del disk.file(file)[-3:]


def lose(disk: FaultyDisk, file: Path) -> None:
    disk.unlink(file)
    disk.sync_directory(file.parent)


DAMAGES = pytest.mark.parametrize("damage", [flip, cut, lose])


@DAMAGES
def test_damage_of_a_named_page_is_found_at_the_start(
    damage: Callable[[FaultyDisk, Path], None], log: Log, disk: FaultyDisk,
) -> None:
    node = filled(log, disk)
    both = frozenset.intersection(*node.pages.named.values())
    node.close()
    damage(disk, FOLDER / f"pages-{min(both):08}")
    with pytest.raises(SnapshotDamaged, match="no sound snapshot"):
        Node(log, disk)


@DAMAGES
def test_an_older_snapshot_takes_the_place_of_one_with_a_damaged_page(
    damage: Callable[[FaultyDisk, Path], None], log: Log, disk: FaultyDisk,
) -> None:
    node = filled(log, disk)
    older, newer = [node.pages.named[index] for index in node.store.kept()]
    node.close()
    damage(disk, FOLDER / f"pages-{max(newer - older):08}")
    node = Node(log, disk)
    assert node.state() == log.state()


def test_the_scrubber_reads_the_pages(log: Log, disk: FaultyDisk) -> None:
    node = filled(log, disk)
    index = node.store.kept()[-1]
    given = FileToRead(node.store.path(index), 0, b"", 0)
    assert examine(disk, given, FOLDER) is None
    file = FOLDER / f"pages-{min(node.pages.named[index]):08}"
    disk.file(file)[40] ^= 2
    finding = examine(disk, given, FOLDER)
    assert finding is not None
    assert file.name in finding.what
    opened = disk.open

    def removed_meanwhile(path: Path, *, writable: bool = False) -> int:
        if path.parent == FOLDER and given.path.name in disk.names(SNAPSHOTS):
            disk.unlink(given.path)
            disk.unlink(path)
        return opened(path, writable=writable)
    disk.open = removed_meanwhile       # type: ignore[method-assign]
    assert examine(disk, given, FOLDER) is None


def test_another_node_gets_a_whole_snapshot(log: Log, disk: FaultyDisk) -> None:
    node = filled(log, disk)
    assert node.store.open_newest() is None
    assert node.store.checkSerializing() == (NOT_SERIALIZING, None)
    assert node.by_reference() == [True, False]
    whole = Machine()
    apply(whole, log, node.store.newest_index)
    restored = Machine()
    file = SnapshotFile(disk, node.store.path(node.store.newest_index))
    restored.restore(file.stream())
    file.close()
    assert list(restored.snapshot()) == list(whole.snapshot())
    source = node.store.open_newest()
    assert source is not None
    other = Node(log, FaultyDisk())
    incoming = other.store.begin_incoming("n1")
    while data := source.read(1000):
        incoming.write(data)
    source.close()
    assert node.store.sending == 0
    index, _ = incoming.finish()
    incoming.install()
    assert other.machine.index == index
    apply(other.machine, log, len(log.entries))
    assert other.state() == log.state()


def test_a_snapshot_for_whose_pages_there_is_no_room_lacks_room(log: Log, disk: FaultyDisk) -> None:
    node = filled(log, disk)
    disk.fail["write"] = OSError(errno.ENOSPC, "No space left on device")
    log.put(1)
    apply(node.machine, log, len(log.entries))
    node.machine.page_out()
    assert node.compact() in (FAILED, NOT_SERIALIZING)
    assert node.store.lacks_space


def test_pages_of_another_node_are_refused(log: Log, disk: FaultyDisk) -> None:
    node = filled(log, disk)
    other = Node(log, FaultyDisk())
    incoming = other.store.begin_incoming("n1")
    incoming.write(bytes(disk.file(node.store.path(node.store.newest_index))))
    with pytest.raises(SnapshotDamaged, match="of another node"):
        incoming.finish()


def test_without_a_budget_the_jobs_come_back_into_memory(log: Log, disk: FaultyDisk) -> None:
    filled(log, disk).close()
    node = Node(log, disk, resident=True)
    assert node.state() == log.state()
    assert node.machine.pages is not None
    assert node.machine.pages.count == 0
    for _ in range(2):
        log.put(1)
        node.follow()
        assert node.compact() == SUCCESS
    assert node.by_reference() == [False, False]
    assert disk.names(FOLDER) == []
    node.close()
    assert Node(log, disk).state() == log.state()


def test_files_do_not_become_ever_more_with_restarts(log: Log, disk: FaultyDisk) -> None:
    filled(log, disk).close()
    for _ in range(12):
        node = Node(log, disk)
        log.put(3)
        node.follow()
        assert node.compact() == SUCCESS
        node.close()
    node = Node(log, disk)
    node.follow()
    assert node.state() == log.state()
    assert sum(4 * one.size < file_space.SEGMENT_BYTES for one in node.pages.segments.values()) <= 1


def test_a_forked_child_syncs_what_it_names(log: Log, tmp_path: Path) -> None:
    node = Node(log, Disk(), fork=True, root=tmp_path)
    log.put(60)
    node.follow()
    assert node.compact() == SUCCESS
    assert node.by_reference() == [True]
    assert all(segment.synced == segment.written for segment in node.pages.segments.values())
    log.put(5)
    node.follow()
    node.close()
    node = Node(log, Disk(), fork=True, root=tmp_path)
    assert node.state() == log.state()
    node.close()


def test_a_whole_snapshot_for_another_node_is_tried_once(log: Log, disk: FaultyDisk) -> None:
    """This disk may be too small for it; those that follow name pages again, so that the journal can be cut."""
    node = Node(log, disk)
    log.put(60)
    node.follow()
    node.store.whole_for_peer = True
    failing = disk.write

    def write(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")
    disk.write = write          # type: ignore[method-assign]
    assert node.compact() == FAILED
    disk.write = failing        # type: ignore[method-assign]
    node.now += SNAPSHOT_RETRY_S + 1
    assert node.compact() == SUCCESS
    assert node.by_reference() == [True]
    node.close()


def test_a_child_that_outlives_its_node_names_no_pages(log: Log, tmp_path: Path) -> None:
    node = Node(log, Disk(), fork=True, root=tmp_path)
    log.put(60)
    node.follow()
    node.store._process = 1         # somebody else's child
    assert node.compact() == FAILED
    assert node.store.kept() == []
    node.close()
