"""A connection of kombu's, and a worker of Celery's, stay with one cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import kombu
import pytest
from celery import Celery
from sockpq import Client, ForeignCluster

from devcluster.cluster import LocalCluster
from tests.kombu.workers import worker
from tests.replaced import replace
from tests.waiting import PATIENCE_S, until


@pytest.fixture
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(1) as started:
        yield started


def test_nothing_is_acknowledged_or_published_in_another_cluster(cluster: LocalCluster) -> None:
    (server,) = cluster.servers
    with kombu.Connection(f"sockpq://{server}", transport_options={"patience": 5}) as connection:
        queue = kombu.Queue("orders", kombu.Exchange("orders"), routing_key="new")(connection.default_channel)
        queue.declare()
        connection.Producer().publish("ours", exchange="orders", routing_key="new")
        message = queue.get()
        assert message.decode() == "ours"
        replace(cluster)
        with Client(server) as client:
            client.put("orders", b"theirs")
            theirs = client.get("orders")
            assert theirs
            message.ack()
            retried: list[Exception] = []
            producer = connection.Producer()
            for _ in range(2):      # the next one is no better
                with pytest.raises(ForeignCluster):
                    producer.publish("more", exchange="orders", routing_key="new", retry=True, retry_policy={
                        "errback": lambda error, interval: retried.append(error)})
            assert not any(isinstance(error, ForeignCluster) for error in retried)
            assert client.total("orders").running == 1
    with kombu.Connection(f"sockpq://{server}") as another, pytest.raises(ForeignCluster):     # in this process
        another.ensure_connection(max_retries=None)


def test_a_worker_ends(cluster: LocalCluster, tmp_path: Path) -> None:
    (server,) = cluster.servers
    app = Celery(broker=f"sockpq://{server}/v")
    log = tmp_path / "worker.log"
    done = tmp_path / "done"
    with Client(server) as client:
        mine = client.cluster_id().id
    with worker(app, log, "-P", "threads", "-c", "1", "-E") as started:
        app.send_task("tests.kombu.celery_project.note", (str(done), 1))
        until(done.exists, log.read_text)
        replace(cluster)
        with Client(server) as client:
            other = client.cluster_id().id
            assert started.wait(PATIENCE_S) != 0, log.read_text()
            assert client.running() == []
    app.close()
    text = log.read_text()
    assert "ForeignCluster" in text
    assert str(mine) in text
    assert str(other) in text
