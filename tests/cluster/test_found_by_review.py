"""Defects that were found by reading and by simulation, kept as histories."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sockpqd.cluster.journal.journal import Journal
from sockpqd.cluster.limits import CHOKE_BYTES
from sockpqd.cluster.raft import elections, pysyncobj_adapter
from sockpqd.cluster.wire.messages import Ack, Append, Message, PreVote, RequestVote, TimeoutNow, encode
from sockpqd.core import Accepted, ChangeMember, MemberChange, Put
from tests.cluster.helpers.faulty_disk import FaultyDisk
from tests.cluster.helpers.memory_disk import MemoryDisk
from tests.cluster.helpers.small_cluster import Outcome, SmallCluster, SmallNode
from tests.cluster.test_hazards import lagging


def everything(source: str, target: str, message: Message) -> bool:
    return True


def others(world: SmallCluster, *nodes: SmallNode) -> list[SmallNode]:
    return [node for node in world if node not in nodes]


def join(world: SmallCluster, a: SmallNode, b: SmallNode) -> None:
    world.cuts.discard(frozenset((a.name, b.name)))
    world._connect(frozenset((a.name, b.name)))


def names(nodes: list[SmallNode]) -> str:
    return " ".join(node.name for node in nodes)


@pytest.mark.parametrize("cured", [True, False], ids=["cured", "cure-removed"])
def test_a_vote_that_its_giver_forgot_elects_nobody_behind_an_admission(
    cured: bool, monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A candidate of five holds its own vote and that of `wiped`; its other request is late. Then `wiped` loses its
    disk, the old leader admits it, commits with its help and dies, and the late request arrives."""
    if not cured:
        real = elections.Elections.vote_requested

        def gullible(self: elections.Elections, peer: Any, message: RequestVote) -> None:
            self._pre_votes_granted.add(peer.name)
            real(self, peer, message)
        monkeypatch.setattr(elections.Elections, "vote_requested", gullible)
    conf = pysyncobj_adapter.SyncObjConf
    # The old leader's clock is slow: it does not step down though nobody hears it.
    slow = {"leaderFallbackTimeout": 10.0}
    monkeypatch.setattr(pysyncobj_adapter, "SyncObjConf", lambda **keys: conf(**{**keys, **slow}))
    world = SmallCluster(5, 3)
    world.put_now(b"old")
    world.run_until(world.settled)
    first, wiped = world.leader(), world.followers()[0]
    world.cut(wiped.name, names(others(world, wiped)))
    world.kill(first.name)
    world.run(0.1)
    world.start(first.name)
    leader = world.leader()         # of a term in which `wiped` has acknowledged nothing
    candidate, late, third = others(world, leader, wiped)
    for node in (candidate, late, third):
        join(world, node, wiped)
    world.put_now(b"second")
    world.run(0.3)
    world.cut(leader.name, candidate.name)
    held: list[tuple[str, Message]] = []
    quiet = True

    def hold(source: str, target: str, message: Message) -> bool:
        if quiet and (source == leader.name or (isinstance(message, PreVote) and (
                source != candidate.name or target == third.name))):
            return False
        if source == candidate.name and isinstance(message, RequestVote) and target == late.name:
            held.append((target, message))
            return False
        return True
    world.filter = hold
    world.run_until(lambda: held, 1.9)
    quiet = False
    world.run(0.003)
    world.kill(wiped.name)
    world.wipe(wiped.name)
    world.cut(candidate.name, wiped.name)
    join(world, leader, wiped)
    world.start(wiped.name)
    world.run_until(lambda: wiped.up.journal.voter, 5)
    world.filter = lambda source, target, message: (
        (source, target) != (leader.name, late.name) and not isinstance(message, RequestVote))
    precious = leader.propose(Put("q", 0, b"precious"))
    world.run_until(lambda: precious.state == "applied", 2)
    world.kill(leader.name)
    world.filter = everything
    target, message = held[0]
    world.deliver(candidate.name, target, message)
    new = world.leader()
    assert (b"precious" in world.bodies(new.name)) is cured


def test_a_wiped_node_that_met_an_old_leader_first_has_no_credit_for_its_old_log() -> None:
    world = SmallCluster(3)
    world.put_now(b"old")
    world.run_until(world.settled)
    wiped = world.followers()[0]
    leader = world.leader()
    term = leader.up.replica.term
    other = others(world, wiped, leader)[0]
    world.put_now(b"held")
    world.run_until(world.settled)
    world.kill(wiped.name)
    world.wipe(wiped.name)
    world.cut(leader.name, wiped.name)
    world.start(wiped.name)
    wiped.up.journal.setCurrentTerm(term, None)     # as an old leader would have left it: not empty any more
    world.run(0.05)
    assert not wiped.up.journal.empty
    join(world, leader, wiped)
    world.turn(leader.name)
    assert leader.up.peers[wiped.name].match == 0
    world.run_until(lambda: wiped.up.journal.voter, 10)
    assert wiped.up.journal.last_index >= other.up.journal.last_index - 1


def test_a_peer_that_takes_bytes_slowly_is_choked_also_when_entries_come_one_by_one() -> None:
    world = SmallCluster(3)
    leader = world.leader()
    slow = world.followers()[0].name
    buffered = 0

    def swallow(source: str, target: str, message: Message) -> bool:
        nonlocal buffered
        if source == leader.name and target == slow and isinstance(message, Append):
            buffered += len(encode(message))
            return False
        return True
    world.filter = swallow
    leader.buffered_bytes = lambda name: buffered if name == slow else 0    # type: ignore[method-assign]
    for _ in range(20):
        outcome = leader.propose(Put("q", 0, bytes(900_000)))
        world.run_until(lambda: outcome.state != "open")    # noqa: B023
    assert leader.up.peers[slow].choked
    assert buffered < CHOKE_BYTES + (2 << 20)
    buffered = 0
    world.filter = everything
    world.run_until(world.settled)
    assert not leader.up.peers[slow].choked
    assert len(world.states()) == 1


def test_leadership_is_offered_to_another_when_the_first_heir_hangs() -> None:
    world = SmallCluster(3)
    world.put_now()
    world.run_until(world.settled)
    old = world.leader()
    transferee = old.up.leadership.handover.transferee()
    assert transferee is not None
    turn = world.turn
    world.turn = lambda name: None if name == transferee.name else turn(name)     # type: ignore[method-assign]
    offered = []

    def watch(source: str, target: str, message: Message) -> bool:
        if isinstance(message, TimeoutNow):
            offered.append(target)
        return True
    world.filter = watch
    old.up.leadership.online = False
    old.up.transport.elections.may_campaign = False
    world.run_until(lambda: len(set(offered)) == 2, 3)


def test_a_snapshot_that_rotted_on_the_leader_is_written_anew() -> None:
    world = SmallCluster(3)
    away = lagging(world)
    leader = world.leader()
    store = leader.up.store
    rotten = leader.disk.names_now[str(store._files.path(store.newest_index))]
    rotten.data[len(rotten.data) // 2] ^= 4
    world.sent.clear()
    world.start(away.name)
    world.run_until(world.settled, 30)
    refused = sum(1 for _, _, m in world.sent if isinstance(m, Ack) and m.snapshot is not None and m.reset)
    assert 1 <= refused < 5
    assert len(world.states()) == 1


def test_offline_leaves_what_is_in_flight_its_time() -> None:
    world = SmallCluster(3)
    world.put_now()
    leader = world.leader()

    def slow_disks(source: str, target: str, message: Message) -> bool:
        if isinstance(message, Ack) and target == leader.name and message.success:
            world.events.at(world.now + 1.2, lambda: world.deliver(source, target, message))
            world.deliver(source, target, Ack(message.term, message.epoch, message.sent, 0, False, False))
            return False
        return True
    world.filter = slow_disks
    outcome = leader.propose(Put("q", 0, b"in flight"))
    world.run(0.1)
    leader.up.leadership.online = False
    leader.up.transport.elections.may_campaign = False
    world.run_until(lambda: outcome.state != "open", 6)
    assert outcome.state == "applied"


def test_a_lone_node_that_is_offline_before_its_first_election_does_not_spin() -> None:
    world = SmallCluster(1)
    world.put_now()
    world.kill("n1")
    node = world.start("n1")
    node.up.transport.elections.may_campaign = False
    node.up.journal.add(b"\1", node.up.journal.last_index + 1, node.up.replica.term)
    world.run(0.1)
    assert not node.up.busy


def test_what_a_killed_process_wrote_is_synced_before_the_next_one_builds_on_it() -> None:
    """Found by simulation: frames in the operating system's memory survive SIGKILL, but not the power loss after it."""
    class KilledError(Exception):
        pass

    disk = MemoryDisk()
    journal = Journal.open(Path("/j"), disk, segment_bytes=1 << 20)
    journal.add(b"\1", 1, 0)
    journal.sync()
    sync = disk.sync

    def die(file: int) -> None:
        raise KilledError
    disk.sync = die     # type: ignore[method-assign]
    journal.add(b"\0vouched for", 2, 1)
    with pytest.raises(KilledError):
        journal.sync()
    disk.sync = sync    # type: ignore[method-assign]
    disk._locked.clear()
    assert Journal.open(Path("/j"), disk, segment_bytes=1 << 20).last_index == 2
    disk.crash()
    assert Journal.open(Path("/j"), disk, segment_bytes=1 << 20).last_index == 2


def test_a_wiped_node_is_admitted_after_a_hand_over_that_nobody_took() -> None:
    world = SmallCluster(3)
    world.put_now()
    world.run_until(world.settled)
    wiped = world.followers()[0]
    world.kill(wiped.name)
    world.wipe(wiped.name)
    leader = world.leader()
    world.filter = lambda source, target, message: not isinstance(message, TimeoutNow)
    leader.up.leadership.online = False
    world.run(0.3)
    leader.up.leadership.online = True
    world.run_until(lambda: leader.up.leadership.serving)
    world.start(wiped.name)
    world.run_until(lambda: wiped.up.journal.voter, 10)


def test_who_was_told_that_a_node_is_superfluous_is_right_also_after_a_power_loss() -> None:
    """The entry was durable, but not yet that it is committed: the rest waited for the removed node again."""
    world = SmallCluster(2)
    world.put_now(b"kept")
    leader, gone = world.leader(), world.followers()[0]
    outcome = Outcome()
    leader.up.leadership.propose_alone(ChangeMember(gone.name, MemberChange.REMOVE, 0), outcome)
    world.run_until(lambda: outcome.state != "open")
    assert outcome.reply == Accepted()
    world.kill(gone.name)
    world.kill(leader.name)
    world.start(leader.name)
    assert world.leader() is leader
    assert world.bodies(leader.name) == [b"kept"]


def test_a_removed_leader_that_knows_more_than_the_rest_helps_it_once_more() -> None:
    """Found by simulation: it asked for no votes and, its log being longer, gave none."""
    world = SmallCluster(2)
    world.put_now(b"kept")
    gone, rest = world.leader(), world.followers()[0]
    world.filter = lambda source, target, message: not (
        isinstance(message, Append) and any(b"more" in entry[0] for entry in message.entries))
    outcome = Outcome()
    gone.up.leadership.propose_alone(ChangeMember(gone.name, MemberChange.REMOVE, 0), outcome)
    gone.up.leadership.propose_alone(Put("q", 0, b"more"), Outcome())
    world.run_until(lambda: outcome.state != "open")
    assert outcome.reply == Accepted()
    world.kill(gone.name)
    world.filter = everything
    world.start(gone.name)
    world.run_until(lambda: world.serving() is rest)
    assert world.bodies(rest.name) == [b"kept", b"more"]
    world.run(5)
    assert not gone.up.replica.is_leader


def test_a_wiped_node_helps_no_old_leader_to_commit() -> None:
    """Found by simulation: it had promised a newer leader not to, and has forgotten it."""
    world = SmallCluster(3)
    world.put_now(b"before")
    world.run_until(world.settled)
    old = world.leader()
    first, second = world.followers()
    world.cut(old.name, names([first, second]))
    world.run_until(lambda: world.serving() not in (None, old))
    world.put_now(b"precious")
    world.run_until(lambda: first.up.journal.last_index == second.up.journal.last_index)
    world.kill(second.name)
    world.wipe(second.name)
    world.cut(first.name, second.name)
    join(world, old, second)
    world.start(second.name)
    assert old.up.replica.is_leader
    outcome = Outcome()
    old.up.leadership.propose_alone(Put("q", 0, b"in its place"), outcome)
    world.run(1)
    assert old.up.peers[second.name].match == old.up.journal.last_index
    assert outcome.state != "applied"
    world.heal()
    world.run_until(lambda: world.settled() and second.up.journal.voter)
    assert world.bodies(old.name) == [b"before", b"precious"]


def test_the_wish_for_an_election_does_not_outlive_isolation() -> None:
    """The library keeps it until somebody is connected, and would depose a healthy leader then, without PreVote."""
    world = SmallCluster(3)
    term = world.leader().up.replica.term
    node = world.followers()[0]
    node.up.transport.elections._campaign()
    world.cut(node.name, " ".join(name for name in world.nodes if name != node.name))
    world.turn(node.name)
    world.run(0.2)
    world.heal()
    world.run(1)
    assert world.leader().up.replica.term == term


def test_the_length_of_a_segment_that_a_killed_process_enlarged_is_durable_before_it_is_used() -> None:
    """Found by simulation (seed 2009688): otherwise a torn first frame looks like damage after the next power loss."""
    class KilledError(Exception):
        pass

    disk = FaultyDisk()
    journal = Journal.open(Path("/j"), disk, segment_bytes=4096)
    journal.add(b"\1", 1, 0)
    journal.sync()
    journal.add(b"\0" + bytes(5000), 2, 1)
    sync = disk.sync

    def die(file: int) -> None:
        raise KilledError
    disk.sync = die     # type: ignore[method-assign]
    with pytest.raises(KilledError):
        journal.sync()
    disk.sync = sync    # type: ignore[method-assign]
    disk.restart()
    enlarged = disk.names_now["/j/journal-00000002"]
    assert len(enlarged.data) > enlarged.synced_bytes
    Journal.open(Path("/j"), disk, segment_bytes=4096)
    assert len(enlarged.data) == enlarged.synced_bytes
