"""Celery with real workers on three nodes: results, chords, times, remote control, and what faults do."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from celery import Celery, chord, group
from sockpq import Client

from devcluster.cluster import LocalCluster
from tests.kombu import celery_project as project
from tests.kombu.leftovers import ask, there
from tests.kombu.workers import worker
from tests.waiting import PATIENCE_S, until

TASKS = 200


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(3) as started:
        yield started


@pytest.fixture(scope="module")
def connected(cluster: LocalCluster) -> Iterator[Celery]:
    """The project's app, in this process."""
    url = ";".join(f"sockpq://{server}/v" for server in cluster.servers)
    project.app.conf.update(broker_url=url, result_backend=url.split(";")[0])
    yield project.app
    project.app.close()


@pytest.fixture
def app(connected: Celery, cluster: LocalCluster) -> Celery:
    """The same, with an empty queue: what a worker that was killed had at its end has come back, and is gone."""
    with Client(cluster.servers) as client:
        until(lambda: not any(job.queue.endswith("celery") for job in client.running()))
    connected.control.purge()
    return connected


def lines(file: Path) -> list[tuple[int, int]]:
    if not file.exists():
        return []
    return [(int(number), int(again)) for number, again in (line.split() for line in file.read_text().splitlines())]


@pytest.mark.parametrize("pool", ["prefork", "solo", "threads"])
def test_results_groups_chords_errors_retries_and_times(app: Celery, tmp_path: Path, pool: str) -> None:
    with worker(app, tmp_path / f"{pool}.log", "-P", pool, "-c", "2", "-E"):
        assert project.add.delay(1, 2).get(timeout=PATIENCE_S) == 3
        assert group(project.add.s(i, i) for i in range(5))().get(timeout=PATIENCE_S) == [0, 2, 4, 6, 8]
        assert chord((project.add.s(i, i) for i in range(5)), project.total.s())().get(timeout=PATIENCE_S) == 20
        with pytest.raises(ValueError, match="no"):
            project.fail.delay().get(timeout=PATIENCE_S)
        assert project.third_time.delay().get(timeout=PATIENCE_S) == 2
        assert list(app.control.inspect(timeout=PATIENCE_S, limit=1).ping()) == [f"{pool}@h"]
        begun = time.monotonic()
        assert project.add.apply_async((1, 2), countdown=2).get(timeout=PATIENCE_S) == 3
        assert time.monotonic() - begun >= 1.9


def test_a_killed_leader_costs_no_task(app: Celery, cluster: LocalCluster, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with worker(app, tmp_path / "w.log", "-c", "2"):
        for number in range(TASKS):
            if number == TASKS // 3:
                killed = cluster.wait_for_leader()
                cluster.kill(killed)
            project.note.delay(str(out), number, 0.01)
        until(lambda: len(lines(out)) >= TASKS)
        cluster.restart(killed)
    assert Counter(number for number, _ in lines(out)) == Counter(range(TASKS))
    assert "onnection lost" not in (tmp_path / "w.log").read_text()


def test_the_tasks_of_a_killed_worker_are_done_by_another_and_flagged(app: Celery, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with worker(app, tmp_path / "first.log", "-c", "2") as first:
        for number in range(20):
            project.note.delay(str(out), number, 0.2)
        until(lambda: len(lines(out)) >= 4)
        os.killpg(first.pid, signal.SIGKILL)
    with worker(app, tmp_path / "second.log", "-c", "2"):
        until(lambda: {number for number, _ in lines(out)} == set(range(20)))
    found = lines(out)
    for number, count in Counter(number for number, _ in found).items():
        assert count == 1 or (number, 1) in found


def test_the_body_of_a_chord_is_called_once_though_the_worker_dies_behind_the_last_part(
    app: Celery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    died, out = tmp_path / "died", tmp_path / "out"
    monkeypatch.setenv("DIES_BEFORE_BODY", str(died))
    result = chord((project.add.s(i, i) for i in range(5)), project.write_total.s(str(out)))()
    with worker(app, tmp_path / "first.log", "-c", "2") as first:
        first.wait(PATIENCE_S)
    assert died.exists()
    assert not out.exists()
    with worker(app, tmp_path / "second.log", "-c", "2"):
        assert result.get(timeout=PATIENCE_S) == 20
        assert project.add.delay(1, 2).get(timeout=PATIENCE_S) == 3     # behind whatever would be called again
    assert out.read_text() == "20\n"


def test_a_warm_shutdown_ends_what_was_begun_and_gives_back_the_rest(
    app: Celery, cluster: LocalCluster, tmp_path: Path
) -> None:
    """Celery keeps only tasks that a process has reported as begun; one on its way there runs, and comes again."""
    go, out, log = tmp_path / "go", tmp_path / "out", tmp_path / "w.log"
    with worker(app, log, "-c", "1", "--loglevel", "debug") as running:
        project.hold.delay(str(go))
        for number in range(9):
            project.note.delay(str(out), number)
        until(lambda: any((app.control.inspect(limit=1).active() or {}).values()), log.read_text)
        os.kill(running.pid, signal.SIGTERM)
        until(lambda: "Worker: Stopping Pool" in log.read_text(), log.read_text)
        go.touch()
        running.wait(PATIENCE_S)
    assert not out.exists()
    with Client(cluster.servers) as client:
        (queue,) = [one for one in client.queues() if one.name.endswith("celery")]
        stat = client.queue_stat(queue.name)
        assert (stat["running"], stat["ready"]) == (0, 9)


def test_questions_leave_nothing(app: Celery, cluster: LocalCluster, tmp_path: Path) -> None:
    with worker(app, tmp_path / "w.log", "-P", "solo"), Client(cluster.servers) as client:
        ask(app, 1)         # the worker has its sessions from now on
        before = there(client)
        ask(app, 10)
        until(lambda: not any(there(client).beyond(before)))


def test_events_reach_a_receiver(app: Celery, tmp_path: Path) -> None:
    heard: list[dict[str, Any]] = []
    with worker(app, tmp_path / "w.log", "-c", "1", "-E"), app.connection() as connection:
        receiver = app.events.Receiver(connection, handlers={"task-succeeded": heard.append})
        generator = receiver.itercapture(limit=None, timeout=PATIENCE_S, wakeup=False)
        next(generator)
        task = project.add.delay(1, 1)
        for _ in range(50):
            if heard:
                break
            next(generator, None)
        assert heard[0]["uuid"] == task.id
