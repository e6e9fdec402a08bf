"""The nodes whose hash of the state counts, and how many must contradict a node."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from sockpqd.cluster import limits
from sockpqd.cluster.raft.replica_check import Diverged, ReplicaCheck

MINE, OTHER = b"mine", b"other"


@pytest.fixture
def check() -> ReplicaCheck:
    """Check a state of one of five voters: three make a majority."""
    return ReplicaCheck(
        cast(Any, SimpleNamespace(at=lambda index: MINE if index else None)),
        cast(Any, SimpleNamespace(voters={"me", "a", "b", "c", "d"}, majority=3)))


def test_a_majority_that_differs_in_the_same_way_is_right(check: ReplicaCheck) -> None:
    check.claimed("a", 8, OTHER)
    check.claimed("b", 8, b"third")
    check.claimed("c", 8, OTHER)
    with pytest.raises(Diverged):
        check.claimed("d", 8, OTHER)


def test_those_that_agree_contradict_nobody(check: ReplicaCheck) -> None:
    for name in "abc":
        check.claimed(name, 8, MINE)
    check.claimed("d", 8, OTHER)


def test_who_has_no_vote_does_not_count(check: ReplicaCheck) -> None:
    for name in ("a", "b", "x", "y"):
        check.claimed(name, 8, OTHER)


def test_a_difference_is_logged_once_and_agreement_never(
    check: ReplicaCheck, caplog: pytest.LogCaptureFixture,
) -> None:
    check.claimed("a", 8, MINE)
    assert not caplog.records
    check.claimed("b", 8, OTHER)
    check.claimed("b", 8, OTHER)
    check.claimed("c", 8, MINE)
    assert len(caplog.records) == 1


def test_as_many_checkpoints_are_compared_as_are_kept(check: ReplicaCheck) -> None:
    for name in "ab":
        check.claimed(name, 1, OTHER)
    for index in range(2, limits.CHECKPOINTS_KEPT + 1):
        check.claimed("a", index, MINE)
    with pytest.raises(Diverged):
        check.claimed("c", 1, OTHER)
    check.claimed("a", limits.CHECKPOINTS_KEPT + 1, MINE)
    check.claimed("d", 1, OTHER)                # the claims about entry 1 are forgotten


def test_what_is_not_known_here_is_not_compared(check: ReplicaCheck) -> None:
    for name in "abcd":
        check.claimed(name, 0, OTHER)
