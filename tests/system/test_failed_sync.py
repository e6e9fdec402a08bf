"""A sync fails: the node ends at once and never acknowledges what it could not sync; the others go on."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from devcluster.cluster import LocalCluster, say
from tests.system import failing_disk
from tests.system.failing_disk import MARKER
from tests.system.load import Producer, check, drain
from tests.system.test_kill import wait_for_progress
from tests.wire import Broken, Wire

PATIENCE_S = 60.0           # a safety limit: on a quiet machine it is over within one second


class FailingDisks(LocalCluster):
    """A cluster whose nodes have disks that can be made to fail."""

    def wrapper(self, name: str) -> Sequence[str]:
        return sys.executable, "-m", failing_disk.__name__


def fail_syncs(cluster: LocalCluster, name: str, folder: str = "journal") -> Path:
    """From now on the syncs of files in this folder fail; removing the file that is returned mends the disk."""
    marker = cluster.data_dir(name) / folder / MARKER
    marker.touch()
    return marker


def wait_for_end(cluster: LocalCluster, name: str) -> None:
    """The process must end by itself, with 75 (a restart reads what is really there) and a reason."""
    until = time.monotonic() + PATIENCE_S
    while cluster.running(name):
        assert time.monotonic() < until, cluster.logs(name)[-2000:]
        time.sleep(0.01)
    assert cluster.terminate(name) == 75
    cluster.wait_until_logged(name, "the node stopped itself: OSError: [Errno 5] Input/output error")
    assert "Traceback" not in cluster.logs(name)


def test_what_cannot_be_synced_is_never_acknowledged() -> None:
    with FailingDisks(1) as cluster:
        with Wire(cluster.server(cluster.wait_for_leader()), PATIENCE_S) as wire:
            for number in range(20):
                assert wire.say("PUT load 0 2", b"%02d" % number) == "200 OK"
            marker = fail_syncs(cluster, "n1")
            with pytest.raises(Broken, match="closed"):
                wire.say("PUT load 0 5", b"never")
        wait_for_end(cluster, "n1")
        marker.unlink()
        cluster.restart("n1")
        bodies = drain(cluster)
        assert bodies[:20] == [b"%02d" % number for number in range(20)]
        assert bodies[20:] in ([], [b"never"])      # nobody knows


@pytest.mark.parametrize("leads", [False, True], ids=["follower", "leader"])
def test_a_node_whose_disk_fails_leaves_the_others_at_work(leads: bool) -> None:
    with FailingDisks(3) as cluster:
        producers = [Producer(cluster.servers, f"p{k}") for k in range(3)]
        for producer in producers:
            producer.start()
        wait_for_progress(producers)
        leader = cluster.wait_for_leader()
        victim = leader if leads else next(name for name in cluster.names if name != leader)
        marker = fail_syncs(cluster, victim)
        wait_for_end(cluster, victim)
        wait_for_progress(producers, 200)
        marker.unlink()
        cluster.restart(victim)
        cluster.wait_until_level()
        for producer in producers:
            producer.finish()
        check(producers, drain(cluster))


def test_a_snapshot_that_cannot_be_synced_is_given_up_and_the_node_goes_on() -> None:
    with FailingDisks(1) as cluster:
        server = cluster.server(cluster.wait_for_leader())
        producer = Producer(cluster.servers, "p")
        producer.start()
        wait_for_progress([producer])
        fail_syncs(cluster, "n1", "snapshots")
        assert say(server, "CLUSTER SNAPSHOT", 20.0) == "503 Busy"
        cluster.wait_until_logged("n1", "could not be written: OSError: [Errno 5] Input/output error")
        assert [path.name for path in (cluster.data_dir("n1") / "snapshots").iterdir()] == [MARKER]
        wait_for_progress([producer])
        producer.finish()
        check([producer], drain(cluster))
