"""The time for which a new leader says that no leader was heard: what it grants leases for (spec/state-machine 3.3)."""

from __future__ import annotations

import msgspec
import pytest

from sockpqd.core import Lead, decode_entry
from tests.cluster.helpers.small_cluster import SmallCluster, SmallNode

LATE_MS = 150           # a heartbeat of 50 ms, and the turns of nodes


def silence_ms(world: SmallCluster, leader: SmallNode) -> int:
    """Return the silence of the last Lead in the leader's log."""
    # As the Raft library writes them: a byte, and for a command of ours its number and arguments.
    commands = [msgspec.msgpack.decode(command[1:]) for command, _, _ in leader.up.journal[:] if len(command) > 1]
    entries = [decode_entry(arguments[0]) for _, arguments in commands]
    leads = [one for entry in entries for one in entry.operations if isinstance(one, Lead)]
    return leads[-1].silence_ms


@pytest.mark.parametrize("connections_close", [False, True])
def test_silence_counts_from_the_last_message_of_the_leader_to_the_first_entry_of_the_next(
    connections_close: bool,
) -> None:
    world = SmallCluster(3)
    old = world.leader()
    world.put_now()
    world.run(5)
    lost_at = world.now
    if connections_close:
        world.kill(old.name)
    else:
        world.filter = lambda source, target, message: old.name not in (source, target)
    world.run_until(lambda: world.serving() not in (None, old))
    said_ms, away_ms = silence_ms(world, world.leader()), (world.now - lost_at) * 1000
    assert away_ms - LATE_MS < said_ms < away_ms + LATE_MS


@pytest.mark.parametrize("seed", range(4))
def test_time_in_which_no_node_hears_another_is_silence_for_each_of_them(seed: int) -> None:
    world = SmallCluster(3, seed)
    old = world.leader()
    world.put_now()
    world.run(5)
    lost_at = world.now
    world.filter = lambda source, target, message: False
    world.run(5)
    assert world.serving() is None
    world.filter = lambda source, target, message: True
    world.run_until(lambda: world.serving() is not None)
    leader, away_ms = world.leader(), (world.now - lost_at) * 1000
    patience_ms = leader.up.settings.lease_ms if leader is old else 0       # so long it served without knowing
    assert away_ms - LATE_MS - patience_ms < silence_ms(world, leader) < away_ms + LATE_MS


def test_node_that_has_heard_nobody_counts_from_its_start() -> None:
    world = SmallCluster(3)
    leader = world.leader()
    assert silence_ms(world, leader) < world.now * 1000 + 1
