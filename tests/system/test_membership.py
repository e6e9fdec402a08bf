"""Real nodes join and leave a cluster that works meanwhile; nothing that was acknowledged is lost."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from devcluster.cluster import LocalCluster, say
from tests.system.load import Producer, check, drain

PATIENCE_S = 60.0


@pytest.fixture
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(3) as running:
        yield running


def order(cluster: LocalCluster, command: str) -> str:
    """Return the leader's answer; the question is repeated while there is none."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        answer = say(cluster.server(cluster.wait_for_leader()), command, PATIENCE_S)
        if answer not in (None, "500 Offline Mode"):
            return str(answer)
    raise AssertionError(f"{command}: no answer")


def add(cluster: LocalCluster, name: str) -> str:
    addresses = (cluster.peer(name), cluster.server(name))
    return order(cluster, " ".join(["CLUSTER ADD", name, *(part for a in addresses for part in a.split(":"))]))


def wait_for_roles(cluster: LocalCluster, roles: list[str], running: list[str]) -> None:
    """Wait until all these nodes report members in exactly these roles."""
    servers = {cluster.server(name) for name in running}
    cluster.wait_until(
        lambda views: all(
            sorted(node.role for node in view.nodes) == roles and all(node.lag == 0 for node in view.nodes)
            for view in views if view.server in servers
        ),
        f"{running} see {roles}",
    )


def test_all_nodes_are_replaced_by_others_under_load(cluster: LocalCluster) -> None:
    producers = [Producer(cluster.servers, f"p{k}") for k in range(2)]
    old = list(cluster.names)
    new = [cluster.spare() for _ in old]
    for producer in producers:
        producer._servers = cluster.servers
        producer.start()
    members = list(old)
    for coming, going in zip(new, old, strict=True):
        assert add(cluster, coming).startswith("200 OK ")
        cluster.restart(coming)
        members.append(coming)
        wait_for_roles(cluster, ["FOLLOWER"] * 3 + ["LEADER"], members)
        assert order(cluster, f"CLUSTER REMOVE {going}") == "200 OK"
        members.remove(going)
        wait_for_roles(cluster, ["FOLLOWER"] * 2 + ["LEADER"], members)
        assert cluster.terminate(going) == 0
    for producer in producers:
        producer.finish()
    for name in members:
        cluster.kill(name)
    for name in members:
        cluster.restart(name)
    wait_for_roles(cluster, ["FOLLOWER"] * 2 + ["LEADER"], members)
    assert sum(len(producer.acknowledged) for producer in producers) > 100
    check(producers, drain(cluster))


def test_a_learner_that_has_not_come_yet_is_called_one(cluster: LocalCluster) -> None:
    coming = cluster.spare()
    assert add(cluster, coming) == "200 OK 4"
    cluster.wait_until(
        lambda views: any([node.role for node in view.nodes].count("LEARNER") == 1 for view in views), "a learner",
    )
    assert order(cluster, f"CLUSTER REMOVE {coming}") == "200 OK"


def test_leadership_is_transferred_under_load(cluster: LocalCluster) -> None:
    producer = Producer(cluster.servers, "p")
    producer.start()
    for name in [*cluster.names, *cluster.names]:
        cluster.wait_until_level()
        leader = cluster.wait_for_leader()
        answer = say(cluster.server(leader), f"CLUSTER TRANSFER {name}", PATIENCE_S)
        assert answer is not None
        assert answer.startswith("200 OK ")
        assert answer.endswith(cluster.server(name).replace(":", " "))
        assert cluster.wait_for_leader() == name
    producer.finish()
    check([producer], drain(cluster))


def test_the_service_stays_switched_off_over_a_restart(cluster: LocalCluster) -> None:
    assert order(cluster, "PUT q 0 1\r\nx") == "200 OK"
    assert order(cluster, "CLUSTER OFFLINE") == "200 OK Switched to Offline Mode"
    assert say(cluster.server("n1"), "GET q", PATIENCE_S) == "500 Offline Mode"
    for name in cluster.names:
        cluster.kill(name)
    for name in cluster.names:
        cluster.restart(name)
    until = time.monotonic() + PATIENCE_S
    answers: set[str | None] = set()
    while "200 OK Switched to Online Mode" not in answers and time.monotonic() < until:
        assert not any(say(cluster.server(name), "GET q", PATIENCE_S) != "500 Offline Mode" for name in cluster.names)
        answers = {say(cluster.server(name), "CLUSTER ONLINE", PATIENCE_S) for name in cluster.names}
    assert answers <= {"200 OK Switched to Online Mode", "500 Offline Mode"}
    assert order(cluster, "GET q").startswith("200 OK ")


def test_a_removed_node_that_runs_on_is_told_so_and_disturbs_nobody(cluster: LocalCluster) -> None:
    gone = next(name for name in cluster.names if name != cluster.wait_for_leader())
    rest = [name for name in cluster.names if name != gone]
    cluster.kill(gone)
    assert order(cluster, f"CLUSTER REMOVE {gone}") == "200 OK"
    wait_for_roles(cluster, ["FOLLOWER", "LEADER"], rest)
    leader = cluster.wait_for_leader()
    time.sleep(3.5)             # its connections are kept for a while
    cluster.restart(gone)
    until = time.monotonic() + PATIENCE_S
    while "is not a member of the cluster" not in cluster.logs(gone) and time.monotonic() < until:
        time.sleep(0.05)
    cluster.wait_until_logged(gone, "is not a member of the cluster")
    assert say(cluster.server(gone), "GET q", PATIENCE_S) == "500 Offline Mode"
    assert cluster.wait_for_leader() == leader
    assert add(cluster, gone).startswith("200 OK ")
    wait_for_roles(cluster, ["FOLLOWER"] * 2 + ["LEADER"], cluster.names)


def test_commands_that_would_do_harm_are_refused(cluster: LocalCluster) -> None:
    follower = next(name for name in cluster.names if name != cluster.wait_for_leader())
    other = next(name for name in cluster.names if name not in (follower, cluster.wait_for_leader()))
    assert add(cluster, follower) == "409 Node Exists"
    assert order(cluster, "CLUSTER REMOVE n9") == "404 Node Not Found"
    assert say(cluster.server(follower), f"CLUSTER REMOVE {other}", PATIENCE_S) == "500 Offline Mode"
    assert order(cluster, "CLUSTER TRANSFER n9") == "409 Not Possible unknown"
    cluster.kill(follower)
    until = time.monotonic() + PATIENCE_S
    while order(cluster, f"CLUSTER TRANSFER {follower}") != "409 Not Possible down" and time.monotonic() < until:
        time.sleep(0.05)
    assert order(cluster, f"CLUSTER REMOVE {other}") == "409 Not Possible quorum"
    assert order(cluster, "CLUSTER SNAPSHOT").startswith("200 OK ")
    cluster.restart(follower)
    cluster.wait_until_level()
