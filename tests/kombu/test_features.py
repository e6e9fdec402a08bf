"""Features that Celery ties to the names of brokers, and that work here as well."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import kombu
import pytest
from celery import Celery
from celery.exceptions import TaskRevokedError
from sockpq import Client
from sockpq.testing import Server
from sockpq_kombu.features.flower_page import broker_page

from tests.kombu.workers import worker
from tests.waiting import PATIENCE_S, until


@pytest.fixture
def app(own_server: Server) -> Iterator[Celery]:
    url = f"sockpq://{own_server.address}/"
    with Celery(broker=url, backend=url) as made:
        yield made


def test_a_revocation_outlives_workers_that_are_replaced_one_after_the_other(app: Celery, tmp_path: Path) -> None:
    with worker(app, tmp_path / "first.log", "-P", "solo") as first:
        app.control.revoke("wanted-no-more")
        until(lambda: "wanted-no-more" in app.control.inspect(timeout=PATIENCE_S, limit=1).revoked()["first@h"])
        with worker(app, tmp_path / "second.log", "-P", "solo"):
            os.killpg(first.pid, signal.SIGKILL)
            first.wait(PATIENCE_S)
            revoked = app.send_task("tests.kombu.celery_project.add", (1, 2), task_id="wanted-no-more")
            with pytest.raises(TaskRevokedError):
                revoked.get(timeout=PATIENCE_S)
    assert "sync with 1 nodes" in (tmp_path / "second.log").read_text()


def test_workers_notice_each_other(app: Celery, tmp_path: Path) -> None:
    with worker(app, tmp_path / "first.log", "-P", "solo", "--loglevel", "debug") as first:
        log = tmp_path / "second.log"
        with worker(app, log, "-P", "solo", "--loglevel", "debug"):
            until(lambda: "first@h joined the party" in log.read_text())
            os.kill(first.pid, signal.SIGTERM)
            until(lambda: "first@h left" in log.read_text())


def test_flower_finds_the_queues_by_the_scheme_of_the_url(own_server: Server, own_client: Client) -> None:
    class Broker:
        """As in Flower: it makes one for each broker that it knows."""

        def __new__(cls, broker_url: str, *args: Any, **kwargs: Any) -> Any:
            if broker_url.startswith("redis:"):
                return "that of Redis"
            raise NotImplementedError

    flower = ModuleType("flower.utils.broker")
    flower.Broker = Broker      # type: ignore[attr-defined]
    broker_page(flower)
    url = f"sockpq://{own_server.address}/flower"
    with kombu.Connection(url) as connection:
        for _ in range(3):
            connection.Producer().publish("x", routing_key="q:1")
    assert own_client.get("flower.q:3A1", expire=60)
    made: Any = Broker(url, http_api=None, broker_options={"session_ttl": 3}, broker_use_ssl=None)
    (queue,) = asyncio.run(made.queues({"q:1", "not-there"}))
    assert queue == {**queue, "name": "q:1", "messages": 3, "messages_ready": 2, "messages_unacknowledged": 1}
    assert Broker("redis://h", http_api=None) == "that of Redis"
    with pytest.raises(NotImplementedError):
        Broker("sqs://h", http_api=None)


@pytest.mark.parametrize("pool", ["prefork", "threads"])
def test_without_prefetch_a_task_is_taken_only_by_a_free_process(
    own_client: Client, own_server: Server, tmp_path: Path, pool: str
) -> None:
    url, queue, go = f"sockpq://{own_server.address}/{pool}", f"{pool}.celery", tmp_path / "go"

    def held() -> tuple[int, int]:
        stat = own_client.queue_stat(queue)
        return stat["ready"], stat["running"]

    log = tmp_path / "w.log"
    arguments = "-P", pool, "-c", "2", "--disable-prefetch"
    with Celery(broker=url, backend=url) as app, worker(app, log, *arguments, session_ttl=PATIENCE_S):
        tasks = [app.send_task("tests.kombu.celery_project.hold", (str(go),)) for _ in range(6)]
        until(lambda: held() == (4, 2), lambda: f"{held()} are ready and running: {log.read_text()}")
        time.sleep(1)
        assert held() == (4, 2)
        go.touch()
        for task in tasks:
            task.get(timeout=PATIENCE_S)
    assert "only supported for Redis" not in log.read_text()
