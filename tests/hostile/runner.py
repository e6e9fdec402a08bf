"""Runs one attack: a cluster, an ordinary client at work, the attack, and the verdict."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Awaitable
from contextlib import ExitStack
from pathlib import Path

import sockpq
from msgspec import structs

from devcluster.authority import Authority
from devcluster.node import NodeError
from tests.hostile import limits, network
from tests.hostile.arena import Arena
from tests.hostile.attack import Attack
from tests.hostile.cluster import HostileCluster
from tests.hostile.inventory import disagreement, found, wrongs
from tests.hostile.ordinary import Ordinary, Report
from tests.hostile.verdict import Outcome, gap_s, judge, p50_ms
from tests.hostile.watch import RESTARTABLE, Watch

CONFIG = {"raft": {"failover_grace_ms": 1000}}
NAMES = ("n1", "n2", "n3")
PREPARE_S = 60.0
ATTACK_MAX_S = 60.0         # however long it should be: an attack that hangs is an end of it
BEFORE_S = 1.0
FAILURES = (NodeError, sockpq.SockpqError, OSError)     # what nodes that do not serve make of a client
AFTER_S = 1.0               # how long the ordinary client continues after the recovery
BACK_MAX_S = 10.0


def run(attack: Attack, keep: Path | None = None) -> Outcome:
    """Run the attack. `keep`: where the logs of the nodes are left when it was not held off."""
    outcome = Outcome(attack.name, left_out=attack.lacks())
    if outcome.left_out:
        return outcome
    with ExitStack() as held:
        groups = held.enter_context(limits.groups(NAMES, attack.memory_mb)) if attack.memory_mb else {}
        if attack.memory_mb and not groups:
            outcome.notes.append("no control group: memory was only watched")
        wrappers = {name: limits.wrapper(attack.descriptors, attack.address_mb, groups.get(name)) for name in NAMES}
        config = {section: {**CONFIG.get(section, {}), **attack.config.get(section, {})}
                  for section in {**CONFIG, **attack.config}}
        authority = Authority(Path(held.enter_context(tempfile.TemporaryDirectory()))) if attack.tls else None
        cluster = held.enter_context(HostileCluster(
            config, wrappers=wrappers, disk_mb=attack.disk_mb, fake_clocks=attack.fake_clocks,
            slow_disks=attack.slow_disks, authority=authority))
        for number in range(attack.strangers):
            network.add(network.stranger(number))
        _play(attack, cluster, outcome)
        if keep is not None and not outcome.held:
            _keep(keep / attack.name, cluster, outcome)
    return outcome


def _play(attack: Attack, cluster: HostileCluster, outcome: Outcome) -> None:
    arena = Arena(cluster, attack.seconds)
    with Watch(cluster, restarts=attack.restarts) as watch:
        try:
            if attack.prepare is not None:
                asyncio.run(_bounded(attack.prepare(arena), PREPARE_S))
            with Ordinary(structs.replace(attack.habits, servers=tuple(cluster.servers), ca=cluster.ca)) as ordinary:
                _attack(attack, arena, watch, ordinary, outcome)
        except FAILURES as error:
            outcome.reasons.append(_told(error))
        outcome.reasons += arena.failures
        outcome.notes += arena.notes
        for end in watch.ends:
            if end.pid in arena.killed:
                continue
            if attack.restarts and end.code == RESTARTABLE:
                outcome.notes.append(f"{end.told} and was started again")
            else:
                outcome.reasons.append(end.told)


def _attack(attack: Attack, arena: Arena, watch: Watch, ordinary: Ordinary, outcome: Outcome) -> None:
    cluster = arena.cluster
    ordinary.wait_until_working()
    before_s = time.monotonic()
    time.sleep(BEFORE_S)
    outcome.rss_before_bytes = watch.begin()
    begin_s = time.monotonic()
    try:
        asyncio.run(_bounded(attack.run(arena), ATTACK_MAX_S))
    except FAILURES as error:
        arena.fail(_told(error))
    end_s = time.monotonic()
    outcome.back_s = _back(cluster)
    time.sleep(AFTER_S)
    outcome.rss_bytes = watch.largest_bytes
    stop_s = time.monotonic()
    report = ordinary.finish()
    outcome.p50_before_ms = p50_ms(report, before_s, begin_s)
    outcome.p50_ms = p50_ms(report, begin_s, end_s)
    outcome.gap_s = gap_s(report.ended_s, begin_s, stop_s)
    judge(outcome, attack, report, begin_s)
    _count(cluster, report, outcome)


def _back(cluster: HostileCluster) -> float | None:
    """Return the seconds until a leader serves and all nodes are level; None when that takes too long."""
    begun = time.monotonic()
    try:
        if cluster.serving(BACK_MAX_S) is not None:
            cluster.wait_until_level(BACK_MAX_S)
            return time.monotonic() - begun
    except NodeError:
        pass
    return None


def _count(cluster: HostileCluster, report: Report, outcome: Outcome) -> None:
    if cluster.leader() is None:
        outcome.reasons.append("no node serves in the end")
        return
    try:
        outcome.reasons += wrongs(report, found(cluster.servers, cluster.ca))
    except sockpq.SockpqError as error:
        outcome.reasons.append(f"the jobs that are left cannot be counted: {type(error).__name__}: {error}")
    if different := disagreement(cluster):
        outcome.reasons.append(different)


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".rstrip(": ")


async def _bounded(attack: Awaitable[None], seconds: float) -> None:
    """Wait within a time limit. Raises TimeoutError, which is an OSError."""
    async with asyncio.timeout(seconds):
        await attack


def _keep(folder: Path, cluster: HostileCluster, outcome: Outcome) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "result.txt").write_text("\n".join([*outcome.reasons, *outcome.notes]) + "\n", "utf-8")
    for name in cluster.names:
        (folder / f"{name}.log").write_text(cluster.logs(name), "utf-8")
