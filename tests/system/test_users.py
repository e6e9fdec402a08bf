"""Users that were set exist whichever node leads."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from devcluster.cluster import LocalCluster, say
from tests.system.test_membership import PATIENCE_S, order

KEY = b"key-of-the-mailer"


@pytest.fixture
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(3) as running:
        yield running


def everywhere(cluster: LocalCluster, command: str, answer: str) -> None:
    """Wait until each node gives this answer."""
    until = time.monotonic() + PATIENCE_S
    for name in cluster.names:
        while (heard := say(cluster.server(name), command, 5.0)) != answer:
            assert time.monotonic() < until, f"{name}: {heard}"
            time.sleep(0.05)


def test_users_outlive_leaders_and_restarts(cluster: LocalCluster) -> None:
    assert order(cluster, f"USER SET mailer put:mail* {KEY.hex()}") == "200 OK"
    assert order(cluster, f"USER SET other - {KEY.hex()}") == "200 OK"
    everywhere(cluster, f"AUTH mailer {KEY.decode()}", "200 OK")
    leader = cluster.wait_for_leader()
    cluster.kill(leader)
    assert order(cluster, "USER DELETE other") == "200 OK"
    assert order(cluster, "CLUSTER SNAPSHOT").startswith("200 OK ")
    cluster.restart(leader)
    cluster.wait_until_level()
    everywhere(cluster, f"AUTH mailer {KEY.decode()}", "200 OK")
    everywhere(cluster, f"AUTH other {KEY.decode()}", "403 Forbidden")
    for name in cluster.names:
        cluster.kill(name)
    for name in cluster.names:
        cluster.restart(name)
    cluster.wait_until_level()
    everywhere(cluster, f"AUTH mailer {KEY.decode()}", "200 OK")
    everywhere(cluster, "USER LIST", "200 OK 1")
