"""Each condition of leading and serving alone: who serves, who may answer from the lease, whose clock counts."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from sockpqd.cluster import limits
from sockpqd.cluster.leader.leadership import Leadership
from sockpqd.cluster.raft.peer import Peer
from sockpqd.cluster.raft.pysyncobj_adapter import PeerNode
from sockpqd.core import Lead, Put, Resume, Tick

TERM = 7
NOW = 64.0
WALL_MS = 1_000_000


class Node:
    """A leader that serves, with stand-ins around it: one of three voters, in contact with `p` and `q`."""

    def __init__(self) -> None:
        self.now = NOW
        self.calls: list[Any] = []
        self.alone: list[Any] = []
        self.proposed: list[Any] = []
        self.settings = SimpleNamespace(
            replica=False,
            name="me", members=[], election_min_ms=500, failover_grace_ms=1000, expire_default=60, feature_level_max=0,
            prefer=50)
        self.machine = SimpleNamespace(
            mirrored=None, promoted=False,
            term=TERM, leader="me", online=True, clock_ms=500, level=1, known_level=1, due_ms=None,
            next_due_ms=lambda: self.machine.due_ms, membership=SimpleNamespace(learner=None, addresses={}))
        self.members = SimpleNamespace(belongs=True, learner=None)
        self.replica = SimpleNamespace(term=TERM, is_leader=True, leader_node=None)
        self.peers = {name: peer(name) for name in ("p", "q")}
        self.elections = SimpleNamespace(
            offered=False, asked=False, last_heard_at=0.0, stand_again=lambda: self.calls.append("stand again"))
        self.quorum = SimpleNamespace(voters={"me", "p", "q"}, majority=2, member=True)
        self.until = NOW + 1.0          # of contact and lease
        self.transport = SimpleNamespace(
            context=None, peers=self.peers, quorum=self.quorum, elections=self.elections,
            in_contact_until=lambda: self.until, lease_until=lambda: self.until)
        self.clock = SimpleNamespace(monotonic=lambda: self.now, wall_ms=lambda: WALL_MS)
        self.time = SimpleNamespace(
            known=True, now_ms=lambda: 600, steer=lambda clocks_ms: self.calls.append("steer"),
            follow=lambda ms: self.calls.append(("follow", ms)), reach=lambda ms: None, begin=self._begin,
            ahead_ms=lambda clocks_ms: 5)
        self.proposer = SimpleNamespace(
            accepting=False, refuses=None, stop_accepting=self._stop,
            propose=lambda operation, pending: self.proposed.append(operation),
            propose_alone=lambda operation, pending, now: self.alone.append(operation),
            expire=lambda now: self.calls.append("expire"))
        self.leadership = Leadership(*(cast(Any, one) for one in (
            self.settings, self.machine, self.members, self.replica, self.transport, self.clock, self.time,
            self.proposer, lambda serving: self.calls.append(("serving", serving)))))
        self.leadership.handover = cast(Any, SimpleNamespace(
            wanted=False, tick=lambda now: self.calls.append("hand over")))
        self.preferred: list[bool] = []
        self.leadership.preference = cast(Any, SimpleNamespace(
            ended=lambda: None, heard=lambda now, told: None,
            began=lambda now, before, handed_over: self.calls.append(("began", before, handed_over)),
            tick=lambda now, serving: self.preferred.append(serving)))
        self.promotes: list[bool] = []
        self.leadership._promotion = cast(Any, SimpleNamespace(tick=self.promotes.append))
        self.raises: list[bool] = []
        self.leadership.feature_level = cast(Any, SimpleNamespace(tick=self.raises.append))
        self.leadership._lead_term = TERM
        self.update()
        self.calls.clear()

    def _begin(self, known_ms: list[int], clocks_ms: list[int]) -> None:
        self.calls.append(("begin", known_ms, clocks_ms))

    def _stop(self, now: float, *, lost: bool) -> None:
        self.calls.append(("stop", lost))

    def update(self) -> list[Any]:
        """Take one turn; returns its work, except for the steering of its time."""
        before = len(self.calls)
        self.leadership.update_serving(self.now)
        return [call for call in self.calls[before:] if call != "steer"]

    def spoil(self, what: str) -> None:
        """Remove one of the conditions under which the node serves."""
        holders: dict[str, Any] = {
            "online": self.leadership, "machine.online": self.machine, "wanted": self.leadership.handover,
            "halted": self.leadership, "_exhausted": self.leadership, "belongs": self.members,
            "is_leader": self.replica,
        }
        if what == "learner":
            self.members.learner = "x"
        elif what == "term":
            self.machine.term -= 1
        elif what == "leader":
            self.machine.leader = "p"
        elif what == "contact":
            self.until = NOW
        else:
            name = what.rpartition(".")[2]
            setattr(holders[what], name, not getattr(holders[what], name))


def peer(name: str) -> Peer:
    found = Peer(PeerNode(name))
    found.up, found.info_at = True, NOW
    found.info = cast(Any, SimpleNamespace(wall_ms=WALL_MS + 30, time_ms=700, role="LEADER", term=TERM))
    return found


@pytest.fixture
def node() -> Node:
    return Node()


class TestServing:
    def test_while_everything_holds_it_serves(self, node: Node) -> None:
        assert node.leadership.serving
        assert node.update() == []
        assert (node.promotes[-1], node.raises[-1]) == (True, True)

    def test_a_replica_serves_nobody_until_it_is_promoted(self, node: Node) -> None:
        node.settings.replica = True
        node.update()
        assert not node.leadership.serving
        assert node.leadership.heads_replica()
        node.machine.promoted = True
        node.update()
        assert node.leadership.serving
        assert not node.leadership.heads_replica()
        node.machine.mirrored = 7           # whatever its file says
        node.update()
        assert not node.leadership.serving

    @pytest.mark.parametrize("what", [
        "online", "wanted", "halted", "belongs", "is_leader", "term", "leader", "contact"])
    def test_without_one_condition_it_heads_no_replica(self, what: str, node: Node) -> None:
        node.machine.mirrored = 7
        node.spoil(what)
        node.update()
        assert not node.leadership.heads_replica()

    @pytest.mark.parametrize("what", [
        "online", "machine.online", "wanted", "halted", "belongs", "is_leader", "term", "leader", "contact"])
    def test_without_one_condition_it_does_not(self, what: str, node: Node) -> None:
        node.spoil(what)
        node.update()
        assert not node.leadership.serving
        assert ("serving", False) in node.calls

    @pytest.mark.parametrize(("what", "lost"), [("online", False), ("contact", True)])
    def test_what_is_open_is_lost_only_without_contact(self, what: str, lost: bool, node: Node) -> None:
        node.spoil(what)
        node.update()
        assert ("stop", lost) in node.calls

    def test_it_serves_on_when_its_offer_to_another_came_to_nothing(self, node: Node) -> None:
        node.elections.offered = True
        assert node.update() == ["stand again", ("stop", False), ("serving", False)]
        node.spoil("online")
        assert node.update() == ["hand over"]       # which may be about to lead

    @pytest.mark.parametrize(("what", "leads"), [
        ("belongs", False), ("is_leader", False), ("term", False), ("leader", False), ("contact", False),
        ("online", True), ("halted", True)])
    def test_who_does_not_serve_may_lead(self, what: str, leads: bool, node: Node) -> None:
        assert node.leadership.leading()
        node.spoil(what)
        assert node.leadership.leading() is leads

    @pytest.mark.parametrize("what", ["is_leader", "term", "leader", "contact"])
    def test_the_lease_is_held_by_a_leader_until_it_ends(self, what: str, node: Node) -> None:
        assert node.leadership.holds_lease()
        node.spoil(what)
        assert not node.leadership.is_sole_leader()
        assert not node.leadership.holds_lease()

    def test_nor_by_one_that_does_not_serve(self, node: Node) -> None:
        node.spoil("online")
        node.update()
        assert node.leadership.is_sole_leader()
        assert not node.leadership.holds_lease()

    @pytest.mark.parametrize("what", [
        "term", "leader", "online", "belongs", "wanted", "halted", "_exhausted", "learner"])
    def test_what_does_not_go_on_as_it_is(self, what: str, node: Node) -> None:
        assert node.leadership.settled
        node.spoil(what)
        assert not node.leadership.settled


class TestHandingOver:
    @pytest.mark.parametrize("what", ["online", "wanted", "_exhausted", "belongs"])
    def test_who_cannot_serve_hands_over(self, what: str, node: Node) -> None:
        node.spoil(what)
        assert "hand over" in node.update()

    def test_not_before_its_membership_is_known(self, node: Node) -> None:
        node.spoil("belongs")
        node.spoil("leader")
        assert "hand over" not in node.update()

    @pytest.mark.parametrize("what", ["leader", "belongs"])
    def test_a_learner_is_promoted_by_a_leader_that_belongs(self, what: str, node: Node) -> None:
        node.spoil(what)
        node.update()
        assert not node.promotes[-1]


class TestAnnouncing:
    def test_a_new_term_is_announced_once(self, node: Node) -> None:
        node.replica.term += 1
        node.update()
        node.update()
        (lead,) = node.alone
        assert (type(lead), lead.term) == (Lead, TERM + 1)
        begun = next(call for call in node.calls if call[0] == "begin")
        assert begun == ("begin", [500, 700, 700], [WALL_MS + 30, WALL_MS + 30, WALL_MS])

    def test_not_without_the_clocks_of_a_majority_nor_is_time_steered(self, node: Node) -> None:
        node.replica.term += 1
        node.now = NOW + 2 * limits.STEER_S
        for peer in node.peers.values():
            peer.up = False
        node.update()
        assert node.alone == []
        assert "steer" not in node.calls

    def test_a_peer_that_said_nothing_yet_has_no_time(self, node: Node) -> None:
        node.replica.term += 1
        node.peers["p"].info = None
        node.update()
        assert ("begin", [500, 700], [WALL_MS + 30, WALL_MS]) in node.calls

    def test_time_is_steered_from_time_to_time(self, node: Node) -> None:
        node.update()
        node.now = NOW + limits.STEER_S / 2
        node.update()
        assert node.calls == []
        for _ in range(2):
            node.now = NOW + limits.STEER_S
            node.update()
        assert node.calls == ["steer"]

    def test_a_follower_follows_the_time_of_the_entries(self, node: Node) -> None:
        node.replica.is_leader = False
        node.update()
        node.calls.clear()
        node.update()
        node.machine.clock_ms = 501
        node.update()
        assert node.calls == [("follow", 501)]


class TestTicks:
    @pytest.mark.parametrize(("due_ms", "ticks"), [(None, 0), (599, 1), (600, 1), (601, 0)])
    def test_one_is_proposed_when_something_is_due(self, due_ms: int | None, ticks: int, node: Node) -> None:
        node.machine.due_ms = due_ms
        node.update()
        node.update()
        assert [type(operation) for operation in node.proposed] == [Tick] * ticks

    def test_only_by_a_node_that_serves(self, node: Node) -> None:
        node.machine.due_ms = 1
        node.spoil("online")
        node.update()
        assert node.proposed == []

    @pytest.mark.parametrize(("due_ms", "in_flight", "due_s"), [
        (None, False, None), (850, False, 0.25), (350, False, -0.25), (850, True, None)])
    def test_when_the_next_is_due(
        self, due_ms: int | None, in_flight: bool, due_s: float | None, node: Node,
    ) -> None:
        node.machine.due_ms, node.leadership.tick_in_flight = due_ms, in_flight
        assert node.leadership.due_s() == due_s


class TestGrace:
    @pytest.mark.parametrize("halted", [True, False])
    def test_it_is_due_once_logging_was_halted(self, halted: bool, node: Node) -> None:
        node.leadership.update_capacity(halted=halted, exhausted=False)
        node.leadership.update_capacity(halted=False, exhausted=False)
        assert node.leadership.grace_due is halted

    @pytest.mark.parametrize("due", [True, False])
    def test_it_comes_before_any_other_entry(self, due: bool, node: Node) -> None:
        node.leadership.grace_due = due
        put = Put("q", 0, b"job")
        node.leadership.propose_alone(put, cast(Any, None))
        assert [type(operation) for operation in node.alone] == [Resume] * due + [Put]

    def test_not_before_the_entry_that_announces_a_leader(self, node: Node) -> None:
        node.leadership.grace_due = True
        node.replica.term += 1
        node.update()
        assert Resume not in map(type, node.alone)


class TestClocks:
    @pytest.mark.parametrize(("role", "time_ms", "term", "leads", "followed"), [
        ("LEADER", 700, TERM, False, True), ("FOLLOWER", 700, TERM, False, False), ("LEADER", 0, TERM, False, False),
        ("LEADER", 700, TERM - 1, False, False), ("LEADER", 700, TERM, True, False),
        ("LEADER", 700, TERM + 1, False, True),
    ])
    def test_the_time_of_a_leader_is_followed(
        self, role: str, time_ms: int, term: int, leads: bool, followed: bool, node: Node,
    ) -> None:
        node.replica.is_leader = leads
        node.leadership.heard(cast(Any, SimpleNamespace(role=role, time_ms=time_ms, term=term, losses=())))
        assert node.calls == [("follow", 700)] * followed

    def test_the_clocks_are_those_of_voters_that_were_heard_a_moment_ago(self, node: Node) -> None:
        mine, other = WALL_MS, WALL_MS + 30
        clocks_ms, p = node.leadership.clocks_ms, node.peers["p"]
        assert clocks_ms() == [other, other, mine]
        node.quorum.voters.remove("p")
        assert clocks_ms() == [other, mine]
        node.quorum.voters.add("p")
        cast(Any, p.info).wall_ms = 0
        assert clocks_ms() == [other, mine]
        p.info = None
        assert clocks_ms() == [other, mine]
        node.quorum.member = False
        assert clocks_ms() == []                    # no majority
        node.quorum.majority = 1
        assert clocks_ms() == [other]
        node.peers["q"].up = False
        assert clocks_ms() == []

    @pytest.mark.parametrize(("age_s", "counts"), [(0.5, True), (limits.CLOCK_AGE_S_MAX, False), (99.0, False)])
    def test_an_old_report_does_not_count(self, age_s: float, counts: bool, node: Node) -> None:
        del node.peers["q"]
        node.now = NOW + age_s
        assert node.leadership.clocks_ms() == ([WALL_MS + 30 + int(age_s * 1000), WALL_MS] if counts else [])

    def test_how_far_clocks_are_ahead(self, node: Node) -> None:
        p = node.peers["p"]
        node.now += 0.5
        assert node.leadership.ahead_ms(p) == 530
        cast(Any, p.info).wall_ms = 0
        assert node.leadership.ahead_ms(p) is None
        p.info = None
        assert node.leadership.ahead_ms(p) is None

    @pytest.mark.parametrize("unknown", ["clocks", "time"])
    def test_the_errors_are_unknown_without_a_median_or_replicated_time(self, unknown: str, node: Node) -> None:
        assert node.leadership.errors_ms() == (-30, 5)
        if unknown == "time":
            node.time.known = False
        else:
            node.quorum.majority = 4
        assert node.leadership.errors_ms() is None
