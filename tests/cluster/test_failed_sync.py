"""After a failed sync nothing on the disk is trusted: Linux shows bytes that are not there, and syncs them no more."""

from __future__ import annotations

import errno
import os
import random
import signal
from pathlib import Path

import pytest

from sockpqd.cluster import limits
from sockpqd.cluster.damage.rejoin import Rejoin
from sockpqd.cluster.journal.journal import Journal
from sockpqd.cluster.settings import NodeSettings
from sockpqd.cluster.snapshots.snapshot_store import FAILED, SUCCESS
from sockpqd.cluster.storage.disk import NamesNotSynced
from sockpqd.cluster.storage.errors import JournalDamaged, SnapshotDamaged
from sockpqd.cluster.storage.fork import InlineTask
from sockpqd.core import Put
from tests.cluster import test_named_pages, test_snapshots
from tests.cluster.helpers.faulty_disk import Crash, FaultyDisk
from tests.cluster.helpers.memory_disk import MemoryDisk
from tests.cluster.helpers.small_cluster import SmallCluster
from tests.core.helpers.paging import small_collections

JOURNAL = Path("/journal")


def opened(disk: MemoryDisk | FaultyDisk) -> Journal:
    return Journal.open(JOURNAL, disk, segment_bytes=1 << 16)


def small(disk: FaultyDisk) -> Journal:
    """Return a journal of small segments."""
    return Journal.open(JOURNAL, disk, segment_bytes=4096)


def fill(journal: Journal, count: int) -> None:
    for _ in range(count):
        journal.add(bytes(range(1, 201)) * 4, journal.last_index + 1, 1)
        journal.sync()


def failed_journal(disk: MemoryDisk, lengths: tuple[int, ...] = (10,)) -> None:
    """Return the journal of a process that acknowledged entry 1, could not sync entries from 2 on, and ended."""
    journal = opened(disk)
    journal.add(b"acknowledged", 1, 1)
    journal.setCurrentTerm(1, "n2")
    journal.sync()
    for index, length in enumerate(lengths, 2):
        journal.add(b"x" * length, index, 1)
    disk.failing_syncs = 1
    with pytest.raises(OSError, match="Input/output error"):
        journal.sync()
    disk.end_process()


@pytest.mark.parametrize("lengths", [(10,), (3000,), (5000, 9000)], ids=["sector", "pages", "entries"])
def test_a_restarted_node_vouches_for_nothing_that_is_not_on_its_disk(lengths: tuple[int, ...]) -> None:
    disk = MemoryDisk()
    failed_journal(disk, lengths)
    journal = opened(disk)
    assert (journal.last_index, journal.durable_index) == (1, 1)
    journal.close()
    disk.crash()
    journal = opened(disk)
    assert (journal.last_index, journal.getCurrentTerm(), journal.getVotedForNodeId()) == (1, 1, "n2")


def test_its_journal_goes_on_from_there() -> None:
    disk = MemoryDisk()
    failed_journal(disk, (5000, 9000))
    journal = opened(disk)
    journal.add(b"another", 2, 3)
    journal.sync()
    disk.crash()
    journal = opened(disk)
    assert (journal.last_index, journal.entry(2)) == (2, (b"another", 2, 3))


def test_a_vote_that_could_not_be_synced_is_not_remembered_as_one() -> None:
    disk = MemoryDisk()
    opened(disk).close()
    journal = opened(disk)
    journal.setCurrentTerm(5, "n3")
    disk.failing_syncs = 1
    with pytest.raises(OSError, match="Input/output error"):
        journal.sync()
    disk.end_process()
    assert opened(disk).getCurrentTerm() == 0


def test_a_killed_process_leaves_frames_that_are_on_the_disk_before_they_are_believed() -> None:
    disk = FaultyDisk()
    journal = opened(disk)
    journal.add(b"synced", 1, 1)
    journal.sync()
    journal.add(b"killed", 2, 1)
    disk.crash_at = disk.steps + 1          # between its write and its sync
    with pytest.raises(Crash):
        journal.sync()
    disk.restart()
    assert opened(disk).durable_index == 2
    for seed in range(20):
        other = disk.clone()
        other.crash(random.Random(seed))
        assert opened(other).last_index == 2


@pytest.mark.parametrize("step", range(8))
def test_so_is_the_next_segment_with_its_name(step: int) -> None:
    disk = FaultyDisk()
    fill(small(disk), 2)
    disk.restart()
    journal = small(disk)
    disk.crash_at = disk.steps + step
    with pytest.raises(Crash):
        fill(journal, 8)                    # in which the next segment is made, and used
    disk.restart()
    disk.slow = True                        # the one after it comes later
    journal = small(disk)
    for seed in range(40):
        if seed % 5 == 0:
            fill(journal, 1)
        other = disk.clone()
        other.crash(random.Random(seed))
        assert small(other).last_index == journal.last_index


def test_a_disk_that_still_fails_is_not_believed() -> None:
    disk = MemoryDisk()
    failed_journal(disk)
    disk.failing = OSError(errno.EIO, "Input/output error")
    with pytest.raises(OSError, match="Input/output error"):
        opened(disk)


# Snapshots, pages and the note of a node that rejoins

def only_shown(disk: FaultyDisk, path: Path) -> None:
    """Show the file in the page cache, while the disk has nothing of it."""
    disk.names_now[str(path)].lose()
    disk.restart()


def test_a_snapshot_that_is_only_in_the_page_cache_is_not_loaded() -> None:
    disk = FaultyDisk()
    node = test_snapshots.Node(disk)
    for _ in range(2):
        node.propose(5)
        node.compact()
    older, newer = node.store.kept()
    only_shown(disk, node.store.path(newer))
    node = test_snapshots.Node(disk)
    assert (node.store.newest_index, node.journal.last_index) == (older, 10)


def test_a_page_that_is_only_in_the_page_cache_is_not_adopted(monkeypatch: pytest.MonkeyPatch) -> None:
    small_collections(monkeypatch)
    disk = FaultyDisk()
    node = test_named_pages.filled(test_named_pages.Log(), disk)
    number = max(node.pages.named[node.store.newest_index])
    only_shown(disk, Path(f"/data/pages/pages-{number:08}"))
    with pytest.raises(SnapshotDamaged, match="no sound snapshot before it"):
        test_named_pages.Node(node.log, disk)


def rejoining(disk: FaultyDisk) -> Rejoin:
    return Rejoin(disk, NodeSettings("n1", Path("/data"), "", (), "test", rejoin=True), lambda: 1_700_000_000)


def test_the_note_that_a_node_rejoins_is_on_the_disk_before_the_next_process_believes_it() -> None:
    disk = FaultyDisk()
    before = rejoining(disk)
    disk.fail["sync_directory"] = OSError(errno.EIO, "Input/output error")
    assert isinstance(before.order(JournalDamaged("damaged")), OSError)
    disk.fail.clear()
    disk.restart()
    assert rejoining(disk).waiting
    for seed in range(10):
        other = disk.clone()
        other.crash(random.Random(seed))
        assert rejoining(other).waiting


def test_a_note_that_is_only_in_the_page_cache_is_that_of_a_waiting_node() -> None:
    disk = FaultyDisk()
    note = Path("/data/rejoins")
    file = disk.create(note)
    disk.write(file, [b'{"waiting":false}'], 0)
    disk.sync(file)
    assert not rejoining(disk).waiting
    only_shown(disk, note)
    assert rejoining(disk).waiting


def test_a_child_that_was_killed_may_have_heard_that_pages_could_not_be_synced(monkeypatch: pytest.MonkeyPatch) -> None:
    small_collections(monkeypatch)
    node = test_named_pages.filled(test_named_pages.Log(), FaultyDisk())
    assert node.store.names_pages
    killed = InlineTask(lambda: None)
    monkeypatch.setattr(killed, "poll", lambda: -signal.SIGKILL)
    monkeypatch.setattr(node.store, "_start_task", lambda work: killed)
    assert node.compact() == FAILED
    assert not node.store.names_pages           # they are written again, to other files


def test_a_node_ends_whose_child_could_not_sync_the_directory_of_snapshots() -> None:
    disk = FaultyDisk()
    node = test_snapshots.Node(disk)
    node.propose(5)
    node.begin_snapshot()
    assert node.wait()[0] == SUCCESS
    node.propose(5)
    disk.fail["sync_directory"] = OSError(errno.EIO, "Input/output error")
    node.begin_snapshot()
    assert node.wait()[0] == FAILED
    assert isinstance(node.store.load_error, NamesNotSynced)


# Whole clusters

class LosesProcesses(SmallCluster):
    """A cluster in which a node that fails ends, but its machine continues."""

    def kill(self, name: str, *, power: bool = False) -> None:
        disk = self.nodes[name].disk
        crash = disk.crash
        disk.crash = crash if power else disk.end_process     # type: ignore[method-assign]
        super().kill(name)
        disk.crash = crash                                     # type: ignore[method-assign]


def lose_power(world: LosesProcesses, back: list[str]) -> None:
    """Cut the power of the whole site; only these machines come back."""
    for name in world.nodes:
        if world[name].driver is not None:
            world.kill(name, power=True)
        else:
            world[name].disk.crash()
    world.heal()
    for name in back:
        world.start(name)


def test_what_a_client_was_answered_survives_a_failed_sync_and_a_loss_of_power_and_of_a_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "REENTRY_S", 0.1)       # it counts again before the leader gives up
    world = LosesProcesses(sleeps=False)
    leader = world.leader().name
    world.put_now(b"first")
    world.run(1)
    failing, away = (node.name for node in world.followers())
    world.cut(away, f"{leader} {failing}")
    world.run(0.05)
    world[failing].disk.failing_syncs = 1
    outcome = world[leader].propose(Put("q", 0, b"precious"))
    world.run(0.05)
    assert isinstance(world[failing].failure, OSError)
    assert outcome.state == "open"
    world.start(failing)
    world.run_until(lambda: outcome.state != "open", 3)
    assert outcome.state == "applied"
    lose_power(world, [failing, away])
    world.run_until(world.serving)
    assert world.bodies(world.leader().name) == [b"first", b"precious"]


def cut_off(world: LosesProcesses) -> tuple[str, str, str]:
    """Cut off a follower for long: the others know more than their journals; returns leader, other and it."""
    leader = world.leader().name
    other, away = (node.name for node in world.followers())
    world.cut(away, f"{leader} {other}")
    for number in range(6):
        world.put_now(b"%d" % number)
        if number % 2:
            world.run(0.2)
            for name in (leader, other):
                world[name].up.replica.compact()
                world.run(0.2)
    assert world[leader].up.journal.first_index > world[away].up.journal.last_index
    return leader, other, away


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
def test_a_received_snapshot_that_cannot_be_synced_is_never_believed(number: int) -> None:
    world = LosesProcesses()
    leader, other, away = cut_off(world)
    disk = world[away].disk
    disk.failing_syncs, disk.sync_error = 1, OSError(number, os.strerror(number))
    disk.failing_folder = "/snapshots/"
    world.heal()
    world.run(1)
    assert disk.failing_syncs == 0
    if number == errno.EIO:
        assert isinstance(world[away].failure, OSError)
        world.start(away)
    else:
        assert world[away].failure is None          # a file that nobody needs any more
    world.run(10)
    assert world[away].up.store.taken_over == 1
    world.put_now(b"last")
    world.cut(other, f"{leader} {away}")
    world.put_now(b"precious")
    lose_power(world, [other, away])
    world.run_until(world.serving)
    assert world.bodies(world.leader().name) == [b"0", b"1", b"2", b"3", b"4", b"5", b"last", b"precious"]


def test_a_snapshot_that_cannot_be_synced_costs_no_entry_of_the_journal() -> None:
    world = LosesProcesses()
    _, other, away = cut_off(world)
    first = world[other].up.journal.first_index
    world.put_now(b"last")
    world.run(0.3)
    disk = world[other].disk
    disk.failing_syncs, disk.failing_folder = 1, "/snapshots/"
    world[other].up.replica.compact()
    world.run(0.3)
    assert disk.failing_syncs == 0
    assert world[other].up.journal.first_index == first
    world.kill(other)
    world.start(other)
    world.run(1)
    lose_power(world, [other, away])
    world.run_until(world.serving, 60)
    assert world.bodies(world.leader().name) == [b"0", b"1", b"2", b"3", b"4", b"5", b"last"]


def test_a_failed_sync_is_told_again_although_nothing_is_left_to_write() -> None:
    """Who waits for the sync later, to acknowledge, must not believe that all is durable."""
    disk = FaultyDisk()
    journal = opened(disk)
    disk.slow = True
    journal.add(b"entry", 1, 1)
    assert not journal.sync_in_background(from_bytes=1)
    disk.slow = False
    disk.fail["sync"] = OSError(errno.EIO, os.strerror(errno.EIO))
    for sync in (journal.poll_sync, journal.sync, journal.sync_in_background):
        with pytest.raises(OSError, match="Input/output error"):
            sync()
    assert journal.durable_index == 0


def test_a_snapshot_does_not_hide_that_the_journal_was_not_synced() -> None:
    """It begins with a sync of the journal: when that fails the node ends, where a snapshot would be tried again."""
    disk = FaultyDisk()
    node = test_snapshots.Node(disk)
    node.propose(2)
    disk.slow = True
    node.journal.add(b"entry", 3, 1)
    node.machine.applied.append(node.journal[-1][0])
    assert not node.journal.sync_in_background(from_bytes=1)
    disk.slow = False
    disk.fail["sync"] = OSError(errno.EIO, os.strerror(errno.EIO))
    with pytest.raises(OSError, match="Input/output error"):
        node.begin_snapshot()
    assert node.journal.durable_index == 2
