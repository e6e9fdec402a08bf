"""A real follower that was away for longer than the journals reach back catches up while the cluster serves."""

from __future__ import annotations

import contextlib
import time
from functools import partial
from pathlib import Path

import sockpq

from devcluster.cluster import LocalCluster, say
from tests.system.load import Producer, check, drain
from tests.system.test_kill import wait_for_progress
from tests.waiting import until

BIG_JOBS = 80
BODY = bytes(1 << 20)
PATIENCE_S = 120.0
TAKEN_OVER = "state taken over from"


def incoming_bytes(cluster: LocalCluster, name: str) -> int:
    """Return how much of an incomplete snapshot has arrived at a node."""
    size = 0
    for path in (cluster.data_dir(name) / "snapshots").glob("incoming-*.tmp"):
        with contextlib.suppress(FileNotFoundError):
            size = max(size, path.stat().st_size)
    return size


def restart_until_incoming(cluster: LocalCluster, name: str, others: list[str], size: int) -> None:
    """Restart the node; return while its snapshot is on the way and this share of it has arrived.

    A test that looks now and then may miss a fast transfer. Then the node is sent another one.
    """
    deadline = time.monotonic() + PATIENCE_S
    while True:
        seen = len(cluster.logs(name))
        cluster.restart(name, wait=False)
        while incoming_bytes(cluster, name) < size:
            assert time.monotonic() < deadline, cluster.logs(name)[-2000:]
            if TAKEN_OVER in cluster.logs(name)[seen:]:
                break
            time.sleep(0.001)
        else:
            return
        cluster.kill(name)
        forget_entries(cluster, others)


def forget_entries(cluster: LocalCluster, names: list[str]) -> None:
    """Cut the journals of these nodes, twice, because they reach back to the older of two snapshots."""
    for _ in range(2):
        for name in names:
            until(partial(writes_a_snapshot, cluster, name), partial(cluster.logs, name))


def writes_a_snapshot(cluster: LocalCluster, name: str) -> bool:
    """Ask for a snapshot; a busy node may end the connection."""
    return (say(cluster.server(name), "CLUSTER SNAPSHOT", PATIENCE_S) or "").startswith("200 OK")


def temporary_files(folder: Path) -> list[str]:
    return [path.name for path in folder.glob("*/snapshots/*.tmp")]


def test_a_follower_that_was_away_too_long_gets_a_snapshot_however_often_that_is_interrupted() -> None:
    with LocalCluster(3) as cluster, sockpq.Client(cluster.servers, timeout=60) as client:
        away = next(name for name in cluster.names if name != cluster.wait_for_leader())
        others = [name for name in cluster.names if name != away]
        cluster.kill(away)
        client.put_many("big", [BODY] * BIG_JOBS)
        producers = [Producer(cluster.servers, f"p{k}") for k in range(2)]
        for producer in producers:
            producer.start()
        forget_entries(cluster, others)
        for size in (1, BIG_JOBS << 18, BIG_JOBS << 19):
            restart_until_incoming(cluster, away, others, size)
            cluster.kill(away)
            wait_for_progress(producers)
        restart_until_incoming(cluster, away, others, BIG_JOBS << 18)
        leader = cluster.wait_for_leader()
        cluster.kill(leader)            # the other one cannot serve without `away`, which needs its snapshot first
        wait_for_progress(producers)
        cluster.restart(leader)
        cluster.wait_until_level(PATIENCE_S)
        cluster.wait_until_logged(away, TAKEN_OVER)
        for producer in producers:
            producer.finish()
        check(producers, drain(cluster))
        assert client.total("big").jobs == BIG_JOBS
        assert not temporary_files(cluster.folder)
        for name in cluster.names:
            assert "Traceback" not in cluster.logs(name)
