"""Scenarios in which nearly all waiting jobs are on the disks: a tiny limits.hot_bytes, small pages, deep queues."""

from __future__ import annotations

from typing import Any

from tests.chaos.faults.fault import Fault
from tests.chaos.faults.machines import FullDisk
from tests.chaos.faults.pages import DamagedPages, Paged, Snapshots
from tests.chaos.faults.partitions import Partition, silent
from tests.chaos.faults.processes import Kill, Pause, RollingRestart
from tests.chaos.faults.roles import a_follower, everyone, followers, leader
from tests.chaos.faults.snapshots import LeftBehind
from tests.chaos.scenarios import SILENT_S, Scenario
from tests.chaos.workload.load import Load

# Fewer take than put, so queues become deep: of the jobs with the least priority many stand still while others pass.
DEEP = Load(producers=3, workers=1, waiters=0, callers=1, planners=1, handlers=1, turns=0, pools=0, consumers=(1,))
TINY: dict[str, Any] = {"load": DEEP, "config": {"limits": {"hot_bytes": 1000}}, "small_pages": True}


def _paged(*faults: Fault, moved: bool = False, bodies: bool = False) -> list[Fault]:
    damaged = any(isinstance(fault, DamagedPages) for fault in faults)
    return [Paged(moved=moved, damaged=damaged, bodies=bodies), *faults]


ROOMY_MB = 256                  # with less, the next segment and a snapshot need all the room, and no job leaves memory

PAGED: tuple[Scenario, ...] = (
    Scenario("paged: leader killed while snapshots are written", lambda seed: _paged(Snapshots(), Kill(leader)),
             **TINY),
    Scenario("paged: a follower's disk full", lambda seed: _paged(FullDisk(a_follower)), disk_mb=ROOMY_MB,
             same_term=True, **TINY),
    Scenario("paged: a follower's pages damaged", lambda seed: _paged(DamagedPages(a_follower, seed)), after_s=2.5,
             **TINY),
    Scenario("paged: leader killed", lambda seed: _paged(Kill(leader)), campaigns_only=True, **TINY),
    Scenario("paged: all killed", lambda seed: _paged(Kill(everyone)), lasts_s=0.2, after_s=2.5, campaigns_only=True,
             **TINY),
    Scenario("paged: both followers killed while snapshots are written",
             lambda seed: _paged(Snapshots(), Kill(followers)), lasts_s=1.5, after_s=2.5, campaigns_only=True, **TINY),
    Scenario("paged: rolling restart", lambda seed: _paged(RollingRestart()), lasts_s=0.0, campaigns_only=True, **TINY),
    Scenario("paged: leader paused", lambda seed: _paged(Pause(leader)), goal_s=SILENT_S, campaigns_only=True, **TINY),
    Scenario("paged: leader silent", lambda seed: _paged(Partition(leader, silent)), lasts_s=3.0, campaigns_only=True,
             **TINY),
    Scenario("paged: leader's disk full", lambda seed: _paged(FullDisk(leader)), disk_mb=ROOMY_MB, campaigns_only=True,
             **TINY),
    Scenario("paged: a disk full while snapshots are written", lambda seed: _paged(Snapshots(), FullDisk(a_follower)),
             disk_mb=ROOMY_MB, campaigns_only=True, **TINY),
    Scenario("paged: leader's pages damaged", lambda seed: _paged(DamagedPages(leader, seed)), after_s=2.5,
             campaigns_only=True, **TINY),
    Scenario("paged: follower left behind", lambda seed: _paged(LeftBehind(a_follower, None)), same_term=True,
             campaigns_only=True, **TINY),
    Scenario("paged: large bodies, leader killed while snapshots are written",
             lambda seed: _paged(Snapshots(), Kill(leader), bodies=True), campaigns_only=True, **TINY),
    Scenario("paged: large bodies, a follower's pages damaged",
             lambda seed: _paged(DamagedPages(a_follower, seed), bodies=True), after_s=2.5,
             campaigns_only=True, **TINY),
    Scenario("paged: jobs stand still in old files", lambda seed: _paged(Kill(leader), moved=True),
             campaigns_only=True, **TINY),
)
