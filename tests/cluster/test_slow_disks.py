"""Background syncs and a second entry: used with slow disks or networks and many commands, and nowhere else."""

from __future__ import annotations

import pytest

from sockpqd.cluster import limits
from tests.cluster.helpers.slow_cluster import SlowCluster

FAST_S, SLOW_S, LINK_S, FAR_S = 0.0001, 0.002, 0.00006, 0.001
SECONDS = 0.2           # simulated: a hundred syncs of a slow disk
PIPELINED = 10, 100             # clients, commands of each under way
NEVER = 10**9
MEASURED_SYNCS = 10             # in the loop, before a disk is known to be sluggish


@pytest.mark.parametrize(("sync_s", "link_s"), [(SLOW_S, LINK_S), (SLOW_S, FAR_S)])
def test_pipelined_commands_gain_by_a_second_entry(
    sync_s: float, link_s: float, monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = SlowCluster(sync_s, link_s)
    rate, _ = world.load(*PIPELINED, SECONDS)
    assert world.leading.most_under_way == 2
    monkeypatch.setattr(limits, "OVERLAP_OPERATIONS_MIN", NEVER)
    monkeypatch.setattr(limits, "SLOW_SYNC_S", NEVER)
    monkeypatch.setattr(limits, "SLUGGISH_SYNC_S", NEVER)
    alone, _ = SlowCluster(sync_s, link_s).load(*PIPELINED, SECONDS)
    assert rate > 1.2 * alone


def test_the_loop_does_not_stand_still_for_a_slow_disk_that_has_much_to_do() -> None:
    world = SlowCluster(SLOW_S)
    world.load(*PIPELINED, SECONDS)
    assert world.leading.disk.beside > 10


def test_with_a_fast_disk_one_entry_is_under_way_and_the_loop_syncs() -> None:
    world = SlowCluster(FAST_S)
    world.load(*PIPELINED, SECONDS)
    assert world.leading.most_under_way == 1
    assert world.leading.disk.beside == 0


@pytest.mark.parametrize("clients", [10, 100])
@pytest.mark.parametrize("sync_s", [FAST_S, SLOW_S, 0.01])
def test_clients_that_wait_for_each_answer_are_all_in_the_entry_under_way(sync_s: float, clients: int) -> None:
    world = SlowCluster(sync_s)
    _, per_entry = world.load(clients, 1, SECONDS)
    assert world.leading.most_under_way == 1
    assert per_entry > 0.8 * clients


@pytest.mark.parametrize("clients", [1, 100])
@pytest.mark.parametrize(("sync_s", "beside"), [(FAST_S, False), (SLOW_S, False), (0.01, True), (0.05, True)])
def test_no_loop_stands_still_for_a_disk_that_is_known_to_be_sluggish(
    clients: int, sync_s: float, *, beside: bool,
) -> None:
    world = SlowCluster(sync_s)
    world.load(clients, 1, max(SECONDS, 20 * sync_s))
    for node in world.slow_nodes:
        assert (node.disk.beside > 0) is beside
        assert (node.disk.in_loop > MEASURED_SYNCS) is not beside
