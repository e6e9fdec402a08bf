"""Revoked tasks that wait in the cluster are removed there; the others are left to their workers."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from celery import Celery, chord
from celery.exceptions import TaskRevokedError
from sockpq import Client, FoundJob, NotSupported
from sockpq.testing import Server

from tests.kombu.workers import worker
from tests.waiting import PATIENCE_S, until

ADD = "tests.kombu.celery_project.add"


@pytest.fixture
def host() -> str:
    """A virtual host of this test: kombu remembers for a process which queues it has declared."""
    return uuid4().hex


@pytest.fixture
def app(own_server: Server, host: str) -> Iterator[Celery]:
    url = f"sockpq://{own_server.address}/{host}"
    with Celery(broker=url, backend=url) as made:
        yield made


@pytest.fixture
def client(own_server: Server) -> Iterator[Client]:
    with Client(own_server.address, timeout=60) as made:
        yield made


def jobs(client: Client, task_id: str) -> list[FoundJob]:
    return list(client.find(header=("id", task_id)))


def test_the_name_and_the_id_of_a_task_are_headers_of_its_job(app: Celery, client: Client, host: str) -> None:
    sent = app.send_task(ADD, (1, 2))
    (found,) = client.find(f"{host}.celery", header=("task", ADD))
    assert (found.queue, found.state) == (f"{host}.celery", "ready")
    assert found.number is not None
    shown = client.ended(found.number, headers=True)
    assert shown is not None
    assert shown.headers == {"task": ADD, "id": sent.id}


@pytest.mark.parametrize("name", ["", "x" * 1025, "two\nlines", "a\x1b[2J", "\u2028"])
def test_a_name_that_no_header_may_have_is_none(app: Celery, client: Client, name: str) -> None:
    sent = app.send_task(name, (1, 2))
    (found,) = jobs(client, sent.id)
    shown = client.ended(found.number or 0, headers=True)
    assert shown is not None
    assert shown.headers == {"id": sent.id}


@pytest.mark.parametrize("later_s", [0, 1000])
def test_a_task_that_waits_is_removed_and_its_caller_learns_of_it(app: Celery, client: Client, later_s: float) -> None:
    eta = datetime.now(UTC) + timedelta(seconds=later_s) if later_s else None
    sent, kept = (app.send_task(ADD, (1, 2), eta=eta) for _ in range(2))
    app.control.revoke(sent.id)
    assert jobs(client, sent.id) == []
    with pytest.raises(TaskRevokedError):
        sent.get(timeout=PATIENCE_S)
    assert len(jobs(client, kept.id)) == 1
    assert kept.state == "PENDING"


def test_many_tasks_are_removed_and_what_is_no_id_is_left_out(app: Celery, client: Client) -> None:
    sent = [app.send_task(ADD, (number, 2)) for number in range(5)]
    app.control.revoke([one.id for one in sent[:4]] + ["x" * 2000, "a\nb"])
    assert [len(jobs(client, one.id)) for one in sent] == [0, 0, 0, 0, 1]


def test_a_task_that_runs_is_left_to_its_worker_and_its_retry_is_removed(
    app: Celery, client: Client, host: str
) -> None:
    sent = app.send_task(ADD, (1, 2))
    running = client.get(f"{host}.celery", expire=60)
    assert running is not None
    app.send_task(ADD, (1, 2), task_id=sent.id, countdown=1000)         # as a retry, while the first one still runs
    app.control.revoke(sent.id)
    (left,) = jobs(client, sent.id)
    assert (left.state, left.id) == ("running", running.id)


def test_what_has_a_result_keeps_it(app: Celery, client: Client) -> None:
    sent = app.send_task(ADD, (1, 2))
    app.backend.store_result(sent.id, 3, "SUCCESS")
    app.control.revoke(sent.id)
    assert jobs(client, sent.id) == []
    assert sent.get(timeout=PATIENCE_S) == 3


def test_the_part_of_a_chord_is_left_to_a_worker_which_ends_the_chord(
    app: Celery, client: Client, tmp_path: Path
) -> None:
    first, second = (app.signature(ADD, (number, 1)) for number in (1, 2))
    release = tmp_path / "release"
    with worker(app, tmp_path / "w.log", "-P", "solo", session_ttl=PATIENCE_S):
        held = app.send_task("tests.kombu.celery_project.hold", (str(release),))
        until(lambda: [job.state for job in jobs(client, held.id)] == ["running"])
        total = chord([first, second], app.signature("tests.kombu.celery_project.total"), app=app)()
        part = total.parent[0]
        app.control.revoke(part.id)
        assert len(jobs(client, part.id)) == 1
        release.touch()
        until(lambda: total.state == "FAILURE")         # a part of it was revoked
        until(lambda: jobs(client, part.id) == [])


def test_revocations_of_other_hosts_and_for_some_workers_only_remove_nothing(
    app: Celery, client: Client, own_server: Server
) -> None:
    sent = app.send_task(ADD, (1, 2))
    with Celery(broker=f"sockpq://{own_server.address}/w") as other:
        other.control.revoke(sent.id)
    app.control.revoke(sent.id, destination=["nobody@h"])
    assert len(jobs(client, sent.id)) == 1
    with Celery(broker=app.conf.broker_url, broker_transport_options={"remove_revoked": False}) as without:
        without.control.revoke(sent.id)
    assert len(jobs(client, sent.id)) == 1


def test_without_a_result_backend_it_is_removed_all_the_same(
    client: Client, own_server: Server, host: str
) -> None:
    with Celery(broker=f"sockpq://{own_server.address}/{host}") as app:
        sent = app.send_task(ADD, (1, 2))
        app.control.revoke(sent.id)
    assert jobs(client, sent.id) == []


def test_servers_without_headers_are_served_as_before(
    app: Celery, client: Client, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without(name: str, *options: str) -> None:
        call = getattr(Client, name)

        def old(self: Client, *args: Any, **kwargs: Any) -> Any:
            if any(kwargs.get(option) for option in options) or not options:
                raise NotSupported("400 Bad Command")
            return call(self, *args, **kwargs)

        monkeypatch.setattr(Client, name, old)

    for name, options in (("put", ("headers",)), ("publish", ("headers",)), ("queue_create", ("numbered",)),
                          ("queue_config", ("numbered",)), ("find", ())):
        without(name, *options)
    sent = app.send_task(ADD, (1, 2))
    app.control.revoke(sent.id)
    (job,) = client.peek_queue(f"{host}.celery", count=5, headers=True)
    assert (job.headers, job.number) == ({}, None)


def test_a_queue_from_before_gives_numbers_to_what_comes(app: Celery, client: Client, host: str) -> None:
    client.queue_create(f"{host}.celery", capacity=100)
    sent = app.send_task(ADD, (1, 2))
    app.control.revoke(sent.id)
    assert jobs(client, sent.id) == []
    told = client.queue_config(f"{host}.celery")
    assert (told["numbered"], told["capacity"]) == ("1", "100")


def test_a_running_task_is_terminated_by_its_worker(app: Celery, client: Client, tmp_path: Path) -> None:
    never = tmp_path / "never"
    log = tmp_path / "w.log"
    with worker(app, log, "-c", "1", session_ttl=PATIENCE_S):
        sent = app.send_task("tests.kombu.celery_project.hold", (str(never),))
        until(lambda: [job.state for job in jobs(client, sent.id)] == ["running"], log.read_text)
        until(lambda: any(app.control.inspect(timeout=PATIENCE_S, limit=1).active().values()))
        app.control.revoke(sent.id, terminate=True)
        with pytest.raises(TaskRevokedError):
            sent.get(timeout=PATIENCE_S)
        until(lambda: jobs(client, sent.id) == [])
