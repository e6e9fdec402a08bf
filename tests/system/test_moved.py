"""Members that come back at other addresses are found by the others, which are not restarted."""

from __future__ import annotations

from devcluster.cluster import LocalCluster
from tests.system.load import Producer, check, drain
from tests.system.test_kill import wait_for_progress


def test_members_that_move_one_after_the_other_are_found() -> None:
    with LocalCluster(3) as cluster:
        cluster.wait_until_level()
        producer = Producer(cluster.servers, "p")
        producer.start()
        wait_for_progress([producer])
        first, second, third = cluster.names
        for moving in (first, second):
            before = cluster.peer(moving)
            cluster.terminate(moving)
            cluster.move(moving)
            assert cluster.peer(moving) != before
            marks = {name: len(cluster.logs(name)) for name in cluster.names}
            cluster.restart(moving)
            found = f"{moving} is at {cluster.peer(moving)}, not at {before} as this node was configured"
            for other in cluster.names:
                if other != moving:
                    cluster.wait_until_logged(other, found, marks[other])
            producer._servers = cluster.servers
            cluster.wait_until_level()
        cluster.kill(third)                     # now each answer of the moved ones is needed
        wait_for_progress([producer])
        cluster.restart(third)                  # and this one has to be told again where they are
        producer.finish()
        moved = {cluster.server(name) for name in cluster.names}
        cluster.wait_until(
            lambda views: all({node.client for node in view.nodes} == moved for view in views),
            "all tell clients where the nodes are")
        check([producer], drain(cluster))
