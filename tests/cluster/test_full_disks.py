"""Full disks: a node's behaviour while it can log little or nothing, and its recovery without help."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from sockpqd.cluster import limits
from sockpqd.cluster.capacity import Capacity
from sockpqd.cluster.damage.rejoin import Rejoin
from sockpqd.cluster.leader.leadership import Leadership
from sockpqd.cluster.paging.page_files import PageFiles
from sockpqd.cluster.raft.quorum import Quorum
from sockpqd.cluster.settings import NodeSettings
from sockpqd.cluster.storage.ballast import Ballast
from sockpqd.cluster.storage.errors import NoRoom, RejoinNeeded
from sockpqd.cluster.wire.messages import Ack, Message, SnapshotChunk
from sockpqd.core import FIRST_LEVEL, Done, Get, Handed, Put, Request, SwitchService
from sockpqd.core.ops.replies import SessionOpened
from sockpqd.core.ops.sessions import OpenSession
from tests.cluster.helpers.memory_disk import PLENTY_BYTES, MemoryDisk
from tests.cluster.helpers.small_cluster import Outcome, SmallCluster, SmallNode
from tests.cluster.test_hazards import lagging, snapshot_everywhere

BODY = bytes(range(256)) * 80       # 20 KiB: fifty of them fill a segment
HOLD_MS = 5000
STEP = 1 << 18
RESERVE = 1 << 17
SOON_S = 5.0                        # after there is room again all must serve


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use ballast in proportion to the segments of these tests, of 1 MiB."""
    monkeypatch.setattr(limits, "BALLAST_STEP_BYTES", STEP)
    monkeypatch.setattr(limits, "RESERVE_BYTES", RESERVE)


def fill(world: SmallCluster, *names: str) -> None:
    """Take all free space of these nodes' disks."""
    for name in names:
        world[name].disk.free_bytes = 0


def empty(world: SmallCluster, *names: str) -> None:
    for name in names:
        world[name].disk.free_bytes = PLENTY_BYTES


def put_until(
    world: SmallCluster, enough: Callable[[], bool], outcomes: list[Outcome] | None = None, attempts: int = 400,
) -> list[Outcome]:
    """Put jobs until the condition holds; returns their outcomes, after the given `outcomes`."""
    outcomes = [] if outcomes is None else outcomes
    for _ in range(attempts):
        if enough():
            return outcomes
        node = world.serving()
        if node is not None:
            outcomes.append(node.propose(Put("q", 0, BODY)))
        world.run(0.05)
    raise AssertionError(f"not after {attempts} jobs")


def applied(outcomes: list[Outcome]) -> int:
    return sum(outcome.state == "applied" for outcome in outcomes)


def nothing_lost(world: SmallCluster, outcomes: list[Outcome]) -> None:
    """Assert that nobody has ended, all are equal, and every acknowledged job exists."""
    assert [node.failure for node in world] == [None] * len(world.nodes)
    assert len(world.states()) == 1
    assert len(world.bodies(world.leader().name)) >= applied(outcomes)
    assert not [outcome for outcome in outcomes if outcome.state == "open"]


def answered(world: SmallCluster, outcome: Outcome) -> Outcome:
    world.run_until(lambda: outcome.state != "open")
    return outcome


def test_a_node_alone_refuses_all_before_its_disk_is_full_to_the_last_byte_and_goes_on_by_itself() -> None:
    world = SmallCluster(1)
    node = world.leader()
    fill(world, "n1")
    puts = put_until(world, lambda: node.up.full)
    assert applied(puts) > 20
    assert node.up.leadership.serving               # what removes jobs goes on
    put_until(world, lambda: not node.up.leadership.serving, puts)
    assert node.propose(Get(("q",))).state == "refused"
    assert node.up.journal.segments.room_bytes > (1 << 20) / 16
    world.run(60)
    assert not node.up.leadership.serving
    empty(world, "n1")
    world.leader(SOON_S)
    assert not node.up.full
    world.put_now()
    nothing_lost(world, puts)


def test_a_full_follower_takes_no_entries_and_is_no_burden() -> None:
    world = SmallCluster(3)
    leader = world.leader()
    follower, other = world.followers()
    fill(world, follower.name)
    puts = put_until(world, lambda: follower.up.capacity.exhausted)
    put_until(world, lambda: applied(puts) > 120, puts)      # several segments
    assert world.leader() is leader
    assert follower.up.journal.durable_index < leader.up.journal.last_index
    assert follower.up.journal.segments.room_bytes >= (1 << 20) / 16
    assert not follower.up.capacity.stuck
    elections = follower.up.transport.elections.begun
    sent = len(world.sent)
    world.run(10)
    assert follower.up.transport.elections.begun == elections       # it hears its leader
    world.sent = world.sent[sent:]
    asked = [m for source, _, m in world.sent if source == follower.name and isinstance(m, Ack) and m.reset]
    assert not asked                                            # nothing is sent to it again and again
    acknowledged = [
        m.next_index - 1 for source, _, m in world.sent
        if source == follower.name and isinstance(m, Ack) and m.success
    ]
    assert all(index <= follower.up.journal.durable_index for index in acknowledged)
    empty(world, follower.name)
    world.run_until(world.settled, SOON_S)
    nothing_lost(world, puts)
    assert other.up.machine.index == follower.up.machine.index


def test_a_full_leader_gives_leadership_to_a_node_that_has_room() -> None:
    world = SmallCluster(3)
    leader = world.leader()
    fill(world, leader.name)
    puts = put_until(world, lambda: leader.up.capacity.exhausted)
    world.run_until(lambda: world.serving() not in (None, leader), SOON_S)
    put_until(world, lambda: applied(puts) > 120, puts)
    assert world.leader() is not leader
    assert leader.failure is None
    empty(world, leader.name)
    world.run_until(world.settled, SOON_S)
    nothing_lost(world, puts)


def test_without_room_on_a_majority_nobody_serves_until_one_of_them_has_some() -> None:
    world = SmallCluster(3)
    leader = world.leader()
    full = [node.name for node in world.followers()]
    fill(world, *full)
    puts = put_until(world, lambda: world.serving() is None)
    world.run(30)
    assert world.serving() is None
    assert leader.up.journal.last_index - world[full[0]].up.journal.durable_index < 50      # it stops at once
    empty(world, full[0])
    world.leader(SOON_S)
    put_until(world, lambda: len(puts) > 150, puts)
    empty(world, full[1])
    world.run_until(world.settled, SOON_S)
    nothing_lost(world, puts)


def test_a_node_that_is_down_does_not_count_as_one_with_room() -> None:
    world = SmallCluster(3)
    leader = world.leader()
    follower, other = world.followers()
    fill(world, follower.name)
    puts = put_until(world, lambda: follower.up.capacity.exhausted)
    world.kill(other.name)
    world.run_until(lambda: world.serving() is None, SOON_S)
    assert leader.up.replica.is_leader                      # it has a majority, of which one logs nothing
    assert leader.up.journal.last_index - leader.up.replica.commit_index < 50
    world.start(other.name)
    world.run_until(lambda: world.serving() is not None, SOON_S)
    put_until(world, lambda: applied(puts) > 120, puts)
    world.kill(other.name)
    world.run_until(lambda: world.serving() is None, SOON_S)
    empty(world, follower.name)
    world.leader(SOON_S)
    world.start(other.name)
    world.run_until(world.settled, SOON_S)
    nothing_lost(world, puts)


def test_all_disks_full_and_one_node_killed() -> None:
    world = SmallCluster(3)
    world.leader()
    fill(world, "n1", "n2", "n3")
    puts = put_until(world, lambda: world.serving() is None)
    world.kill("n2")
    world.run(5)
    world.start("n2")
    world.run(30)
    assert world.serving() is None
    empty(world, "n1", "n2", "n3")
    world.leader(SOON_S)
    world.run_until(world.settled, SOON_S)
    nothing_lost(world, puts)


# Leases and sessions

class Held:
    """A lease and a session, of HOLD_MS each."""

    def __init__(self, world: SmallCluster) -> None:
        self.world = world
        leader = world.leader()
        world.put_now(b"work", "jobs")
        handed = answered(world, leader.propose(Get(("jobs",), HOLD_MS))).reply
        opened = answered(world, leader.propose(OpenSession(7, HOLD_MS))).reply
        assert isinstance(handed, Handed)
        assert isinstance(opened, SessionOpened)
        self.job = handed.id
        self.session = int(opened.sid.split("_")[0])

    def alive(self) -> tuple[bool, bool]:
        """Return whether they exist on the node that serves."""
        machine = self.world.leader().machine
        return any(job.id == self.job for job in machine.running()), self.session in machine._state.sessions.by_number


def halt(world: SmallCluster) -> Held:
    """Fill all disks, with a lease and a session open."""
    fill(world, "n1", "n2", "n3")
    put_until(world, lambda: all(node.up.full for node in world))
    held = Held(world)
    put_until(world, lambda: world.serving() is None)
    return held


def test_what_nobody_could_prolong_does_not_end_and_has_a_grace_afterwards() -> None:
    world = SmallCluster(3)
    held = halt(world)
    world.run(120)
    empty(world, "n1", "n2", "n3")
    world.leader(SOON_S)
    world.run(5)
    assert held.alive() == (True, True)
    finished = answered(world, world.leader().propose(Request(held.session, 1, bytes(16), 0, False, Done(held.job))))
    assert finished.state == "applied"
    assert held.alive() == (False, True)
    world.run(12)
    assert held.alive() == (False, False)           # nobody used it


def test_who_does_not_come_back_loses_it() -> None:
    world = SmallCluster(3)
    held = halt(world)
    world.run(60)
    empty(world, "n1", "n2", "n3")
    world.leader(SOON_S)
    world.run(12)
    assert held.alive() == (False, False)


@pytest.mark.parametrize("cured", [True, False], ids=["cured", "cure-removed"])
def test_also_what_has_used_up_the_grace_of_a_failover_meanwhile(
    cured: bool, monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not cured:
        monkeypatch.setattr(Leadership, "_resume", lambda self: None)
    world = SmallCluster(3)
    held = halt(world)
    leading = next(node for node in world if node.up.replica.is_leader)
    world.kill(leading.name)                        # the next one leads, and cannot serve either
    world.run(30)
    world.start(leading.name)
    world.run(30)
    empty(world, "n1", "n2", "n3")
    world.leader(SOON_S)
    world.run(1)
    world.put_now()                                 # what ends by time does so before it
    assert held.alive() == ((True, True) if cured else (False, False))


def test_an_operators_command_meanwhile_ends_nothing() -> None:
    world = SmallCluster(3)
    held = halt(world)
    world.run(60)
    leading = next(node for node in world if node.up.replica.is_leader)
    outcome = Outcome()
    leading.up.leadership.propose_alone(SwitchService(online=True), outcome)
    assert answered(world, outcome).state == "applied"
    assert any(job.id == held.job for job in leading.machine.running())


# Room is made by the node itself

def bounded(monkeypatch: pytest.MonkeyPatch) -> SmallCluster:
    """Return a node whose disk has 3 MiB: two segments of the journal, and a ballast."""
    monkeypatch.setattr(limits, "COMPACTION_BYTES_MIN", 64 << 20)   # only want of room is a reason for a snapshot
    world = SmallCluster(1, start=False)
    world["n1"].disk.free_bytes = (4 << 20) + RESERVE
    world.start("n1")
    world.leader()
    world.run(5)
    return world


def work(world: SmallCluster, node: SmallNode, rounds: int) -> int:
    """Put and finish jobs; returns how many were done."""
    done = 0
    for _ in range(rounds):
        put = node.propose(Put("q", 0, BODY))
        world.run(0.02)
        taken = node.propose(Get(("q",), 60_000))
        world.run(0.02)
        if isinstance(taken.reply, Handed):
            ended = node.propose(Done(taken.reply.id))
            world.run(0.02)
            done += ended.state == "applied" and put.state == "applied"
    return done


def test_with_the_ballast_the_journal_is_cut_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    world = bounded(monkeypatch)
    node = world["n1"]
    assert node.up.capacity.ballast.bytes >= 1 << 20
    fill(world, "n1")                               # all that is left is taken by somebody else
    assert work(world, node, 600) > 500             # 12 MB go through it
    assert node.failure is None


def test_without_a_ballast_it_cannot_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BALLAST_BYTES_MAX", 0)
    world = bounded(monkeypatch)
    fill(world, "n1")
    assert work(world, world["n1"], 600) < 200
    assert world["n1"].failure is None


def test_a_journal_without_descriptors_goes_on_when_there_are_some() -> None:
    world = SmallCluster(1)
    node = world.leader()
    node.disk.files_max = 0
    put_until(world, lambda: not node.up.leadership.serving)
    assert node.failure is None
    node.disk.files_max = None
    world.leader(SOON_S)
    world.put_now()


def test_a_node_for_which_nothing_can_be_written_stands_still_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing was kept for Raft itself: elections have used it up."""
    for share in ("JOURNAL_RESERVE", "JOURNAL_EXHAUSTED", "JOURNAL_SCARCE"):
        monkeypatch.setattr(limits, share, 0)
    world = SmallCluster(3)
    world.leader()
    fill(world, "n1", "n2", "n3")
    puts = put_until(world, lambda: sum(node.up.capacity.stuck for node in world) >= 2)
    world.run(30)
    assert world.serving() is None
    assert not any(node.up.busy for node in world)
    empty(world, "n1", "n2", "n3")
    world.leader(SOON_S)
    world.run_until(world.settled, SOON_S)
    nothing_lost(world, puts)


def small(monkeypatch: pytest.MonkeyPatch, free_bytes: int) -> tuple[SmallCluster, SmallNode]:
    """Return three nodes, of which a follower has a small disk, and no ballast."""
    monkeypatch.setattr(limits, "BALLAST_BYTES_MAX", 0)
    world = SmallCluster(3)
    world.leader()
    follower = world.followers()[0]
    follower.disk.free_bytes = free_bytes
    return world, follower


def test_without_room_for_a_segment_what_only_the_older_snapshot_needs_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "COMPACTION_BYTES_MIN", 3 << 20)
    world, follower = small(monkeypatch, PLENTY_BYTES)
    while len(follower.up.store.kept()) < 2 or follower.up.store.busy:
        work(world, world.leader(), 20)
    work(world, world.leader(), 70)                     # and a segment beyond it
    journal, store = follower.up.journal, follower.up.store
    held = journal.segments.disk_bytes
    assert journal.can_release
    newest = store.newest_index
    monkeypatch.setattr(limits, "COMPACTION_BYTES_MIN", 64 << 20)
    monkeypatch.setattr(follower.up._compaction, "begins", lambda now, **room: False)
    fill(world, follower.name)
    world.run_until(lambda: work(world, world.leader(), 5) and store.kept() == [newest])
    assert journal.first_index >= newest - 1
    world.run(5)
    assert journal.segments.disk_bytes <= held - (1 << 20)
    put_until(world, lambda: world.settled() and not journal.segments.short, attempts=20)
    world.kill(follower.name)
    world.start(follower.name)
    world.run_until(world.settled, SOON_S)
    assert follower.failure is None
    assert len(world.states()) == 1


def test_a_node_that_stands_still_gives_up_its_older_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    world, follower = small(monkeypatch, PLENTY_BYTES)
    puts = put_until(world, lambda: follower.up.journal.segments.active == 2)
    snapshot_everywhere(world, [follower.name])
    store = follower.up.store
    newest = store.newest_index
    fill(world, follower.name)
    follower.up.capacity.pause(world.now, NoRoom("not even for a vote"))
    world.run(0.1)
    assert (store.kept(), follower.up.capacity.stuck) == ([newest], False)
    assert follower.disk.free_bytes > 1_000_000         # so there is room
    put_until(world, lambda: world.settled(), puts)
    nothing_lost(world, puts)


def test_a_snapshot_is_written_as_soon_as_there_is_room_again(monkeypatch: pytest.MonkeyPatch) -> None:
    world, follower = small(monkeypatch, PLENTY_BYTES)
    puts = put_until(world, lambda: follower.up.journal.segments.active == 2)
    fill(world, follower.name)
    put_until(world, lambda: follower.up.store.lacks_space, puts)
    assert follower.up.store.failing
    empty(world, follower.name)
    world.run(2)
    assert follower.up.store.newest_index or not follower.up.store.failing
    world.run_until(world.settled, SOON_S)
    nothing_lost(world, puts)


def test_a_segment_waits_for_a_snapshot_if_there_is_no_room_for_both(monkeypatch: pytest.MonkeyPatch) -> None:
    world, follower = small(monkeypatch, PLENTY_BYTES)
    capacity, segments = follower.up.capacity, follower.up.journal.segments
    put_until(world, lambda: segments.active == 3 and segments.position > 900_000)
    world.run_until(world.settled)
    monkeypatch.setattr(follower.up._compaction, "begins", lambda now, **room: False)
    expected = capacity._expected_bytes()
    assert expected > 1 << 20
    follower.disk.free_bytes = expected + (1 << 19)
    world.run(2)                                        # it looks once a second
    put_until(world, lambda: segments.active == 4)
    world.run(3)
    assert segments.room_bytes < 1 << 20                # it has no next segment,
    assert follower.disk.free_bytes == expected + (1 << 19)     # though there would be room
    monkeypatch.undo()
    world.run_until(lambda: follower.up.store.newest_index, 15)
    world.run_until(world.settled, SOON_S)
    assert follower.failure is None


def full_of_done_jobs(world: SmallCluster, follower: SmallNode) -> None:
    """Fill a disk without free bytes with jobs that are done since, of which the node does not hear."""
    puts = put_until(world, lambda: follower.up.capacity.exhausted)
    put_until(world, lambda: applied(puts) > 120, puts)
    assert follower.up.machine.index < world.leader().up.machine.index
    while isinstance(answered(world, world.leader().propose(Get(("q",), 0))).reply, Handed):
        for job in list(world.leader().machine.running()):
            answered(world, world.leader().propose(Done(job.id)))


@pytest.mark.parametrize("cured", [True, False], ids=["cured", "cure-removed"])
def test_a_follower_without_a_free_byte_stores_the_state_it_is_sent(
    cured: bool, monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, follower = small(monkeypatch, 0)
    if not cured:
        monkeypatch.setattr(follower.up.capacity.reserve, "give_up", lambda: False)
    full_of_done_jobs(world, follower)
    world.run(4 * limits.STATE_FOR_ENTRIES_S)
    assert world.settled() is cured
    assert follower.up.store.taken_over == cured
    if cured:
        assert len(world.states()) == 1
        world.run_until(lambda: follower.up.capacity.reserve.bytes >= RESERVE / 4)  # for the next one
        put_until(world, lambda: follower.up.capacity.exhausted)                    # it takes entries again, until then
    assert [node.failure for node in world] == [None] * 3


def test_a_follower_full_of_jobs_that_are_done_is_sent_the_state(monkeypatch: pytest.MonkeyPatch) -> None:
    world, follower = small(monkeypatch, 0)
    monkeypatch.setattr(limits, "RESERVE_BYTES", 0)
    follower.up.capacity.reserve.give_up()
    follower.disk.free_bytes = 0
    full_of_done_jobs(world, follower)
    follower.disk.free_bytes = 64 << 10                 # for no segment, and for no snapshot of what it has
    world.run(limits.STATE_FOR_ENTRIES_S / 2)
    assert not world.settled()                          # it may only take a moment
    world.run_until(world.settled, 2 * limits.STATE_FOR_ENTRIES_S)
    assert follower.up.store.taken_over == 1
    assert len(world.states()) == 1
    assert [node.failure for node in world] == [None] * 3


def test_a_state_that_takes_more_than_the_entries_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "STATE_FOR_ENTRIES_BYTES", 1000)
    world, follower = small(monkeypatch, PLENTY_BYTES)
    puts = put_until(world, lambda: True)
    put_until(world, lambda: applied(puts) > 60, puts)
    fill(world, follower.name)
    put_until(world, lambda: follower.up.capacity.exhausted, puts)
    more = applied(puts) + 20
    put_until(world, lambda: applied(puts) > more, puts)
    assert not world.settled()
    sent = len(world.sent)
    world.run(3 * limits.STATE_FOR_ENTRIES_S)
    assert not [message for _, _, message in world.sent[sent:] if isinstance(message, SnapshotChunk)]
    empty(world, follower.name)
    world.run_until(world.settled, SOON_S)
    nothing_lost(world, puts)


def test_a_larger_state_is_sent_after_a_long_time_and_less_and_less_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in (
        ("STATE_FOR_ENTRIES_BYTES", 1000), ("STATE_FOR_ENTRIES_S", 1.0),
        ("STATE_AGAIN_S", 6.0), ("STATE_ANYWAY_S", 30.0),
    ):
        monkeypatch.setattr(limits, name, value)
    world, follower = small(monkeypatch, PLENTY_BYTES)
    puts = put_until(world, lambda: True)
    put_until(world, lambda: applied(puts) > 60, puts)
    fill(world, follower.name)
    put_until(world, lambda: follower.up.capacity.exhausted, puts)
    more = applied(puts) + 20
    put_until(world, lambda: applied(puts) > more, puts)
    monkeypatch.setattr(follower.up.capacity, "make_way", lambda missing, covered: False)
    begun: list[float] = []             # when the first piece of a snapshot was sent

    def see(source: str, target: str, message: Message) -> bool:
        if isinstance(message, SnapshotChunk) and not message.offset:
            begun.append(world.now)
        return True
    world.filter, since = see, world.now
    world.run(limits.STATE_ANYWAY_S / 2)
    assert begun == []
    world.run(4 * limits.STATE_ANYWAY_S)
    first, _, third, later, *rest = begun
    assert first - since < limits.STATE_ANYWAY_S + limits.STATE_AGAIN_S
    assert third - first < 3 * limits.STATE_AGAIN_S
    assert later - third > 1.5 * limits.STATE_ANYWAY_S
    assert len(rest) < 4
    empty(world, follower.name)
    world.run_until(world.settled, SOON_S)
    nothing_lost(world, puts)


def test_jobs_leave_memory_only_as_far_as_a_segment_and_a_snapshot_have_room() -> None:
    world = SmallCluster(1)
    up = world.leader().up
    pages, ballast = PageFiles(Path("/pages"), world["n1"].disk), Ballast(MemoryDisk(), Path("/other/ballast"))
    hot_bytes = 0
    reserve = Ballast(MemoryDisk(), Path("/other/reserve"))
    capacity = Capacity(up.journal, up.store, up.transport.quorum, ballast, reserve, pages, lambda: hot_bytes)
    capacity.free_bytes = 5 << 20
    capacity.update(world.now)
    assert (pages.free_bytes, pages.room_bytes) == (5 << 20, 4 << 20)
    world.put_now(bytes(300_000))
    hot_bytes = 200_000
    ballast.bytes = 0
    capacity.update(world.now)
    assert pages.room_bytes == (4 << 20) - hot_bytes
    ballast.bytes = 150_000
    capacity.update(world.now)
    assert pages.room_bytes == (4 << 20) - hot_bytes + 150_000
    ballast.bytes = 1 << 20
    capacity.update(world.now)
    assert pages.room_bytes == 4 << 20
    pages.wrote(1000)
    assert (pages.free_bytes, pages.room_bytes) == ((5 << 20) - 1000, (4 << 20) - 1000)


def test_a_node_that_is_short_of_room_says_once_who_holds_the_disk(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
) -> None:
    world, follower = small(monkeypatch, PLENTY_BYTES)
    put_until(world, lambda: follower.up.journal.segments.active == 2)
    assert "short of room" not in caplog.text
    follower.up.capacity.disk_bytes = 10 << 20
    follower.disk.free_bytes = 1 << 19
    world.run(30)
    (line,) = [record.message for record in caplog.records if "short of room" in record.message]
    assert line.startswith(f"the disk of node.data_dir is short of room: {1 << 19} bytes of {10 << 20} are free. The "
                           f"journal has {3 << 20}, snapshots 0, files of pages 0 ")
    assert line.endswith(f"the ballast {RESERVE}, others {(10 << 20) - (1 << 19) - (3 << 20) - RESERVE}.")
    assert sum(follower.up.capacity.holders()[:3]) == 3 << 20


# Snapshots of others

def test_a_snapshot_for_which_a_follower_has_no_room_is_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    world = SmallCluster(3, start=False)
    for node in list(world):
        node.known_level = FIRST_LEVEL          # no entry raises the level when the follower is back
        world.start(node.name)
    away = lagging(world)
    leader = world.leader()
    away.disk.free_bytes = 0
    newest = leader.up.store.newest_index
    world.start(away.name)
    monkeypatch.setattr(away.up.capacity, "make_way", lambda missing, covered: False)
    world.run(10)
    assert away.failure is None
    assert away.up.machine.index < leader.up.machine.index
    assert leader.up.store.newest_index <= newest + 1       # not one after the other: none of them would have room
    away.disk.free_bytes = PLENTY_BYTES
    world.run_until(world.settled, SOON_S)
    assert len(world.states()) == 1


def test_a_follower_gives_up_its_next_segment_for_a_snapshot_without_room() -> None:
    world = SmallCluster(3)
    away = lagging(world)
    away.disk.free_bytes = 0
    world.start(away.name)
    world.run_until(world.settled, SOON_S)
    assert away.up.store.taken_over == 1
    world.run(2)
    assert away.up.journal.segments.short           # the rest of what that had is too little for another one
    empty(world, away.name)
    world.run_until(lambda: not away.up.journal.segments.short)
    put_until(world, lambda: away.up.journal.segments.active == 2)
    world.run_until(world.settled, SOON_S)
    world.kill(away.name)
    world.start(away.name)
    world.run_until(world.settled, SOON_S)
    assert len(world.states()) == 1
    assert [node.failure for node in world] == [None] * 3


def take_a_third_segment(world: SmallCluster, follower: SmallNode) -> None:
    """Let the disk become full when the journal has three segments, one of which the leader's state has room for."""
    put_until(world, lambda: follower.up.journal.segments.disk_bytes == 3 << 20)
    fill(world, follower.name)


@pytest.mark.parametrize("cured", [True, False], ids=["cured", "cure-removed"])
def test_a_follower_gives_up_its_own_state_if_the_leaders_has_no_room_beside_it(
    cured: bool, monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, follower = small(monkeypatch, PLENTY_BYTES)
    settings = NodeSettings(follower.name, Path("/"), "", (), "test", rejoin=True)
    rejoin = Rejoin(follower.disk, settings, lambda: int(world.now))
    if cured:
        follower.up.capacity.delete_state = rejoin.delete
    take_a_third_segment(world, follower)
    full_of_done_jobs(world, follower)
    waits = [answered(world, world.leader().propose(Put("q", 0, bytes([number]) * 20_000))) for number in range(20)]
    assert applied(waits) == 20
    states = world.leader().machine.hot_bytes
    assert 2 * RESERVE < states < limits.STATE_FOR_ENTRIES_BYTES
    transfers = follower.up.transport._transfers
    world.run_until(lambda: transfers._lacked_at > 0)           # it was sent once, and had no room
    assert follower.driver is not None
    assert follower.up.machine.index < world.leader().up.machine.index
    world.run(12 * limits.STATE_FOR_ENTRIES_S)
    assert isinstance(follower.failure, RejoinNeeded) is cured
    if not cured:
        assert not world.settled()
        return
    world.put_now()                                             # nobody misses it
    again = Rejoin(follower.disk, settings, lambda: int(world.now))
    again.open(lambda: None)
    assert follower.disk.free_bytes > 2 << 20
    world.start(follower.name)
    again.tell(follower.up.journal)
    assert not follower.up.journal.voter
    world.run_until(lambda: world.settled() and follower.up.journal.voter)
    again.tell(follower.up.journal)
    assert not again.waiting
    assert len(world.states()) == 1
    assert len(world.bodies(follower.name)) == 21


@pytest.mark.parametrize("missing", ["the other voter", "its copy"])
def test_but_not_while_the_others_lack_what_it_has(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world, follower = small(monkeypatch, PLENTY_BYTES)
    follower.up.capacity.delete_state = lambda why: RejoinNeeded(why)
    take_a_third_segment(world, follower)
    full_of_done_jobs(world, follower)
    for number in range(20):
        answered(world, world.leader().propose(Put("q", 0, bytes([number]) * 20_000)))
    other = next(node for node in world.followers() if node is not follower)
    if missing == "its copy":
        monkeypatch.setattr(Quorum, "covers", lambda self, without: False)
    else:
        world.kill(other.name)
    world.run(12 * limits.STATE_FOR_ENTRIES_S)
    assert follower.failure is None
    assert follower.driver is not None


def test_its_own_state_stays_where_giving_it_up_makes_no_room() -> None:
    world = SmallCluster(1)
    up = world.leader().up
    asked: list[str] = []

    def delete(why: str) -> RejoinNeeded:
        asked.append(why)
        return RejoinNeeded(why)
    capacity = up.capacity
    assert capacity.give_up_state(1000) is None                 # nobody said how
    capacity.delete_state = delete
    world.run(2)
    world["n1"].disk.free_bytes = 0
    assert capacity.free_bytes > 0                              # it was measured a moment ago
    own = up.journal.segments.disk_bytes + capacity.ballast_bytes
    most = (own - (2 << 20) - RESERVE) // 2                     # it and what this node makes of it: pages, a snapshot
    assert most > 0
    assert capacity.give_up_state(most + 1) is None
    assert capacity.give_up_state(0) is None                    # an older leader does not say how large it is
    world["n1"].disk.fail["free_space"] = OSError(errno.EIO, "it fails")
    assert capacity.give_up_state(most) is None
    world["n1"].disk.fail.clear()
    assert asked == []
    assert isinstance(capacity.give_up_state(most), RejoinNeeded)
    assert f"the leader's state of {most} bytes" in asked[0]


def test_what_came_of_the_leaders_state_counts_as_free_when_the_own_state_is_weighed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = SmallCluster(1)
    node = world.leader()
    world.run(2)
    capacity, own = node.up.capacity, node.up.journal.segments.disk_bytes + node.up.capacity.ballast_bytes
    needed = own + (4 << 20)                                    # twice the state, and what goes on
    size = (needed - (2 << 20) - RESERVE) // 2
    node.disk.free_bytes = 4 << 20
    incoming = node.up.store.begin_incoming("n2")
    incoming.write(bytes(1 << 20))
    capacity.free_bytes = node.disk.free_bytes                  # measured with a part of it there
    incoming.abort()
    capacity.delete_state = lambda why: RejoinNeeded(why)
    assert isinstance(capacity.give_up_state(size), RejoinNeeded)


class Endless:
    """A task that goes on until it is killed."""

    error = ""

    def __init__(self, work: Callable[[], None]) -> None:
        self.killed = False

    def poll(self) -> int | None:
        return None

    def kill(self) -> None:
        self.killed = True


def test_what_can_be_done_without_makes_way_one_thing_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    world = SmallCluster(1)
    node = world.leader()
    snapshot_everywhere(world, ["n1"])
    world.put_now(BODY)
    up, disk = node.up, node.disk
    capacity, store = up.capacity, up.store
    older, newest = store.kept()
    monkeypatch.setattr(store, "_start_task", Endless)
    up.replica.compact()
    world.run_until(lambda: store.writing)
    writing = store._task
    assert isinstance(writing, Endless)

    def given_up(missing: int = 1 << 30) -> set[str]:
        """Make way once; returns the files that were removed."""
        before = set(disk.names_now)
        assert capacity.make_way(missing, covered=True)
        assert (up.capacity._pages.free_bytes, up.capacity._pages.room_bytes) == (0, 0)
        return before - set(disk.names_now)

    assert given_up() == {f"/snapshots/snapshot-{older:016d}"}
    ballast = capacity.ballast.bytes
    assert ballast > STEP
    assert given_up(STEP - 1) == set()
    assert capacity.ballast.bytes == ballast - STEP             # no more of it than is missing
    assert given_up() == {"/ballast"}
    assert given_up() == {"/journal/journal-00000002"}
    damaged = [True]
    capacity.delete_damaged = lambda: bool(damaged) and damaged.pop()
    assert capacity.make_way(1, covered=False)
    assert "/reserve" not in disk.names_now
    assert damaged                                  # the others may lack what is in it
    capacity.reserve.hold(limits.RESERVE_BYTES, disk.free_bytes)
    world.run_until(lambda: "/reserve" in disk.names_now)
    assert given_up() == set()
    assert not damaged
    assert given_up() == {"/reserve"}
    assert not capacity.make_way(1, covered=True)
    assert not writing.killed                       # it may be what helps
    assert store.kept() == [newest]                 # what this node vouches for stays
    world.kill("n1")
    assert world.start("n1").failure is None
    world.leader()
    assert len(world.bodies("n1")) == 3


def test_while_a_state_comes_in_nothing_else_takes_the_room(monkeypatch: pytest.MonkeyPatch) -> None:
    world = SmallCluster(1)
    up = world.leader().up
    world.run(2)
    capacity, store = up.capacity, up.store
    up.journal.segments.short = True
    capacity.ballast.give_up()
    capacity.reserve.give_up()
    incoming = store.begin_incoming("n2")
    for _ in range(3):
        incoming.write(b"a part of it")
        world.events.now += 1.0
        capacity.update(world.now)
        assert (capacity._pages.free_bytes, capacity._pages.room_bytes) == (0, 0)
        assert up.journal.segments.held_back
        assert (capacity.ballast.bytes, capacity.reserve.bytes) == (0, 0)
        assert store.busy                           # no snapshot of its own
    world.events.now += limits.RECEIVING_S                 # its sender has fallen silent
    capacity.update(world.now)
    assert capacity._pages.free_bytes > 0
    assert capacity.reserve.bytes == RESERVE
    incoming.write(b"or not")
    assert store.busy
    incoming.abort()
    assert not store.busy
    up.journal.segments.short = False
    world.events.now += limits.ROOM_LOOK_S
    capacity.update(world.now)
    store.begin_incoming("n2")
    capacity.update(world.now)
    assert capacity._pages.free_bytes > 0           # where there is room, jobs leave memory as ever


def test_a_snapshot_that_cannot_be_opened_is_sent_later() -> None:
    world = SmallCluster(3)
    away = lagging(world)
    leader = world.leader()
    leader.disk.files_max = 0
    world.start(away.name)
    world.run(5)
    assert leader.failure is None
    leader.disk.files_max = None
    world.run_until(world.settled, SOON_S)
    assert len(world.states()) == 1


# The ballast

PATH = Path("/ballast")


def test_the_ballast_grows_by_steps_as_far_as_is_wanted_and_free() -> None:
    disk = MemoryDisk()
    kept = Ballast(disk, PATH)
    for expected in (1, 2, 3, 3):
        kept.keep(2 * STEP + 1, 10 * STEP)
        assert kept.bytes == expected * STEP == disk.size(disk.open(PATH))
    kept.keep(5 * STEP, STEP - 1)
    assert kept.bytes == 3 * STEP
    kept.keep(2 * STEP, 0)                  # not every little less
    assert kept.bytes == 3 * STEP
    kept.keep(STEP, 0)
    assert (kept.bytes, disk.names(PATH.parent)) == (0, [])


def test_it_gives_as_much_as_is_needed() -> None:
    disk = MemoryDisk()
    kept = Ballast(disk, PATH)
    for _ in range(4):
        kept.keep(4 * STEP, 4 * STEP)
    disk.free_bytes = 0
    assert kept.give(STEP)
    assert (kept.bytes, disk.free_bytes, len(disk.file(PATH))) == (3 * STEP, STEP, 3 * STEP)
    assert kept.give(STEP + 1)
    assert (kept.bytes, disk.free_bytes) == (STEP, 3 * STEP)
    assert kept.give(1)
    assert (kept.bytes, disk.free_bytes, disk.names(PATH.parent)) == (0, 4 * STEP, [])
    assert not kept.give(1)


def test_it_goes_whole_where_it_cannot_be_made_smaller() -> None:
    disk = MemoryDisk()
    kept = Ballast(disk, PATH)
    for _ in range(3):
        kept.keep(3 * STEP, 3 * STEP)
    disk.fail["shorten"] = OSError(errno.EIO, "it fails")
    assert kept.give(STEP)
    assert (kept.bytes, disk.names(PATH.parent)) == (0, [])


def test_it_is_taken_over_from_the_process_before_and_given_up_whole() -> None:
    disk = MemoryDisk()
    Ballast(disk, PATH).keep(STEP, STEP)
    disk.free_bytes = 0
    kept = Ballast(disk, PATH)
    assert kept.bytes == STEP
    assert kept.give_up()
    assert disk.free_bytes == STEP
    assert not kept.give_up()


def test_what_there_is_stays_when_there_is_no_more() -> None:
    disk = MemoryDisk()
    kept = Ballast(disk, PATH)
    kept.keep(STEP, STEP)
    disk.free_bytes = 10
    kept.keep(2 * STEP, 5 * STEP)           # that was a moment ago
    assert kept.bytes == STEP
    disk.files_max = 0
    kept.keep(2 * STEP, 5 * STEP)
    assert kept.bytes == STEP
    disk.files_max, disk.free_bytes = None, STEP
    kept.keep(2 * STEP, 5 * STEP)
    assert kept.bytes == 2 * STEP


def test_the_reserve_has_what_is_wanted_or_half_of_what_is_free() -> None:
    disk = MemoryDisk()
    kept = Ballast(disk, PATH)
    kept.hold(STEP, 3 * STEP)
    assert kept.bytes == STEP
    kept.hold(STEP, 3 * STEP)
    assert kept.bytes == STEP == disk.size(disk.open(PATH))
    assert kept.give_up()
    kept.hold(STEP, STEP)
    assert kept.bytes == STEP / 2
    kept.hold(STEP, STEP // 2)
    assert kept.bytes == STEP * 3 / 4
    kept.hold(STEP, STEP // 4)              # small snapshots of this node need room as well
    assert kept.bytes == STEP * 3 / 4
    kept.hold(0, STEP)
    assert kept.bytes == STEP * 3 / 4


def test_without_room_there_is_none() -> None:
    disk = MemoryDisk()
    disk.free_bytes = 10
    kept = Ballast(disk, PATH)
    kept.keep(STEP, STEP)
    assert (kept.bytes, disk.names(PATH.parent)) == (0, [])
