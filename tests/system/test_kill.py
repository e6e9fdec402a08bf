"""SIGKILL on real processes, at any moment, in any number: nothing acknowledged is ever missing."""

from __future__ import annotations

import random
import time

import pytest
import sockpq

from devcluster.cluster import LocalCluster
from tests.system.load import Producer, check, drain
from tests.waiting import until
from tests.wire import Wire


def acknowledged(producers: list[Producer]) -> int:
    return sum(len(producer.acknowledged) for producer in producers)


def wait_for_progress(producers: list[Producer], more: int = 50) -> None:
    """Wait until this many further jobs are acknowledged."""
    target, end = acknowledged(producers) + more, time.monotonic() + 60
    while acknowledged(producers) < target:
        assert time.monotonic() < end, "no progress"
        time.sleep(0.01)


def test_kill_any_nodes_at_any_moment() -> None:
    seed = random.randrange(1 << 32)
    print("seed", seed)
    rng = random.Random(seed)
    with LocalCluster(3) as cluster:
        producers = [Producer(cluster.servers, f"p{k}") for k in range(4)]
        for producer in producers:
            producer.start()
        for _ in range(10):
            wait_for_progress(producers)
            time.sleep(rng.random() * 0.2)
            victims = rng.sample(cluster.names, rng.choice((1, 1, 2, 3)))
            leader = cluster.leader()
            if leader is not None and rng.random() < 0.5:
                victims = [leader]
            for name in victims:
                cluster.kill(name)
            if len(victims) == 1:
                wait_for_progress(producers)        # the others serve without it
            for name in rng.sample(victims, len(victims)):
                cluster.restart(name, wait=False)
                time.sleep(rng.random() * 0.1)
        wait_for_progress(producers)
        for producer in producers:
            producer.finish()
        cluster.wait_until_level()
        bodies = drain(cluster)
        check(producers, bodies)
        assert acknowledged(producers) > 500
        for name in cluster.names:
            assert "Traceback" not in cluster.logs(name), cluster.logs(name)


def begin_a_snapshot(server: str) -> None:
    """Ask for a snapshot, without waiting for its end."""
    with Wire(server, 60.0) as wire:
        wire.send("CLUSTER SNAPSHOT")


def wait_for_snapshots(cluster: LocalCluster) -> None:
    """Wait until each node has one: it was asked for it, or was started with a journal that is to be cut."""
    until(lambda: all(list(cluster.data_dir(name).glob("snapshots/snapshot-*")) for name in cluster.names),
          "no snapshot was written")


def test_all_killed_while_a_snapshot_is_written_and_the_journal_is_cut() -> None:
    with LocalCluster(3) as cluster:
        big = bytes(1 << 20)
        with sockpq.Client(cluster.servers, timeout=60) as client:
            for k in range(150):
                client.put("big", b"%06d" % k + big)
                if k % 50 == 49:
                    for server in cluster.servers:
                        begin_a_snapshot(server)
                    time.sleep(random.random() * 0.2)
                    for name in cluster.names:
                        cluster.kill(name)
                    for name in cluster.names:
                        cluster.restart(name, wait=False)
            wait_for_snapshots(cluster)
            numbers = []
            while (job := client.get("big", expire=600)) is not None:
                numbers.append(int(job.data[:6]))
                client.done(job.id)
        assert numbers == list(range(150))


@pytest.mark.parametrize("nodes", [1, 5])
def test_other_sizes_of_cluster_survive_the_death_of_a_minority_and_of_all(nodes: int) -> None:
    with LocalCluster(nodes) as cluster:
        producers = [Producer(cluster.servers, f"p{k}") for k in range(2)]
        for producer in producers:
            producer.start()
        wait_for_progress(producers)
        for name in cluster.names[:nodes // 2]:
            cluster.kill(name)
        wait_for_progress(producers)
        for name in cluster.names[nodes // 2:]:
            cluster.kill(name)
        for name in cluster.names:
            cluster.restart(name, wait=False)
        wait_for_progress(producers)
        for producer in producers:
            producer.finish()
        check(producers, drain(cluster))
