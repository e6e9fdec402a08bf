"""The nodes that count: how far a majority has come, and what is reported to the library."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from sockpqd.cluster.raft.peer import Peer
from sockpqd.cluster.raft.pysyncobj_adapter import PeerNode
from sockpqd.cluster.raft.quorum import EVER, LOST, Quorum

TERM = 7


class Leader:
    """The context of a leader, with its peers, and what the library was given."""

    def __init__(self, *peers: Peer, voters: int, durable: int = 100, member: bool = True) -> None:
        self.reports: list[dict[str, Any]] = []
        self.context = SimpleNamespace(
            name="me", peers={peer.name: peer for peer in peers}, replica=SimpleNamespace(term=TERM),
            journal=SimpleNamespace(durable_index=durable), leading=True,
            deliver=lambda node, message: self.reports.append(message),
        )
        self.context.leads = lambda: self.context.leading
        self.quorum = Quorum(cast(Any, self.context))
        self.quorum.change([*(["me"] if member else []), *(f"p{number}" for number in range(voters - member))])

    def reported(self) -> list[int]:
        """Return the matches reported since the last call."""
        self.quorum.tick()
        found = [report["next_node_idx"] - 1 for report in self.reports]
        assert all(report["success"] and not report["reset"] for report in self.reports)
        self.reports.clear()
        return found


def peer(
    number: int, match: int, sent_at: float, *, term: int = TERM, voter: bool | None = True, up: bool = True,
) -> Peer:
    """Return a peer that has acknowledged this much; `voter`: its own report, None: there is none yet."""
    made = Peer(PeerNode(f"p{number}"))
    made.term, made.match, made.acked_sent_at, made.promised_until, made.up = term, match, sent_at, sent_at, up
    made.info = None if voter is None else cast(Any, SimpleNamespace(voter=voter))
    return made


def test_a_learner_that_is_removed_does_not_ask_for_votes_as_a_removed_voter_does() -> None:
    quorum = Leader(voters=0, member=False).quorum
    for voters, learns, asks in [
        (["p0"], True, False), (["p0"], False, False),          # a learner, and removed
        (["me", "p0"], False, True), (["p0"], False, True),     # a voter, and removed
        (["p0"], True, False),                                  # it joins once more
    ]:
        quorum.change(voters, learns=learns)
        assert quorum.learns is not asks


@pytest.mark.parametrize(("voters", "reached"), [(2, 9), (3, 9), (4, 8), (5, 8)])
def test_a_majority_with_this_node(voters: int, reached: int) -> None:
    peers = [peer(number, match, float(match)) for number, match in enumerate([9, 8, 7, 6][:voters - 1])]
    quorum = Leader(*reversed(peers), voters=voters).quorum
    assert quorum.match() == reached
    assert quorum.acked_sent_at() == reached


def test_a_leader_that_is_no_member_counts_the_others_only() -> None:
    peers = [peer(0, 9, 9.0), peer(1, 8, 8.0), peer(2, 7, 7.0)]
    leader = Leader(*peers, voters=3, member=False)
    assert (leader.quorum.match(), leader.quorum.acked_sent_at()) == (8, 8.0)


def test_nothing_is_committed_that_is_not_on_its_own_disk() -> None:
    assert Leader(peer(0, 9, 9.0), voters=2, durable=5).quorum.match() == 5
    assert Leader(voters=1, durable=5).quorum.match() == 5
    assert Leader(voters=1).quorum.acked_sent_at() == EVER


def test_a_learner_does_not_count() -> None:
    leader = Leader(peer(0, 9, 9.0), peer(5, 9, 9.0), peer(1, 3, 3.0), peer(2, 2, 2.0), voters=4)
    assert leader.quorum.match() == 3
    assert [counted.name for counted in leader.quorum.peers] == ["p0", "p1", "p2"]


@pytest.mark.parametrize("other", [
    {"term": TERM - 1}, {"voter": False}, {"voter": None},
], ids=["of an earlier leadership", "without the right to vote", "that has not described itself"])
def test_an_answer_does_not_count(other: dict[str, Any]) -> None:
    leader = Leader(peer(0, 9, 9.0, **other), peer(1, 3, 3.0), voters=3)
    assert leader.quorum.match() == 3
    assert leader.quorum.acked_sent_at() == leader.quorum.promised_until() == 3.0
    alone = Leader(peer(0, 9, 9.0, **other), voters=2)
    assert alone.quorum.match() == 0
    assert alone.quorum.acked_sent_at() == alone.quorum.promised_until() == LOST


def test_a_lost_connection_ends_the_lease() -> None:
    quorum = Leader(peer(0, 9, 9.0, up=False), voters=2).quorum
    assert quorum.acked_sent_at() == quorum.promised_until() == LOST


def test_what_is_new_of_a_majority_is_reported_once() -> None:
    first, second = peer(0, 9, 9.0), peer(1, 0, LOST)
    leader = Leader(first, second, voters=3)
    assert leader.reported() == [9]
    assert leader.reported() == []
    leader.quorum.heard()
    assert leader.reported() == []              # a minority, or nothing new
    first.acked_sent_at = 9.5
    assert leader.reported() == []              # not heard of yet
    leader.quorum.heard()
    assert leader.reported() == [9]
    first.match = 10
    leader.quorum.heard()
    assert leader.reported() == [10]


def test_without_a_majority_nothing_is_reported() -> None:
    near, far = peer(0, 9, 9.0), [peer(number, 0, LOST) for number in (1, 2, 3)]
    leader = Leader(near, *far, voters=5)
    assert leader.reported() == []
    near.match, near.acked_sent_at = 10, 10.0
    leader.quorum.heard()
    assert leader.reported() == []


def test_its_own_disk_is_news_without_any_answer() -> None:
    leader = Leader(peer(0, 9, 9.0), voters=2, durable=5)
    assert leader.reported() == [5]
    leader.context.journal.durable_index = 8
    assert leader.reported() == [8]


def test_a_leader_that_is_alone_hears_itself_in_every_turn() -> None:
    leader = Leader(voters=1)
    assert [leader.reported(), leader.reported()] == [[100], [100]]


def test_a_follower_reports_nothing_and_a_new_leader_begins_again() -> None:
    leader = Leader(peer(0, 9, 9.0), voters=2)
    leader.context.leading = False
    assert leader.reported() == []
    leader.context.leading = True
    assert leader.reported() == [9]
    leader.quorum.change(["me", "p0"])
    assert leader.reported() == [9]


@pytest.mark.parametrize(("others", "durable", "covers"), [
    ([peer(1, 60, 5.0)], 60, True),             # the leader and one of three have all of it
    ([peer(1, 59, 5.0)], 60, False),
    ([peer(1, 60, 5.0)], 59, False),
    ([peer(1, 60, 5.0, term=TERM - 1)], 60, False),
    ([peer(1, 60, 5.0, voter=False)], 60, False),
    ([peer(1, 60, 5.0, up=False)], 60, False),
])
def test_what_a_peer_has_is_covered_when_a_majority_without_it_has_it_on_its_disks(
    others: list[Peer], durable: int, covers: bool,
) -> None:
    without = peer(0, 20, 5.0)
    leader = Leader(without, *others, voters=3, durable=durable)
    leader.context.replica.commit_index = 60
    assert leader.quorum.covers(without) is covers


def test_so_must_be_what_it_acknowledged_beyond_the_commit_index() -> None:
    without, *others = peers = [peer(0, 61, 5.0), peer(1, 60, 5.0), peer(2, 60, 5.0), peer(3, 20, 5.0)]
    leader = Leader(*peers, voters=5)
    leader.context.replica.commit_index = 60
    assert not leader.quorum.covers(without)
    others[0].match = 61
    assert not leader.quorum.covers(without)            # this node and one more are no majority of five
    others[1].match = 61
    assert leader.quorum.covers(without)


def test_a_learner_is_covered_by_the_voters() -> None:
    learner, voter = peer(7, 60, 5.0), peer(0, 60, 5.0)
    leader = Leader(learner, voter, voters=2)
    leader.context.replica.commit_index = 60
    assert leader.quorum.covers(learner)
    voter.match = 59
    assert not leader.quorum.covers(learner)
