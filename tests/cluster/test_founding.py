"""Ways to the right to vote without a leader: in a new cluster, or from its operator."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from sockpqd.cluster.raft.voter_admission import PATIENCE_S, REMINDER_S, Admission


class Newcomer:
    """A node with an empty journal, which is one of three voters; with the reports of the other two, if there are any.
    """

    def __init__(self, *empty: bool | None, voter: bool = False, is_empty: bool = True, member: bool = True) -> None:
        self.granted: list[int] = []
        self.forgot = False
        self.lost_leader = False
        peers = [SimpleNamespace(name=f"p{number}", info=None if one is None else SimpleNamespace(empty=one))
                 for number, one in enumerate(empty, 1)]
        journal = SimpleNamespace(voter=voter, empty=is_empty, forget_acknowledged=self._forget)
        self.context = context = SimpleNamespace(
            journal=journal, peers=dict(enumerate(peers)), now=100.0, replica=SimpleNamespace(leader_node=None))
        self.quorum = SimpleNamespace(member=member, peers=peers[:2])
        right = SimpleNamespace(granted=self.granted.append)
        elections = SimpleNamespace(leader_lost=self._lose)
        self.admission = Admission(*(cast(Any, one) for one in (context, self.quorum, right, elections)))

    def _forget(self) -> None:
        self.forgot = True

    def _lose(self) -> None:
        self.lost_leader = True

    def founds(self) -> bool:
        """Return whether it founds a cluster now."""
        self.admission.found_cluster()
        assert self.lost_leader is bool(self.granted)
        return self.granted == [-1]


def test_a_cluster_is_founded_when_all_have_said_that_they_are_empty() -> None:
    assert Newcomer(True, True).founds()
    assert not Newcomer(True, None).founds()
    assert not Newcomer(True, False).founds()


def test_a_node_that_does_not_vote_counts_as_far_as_it_was_heard() -> None:
    """A learner, or a member of another configuration: one that has entries shows that there is a cluster."""
    assert Newcomer(True, True, None).founds()
    assert Newcomer(True, True, True).founds()
    assert not Newcomer(True, True, False).founds()


@pytest.mark.parametrize("other", [{"voter": True}, {"is_empty": False}, {"member": False}],
                         ids=["has the right", "has entries", "is no voter"])
def test_one_that_is_no_empty_voter_founds_nothing(other: dict[str, bool]) -> None:
    assert not Newcomer(True, True, **other).founds()


def test_an_operator_grants_the_right_and_is_warned_when_the_journal_has_none(caplog: pytest.LogCaptureFixture) -> None:
    for voter in (True, False):
        caplog.clear()
        newcomer = Newcomer(None, None, voter=voter)
        newcomer.admission.bootstrap()
        assert newcomer.granted == [-1]
        assert newcomer.forgot
        assert ("acknowledged jobs may be lost" in caplog.text) is not voter


def lines(newcomer: Newcomer, caplog: pytest.LogCaptureFixture, *after_s: float) -> list[str]:
    """Return what is logged when the newcomer looks now and again after these times, in seconds."""
    caplog.clear()
    for seconds in (0.0, *after_s):
        newcomer.context.now += seconds
        assert not newcomer.founds()
    return [record.getMessage() for record in caplog.records]


def test_one_that_waits_for_another_says_for_whom_and_what_to_do(caplog: pytest.LogCaptureFixture) -> None:
    newcomer = Newcomer(True, None)
    assert lines(newcomer, caplog, PATIENCE_S - 0.1) == []
    (line,) = lines(newcomer, caplog, 0.2, REMINDER_S - 1)
    assert "still waiting for p2. Start what is missing." in line
    assert "a majority of the nodes once with --bootstrap" in line
    assert lines(newcomer, caplog, 1.1) == [line]
    newcomer.context.replica.leader_node = "somebody leads"
    assert lines(newcomer, caplog, 10 * REMINDER_S) == []


def test_one_that_finds_data_elsewhere_is_advised_to_start_more_of_it(caplog: pytest.LogCaptureFixture) -> None:
    (line,) = lines(Newcomer(None, False), caplog, PATIENCE_S)
    assert line.startswith("this node is empty, but p2 is not: it takes part when a leader has brought it up to date.")
    assert "--bootstrap" not in line
    assert lines(Newcomer(None, False, voter=True), caplog, PATIENCE_S) == []
