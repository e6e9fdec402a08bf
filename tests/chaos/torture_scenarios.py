"""Scenarios in which one kind of fault comes again and again, faster than a cluster recovers from it.

Campaigns draw variants for each run (variants.py). Those that are short enough are in the suite, as they are here.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tests.chaos.faults.again import Again, Kills, OneAtATime, all_at_once
from tests.chaos.faults.copies import OlderCopies, Wiped
from tests.chaos.faults.disks import BelievedSync, EmptyPromises, FailingCalls, SlowSyncs
from tests.chaos.faults.fault import Fault
from tests.chaos.faults.links import HalfOpen
from tests.chaos.faults.machines import ClockJump, FullDisk
from tests.chaos.faults.membership import Changes, Transfer
from tests.chaos.faults.partitions import OneWay
from tests.chaos.faults.processes import Pause, RollingRestart
from tests.chaos.faults.roles import Role, leader
from tests.chaos.machines.alterable import AlterableCluster
from tests.chaos.scenarios import Scenario
from tests.chaos.workload.load import Load

CALM = Load(producers=1, workers=1, waiters=1, callers=1, planners=1, handlers=1, turns=0, pools=1, consumers=(1,),
            pause_s=0.02)
JUMPS_S = (0.5, 5.0, 60.0, 3600.0)
# A node whose disk fails is to be started while the leader still waits for votes.
PATIENT = {"raft": {"failover_grace_ms": 1000, "election_min_ms": 8000, "election_max_ms": 12_000, "lease_ms": 7000}}
REJOINING = {"node": {"rejoins_per_hour": 0}}


def any_node(chance: random.Random) -> Role:
    """Return a role that is played by a random node, a new one each time."""
    def any_node(cluster: AlterableCluster) -> list[str]:
        return [chance.choice(cluster.names)]
    return any_node


def a_majority(chance: random.Random) -> Role:
    """Choose as many nodes as a majority has."""
    def a_majority(cluster: AlterableCluster) -> list[str]:
        return chance.sample(cluster.names, len(cluster.names) // 2 + 1)
    return a_majority


def _again(make: Callable[[random.Random], Fault], bad: tuple[float, float], good: tuple[float, float]) -> Any:
    return lambda seed: [Again(make, *bad, *good, seed)]


def _torture(name: str, faults: Callable[[int], list[Fault]], lasts_s: float = 10.0, **other: Any) -> Scenario:
    kept = {"load": CALM, "after_s": 2.0, "varied": True, "campaigns_only": True, "config": REJOINING, **other}
    return Scenario(f"torture: {name}", faults, lasts_s, **kept)


TORTURE: tuple[Scenario, ...] = (
    _torture("a node killed every 100 to 300 ms", lambda seed: [Kills(OneAtATime(), 0.1, 0.3, seed)],
             campaigns_only=False),
    _torture("all killed again and again", lambda seed: [Kills(all_at_once, 0.1, 1.5, seed)]),
    _torture("a majority stopped", _again(lambda chance: Pause(a_majority(chance)), (0.2, 3.0), (0.3, 2.0))),
    _torture("one way", _again(
        lambda chance: OneWay(any_node(chance), deaf=chance.random() < 0.5, lost=chance.random() < 0.5),
        (0.3, 3.0), (0.2, 1.5))),
    _torture("one side reset", _again(
        lambda chance: HalfOpen(any_node(chance), dropped=chance.random() < 0.5), (0.3, 3.0), (0.2, 1.5))),
    _torture("a leader whose followers have lost it", _again(
        lambda chance: HalfOpen(leader, dropped=True), (0.8, 2.0), (0.2, 1.0)), fast_empty=True,
        without=("fast empty",), campaigns_only=False),
    _torture("calls of disks fail", lambda seed: [FailingCalls(seed)], faulty_disks=True, campaigns_only=False),
    _torture("slow syncs", lambda seed: [SlowSyncs(seed)], faulty_disks=True),
    _torture("full disks", _again(lambda chance: FullDisk(any_node(chance)), (0.2, 2.0), (0.2, 2.0)), disk_mb=96),
    _torture("space that is only promised", lambda seed: [EmptyPromises(seed)], thin_disk_mb=96),
    _torture("a failed sync believed", lambda seed: [BelievedSync(seed)], 1.0, thin_disk_mb=96, config=PATIENT,
             without=("five", "pulses", "fast empty")),
    _torture("wiped nodes", lambda seed: [Wiped(seed)]),
    _torture("older copies", lambda seed: [OlderCopies(seed)]),
    _torture("members changed beside kills", lambda seed: [Changes(seed)], campaigns_only=False),
    _torture("leadership handed over", _again(Transfer, (0.0, 0.5), (0.0, 1.0))),
    _torture("rolling restarts", _again(lambda chance: RollingRestart(), (0.0, 0.1), (0.0, 0.5))),
    _torture("clocks set", _again(
        lambda chance: ClockJump(any_node(chance), chance.choice((-1, 1)) * chance.choice(JUMPS_S)),
        (0.2, 2.0), (0.2, 1.0)), fake_clocks=True),
)
