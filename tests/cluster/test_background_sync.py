"""The journal while a large frame is synced in the background: what is durable, and what a crash leaves."""

from __future__ import annotations

import errno
import random
from concurrent.futures import Future
from pathlib import Path

import pytest

from sockpqd.cluster import limits
from sockpqd.cluster.journal.journal import Journal
from sockpqd.cluster.storage.disk import Disk
from sockpqd.cluster.wire.messages import Heartbeat
from tests.cluster.helpers.faulty_disk import FaultyDisk
from tests.cluster.helpers.small_cluster import SmallCluster, SmallNode

DIRECTORY = Path("/journal")
LARGE = bytes(range(1, 201)) * 10
SMALL = b"small"


@pytest.fixture(autouse=True)
def _threshold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BACKGROUND_SYNC_BYTES", 1000)


@pytest.fixture
def journal(disk: FaultyDisk) -> Journal:
    journal = open_journal(disk)
    journal.add(SMALL, 1, 1)
    journal.sync()
    return journal


def open_journal(disk: FaultyDisk) -> Journal:
    return Journal.open(DIRECTORY, disk, segment_bytes=8192)


def begin(journal: Journal, disk: FaultyDisk, index: int = 2) -> None:
    """Add a large entry and begin to sync it."""
    disk.slow = True
    journal.add(LARGE, index, 1)
    assert not journal.sync_in_background()
    assert journal.syncing is not None


def after_crash(disk: FaultyDisk, seed: int) -> Journal:
    other = disk.clone()
    other.crash(random.Random(seed))
    return open_journal(other)


def test_a_small_frame_is_synced_at_once(journal: Journal, disk: FaultyDisk) -> None:
    disk.slow = True
    journal.add(SMALL, 2, 1)
    assert journal.sync_in_background()
    assert (journal.durable_index, journal.syncing) == (2, None)
    assert after_crash(disk, 1).last_index == 2


def test_a_large_frame_is_durable_when_its_sync_is_over(journal: Journal, disk: FaultyDisk) -> None:
    begin(journal, disk)
    assert not journal.poll_sync()
    assert (journal.last_index, journal.durable_index) == (2, 1)
    assert {after_crash(disk, seed).last_index for seed in range(20)} == {1, 2}
    disk.slow = False
    assert journal.poll_sync()
    assert (journal.durable_index, journal.syncing) == (2, None)
    assert {after_crash(disk, seed).last_index for seed in range(20)} == {2}
    assert not journal.poll_sync()


def test_what_changes_meanwhile_comes_into_the_next_frame(journal: Journal, disk: FaultyDisk) -> None:
    begin(journal, disk)
    journal.add(SMALL, 3, 1)
    assert not journal.sync_in_background()
    assert journal.unsynced
    disk.slow = False
    assert journal.sync_in_background()
    assert (journal.durable_index, journal.unsynced) == (3, False)
    assert after_crash(disk, 1).entry(3) == (SMALL, 3, 1)


def test_only_what_was_written_is_durable_when_the_sync_is_over(journal: Journal, disk: FaultyDisk) -> None:
    begin(journal, disk)
    journal.add(SMALL, 3, 1)
    disk.slow = False
    assert journal.poll_sync()
    assert journal.durable_index == 2


def test_sync_waits(journal: Journal, disk: FaultyDisk) -> None:
    begin(journal, disk)
    journal.setCurrentTerm(2, "n2")
    journal.sync()
    assert (journal.durable_index, journal.syncing) == (2, None)
    found = after_crash(disk, 1)
    assert (found.last_index, found.getCurrentTerm(), found.getVotedForNodeId()) == (2, 2, "n2")


def test_a_term_a_vote_and_the_right_to_vote_bind_until_they_are_in_a_frame(journal: Journal, disk: FaultyDisk) -> None:
    begin(journal, disk)
    assert not journal.binds
    for change in (lambda: journal.setCurrentTerm(2, "n2"), journal.set_voter):
        change()
        assert journal.binds
        journal.sync()
        assert not journal.binds


def test_an_entry_that_was_removed_meanwhile_is_not_durable(journal: Journal, disk: FaultyDisk) -> None:
    begin(journal, disk)
    journal.deleteEntriesFrom(1)
    journal.add(SMALL, 2, 2)
    disk.slow = False
    assert journal.poll_sync()
    assert journal.durable_index == 1
    journal.sync()
    assert journal.durable_index == 2
    assert after_crash(disk, 1).entry(2) == (SMALL, 2, 2)


def test_a_cleared_journal_has_nothing_durable(journal: Journal, disk: FaultyDisk) -> None:
    begin(journal, disk)
    journal.clear()
    journal.add(SMALL, 7, 2)
    disk.slow = False
    assert journal.poll_sync()
    assert journal.durable_index == 0
    journal.sync()
    assert (journal.durable_index, after_crash(disk, 1).first_index) == (7, 7)


def test_an_error_ends_the_journal(journal: Journal, disk: FaultyDisk) -> None:
    begin(journal, disk)
    disk.slow = False
    disk.fail["sync"] = OSError(errno.EIO, "Input/output error")
    with pytest.raises(OSError, match="Input/output"):
        journal.poll_sync()
    disk.fail.clear()
    assert journal.durable_index == 1
    with pytest.raises(OSError, match="Input/output"):
        journal.add(SMALL, 3, 1)


def test_the_next_segment_is_made_when_the_first_frame_of_this_one_is_durable(
    journal: Journal, disk: FaultyDisk,
) -> None:
    for index in range(2, 14):
        begin(journal, disk, index)
        journal.onOneSecondTimer()
        for seed in range(10):
            assert after_crash(disk, seed).last_index in (index - 1, index)
        disk.slow = False
        assert journal.poll_sync()
    assert len(disk.names(DIRECTORY)) > 4


def test_a_closed_journal_has_waited(journal: Journal, disk: FaultyDisk) -> None:
    disk.slow = True
    begin(journal, disk)
    journal.close()
    assert disk.open_files == 0


def test_real_files_are_synced_in_a_thread(tmp_path: Path) -> None:
    journal = Journal.open(tmp_path, Disk(), segment_bytes=1 << 16)
    try:
        journal.add(LARGE, 1, 1)
        assert not journal.sync_in_background()
        assert journal.syncing is not None
        journal.syncing.result(timeout=30)
        assert journal.poll_sync()
        assert journal.durable_index == 1
    finally:
        journal.close()


# A leader

LARGE_JOB = bytes(2000)


class StalledError(Exception):
    """The loop would stand still here."""


class Slow(Future[float]):
    """A sync that ends at some time, and lasts on the simulated clock of a cluster."""

    def __init__(self, cluster: SmallCluster, over_at: float, not_seen: int = 0) -> None:
        super().__init__()
        self._cluster = cluster
        self._over_at = over_at
        self._not_seen = not_seen           # so many looks come a moment too early
        self.waited_at: float | None = None

    def done(self) -> bool:
        if self._cluster.now < self._over_at:
            return False
        self._not_seen -= 1
        return self._not_seen < 0

    def result(self, timeout: float | None = None) -> float:
        if self._cluster.now < self._over_at:
            self.waited_at = self._cluster.now
            raise StalledError
        return 0.0


def slow_leader(over_in_s: float, not_seen: int = 0) -> tuple[SmallCluster, SmallNode, Slow]:
    """Return a leader whose background syncs end then."""
    cluster = SmallCluster(3)
    cluster.put_now()
    leader = cluster.leader()
    slow = Slow(cluster, cluster.now + over_in_s, not_seen)
    leader.disk.sync_in_background = lambda file: slow       # type: ignore[method-assign]
    return cluster, leader, slow


def test_a_leader_goes_on_and_answers_when_its_own_copy_is_durable() -> None:
    cluster, leader, _ = slow_leader(0.3)
    outcome = cluster.put(LARGE_JOB)
    cluster.run(0.29)
    assert outcome.state == "open"
    assert leader.up.journal.last_index == cluster.followers()[0].up.journal.last_index
    cluster.run(0.03)
    assert outcome.state == "applied"
    assert cluster.serving() is leader


@pytest.mark.parametrize("not_seen", [0, 1])
def test_it_answers_in_the_next_turn_whenever_it_sees_that(not_seen: int) -> None:
    cluster, leader, _ = slow_leader(0.02, not_seen)
    outcome = cluster.put(LARGE_JOB)
    cluster.filter = lambda source, target, message: not isinstance(message, Heartbeat)     # no answer reminds it
    cluster.run(0.021)
    for _ in range(2):
        cluster.turn(leader.name)
    assert outcome.state == "applied"


def test_it_falls_silent_when_its_disk_takes_as_long_as_an_election() -> None:
    cluster, leader, slow = slow_leader(1000.0)
    begun, outcome = cluster.now, cluster.put(LARGE_JOB)
    cluster.run_until(lambda: slow.waited_at is not None, 2.0)
    assert slow.waited_at is not None
    assert 0.5 < slow.waited_at - begun < 0.8
    assert isinstance(leader.failure, StalledError)
    assert outcome.state != "applied"
    cluster.put_now()
    assert cluster.serving() is not leader


def test_there_is_room_for_the_next_segment_while_it_is_not_made_yet(journal: Journal, disk: FaultyDisk) -> None:
    index, room = 2, journal.segments.room_bytes
    while len(disk.names(DIRECTORY)) < 4:
        begin(journal, disk, index)
        assert journal.segments.room_bytes > 8192
        disk.slow = False
        assert journal.poll_sync()
        index += 1
    assert room > 8192


@pytest.fixture
def covered(disk: FaultyDisk) -> Journal:
    """Return a journal of several segments, whose first entries the next removal takes away."""
    journal = open_journal(disk)
    for index in range(1, 31):
        journal.add(SMALL * 200, index, 1)
        journal.sync()
    journal.deleteEntriesTo(15)
    journal.sync()
    return journal


def assert_whole(disk: FaultyDisk, first: int) -> None:
    for seed in range(10):
        assert after_crash(disk, seed).first_index == first


def test_no_segment_goes_before_the_removal_of_its_entries_is_in_a_frame(covered: Journal, disk: FaultyDisk) -> None:
    begin(covered, disk, 31)
    covered.deleteEntriesTo(20)         # for the next frame
    disk.slow = False
    assert covered.poll_sync()
    assert "journal-00000001" in disk.names(DIRECTORY)
    assert_whole(disk, 1)
    covered.sync()
    assert "journal-00000001" not in disk.names(DIRECTORY)
    assert_whole(disk, 16)


def test_nor_while_that_frame_is_being_synced(covered: Journal, disk: FaultyDisk) -> None:
    covered.deleteEntriesTo(20)
    begin(covered, disk, 31)            # the removal is in this frame
    for _ in range(3):
        covered.onOneSecondTimer()
    assert "journal-00000001" in disk.names(DIRECTORY)
    for seed in range(10):
        assert after_crash(disk, seed).first_index in (1, 16)
    disk.slow = False
    assert covered.poll_sync()
    assert "journal-00000001" not in disk.names(DIRECTORY)
    assert_whole(disk, 16)
