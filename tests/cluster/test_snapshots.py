"""Snapshots and the journal: written, chosen at the start, sent, received, and loaded as the library does it."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import random
import signal
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from sockpqd.cluster.journal.journal import Journal
from sockpqd.cluster.limits import SNAPSHOT_RETRY_S
from sockpqd.cluster.node import ClusterNode
from sockpqd.cluster.paging.page_files import PageFiles
from sockpqd.cluster.snapshots.snapshot_store import (
    FAILED,
    NOT_SERIALIZING,
    SERIALIZING,
    SUCCESS,
    SnapshotDamaged,
    SnapshotStore,
)
from sockpqd.cluster.storage.disk import Disk
from sockpqd.cluster.storage.fork import NICE
from sockpqd.core import PageLost
from tests.cluster.helpers.faulty_disk import Crash, FaultyDisk

Entry = tuple[bytes, int, int]

JOURNAL = Path("/data/journal")
SNAPSHOTS = Path("/data/snapshots")
PATIENCE_S = 60.0


class Counter:
    """A state machine: the list of applied commands."""

    def __init__(self) -> None:
        self.applied: list[bytes] = []

    def snapshot(self) -> Iterator[bytes]:
        yield b"%d\n" % len(self.applied)
        for command in self.applied:
            yield command + b"\n"

    def export(self, *, users: bool = False) -> Iterator[bytes]:
        return self.snapshot()

    def restore(self, chunks: Iterable[bytes]) -> None:
        count, *applied = b"".join(chunks).split(b"\n")[:-1]
        assert int(count) == len(applied)
        self.applied = applied


class Member:
    def __init__(self, name: str) -> None:
        self.id = name


class Node:
    """Journal, store and machine of one node, and what pysyncobj does with them."""

    def __init__(
        self, disk: Disk, *, fork: bool = False, root: Path = Path("/data"), segment_bytes: int = 1 << 16,
    ) -> None:
        self.now = 0.0
        self.machine = Counter()
        self.journal = Journal.open(root / "journal", disk, segment_bytes=segment_bytes)
        try:
            self.store = SnapshotStore.open(
                root / "snapshots", disk, self.journal, self.machine, fork=fork, clock=lambda: self.now,
                pages=PageFiles(root / "pages", disk),
            )
        except BaseException:
            self.journal.close()
            raise

    def propose(self, count: int, term: int = 1) -> None:
        """Append this many entries to the journal, sync, and apply them."""
        for _ in range(count):
            index = self.journal.last_index + 1
            self.journal.add(b"command-%d" % index, index, term)
            self.machine.applied.append(self.journal[-1][0])
        self.journal.sync()

    def begin_snapshot(self) -> int:
        prev, last = self.journal[-2:]
        self.store.serialize((None, last, prev, {Member("n2"), Member("n1")}), prev[1])
        return int(prev[1])

    def compact(self) -> None:
        """SyncObj.__tryLogCompaction, until the snapshot is there."""
        id_ = self.begin_snapshot()
        assert self.wait() == (SUCCESS, id_)
        self.journal.deleteEntriesTo(id_ - self.journal.first_index)
        self.journal.sync()

    def wait(self) -> tuple[int, int | None]:
        deadline = time.monotonic() + PATIENCE_S
        while (told := self.store.checkSerializing())[0] == SERIALIZING:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        return told

    def load(self, *, received: bool = False) -> list[bytes]:
        """Load as SyncObj.__loadDumpFile does, then apply the journal to its end. Returns the machine's state."""
        journal, applied = self.journal, 1
        if os.path.isfile(self.store.newest_path()):
            _, last, prev, _ = self.store.deserialize()
            if received or len(journal) < 2 or journal[0] != prev or journal[1] != last:
                journal.clear()
                journal.add(*prev)
                journal.add(*last)
            applied = last[1]
        else:
            self.machine.applied = [b"command-1"]
        assert applied >= journal.first_index
        for command, index, _ in journal[applied + 1 - journal.first_index:]:
            assert index == applied + 1
            self.machine.applied.append(command)
            applied = index
        return self.machine.applied

    def close(self) -> None:
        self.store.close()
        self.journal.close()


def fail(error: Exception) -> bytes:
    raise error


def commands(count: int) -> list[bytes]:
    return [b"command-%d" % index for index in range(1, count + 1)]


def files(disk: Disk, directory: Path = SNAPSHOTS) -> list[str]:
    return disk.names(directory)


def path(index: int) -> Path:
    return SNAPSHOTS / f"snapshot-{index:016d}"


def compacted(disk: Disk, *counts: int) -> None:
    """Return a node that wrote a snapshot after each of these numbers of entries but the last, then stopped."""
    node = Node(disk)
    for count in counts:
        node.propose(count - node.journal.last_index)
        if count != counts[-1]:
            node.compact()
    node.close()


class TestWriting:
    def test_nothing_is_known_of_a_snapshot_before_there_is_one(self) -> None:
        node = Node(FaultyDisk())
        assert node.store.checkSerializing() == (NOT_SERIALIZING, None)
        assert (node.store.newest_index, node.store.newest_bytes, node.store.newest_path()) == (0, 0, "")
        with pytest.raises(LookupError):
            node.store.open_newest()

    def test_it_holds_the_state_and_the_last_two_entries(self) -> None:
        disk = FaultyDisk()
        compacted(disk, 10, 12)
        node = Node(disk)
        assert node.store.newest_index == 10
        assert node.store.newest_bytes == len(disk.file(path(10)))
        assert node.store.deserialize() == (None, (b"command-10", 10, 1), (b"command-9", 9, 1), ["n1", "n2"])
        assert node.machine.applied == commands(10)

    def test_it_waits_for_the_journal_that_it_continues(self) -> None:
        node = Node(FaultyDisk())
        node.propose(10)
        node.journal.add(b"command-11", 11, 1)
        node.machine.applied.append(b"command-11")
        node.begin_snapshot()
        assert node.journal.durable_index == 11
        node.close()

    def test_the_last_two_are_kept_and_the_journal_reaches_back_to_the_older(self) -> None:
        disk = FaultyDisk()
        compacted(disk, 10, 20, 30, 40)
        assert files(disk) == [path(20).name, path(30).name]
        assert Node(disk).journal.first_index == 19

    def test_a_failed_one_leaves_nothing_and_is_not_tried_again_at_once(self, caplog: pytest.LogCaptureFixture) -> None:
        disk = FaultyDisk()
        node = Node(disk)
        node.propose(10)
        disk.fail["rename"] = OSError(errno.ENOSPC, "No space left on device")
        id_ = node.begin_snapshot()
        assert node.store.checkSerializing() == (FAILED, id_)
        assert "No space left on device" in caplog.text
        assert files(disk) == []
        assert node.store.checkSerializing() == (NOT_SERIALIZING, None)
        assert node.store.busy
        node.now += SNAPSHOT_RETRY_S
        assert not node.store.busy
        disk.fail.clear()
        node.compact()
        assert files(disk) == [path(10).name]

    def test_leftovers_of_a_crash_are_removed(self) -> None:
        disk = FaultyDisk()
        compacted(disk, 10, 12)
        for name in ("snapshot-0000000000000020-abc.tmp", "incoming-n2-abc.tmp"):
            disk.create(SNAPSHOTS / name)
        Node(disk)
        assert files(disk) == [path(10).name]


@pytest.fixture
def real(tmp_path: Path) -> Iterator[Node]:
    """Return a node with real files and real children, of which none outlives the test."""
    node = Node(Disk(), fork=True, root=tmp_path)
    yield node
    node.close()


class TestChild:
    """The same with real files and a real child."""

    def test_a_child_writes_it_while_the_node_goes_on(self, real: Node, tmp_path: Path) -> None:
        real.propose(100)
        id_ = real.begin_snapshot()
        assert real.store.busy
        real.begin_snapshot()               # pysyncobj may ask again: the first goes on
        real.propose(50)
        assert real.wait() == (SUCCESS, id_)
        assert real.store.checkSerializing() == (NOT_SERIALIZING, None)
        assert not real.store.busy
        real.close()
        node = Node(Disk(), root=tmp_path)
        assert node.store.newest_index == 100
        assert node.load() == commands(150)
        node.close()

    def test_a_child_that_is_killed_has_failed(
        self, real: Node, tmp_path: Path, caplog: pytest.LogCaptureFixture,
    ) -> None:
        real.propose(10)
        real.machine.snapshot = lambda: endless(tmp_path)  # type: ignore[method-assign]
        id_ = real.begin_snapshot()
        wait_for(tmp_path / "begun")
        os.kill(real.store._task.pid, signal.SIGKILL)  # type: ignore[union-attr]
        assert real.wait() == (FAILED, id_)
        assert "killed by signal 9" in caplog.text
        assert list((tmp_path / "snapshots").iterdir()) == []

    def test_what_goes_wrong_in_a_child_is_told(self, real: Node, caplog: pytest.LogCaptureFixture) -> None:
        real.propose(10)

        def broken() -> Iterator[bytes]:
            yield b"x"
            raise RuntimeError("out of cheese")

        real.machine.snapshot = broken  # type: ignore[method-assign]
        id_ = real.begin_snapshot()
        assert real.wait() == (FAILED, id_)
        assert "RuntimeError: out of cheese" in caplog.text

    def test_close_stops_the_child(self, real: Node, tmp_path: Path) -> None:
        real.propose(10)
        real.machine.snapshot = lambda: endless(tmp_path)  # type: ignore[method-assign]
        real.begin_snapshot()
        wait_for(tmp_path / "begun")
        pid = real.store._task.pid  # type: ignore[union-attr]
        real.close()
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
        assert list((tmp_path / "snapshots").iterdir()) == []

    def test_the_child_holds_nothing_open_and_is_nice(self, real: Node, tmp_path: Path) -> None:
        real.propose(10)
        real.machine.snapshot = lambda: endless(tmp_path)  # type: ignore[method-assign]
        real.begin_snapshot()
        wait_for(tmp_path / "begun")
        pid = real.store._task.pid  # type: ignore[union-attr]
        held = [os.readlink(f"/proc/{pid}/fd/{number}") for number in os.listdir(f"/proc/{pid}/fd") if int(number) > 2]
        assert sorted(name.split(":")[0] for name in held if "snapshot-" not in name) == ["pipe"]
        assert os.getpriority(os.PRIO_PROCESS, pid) == min(19, os.getpriority(os.PRIO_PROCESS, 0) + NICE)

    def test_without_descriptors_for_a_child_it_is_tried_again(
        self, real: Node, monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        real.propose(10)
        with monkeypatch.context() as none_left:
            none_left.setattr(os, "pipe", lambda: fail(OSError(errno.EMFILE, "Too many open files")))
            real.begin_snapshot()
        assert real.store.failing
        assert not real.store.lacked_space
        real.begin_snapshot()
        assert real.wait()[0] == SUCCESS

    def test_export_writes_the_stream_alone(self, real: Node, tmp_path: Path) -> None:
        real.propose(10)
        job = real.store.export(tmp_path / "export")
        real.propose(10)
        assert finished(job) == 0
        assert (tmp_path / "export").read_bytes() == b"10\n" + b"".join(line + b"\n" for line in commands(10))
        again = real.store.export(tmp_path / "export")
        assert finished(again) == 1
        assert "File exists" in again.error

    def test_a_page_that_an_export_could_not_read_stops_the_node(
        self, real: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """The child that reads it is not the node, whose state still lacks the jobs."""
        monkeypatch.setattr(real.store._machine, "export", lambda users: fail(PageLost("pages-00000001: damaged")))
        node = cast(ClusterNode, SimpleNamespace(_driver=SimpleNamespace(store=real.store)))
        with pytest.raises(OSError, match="could not be written"):
            asyncio.run(ClusterNode.export_snapshot(node, tmp_path / "export"))
        assert str(real.store.load_error) == "pages-00000001: damaged"


def endless(directory: Path) -> Iterator[bytes]:
    """A state that does not end while the test lasts, and a file that shows that the child has begun."""
    (directory / "begun").touch()
    for _ in range(int(PATIENCE_S / 0.01)):
        time.sleep(0.01)
        yield b"x"


def wait_for(file: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not file.exists():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def finished(job: object) -> int:
    deadline = time.monotonic() + PATIENCE_S
    while (status := job.poll()) is None:  # type: ignore[attr-defined]
        assert time.monotonic() < deadline
        time.sleep(0.005)
    return int(status)


class TestLoading:
    def test_a_restart_has_the_whole_state(self) -> None:
        disk = FaultyDisk()
        compacted(disk, 10, 20, 30, 45)
        node = Node(disk)
        assert node.load() == commands(45)
        assert node.journal.clears == 0
        assert node.journal.first_index == 29

    def test_entries_behind_the_snapshot_survive_a_crash_before_the_log_is_cut(self) -> None:
        disk = FaultyDisk()
        node = Node(disk)
        node.propose(10)
        node.begin_snapshot()
        node.propose(15)
        assert node.wait()[0] == SUCCESS        # here the process dies: deleteEntriesTo never comes
        node.close()
        node = Node(disk)
        assert node.load() == commands(25)
        assert node.journal.clears == 0
        node.journal.sync()
        node.close()
        assert Node(disk).journal.last_index == 25

    def test_without_alignment_they_would_be_lost(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Hazard H9b: shows that the test above can fail."""
        disk = FaultyDisk()
        node = Node(disk)
        node.propose(10)
        node.begin_snapshot()
        node.propose(15)
        assert node.wait()[0] == SUCCESS
        node.close()
        monkeypatch.setattr(Journal, "align", lambda self, position: None)
        assert Node(disk).load() == commands(10)

    def test_a_node_that_got_a_snapshot_but_not_its_journal_entries_goes_on_from_there(self) -> None:
        """A crash between the install and the next sync of the journal."""
        leader, follower = FaultyDisk(), FaultyDisk()
        compacted(leader, 50, 60)
        compacted(follower, 5)
        node = Node(follower)
        receive(Node(leader), node)
        node.close()                            # nothing of the journal was synced
        node = Node(follower)
        assert node.load() == commands(50)
        assert list(node.journal[:]) == [(b"command-49", 49, 1), (b"command-50", 50, 1)]

    def test_what_deserialize_raises_is_kept_for_the_driver(self) -> None:
        disk = FaultyDisk()
        compacted(disk, 10, 20)
        node = Node(disk)
        disk.read = lambda file, length, offset: fail(OSError(errno.EIO, "Input/output error"))  # type: ignore
        with pytest.raises(OSError, match="Input/output error"):
            node.store.deserialize()
        assert isinstance(node.store.load_error, OSError)

    def test_a_journal_that_disagrees_with_the_snapshot_is_not_used(self) -> None:
        disk = FaultyDisk()
        compacted(disk, 10, 20)
        node = Node(disk)
        node.store._journal = other = Journal.open(Path("/other"), disk)
        for index in range(1, 20):
            other.add(b"something else %d" % index, index, 1)
        with pytest.raises(SnapshotDamaged, match="disagree about entry 10"):
            node.store.deserialize()


class TestChoosing:
    def test_a_damaged_newest_one_is_replaced_by_the_older_and_the_journal(
        self, caplog: pytest.LogCaptureFixture,
    ) -> None:
        disk = FaultyDisk()
        compacted(disk, 10, 20, 30, 45)
        disk.file(path(30))[100] ^= 1
        with caplog.at_level(logging.ERROR):
            node = Node(disk)
        assert f"{path(30)} is damaged" in caplog.text
        assert "nothing is lost" in caplog.text
        assert node.load() == commands(45)
        assert node.journal.first_index == 19
        assert files(disk) == [path(20).name, f"{path(30).name}.damaged"]
        node.compact()
        assert files(disk) == [path(20).name, path(45).name]

    def test_a_damaged_only_one_is_replaced_by_the_whole_journal(self) -> None:
        disk = FaultyDisk()
        compacted(disk, 10, 25)
        disk.file(path(10))[50] ^= 1
        assert Node(disk).load() == commands(25)

    def test_damage_of_the_older_one_does_no_harm(self) -> None:
        disk = FaultyDisk()
        compacted(disk, 10, 20, 30)
        disk.file(path(10))[50] ^= 1
        assert Node(disk).load() == commands(30)

    def test_two_damaged_ones_are_refused_when_the_journal_does_not_reach_back(self) -> None:
        disk = FaultyDisk()
        compacted(disk, 10, 20, 30, 45)
        disk.file(path(20))[100] ^= 1
        disk.file(path(30))[100] ^= 1
        with pytest.raises(SnapshotDamaged, match=r"journal begins with entry 19, but .* no sound snapshot"):
            Node(disk)
        assert files(disk) == [path(20).name, path(30).name]

    def test_a_damaged_received_one_is_refused_because_the_older_state_lacks_promises(self) -> None:
        leader, follower = FaultyDisk(), FaultyDisk()
        compacted(leader, 50, 60)
        compacted(follower, 5, 8)
        node = Node(follower)
        receive(Node(leader), node)
        node.journal.sync()
        node.close()
        follower.file(path(50))[100] ^= 1
        with pytest.raises(SnapshotDamaged, match="is too old for the journal, which begins with entry 49"):
            Node(follower)

    def test_a_damaged_received_one_is_refused_also_when_the_journal_does_not_know_of_it(self) -> None:
        leader, follower = FaultyDisk(), FaultyDisk()
        compacted(leader, 50, 60)
        compacted(follower, 5, 8)
        node = Node(follower)
        receive(Node(leader), node)
        node.close()
        follower.file(path(50))[100] ^= 1
        with pytest.raises(SnapshotDamaged, match=r"is damaged: .*, and the journal ends before it"):
            Node(follower)

    def test_missing_snapshots_are_noticed(self) -> None:
        disk = FaultyDisk()
        compacted(disk, 10, 20, 30)
        for index in (10, 20):
            disk.unlink(path(index))
        with pytest.raises(SnapshotDamaged, match=r"journal begins with entry 9, but .* no sound snapshot"):
            Node(disk)

    def test_a_lost_journal_is_noticed(self) -> None:
        disk = FaultyDisk()
        compacted(disk, 10, 20, 30)
        for name in disk.names(JOURNAL):
            disk.unlink(JOURNAL / name)
        with pytest.raises(SnapshotDamaged, match=f"the journal is empty, but {path(20)} is there"):
            Node(disk)

    def test_an_older_snapshot_put_in_place_of_the_newer_ones_is_noticed(self) -> None:
        disk, old = FaultyDisk(), FaultyDisk()
        compacted(disk, 10, 20, 30, 45)
        compacted(old, 10, 20)
        for index in (20, 30):
            disk.unlink(path(index))
        disk.names_now[str(path(10))] = old.names_now[str(path(10))]
        with pytest.raises(SnapshotDamaged, match="is too old for the journal, which begins with entry 19"):
            Node(disk)

    def test_an_older_snapshot_that_the_journal_reaches_back_to_is_enough(self) -> None:
        disk = FaultyDisk()
        compacted(disk, 10, 20, 30, 45)
        disk.unlink(path(30))
        assert Node(disk).load() == commands(45)


def receive(sender: Node, receiver: Node, piece_bytes: int = 37) -> None:
    """Receive as snapshot_transfer.py does, and then the library."""
    outgoing = sender.store.open_newest()
    incoming = receiver.store.begin_incoming("n1")
    while data := outgoing.read(piece_bytes):
        incoming.write(data)
    assert incoming.offset == outgoing.size
    outgoing.close()
    index = sender.store.newest_index
    assert incoming.finish() == (index, 1)
    receiver.store.expect(incoming)
    assert receiver.store.setTransmissionData(receiver.store.getTransmissionData(None))
    assert receiver.load(received=True) == commands(index)


class TestReceiving:
    def test_a_received_snapshot_replaces_state_and_log(self) -> None:
        leader, follower = FaultyDisk(), FaultyDisk()
        compacted(leader, 50, 60)
        node = Node(follower)
        node.propose(5)
        receive(Node(leader), node)
        node.journal.sync()
        assert node.store.newest_index == 50
        node.close()
        node = Node(follower)
        assert node.load() == commands(50)
        assert follower.open_files == 1 + 2     # lock and two segments of the journal
        assert files(follower) == [path(50).name]

    def test_nothing_is_replaced_before_all_of_it_is_checked(self) -> None:
        leader, follower = FaultyDisk(), FaultyDisk()
        compacted(leader, 50, 60)
        outgoing = Node(leader).store.open_newest()
        whole = outgoing.read(outgoing.size)
        node = Node(follower)
        for broken in (whole[:-1], whole[:40], b"", whole[:60] + b"?" + whole[61:], whole + b"\0"):
            incoming = node.store.begin_incoming("n1")
            incoming.write(broken)
            with pytest.raises(SnapshotDamaged):
                incoming.finish()
            incoming.abort()
            assert files(follower) == []
        assert not node.store.setTransmissionData((b"", True, True))

    def test_the_sender_can_read_on_when_its_snapshot_is_replaced(self) -> None:
        disk = FaultyDisk()
        node = Node(disk)
        node.propose(50)
        node.compact()
        outgoing = node.store.open_newest()
        first = outgoing.read(100)
        for _ in range(3):
            node.propose(10)
            node.compact()
        assert path(50).name not in files(disk)
        rest = outgoing.read(1 << 20)
        other = Node(FaultyDisk())
        incoming = other.store.begin_incoming("n1")
        incoming.write(first + rest)
        assert incoming.finish() == (50, 1)

    def test_our_own_older_snapshot_under_way_is_dropped(self, real: Node, tmp_path: Path) -> None:
        leader = FaultyDisk()
        compacted(leader, 50, 60)
        real.propose(10)
        real.machine.snapshot = lambda: endless(tmp_path)  # type: ignore[method-assign]
        real.begin_snapshot()
        wait_for(tmp_path / "begun")
        pid = real.store._task.pid  # type: ignore[union-attr]
        receive(Node(leader), real, 1000)
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
        assert real.store.checkSerializing() == (NOT_SERIALIZING, None)
        assert files(Disk(), tmp_path / "snapshots") == [path(50).name]

    def test_abort_after_install_does_no_harm(self) -> None:
        leader, follower = FaultyDisk(), FaultyDisk()
        compacted(leader, 50, 60)
        node = Node(follower)
        outgoing = Node(leader).store.open_newest()
        incoming = node.store.begin_incoming("n1")
        incoming.write(outgoing.read(outgoing.size))
        incoming.finish()
        incoming.install()
        incoming.abort()
        assert files(follower) == [path(50).name]


@pytest.mark.parametrize("seed", range(6))
def test_power_can_fail_before_any_step_of_a_snapshot(seed: int) -> None:
    disk = FaultyDisk()
    compacted(disk, 10, 20, 25)
    for step in range(200):
        stopped = disk.clone()
        node = Node(stopped)
        node.load()
        stopped.crash_at = stopped.steps + step
        done = False
        try:
            node.propose(5)
            node.compact()
            node.propose(5)
            done = True
        except Crash:
            pass
        stopped.crash(random.Random(seed))
        node = Node(stopped)
        state = node.load()
        assert len(state) >= (35 if done else 25)
        assert state == commands(len(state))
        node.close()
        if done:
            return
    pytest.fail("the compaction never came to its end")


@pytest.mark.parametrize("seed", range(6))
def test_power_can_fail_before_any_step_of_an_install(seed: int) -> None:
    leader, disk = FaultyDisk(), FaultyDisk()
    compacted(leader, 50, 60)
    compacted(disk, 5, 8)
    for step in range(200):
        stopped = disk.clone()
        node = Node(stopped)
        node.load()
        stopped.crash_at = stopped.steps + step
        done = False
        try:
            receive(Node(leader.clone()), node, 500)
            node.journal.sync()
            done = True
        except Crash:
            pass
        stopped.crash(random.Random(seed))
        node = Node(stopped)
        assert node.load() in ([commands(50)] if done else [commands(8), commands(50)])
        node.close()
        if done:
            return
    pytest.fail("the install never came to its end")
