"""The dashboard of three real nodes: on a follower, and while the leader is killed."""

from __future__ import annotations

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
    """The page that is shown afterwards."""
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
    until(lambda: text in get(cluster, name, path), lambda: get(cluster, name, path))


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
