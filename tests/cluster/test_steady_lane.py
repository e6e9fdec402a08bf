"""The steady lane: entries take it, each of its invariants is needed, and any change of lanes is harmless.

A test with `cured` runs with the invariant and with the code that keeps it removed by a patch; the second run must show
the damage.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from sockpqd.cluster import limits
from sockpqd.cluster.journal.journal import Journal
from sockpqd.cluster.raft.pysyncobj_adapter import Replica, WatchedTransport
from sockpqd.cluster.raft.steady_lane import SteadyLane
from sockpqd.cluster.syncing import Syncing
from sockpqd.cluster.wire.messages import Ack, Append, Message, StaleTerm
from sockpqd.core import Put, encode_entry
from tests.cluster.helpers.small_cluster import Outcome, SmallCluster, SmallNode


@pytest.fixture(params=[True, False], ids=["cured", "cure-removed"])
def cured(request: pytest.FixtureRequest) -> bool:
    """Return whether the invariant is kept in this run."""
    return bool(request.param)


def settled_world(jobs: int = 3) -> SmallCluster:
    world = SmallCluster(3)
    for _ in range(jobs):
        world.put_now()
    world.run_until(world.settled)
    return world


def put_off_housekeeping(world: SmallCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no turn of the next minute be one for housekeeping."""
    monkeypatch.setattr(limits, "HOUSEKEEPING_S", 60.0)
    for node in world:
        node.up._housekeeping_at = world.now + 60.0


def command(node: SmallNode) -> bytes:
    """Return an entry as the library keeps it."""
    replica = node.up.replica
    replica.propose(encode_entry(1_700_000_000_000, 1, [Put("q", 0, b"forged")]), lambda result, reason: None)
    return replica.proposed.pop()[0]


def receive(world: SmallCluster, sender: SmallNode, to: SmallNode, message: Message) -> list[Message]:
    """Return a node's answer to a message."""
    world.sent.clear()
    to.up.inbox.append((sender.name, message))
    world.turn(to.name)
    return [answer for source, target, answer in world.sent if source == to.name and target == sender.name]


def test_entries_go_straight_through(monkeypatch: pytest.MonkeyPatch) -> None:
    world = settled_world()
    put_off_housekeeping(world, monkeypatch)
    before = [node.up.transport.lane.entries for node in world]
    ticks: list[Replica] = []
    monkeypatch.setattr(Replica, "tick", ticks.append)
    outcomes = []
    for _ in range(50):
        outcomes.append(world.put())
        world.turn(world.leader().name)
        world.run(0.004)
    assert [outcome.state for outcome in outcomes] == 50 * ["applied"]
    assert [node.up.transport.lane.entries - count for node, count in zip(world, before, strict=True)] == 3 * [50]
    assert not ticks


def test_without_the_lane_the_library_does_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SteadyLane, "open", False)
    world = settled_world(20)
    assert [node.up.transport.lane.entries for node in world] == [0, 0, 0]
    assert len(world.states()) == 1


@pytest.mark.parametrize("lane", [True, False], ids=["steady-lane", "library"])
def test_what_is_proposed_while_an_entry_is_applied_is_appended_in_the_same_turn(
    lane: bool, monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing would wake the node for it."""
    monkeypatch.setattr(SteadyLane, "open", lane)
    world = settled_world()
    leader = world.leader()
    replica, journal = leader.up.replica, leader.up.journal
    entry = encode_entry(1_700_000_000_000, 1, [Put("q", 0, b"next")])
    applied: list[int] = []
    left: list[int] = []

    def again(result: Any, reason: int) -> None:
        applied.append(replica.applied_index + 1)
        if len(applied) < 3:
            replica.propose(entry, again)

    monkeypatch.setattr(leader, "turn_ended", lambda: left.append(len(replica.proposed)))
    replica.propose(entry, again)
    world.run(0.2)
    assert applied == [journal.last_index - 2, journal.last_index - 1, journal.last_index]
    assert not any(left)


def test_only_entries_of_its_own_term_are_committed(cured: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry of an earlier term is on a majority; a later leader that does not have it might still replace it."""
    world = settled_world()
    leader = world.leader()
    journal, replica = leader.up.journal, leader.up.replica
    if not cured:
        monkeypatch.setattr(SteadyLane, "_of_own_term", lambda self, index: True)
    # As after an election: the last entry is of the term before, and nothing of the present one is in the log yet.
    world.filter = lambda source, target, message: False
    committed, old = replica.commit_index, replica.term
    journal.add(command(leader), journal.last_index + 1, old)
    journal.sync()
    replica._SyncObj__raftCurrentTerm = old + 1
    for peer in leader.up.peers.values():
        peer.lead(old + 1)
        peer.match = journal.last_index
    leader.up.transport.lane._commit()
    assert (replica.commit_index == committed) is cured


def test_a_leader_counts_what_is_on_disk_only(cured: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    world = settled_world()
    leader = world.leader()
    journal, replica = leader.up.journal, leader.up.replica
    if not cured:
        whole = property(lambda self: self.last_index, lambda self, index: None)
        monkeypatch.setattr(Journal, "durable_index", whole, raising=False)
    committed = replica.commit_index
    journal.add(command(leader), journal.last_index + 1, replica.term)
    for peer in leader.up.peers.values():
        peer.match = journal.last_index
    leader.up.transport.lane._commit()
    assert (replica.commit_index == committed) is cured


def test_a_follower_appends_only_what_continues_its_log(cured: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its last entry is of another term than the leader's entry with that index."""
    world = settled_world()
    leader, follower = world.leader(), world.followers()[0]
    journal, replica = follower.up.journal, follower.up.replica
    last, term = journal.last_index, replica.term
    tail = (command(leader), last + 1, term - 1)
    journal.add(*tail)
    if not cured:
        monkeypatch.setattr(
            SteadyLane, "_continues", lambda self, message: message.prev_index == self._context.journal.last_index)
    answers = receive(world, leader, follower, Append(
        term, 1, world.now, replica.commit_index, last + 1, term, [(command(leader), last + 2, term)],
    ))
    assert (journal.last_index == last + 1) is cured
    assert [type(answer) is Ack and answer.success for answer in answers] == [not cured]


def test_a_follower_appends_only_for_the_leader_of_its_term(cured: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    world = settled_world()
    leader, follower = world.leader(), world.followers()[0]
    journal, replica = follower.up.journal, follower.up.replica
    last, term = journal.last_index, replica.term
    if not cured:
        monkeypatch.setattr(Replica, "follows", lambda self, node, term: True)
    answers = receive(world, leader, follower, Append(
        term - 1, 1, world.now, replica.commit_index, last, journal.last_term, [(command(leader), last + 1, term - 1)],
    ))
    assert (journal.last_index == last) is cured
    assert [type(answer) is StaleTerm for answer in answers] == [cured]


def test_a_node_that_leads_itself_does_not_follow_a_leader_of_the_same_term() -> None:
    world = settled_world()
    leader, other = world.leader(), world.followers()[0]
    node = leader.up.peers[other.name].node
    assert not leader.up.replica.follows(node, leader.up.replica.term)


def test_entries_of_unknown_kinds_stop_a_follower_in_the_lane_as_well() -> None:
    world = settled_world()
    leader, follower = world.leader(), world.followers()[0]
    journal, term = follower.up.journal, follower.up.replica.term
    last = journal.last_index
    entry = (b"\2x", last + 1, term)
    receive(world, leader, follower, Append(term, 1, world.now, last, last, journal.last_term, [entry]))
    assert follower.failure is not None


def test_a_peer_gets_only_what_follows_the_last_entry_it_was_sent(
    cured: bool, monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = settled_world()
    put_off_housekeeping(world, monkeypatch)
    leader, follower = world.leader(), world.followers()[0]
    peer = leader.up.peers[follower.name]
    lane = leader.up.transport.lane
    if not cured:
        monkeypatch.setattr(SteadyLane, "_in_step", lambda self, peer, journal, term: True)
    peer.sent_up_to = None                      # as on a new connection
    before = lane.entries
    world.put()
    world.turn(leader.name)
    assert (lane.entries == before) is cured    # the library sends, which knows how much the peer has
    assert peer.sent_up_to == (leader.up.journal.last_index, leader.up.replica.term)


def test_acknowledgements_wait_for_the_disk(cured: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    world = settled_world()
    early: list[Ack] = []

    def watch(source: str, target: str, message: Message) -> bool:
        durable = world[source].up.journal.durable_index
        if isinstance(message, Ack) and message.success and message.next_index > durable + 1:
            early.append(message)
        return True
    world.filter = watch
    if not cured:
        sync = Syncing.sync

        def flush_and_sync(self: Syncing, now: float, *, leads: bool) -> None:
            self._network.flush()
            sync(self, now, leads=leads)
        monkeypatch.setattr(Syncing, "sync", flush_and_sync)
    outcome = world.put()
    world.run(0.05)
    assert (not early) is cured
    assert outcome.state == "applied"


def test_what_is_given_to_the_library_has_its_tick_in_the_same_turn(
    cured: bool, monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = settled_world()
    put_off_housekeeping(world, monkeypatch)
    follower = world.followers()[0]
    world.turn(follower.name)
    ticks: list[Replica] = []
    monkeypatch.setattr(Replica, "tick", lambda self: ticks.append(self))
    if not cured:
        monkeypatch.setattr(WatchedTransport, "attention", property(lambda self: False, lambda self, value: None))
        follower.up.transport.__dict__.pop("attention", None)
    follower.up.transport.context.adopt_term(next(iter(follower.up.peers.values())), follower.up.replica.term + 1)
    world.turn(follower.name)
    assert bool(ticks) is cured


def test_a_busy_leader_that_nobody_hears_steps_down(cured: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes on proposing, so that each of its turns could be one of the lane."""
    world = settled_world()
    leader = world.leader()
    if not cured:
        put_off_housekeeping(world, monkeypatch)
    world.filter = lambda source, target, message: leader.name not in (source, target)
    for _ in range(1500):
        if leader.up.leadership.serving:
            leader.propose(Put("q", 0, b"x"))
        leader.up.turn()
        world.events.now += 0.001
    assert (not leader.up.replica.is_leader) is cured


def changes(world: SmallCluster, seed: int) -> Iterator[None]:
    """Let each node change its lane with every message that is sent, and now and then lose one of them."""
    rng = random.Random(seed)

    def change(source: str, target: str, message: Any) -> bool:
        for name in (source, target):
            driver = world[name].driver
            if driver is not None:
                driver.transport.lane.open = rng.random() < 0.5
        return True
    world.filter = change
    yield
    world.filter = lambda source, target, message: True


@pytest.mark.parametrize("seed", range(12))
def test_lanes_may_change_at_any_message(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With many entries in flight, a follower that is cut off and comes back, and a change of leaders."""
    rng = random.Random(seed)
    monkeypatch.setattr(limits, "ENTRIES_IN_FLIGHT_MAX", rng.choice((1, 8)))
    monkeypatch.setattr(limits, "ENTRY_OPERATIONS_MAX", rng.choice((1, 3)))
    monkeypatch.setattr(limits, "HOUSEKEEPING_S", rng.choice((0.005, 0.02)))
    world = settled_world()
    for _ in changes(world, seed):
        outcomes: list[Outcome] = []
        for step in range(60):
            leader = world.serving()
            if leader is not None:
                outcomes += [leader.propose(Put("q", 0, b"%d" % step)) for _ in range(rng.randrange(4))]
            if step == 20 and leader is not None:
                away = world.followers()[0].name
                world.cut(away, " ".join(node.name for node in world if node.name != away))
            if step == 35:
                world.heal()
            if step == 45 and leader is not None:
                world.kill(leader.name)
                world.start(leader.name)
            world.run(rng.choice((0.0005, 0.002, 0.02)))
    world.leader()
    world.run_until(lambda: world.settled() and not [o for o in outcomes if o.state == "open" and o.reply], 20)
    assert len(world.states()) == 1
    acknowledged = sum(outcome.state == "applied" for outcome in outcomes)
    assert acknowledged >= 20
    assert len(world.bodies("n1")) >= acknowledged
