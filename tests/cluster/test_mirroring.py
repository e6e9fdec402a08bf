"""A replica follows its origin through restarts, new leaders and snapshots on both sides, and is promoted."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace
from typing import cast

import pytest

from sockpqd.cluster import limits
from sockpqd.cluster.api import Frame, Pending
from sockpqd.cluster.driven_node import DrivenNode
from sockpqd.cluster.leader.leadership import Leadership
from sockpqd.cluster.mirror.mirroring import Mirroring
from sockpqd.cluster.storage.state_hash import Chain
from sockpqd.core import (
    Accepted,
    Fence,
    Get,
    JobState,
    Lead,
    Machine,
    Mirrored,
    MirrorEntries,
    Operation,
    Put,
    RaiseLevel,
    SwitchService,
    Tick,
    decode_entry,
    encode_entry,
)
from tests.cluster.helpers.regions import Regions, frames_behind
from tests.cluster.helpers.small_cluster import Outcome, SmallCluster, SmallNode


def put_some(origin: SmallCluster, count: int, data: bytes = b"job") -> None:
    """Put jobs at the origin, each acknowledged."""
    for number in range(count):
        origin.put_now(data + b"%d" % number)


def exported(node: SmallNode) -> bytes:
    """Return the state that is read at this node."""
    return b"".join(node.machine.export(users=True))


def cluster_hash(node: SmallNode) -> tuple[int, bytes]:
    """Return the index and the hash that CLUSTER HASH shows."""
    return DrivenNode.state_hash(cast(DrivenNode, SimpleNamespace(
        machine=node.machine, _driver=node.up, is_replica=node.up.leadership.is_replica,
    )))


def test_before_anything_has_come_a_replica_shows_no_hash_of_its_own_log() -> None:
    both = Regions(nodes=1)
    put_some(both.origin, 5)
    both.linked = False
    both.run(2.0)
    node = next(iter(both.replica))
    assert node.machine.index > 0
    assert cluster_hash(node) == (0, bytes(16))
    both.linked = True
    both.run_until_level()
    assert cluster_hash(node) == cluster_hash(both.origin.leader())


@pytest.mark.parametrize("nodes", [1, 3])
def test_a_replica_follows_and_serves_nobody(nodes: int) -> None:
    both = Regions(nodes=nodes)
    put_some(both.origin, 5)
    both.run_until_level()
    assert both.replica.serving() is None
    head = both.head()
    assert head is not None
    assert exported(head) == exported(both.origin.leader())
    assert head.up.mirroring.origin == both.origin.leader().machine.cluster_id != head.machine.cluster_id
    assert head.up.age_s() == 0.0
    refused = head.propose(Get(("q",)))
    assert refused.state == "refused"
    assert both.hashes[head.machine.mirrored or 0] == head.up.store.mirror_chain.value
    assert len(both.compared) >= 7


@pytest.mark.parametrize("seed", range(6))
def test_the_hash_is_the_origins_whatever_fails_on_both_sides(seed: int) -> None:
    """Regions.look compares the hash of each mirror with the origin's after each entry."""
    random, both = Random(seed), Regions(seed, at_once=Random(seed).choice([3, 20, 300]))
    for _ in range(12):
        for _ in range(random.choice([1, 3, 30])):
            if both.origin.serving() is not None:
                both.origin.put(bytes(random.choice([1, 10, 300_000 if random.random() < 0.1 else 100])))
                both.step()
        side = random.choice([both.origin, both.replica])
        victim = random.choice(list(side))
        if victim.driver is not None:
            what = random.random()
            if what < 0.4 and sum(node.driver is not None for node in side) == 3:
                side.kill(victim.name)
                if side is both.replica:
                    both.forget_offers()
            elif what < 0.8:
                victim.up.replica.compact()
            else:
                side.cut(victim.name, " ".join(node.name for node in side if node is not victim))
        both.linked = random.random() < 0.8
        both.run(random.choice([0.1, 1.0, 3.0]))
        both.forget_offers()                # as when its outcome was lost
        for one in (both.origin, both.replica):
            one.heal()
            for node in one:
                assert node.failure is None
                if node.driver is None:
                    one.start(node.name)
    both.linked = True
    both.origin.leader(60.0)
    both.forget_offers()
    both.run_until_level(120.0)
    assert {exported(node) for node in both.replica} == {exported(both.origin.leader())}
    assert len(both.compared) > 50


def test_a_replica_that_was_away_takes_the_origins_snapshot() -> None:
    both = Regions()
    put_some(both.origin, 10)
    both.run_until_level()
    both.linked = False
    put_some(both.origin, 300)
    for _ in range(2):                      # the journal reaches back to the snapshot before the newest
        for node in both.origin:
            node.up.replica.compact()
        both.origin.run(1.0)
        put_some(both.origin, 5)
    assert both.origin["n1"].up.journal.first_index > (both.replica["n1"].machine.mirrored or 0) + 1
    both.linked = True
    both.run_until_level()
    assert both.snapshots == 1
    for node in both.replica:
        assert exported(node) == exported(both.origin.leader())
    put_some(both.origin, 600)              # beyond the next checkpoint
    both.run_until_level()
    both.look()


def test_a_node_of_the_replica_that_starts_again_has_the_mirror_and_its_checkpoint() -> None:
    both = Regions(nodes=1)
    put_some(both.origin, 600)
    both.run_until_level()
    (node,) = both.replica
    position = node.up.mirroring.position()
    assert 0 < position.at <= position.index
    assert position.hash == both.hashes[position.at]
    node.up.replica.compact()
    both.replica.run(1.0)
    assert node.up.store.newest_index > 0
    both.replica.kill("n1")
    both.replica.start("n1")
    both.forget_offers()
    both.replica.run_until(both.head)
    assert node.up.mirroring.position() == position
    put_some(both.origin, 3)
    both.run_until_level()


def test_a_node_that_joins_the_replica_later_gets_both_states() -> None:
    both = Regions()
    both.replica.kill("n3")
    put_some(both.origin, 50)
    both.run(2.0)
    for _ in range(2):
        for name in ("n1", "n2"):
            both.replica[name].up.replica.compact()
        put_some(both.origin, 5)
        both.run(1.0)
    both.replica.wipe("n3")
    both.replica.start("n3")
    both.run_until_level()
    assert exported(both.replica["n3"]) == exported(both.origin.leader())
    chains = {node.up.store.mirror_chain.value for node in both.replica}
    assert len(chains) == 1


@pytest.mark.parametrize("seed", range(4))
def test_a_promoted_copy_is_an_exact_prefix_and_serves(seed: int) -> None:
    random, both = Random(seed), Regions(seed, at_once=4)
    put_some(both.origin, 20)
    both.run(random.choice([1.0, 2.0]))
    for _ in range(40):
        both.origin.put(b"late")
        both.run(0.02)
    assert both.head() is not None
    outcome = both.promote()
    assert isinstance(outcome.reply, Mirrored)
    reached = outcome.reply.index
    source = both.source()
    assert source is not None
    prefix = Machine()
    for frame in frames_behind(source, 0, 100_000) or []:
        if frame.index <= reached:
            entry = decode_entry(frame.data)
            prefix.apply(frame.index, entry.now_ms, entry.seed, entry.operations)
    leader = both.replica.leader()
    assert both.head() is None
    jobs = [view.data for view in prefix.peek_queue("q", JobState.READY, 1000)]
    assert [view.data for view in leader.machine.peek_queue("q", JobState.READY, 1000)] == jobs
    put = leader.propose(Put("q", 0, b"after the promotion"))
    taken = leader.propose(Get(("q",)))
    both.replica.run_until(lambda: taken.state != "open")
    assert (put.state, taken.state) == ("applied", "applied")
    both.replica.run(1.0)
    assert len(both.replica.states()) == 1
    for node in both.replica:
        assert node.machine.promoted
        assert node.up.store.mirror_chain.index == 0


def test_a_promoted_cluster_stays_one_after_it_was_started_again() -> None:
    both = Regions(nodes=1)
    put_some(both.origin, 3)
    both.run_until_level()
    both.promote()
    both.replica.leader()
    for compacted in (False, True):
        if compacted:
            both.replica["n1"].up.replica.compact()
            both.replica.run(1.0)
        both.replica.kill("n1")
        both.replica.start("n1")
        assert both.replica.leader().machine.total("q").jobs == 3
        assert both.head() is None


def test_frames_that_were_offered_before_are_skipped_and_gaps_are_not_filled() -> None:
    both = Regions(nodes=1)
    put_some(both.origin, 30)
    both.run_until_level()
    head, source = both.head(), both.source()
    assert head is not None
    assert source is not None
    outcomes: list[bool] = []
    reached = head.machine.mirrored or 0
    head.up.mirroring.offer(frames_behind(source, 0, 1000) or [], outcomes.append)
    assert outcomes == [True]               # nothing is new, so nothing is logged
    assert head.machine.mirrored == reached
    put_some(both.origin, 5)
    both.run_until_level()


def test_a_replica_that_was_switched_offline_stands_still_also_under_another_leader() -> None:
    both = Regions()
    put_some(both.origin, 5)
    both.run_until_level()
    head = both.head()
    assert head is not None
    switched = Outcome()
    head.up.leadership.propose_alone(SwitchService(False), switched)
    both.replica.run_until(lambda: switched.reply)
    stopped_at = head.machine.mirrored
    put_some(both.origin, 5)
    both.run(2.0)
    both.replica.kill(head.name)
    both.run(5.0)
    assert both.head() is None
    assert {node.machine.mirrored for node in both.replica if node.driver is not None} == {stopped_at}
    both.replica.start(head.name)
    both.run(2.0)
    leader = next(node for node in both.replica if node.up.leadership.heads_replica())
    switched = Outcome()
    leader.up.leadership.propose_alone(SwitchService(True), switched)
    both.replica.run_until(lambda: switched.reply)
    both.run_until_level()


def frame(index: int, *operations: Operation) -> Frame:
    """Return a frame with these operations."""
    return Frame(index, 7, 8, encode_entry(7, 8, list(operations)))


def test_a_level_that_this_cluster_lacks_stops_the_puller_with_a_sentence() -> None:
    both = Regions(nodes=1)
    both.run_until_level()
    both.linked = False
    head = both.head()
    assert head is not None
    mirroring, outcomes = head.up.mirroring, list[bool]()
    reached = mirroring.position().index
    mirroring.offer([
        frame(reached + 1, Tick()), frame(reached + 2, RaiseLevel(9, ("n1",))), frame(reached + 3, Tick()),
    ], outcomes.append)
    both.replica.run_until(lambda: outcomes)
    assert outcomes == [False]
    assert head.machine.mirrored == reached + 1         # what came before was taken
    assert not mirroring.active
    assert mirroring.halted == (
        "the origin has feature level 9, this cluster has level 2: the copy stands still until all its nodes know that "
        "level; upgrade them"
    )
    mirroring.offer([frame(reached + 2, Tick())], outcomes.append)
    assert outcomes == [False, False]


def test_a_copy_goes_on_when_its_cluster_has_the_level() -> None:
    both = Regions(nodes=1)
    both.run_until_level()
    both.linked = False
    head = both.head()
    assert head is not None
    mirroring, outcomes = head.up.mirroring, list[bool]()
    frames = [frame(mirroring.position().index + 1, RaiseLevel(3, ("n1",)))]
    mirroring.offer(frames, outcomes.append)
    assert outcomes == [False]
    assert mirroring.halted is not None
    both.replica.run(3.0)
    assert not mirroring.active
    head.machine.known_level = 3                # its program is upgraded, and then its cluster
    both.replica.run_until(lambda: head.machine.level == 3)
    assert mirroring.active
    assert mirroring.halted is None
    mirroring.offer(frames, outcomes.append)
    both.replica.run_until(lambda: outcomes[1:])
    assert outcomes == [False, True]
    assert head.machine.mirrored == frames[0].index


def test_an_entry_that_cannot_be_read_stops_the_puller_with_a_sentence() -> None:
    both = Regions(nodes=1)
    both.run_until_level()
    head = both.head()
    assert head is not None
    outcomes: list[bool] = []
    head.up.mirroring.offer([Frame(10_000, 0, 0, b"what is that")], outcomes.append)
    assert outcomes == [False]
    assert "newer version of sockpqd" in (head.up.mirroring.halted or "")


def test_a_frame_whose_time_is_not_its_entrys_is_refused() -> None:
    both = Regions(nodes=1)
    both.run_until_level()
    head = both.head()
    assert head is not None
    outcomes: list[bool] = []
    with pytest.raises(ValueError, match="another time or seed"):
        head.up.mirroring.offer([Frame(10_000, 1, 1, encode_entry(7, 8, [Tick()]))], outcomes.append)
    assert outcomes == []


def test_a_cluster_with_jobs_of_its_own_follows_nobody() -> None:
    both = Regions(nodes=1)
    both.replica = SmallCluster(1)
    both.replica.put_now(b"its own")
    both.replica.kill("n1")
    both.replica.settings["replica"] = True
    both.replica.start("n1")
    put_some(both.origin, 2)
    both.run(3.0)
    (node,) = both.replica
    assert "has jobs, settings or users of its own" in (node.up.mirroring.halted or "")
    assert node.machine.mirrored is None
    assert node.machine.total("q").jobs == 1


def test_a_fenced_origin_serves_nobody_when_it_comes_back() -> None:
    both = Regions()
    put_some(both.origin, 3)
    outcome = Outcome()
    leader = both.origin.leader()
    leader.up.leadership.propose_alone(Fence("0011223344556677"), outcome)
    both.origin.run_until(lambda: outcome.state != "open")
    assert outcome.reply == Accepted()
    both.run_until_level()                  # the copy has all, its fence included
    for name in ("n1", "n2", "n3"):
        both.origin.kill(name)
    for name in ("n1", "n2", "n3"):
        both.origin.start(name)
    both.origin.run(5.0)
    assert both.origin.serving() is None
    assert {node.machine.fenced for node in both.origin} == {"0011223344556677"}
    both.forget_offers()
    both.run_until_level()
    both.promote()
    assert both.replica.leader().machine.total("q").jobs == 3


class TestOffers:
    """Frames never follow a gap, whatever becomes of the ones before them."""

    def setup_method(self) -> None:
        self.proposed: list[tuple[Operation, Pending]] = []
        self.machine = Machine()
        leadership = SimpleNamespace(
            heads_replica=lambda: True, propose_alone=lambda operation, pending: self.proposed.append(
                (operation, pending)))
        self.machine.apply(1, 0, 0, [Lead("n1", 1, ("n1",), b"sixteen bytes id", 0)])
        self.machine.apply(2, 0, 0, [RaiseLevel(2, ("n1",))])
        self.mirroring = Mirroring(self.machine, Chain(), cast(Leadership, leadership))
        self.outcomes: list[bool] = []

    def offer(self, *indexes: int) -> list[int]:
        """Offer frames with these indexes; returns the index which each operation follows."""
        before = len(self.proposed)
        self.mirroring.offer([frame(index, Tick()) for index in indexes], self.outcomes.append)
        operations = [operation for operation, _ in self.proposed[before:]]
        return [one.after for one in operations if isinstance(one, MirrorEntries)]

    def execute(self) -> None:
        """Execute what was proposed first."""
        operation, pending = self.proposed.pop(0)
        (reply,) = self.machine.apply(self.machine.index + 1, 0, 0, [operation]).replies
        pending.applied(reply)

    def test_they_follow_those_in_flight(self) -> None:
        assert self.offer(1, 2, 4) == [0]
        assert self.mirroring.position().index == 0
        assert self.offer(5) == [4]
        self.execute()
        self.execute()
        assert self.outcomes == [True, True]
        assert self.machine.mirrored == 5

    def test_what_is_offered_again_has_no_outcome_before_the_first_has_one(self) -> None:
        self.offer(1, 2)
        assert self.offer(1, 2) == []
        assert self.outcomes == [False]
        self.execute()
        assert self.outcomes == [False, True]
        assert self.offer(1, 2) == []
        assert self.outcomes == [False, True, True]

    def test_after_a_failure_they_follow_the_mirror(self) -> None:
        self.offer(1, 2)
        self.execute()
        self.offer(3)
        self.offer(4)
        self.proposed.pop(0)[1].unknown()
        self.execute()                      # what was behind it follows a gap now
        assert self.outcomes == [True, False, False]
        assert self.machine.mirrored == 2
        assert self.offer(3, 4) == [2]
        self.execute()
        assert self.machine.mirrored == 4

    def test_large_frames_go_in_parts_and_many_in_portions(self) -> None:
        large = Frame(3, 7, 8, encode_entry(7, 8, [Put("q", 0, bytes(600_000))]))
        self.mirroring.offer([frame(1, Tick()), frame(2, Tick()), large, frame(4, Tick())], self.outcomes.append)
        operations = [operation for operation, _ in self.proposed if isinstance(operation, MirrorEntries)]
        parts = [(len(one.frames), one.offset, one.last) for one in operations]
        step = limits.MIRROR_PORTION_BYTES
        assert parts == [(2, 0, True), (1, 0, False), (1, step, False), (1, 2 * step, True), (1, 0, True)]
        assert max(len(encode_entry(0, 0, [operation])) for operation, _ in self.proposed) < 257 << 10
        while self.proposed:
            self.execute()
        assert self.outcomes == [True]
        assert self.machine.mirrored == 4
        assert self.machine.total("q").jobs == 1

    def test_a_portion_has_the_work_of_an_entry_at_most(self) -> None:
        puts = [Put("q", 0, b"%d" % number) for number in range(500)]       # 4,000 units of work
        self.mirroring.offer([frame(index, *puts) for index in range(1, 11)], self.outcomes.append)
        sizes = [len(operation.frames) for operation, _ in self.proposed if isinstance(operation, MirrorEntries)]
        assert sizes == [4, 4, 2]
