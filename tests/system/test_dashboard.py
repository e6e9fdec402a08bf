"""The dashboard of three real nodes: on a follower, and while the leader is killed."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from urllib.parse import urlencode

import pytest
from sockpq import Client

from devcluster.cluster import LocalCluster
from tests.waiting import until

PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(nodes=3) as running:
        running.wait_until_level()
        yield running


def get(cluster: LocalCluster, name: str, path: str) -> str:
    with urllib.request.urlopen(f"http://{cluster.http(name)}{path}", timeout=PATIENCE_S) as answer:
        text = answer.read().decode()
        assert isinstance(text, str)
        return text


def act(cluster: LocalCluster, name: str, action: str, **fields: str) -> str:
    """Post a form; returns the page that is shown afterwards."""
    token = re.search(r'name="token" value="([0-9a-f]+)"', get(cluster, name, "/queues"))
    assert token is not None
    form = urlencode({"token": token[1], "action": action, "sure": "yes", "back": "/queues", **fields})
    request = urllib.request.Request(f"http://{cluster.http(name)}/act", form.encode())
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return str(answer.read().decode())
    except urllib.error.HTTPError as error:
        with error:
            return error.read().decode()


def wait_for(cluster: LocalCluster, name: str, path: str, text: str) -> None:
    """Wait until the page has the text: a follower applies an entry a little later, and knows no new queue before."""
    def shown() -> str:
        try:
            return get(cluster, name, path)
        except urllib.error.HTTPError as error:
            with error:
                return error.read().decode()

    until(lambda: text in shown(), shown)


def test_a_follower_shows_everything_and_hands_actions_to_the_leader(cluster: LocalCluster) -> None:
    leader = cluster.wait_for_leader()
    follower = next(name for name in cluster.names if name != leader)
    assert f"follows {leader}" in get(cluster, follower, "/")
    page = act(cluster, follower, "queue.create", queue="mail", settings="LIMIT 3")
    assert "QUEUE CREATE mail LIMIT 3: 200 OK" in page
    assert "409 Queue Exists" in act(cluster, follower, "queue.create", queue="mail")
    assert "200 OK" in act(cluster, follower, "job.put", queue="mail", priority="5", body="hello", options="KEY a1")
    for name in cluster.names:
        wait_for(cluster, name, "/queue?name=mail", "hello")
    with Client(cluster.servers) as client:
        assert client.total("mail").jobs == 1
    assert "CLUSTER TRANSFER" in act(cluster, follower, "cluster.transfer", node=follower)
    assert cluster.wait_for_leader() == follower
    assert "sockpqd.audit" in cluster.logs(follower)


def test_pages_go_on_when_the_leader_is_killed(cluster: LocalCluster) -> None:
    leader = cluster.wait_for_leader()
    others = [name for name in cluster.names if name != leader]
    cluster.kill(leader)
    wait_for(cluster, others[0], "/", "DOWN")
    successor = cluster.wait_for_leader(PATIENCE_S)
    follower = next(name for name in others if name != successor)
    wait_for(cluster, follower, "/", f"follows {successor}")
    assert "none may be lost" in get(cluster, follower, "/")
    assert "200 OK" in act(cluster, follower, "queue.create", queue="afterwards")
    cluster.restart(leader)
    cluster.wait_until_level()
    wait_for(cluster, leader, "/queues", "afterwards")


def known_times(cluster: LocalCluster, name: str, field: str) -> set[int]:
    """Return the seconds of the last ten minutes for which the node has this figure of the cluster."""
    rows = json.loads(get(cluster, name, "/figures?of=cluster&span=10m"))
    return {time for time, value in zip(rows["times"], rows["values"][field], strict=True) if value is not None}


def test_each_node_samples_the_cluster_and_keeps_what_it_has_through_a_restart(cluster: LocalCluster) -> None:
    with Client(cluster.servers) as client:
        client.put("mail", b"hello")
    follower = next(name for name in cluster.names if name != cluster.wait_for_leader())
    for name in cluster.names:
        until(lambda: len(known_times(cluster, name, "waiting")) > 2, f"{name} has samples", PATIENCE_S)  # noqa: B023
    before = known_times(cluster, follower, "waiting")
    cluster.terminate(follower)
    assert (cluster.data_dir(follower) / "samples").exists()
    cluster.restart(follower)
    until(lambda: max(known_times(cluster, follower, "waiting"), default=0) > max(before), "it goes on", PATIENCE_S)
    assert before <= known_times(cluster, follower, "waiting")
    until(lambda: known_times(cluster, follower, "put"), "rates are known when it has caught up", PATIENCE_S)


def test_the_page_of_a_node_shows_memory_and_disk_of_all_nodes(cluster: LocalCluster) -> None:
    for name in cluster.names:
        until(lambda: get(cluster, name, "/").count("disk free") == 3, f"{name} has heard all", PATIENCE_S)  # noqa: B023
        page = get(cluster, name, "/queues")
        for other in cluster.names:
            assert (f'data-node="{cluster.http(other)}"' in page) is (other != name)
