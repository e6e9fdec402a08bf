"""The leader's lease: no node serves, or holds a lease, before the lease of the last leader has expired."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from sockpqd.cluster import limits
from sockpqd.cluster.wire.messages import Ack, Append, Message, PreVote, PreVoteAnswer, StaleTerm, TimeoutNow
from sockpqd.core import Put
from tests.cluster.helpers import small_cluster
from tests.cluster.helpers.small_cluster import DELAY_S, TURN_S, SmallCluster, SmallNode

STEP_S = 0.001


def deaf(world: SmallCluster, leader: SmallNode) -> None:
    """End the followers' ends of the leader's connections, but not the leader's; what is sent there is lost."""
    world.filter = lambda source, target, message: leader.name not in (source, target)
    world.run(2 * DELAY_S)                      # what was sent before has arrived
    for follower in world.followers():
        follower.up.inbox.append((leader.name, None))
        world.turn(follower.name)


def holders(world: SmallCluster) -> list[str]:
    """Return the nodes that hold a lease at this moment."""
    return [node.name for node in world if node.driver is not None and node.up.holds_lease()]


def steps(world: SmallCluster, seconds: float) -> Iterator[None]:
    """Return moments, one after another."""
    end = world.now + seconds
    while world.now < end:
        world.run(STEP_S)
        yield


@pytest.mark.parametrize("seed", range(8))
def test_followers_that_lost_the_connection_wait_for_the_end_of_the_lease(seed: int) -> None:
    world = SmallCluster(3, seed=seed)
    old = world.leader()
    world.put_now()
    world.run(1)
    assert holders(world) == [old.name]
    deaf(world, old)
    new = None
    for _ in steps(world, 0.5):
        new = next((node for node in world if node is not old and node.up.leadership.serving), None)
        if new is not None:
            break
    assert new is not None, "they do not wait for longer than that"
    assert holders(world) in ([], [new.name])
    outcome = new.propose(Put("q", 0, b"x"))
    world.run(0.05)
    assert outcome.state == "applied"
    assert holders(world) == [new.name]


def test_the_lease_ends_before_the_promise_on_which_it_rests() -> None:
    world = SmallCluster(3)
    old = world.leader()
    world.put_now()
    world.run(1)
    sent = [message for source, _, message in world.sent if source == old.name and isinstance(message, Append)][-1]
    assert old.up.transport.lease_until() <= sent.sent + limits.LEASE_SHARE * sent.promise_ms / 1000


def test_it_is_counted_from_the_sending_of_what_was_acknowledged() -> None:
    world = SmallCluster(3)
    leader = world.leader()
    world.put_now()
    world.run(1)
    held: list[Message] = []

    def hold(source: str, target: str, message: Message) -> bool:
        if isinstance(message, Append) and source == leader.name:
            held.append(message)
            return False
        return True
    world.filter = hold
    world.run(0.04)
    until = leader.up.transport.lease_until()
    world.run(limits.PROMISE_SHARE_MIN)
    message = held[-1]
    assert isinstance(message, Append)
    for follower in world.followers():
        world.deliver(leader.name, follower.name, message)
    world.run(2 * TURN_S)
    now_until = leader.up.transport.lease_until()
    assert until < now_until <= message.sent + message.promise_ms / 1000, "not from when its answer arrived"


class Asking:
    """A follower that lost the leader long ago, whose log is as long as any, and another one that it may ask."""

    def __init__(self) -> None:
        self.world = SmallCluster(3)
        self.old = self.world.leader()
        self.world.put_now()
        self.world.run(1)
        self.candidate, self.asked = self.world.followers()
        self.world.cut(self.old.name, self.candidate.name)
        self.world.run(1)

    def granted(self) -> bool:
        """Return whether the candidate is given a PreVote if it asks now."""
        answers: list[bool] = []

        def note(source: str, target: str, message: Message) -> bool:
            if isinstance(message, PreVoteAnswer) and (source, target) == (self.asked.name, self.candidate.name):
                answers.append(message.granted)
            return False
        self.world.filter = note
        journal = self.candidate.up.journal
        self.world.deliver(self.candidate.name, self.asked.name, PreVote(
            99, self.candidate.up.replica.term, journal.last_index, journal.last_term))
        self.world.run(2 * DELAY_S)
        return answers[-1]

    def lose_leader(self) -> None:
        """End the other one's connection to the leader on its own side."""
        self.world.filter = lambda source, target, message: False
        self.world.run(2 * DELAY_S)
        self.asked.up.inbox.append((self.old.name, None))
        self.world.turn(self.asked.name)


def test_no_node_helps_another_one_before_its_promise_is_over() -> None:
    asking = Asking()
    asking.lose_leader()
    while asking.old.up.leadership.holds_lease():
        assert not asking.granted()
    asking.world.run(limits.PROMISE_SHARE_MIN)
    assert asking.granted()


def test_no_node_asks_for_itself_before_its_promise_is_over() -> None:
    """The one that it would ask has promised nothing."""
    asking = Asking()
    world, old = asking.world, asking.old
    asking.lose_leader()
    world.filter = lambda source, target, message: old.name not in (source, target)
    while old.up.leadership.holds_lease():
        world.run(STEP_S)
        asking.asked.up.transport.elections._deadline = world.now       # as if its turn had come
        assert asking.asked.up.replica.term == old.up.replica.term
    world.run_until(lambda: asking.asked.up.leadership.serving or asking.candidate.up.leadership.serving, 2)


def test_a_follower_that_was_started_again_keeps_what_it_may_have_promised() -> None:
    asking = Asking()
    world, asked = asking.world, asking.asked.name
    connected = frozenset((asked, asking.candidate.name))
    world.filter = lambda source, target, message: False
    world.kill(asked)                           # a process is killed and starts again at once
    world.start(asked)
    assert connected in world.links
    asking.asked.up.inbox.append((asking.old.name, None))
    world.turn(asked)
    assert asking.old.up.leadership.holds_lease()
    for _ in range(5):
        assert not asking.granted()
    world.run(0.6)
    assert asking.granted()


def test_a_leader_that_offered_its_office_holds_no_lease_in_that_term() -> None:
    """The other node may take it at any time, however late the offer reaches it."""
    world = SmallCluster(3)
    leader = world.leader()
    world.put_now()
    term = leader.up.replica.term
    late: list[tuple[str, Message]] = []

    def hold(source: str, target: str, message: Message) -> bool:
        if isinstance(message, TimeoutNow):
            late.append((target, message))
            return False
        return True
    world.filter = hold
    assert leader.up.leadership.handover.begin(None) is None
    world.run(0.3)
    assert late
    assert leader.up.transport.lease_until() < world.now
    leader.up.leadership.handover.end()
    world.run_until(lambda: leader.up.leadership.serving, 1)
    assert leader.up.replica.term > term, "it serves again, in another term"
    assert holders(world) == [leader.name]
    for target, message in late:
        world.deliver(leader.name, target, message)
    world.run(1)
    assert world.serving() is leader, "the offer counts no longer"


class Ages:
    """A leader of three whose followers answer after some time, in memory, and the promise that it asks for."""

    def __init__(self, delay_s: float) -> None:
        self.world = SmallCluster(3)
        self.leader = self.world.leader()
        self.world.put_now()
        self.delay(delay_s)

    def delay(self, seconds: float) -> None:
        """Delay everything that followers send from now on."""
        world = self.world

        def late(source: str, target: str, message: Message) -> bool:
            connection = world.links[frozenset((source, target))]
            if target == self.leader.name:
                world.events.at(world.now + seconds, lambda: world.deliver(source, target, message, connection))
            return target != self.leader.name
        world.filter = late

    @property
    def promise_ms(self) -> int:
        return self.leader.up.transport.context.promise_ms


def test_where_answers_take_long_the_promise_becomes_long_and_the_lease_holds() -> None:
    ages = Ages(0.2)
    ages.world.run(1)
    assert 300 < ages.promise_ms <= 600
    for _ in steps(ages.world, 1):
        assert ages.leader.up.holds_lease()
    ages.delay(0)
    ages.world.run(3 * limits.PROMISE_WINDOW_S)
    assert ages.promise_ms < 120, "and short again"


def test_a_promise_is_counted_as_it_was_asked_for() -> None:
    """When later messages ask for more, what was acknowledged before counts by what it asked for."""
    ages = Ages(0.0)
    ages.world.run(1)
    leader = ages.leader
    peer = leader.up.peers[ages.world.followers()[0].name]
    ack = Ack(leader.up.replica.term, peer.epoch, ages.world.now, 0, False, False, None, 80)
    leader.up.transport.context.promise_ms = 500
    leader.up.transport.receive(peer.name, ack)
    assert peer.promised_until == ack.sent + 0.08 * limits.LEASE_SHARE
    leader.up.transport.receive(peer.name, Ack(ack.term, ack.epoch, ack.sent + 0.01, 0, False, False))
    assert peer.promised_until == ack.sent + 0.08 * limits.LEASE_SHARE, "an older version promises nothing"
    assert peer.promised_until <= ack.sent + 0.08 / 1.1, "a follower's clock may run a tenth faster"


@pytest.mark.parametrize("delay_s", [0.0005, 0.005, 0.01, 0.02, 0.05])
def test_an_idle_leader_holds_its_lease_on_any_line(delay_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """An acknowledgement that commits nothing wakes nobody, and counts already while it waits for a turn."""
    monkeypatch.setattr(small_cluster, "DELAY_S", delay_s)
    world = SmallCluster(3)
    leader = world.leader()
    world.put_now()
    world.run(15)
    woken = leader.woken
    for _ in steps(world, 2):
        assert leader.up.holds_lease()
    if delay_s < 0.05:
        assert leader.woken - woken < 50, "a turn for each heartbeat"


def test_what_waits_behind_another_message_does_not_count_yet() -> None:
    world = SmallCluster(3)
    leader = world.leader()
    world.put_now()
    world.run(1)
    peer = leader.up.peers[world.followers()[0].name]
    term = leader.up.replica.term
    world.filter = lambda source, target, message: False
    world.run(0.3)
    assert not leader.up.holds_lease()
    ack = Ack(term, peer.epoch, world.now, 0, False, False, None, 100)
    leader.up.inbox[:] = [(peer.name, StaleTerm(term)), (peer.name, ack)]
    assert not leader.up.holds_lease()
    leader.up.inbox[:] = [(peer.name, replace(ack, term=term - 1))]
    assert not leader.up.holds_lease(), "of another term"
    leader.up.inbox[:] = [(peer.name, ack)]
    assert leader.up.holds_lease()


def test_an_election_that_was_won_before_a_promise_is_not_begun_after_it() -> None:
    """The answer to its question and a message of the leader are handled in one turn."""
    asking = Asking()
    world, asked, old = asking.world, asking.asked, asking.old
    asking.lose_leader()
    world.run(0.2)
    elections, term = asked.up.transport.elections, asked.up.replica.term
    world.filter = lambda source, target, message: False
    elections._deadline = world.now
    world.turn(asked.name)                      # it asks
    begun, journal = elections.begun, asked.up.journal
    asked.up.inbox += [
        (asking.candidate.name, PreVoteAnswer(elections._round, term, True)),
        (old.name, Append(term, 1, world.now, 0, journal.last_index, journal.last_term, [], 100)),
    ]
    world.turn(asked.name)
    world.run(0.05)
    assert elections.begun == begun
