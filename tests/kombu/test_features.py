"""What Celery ties to the names of brokers, and has here as well."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from celery import Celery
from celery.exceptions import TaskRevokedError
from sockpq.testing import Server

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
