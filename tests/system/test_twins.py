"""A second process with the name of a node disturbs nobody, also with a copy of its data."""

from __future__ import annotations

from pathlib import Path

import pytest

from devcluster.cluster import LocalCluster
from devcluster.ports import HOST
from tests.system.load import Producer, check, drain
from tests.system.second_process import twin_of
from tests.system.test_kill import wait_for_progress
from tests.waiting import until


@pytest.mark.parametrize("copied", [True, False])
def test_a_second_process_with_the_name_of_a_follower_is_refused(tmp_path: Path, *, copied: bool) -> None:
    with LocalCluster(3) as cluster:
        leader = cluster.wait_for_leader()
        cluster.wait_until_level()
        follower, third = (name for name in cluster.names if name != leader)
        producer = Producer(cluster.servers, "p")
        producer.start()
        wait_for_progress([producer])
        before = len(cluster.logs(leader))
        with twin_of(cluster, follower, tmp_path / "twin", copied=copied) as twin:
            refused = f"a second process with the name {follower} comes from {HOST}:"
            cluster.wait_until_logged(leader, refused, before)
            until(lambda: f"refuses this node: {refused}" in twin.log(), twin.log)
            cluster.kill(third)                 # now each answer of the follower is needed
            wait_for_progress([producer], 200)
            said = cluster.logs(leader)[before:]
            assert f"connection to {follower} lost" not in said
        cluster.restart(third)
        producer.finish()
        cluster.wait_until_level()
        check([producer], drain(cluster))
