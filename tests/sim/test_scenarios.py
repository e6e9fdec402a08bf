"""Scenarios that must end well however unlucky the moment is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.sim import campaign
from tests.sim.scenarios import damage, disks, leases, levels, members, voting
from tests.sim.scenarios import sessions as session_scenarios
from tests.sim.scenarios import time as time_scenarios
from tests.sim.scenarios.members import SCRIPTED
from tests.sim.world.world import World

SEEDS = range(5)


def name(value: Any) -> str:
    return value.__name__.replace("_", " ") if callable(value) else str(value)


@pytest.mark.parametrize(
    ("script", "nodes"), [
        (members.a_wiped_voter_meets_a_deposed_leader, 3),
        (members.a_wiped_voter_votes_before_it_has_caught_up, 3),
        (members.two_operators_remove_a_node_each, 5),
        (members.a_removed_leader_is_asked_for_more, 3),
        (members.a_removed_node_asks_for_votes, 5),
        (damage.an_older_copy_is_put_back, 3),
        (damage.an_older_copy_is_put_back_while_all_are_down, 3),
        (leases.the_followers_connections_to_the_leader_end, 3),
        (leases.the_leaders_connections_end, 3),
    ], ids=name,
)
def test_nothing_is_broken(script: Callable[[World], Iterator[float]], nodes: int) -> None:
    for seed in SEEDS:
        world, failure = campaign.one(seed, script=script, **{**SCRIPTED, "nodes": nodes})
        assert not failure, failure
        assert world.trace.faults["script"]


@pytest.mark.parametrize(
    "script", [
        disks.a_sync_fails_and_its_bytes_stay_visible,
        voting.the_leader_is_gone_after_it_greeted_a_started_node,
    ], ids=name,
)
def test_what_is_acknowledged_is_served(script: Callable[[World], Iterator[float]]) -> None:
    for seed in SEEDS:
        world, failure = campaign.one(seed, script=script, **disks.SCRIPTED)
        assert not failure, failure
        assert world.trace.faults["script"]


def test_a_cluster_is_upgraded_and_its_level_rises() -> None:
    for seed in SEEDS:
        world, failure = campaign.one(seed, script=levels.a_cluster_is_upgraded_node_by_node, **levels.SCRIPTED)
        assert not failure, failure
        assert world.trace.faults["script"]


@pytest.mark.parametrize(
    "script", [
        members.a_voter_that_was_away_does_not_know_the_leader,
        members.a_wiped_voter_does_not_know_the_leader,
        members.a_removed_node_comes_back_to_strangers,
    ], ids=name,
)
def test_strangers_get_together(script: Callable[[World], Iterator[float]]) -> None:
    world, failure = campaign.one(1, script=script, **SCRIPTED)
    assert world.trace.faults["script"]
    assert not failure, failure


@pytest.mark.parametrize(
    "script", [
        session_scenarios.a_failover_takes_longer_than_a_session_lives,
        session_scenarios.leaders_change_while_nobody_uses_a_session,
        session_scenarios.a_new_node_leads,
    ], ids=name,
)
def test_sessions_are_kept(script: Callable[[World], Iterator[float]]) -> None:
    for seed in SEEDS:
        world, failure = campaign.one(seed, script=script, **session_scenarios.SCRIPTED)
        assert not failure, failure
        assert world.trace.faults["script"]


@pytest.mark.parametrize(
    "script", [
        time_scenarios.time_passes_without_entries,
        time_scenarios.one_was_told_and_one_was_not,
        time_scenarios.followers_are_restarted,
        time_scenarios.a_cluster_was_down,
    ], ids=name,
)
def test_it_is_known_what_time_it_is(script: Callable[[World], Iterator[float]]) -> None:
    for seed in SEEDS:
        world, failure = campaign.one(seed, script=script, **time_scenarios.SCRIPTED)
        assert not failure, failure
        assert world.trace.faults["script"]
