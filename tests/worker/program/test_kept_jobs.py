"""The data kept of a task's job after its end, with the real program: settings, results, errors."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from sockpq import Client, Number
from sockpq.testing import Server
from sockpq.worker import App, TaskFailed

from tests.worker.program.conftest import Start

APP = '''
@app.task("kept", name="add", retain=3600, result=True, tries=2, backoff=(0.05, 1))
def add(one, two):
    return one + two

@app.task("kept", name="fail", result=True, tries=1)
def fail(deep):
    raise ValueError("no " + "x" * deep)

@app.task("kept", name="dies", retain=60, tries=1)
def dies():
    record("dies", os.getpid())
    time.sleep(60)
'''


@pytest.fixture
def app(one_server: Server) -> Iterator[App]:
    """Return the producer's side of the app."""
    app = App(one_server.address)
    app.task("kept", name="add", result=True)(lambda one, two: None)
    app.task("kept", name="fail", result=True)(lambda deep: None)
    app.task("kept", name="dies", retain=60)(lambda: None)
    yield app
    app.close()


@pytest.mark.parametrize("kind", ["processes", "threads", "asyncio"])
def test_results_and_tracebacks_are_kept(start: Start, client: Client, app: App, kind: str) -> None:
    worker = start(APP, "-c", "2", "--pool", kind)
    done, dead = app.tasks["add"].put(1, 2), app.tasks["fail"].put(5)
    worker.until(lambda: (done.state(), dead.state()) == ("done", "dead"))
    assert done.number is not None
    assert client.job_result(done.number) == b"3"
    assert done.result(timeout=60) == 3
    with pytest.raises(TaskFailed) as failed:
        dead.result(timeout=60)
    assert (failed.value.kind, failed.value.message) == ("ValueError", "no xxxxx")
    assert 'raise ValueError("no "' in failed.value.trace
    text = client.job_error(Number(dead.number or 0))
    assert text is not None
    assert text.startswith("Traceback")
    assert 'raise ValueError("no "' in text
    assert text.endswith("ValueError: no xxxxx\n")
    found = dead.look()
    assert found is not None
    assert (found.reason, found.attempt) == ("ValueError", 1)
    settings = client.queue_config("kept")
    assert (settings["retain"], settings["backoff"]) == ("3600", "0.05 1")


def test_a_long_error_is_cut_in_the_middle(start: Start, client: Client, app: App) -> None:
    client.queue_config("kept", retain=7200)
    worker = start(APP, "-c", "1")
    long = app.tasks["fail"].put(100_000)
    worker.until(lambda: long.state() == "dead")
    text = client.job_error(Number(long.number or 0)) or ""
    assert text.startswith("Traceback")
    assert len(text.encode()) <= 16_384
    assert "[..]" in text
    assert client.queue_config("kept")["retain"] == "7200"      # an operator keeps more than the tasks ask for


def test_a_killed_child_leaves_a_reason(start: Start, client: Client, app: App) -> None:
    worker = start(APP, "-c", "1")
    handle = app.tasks["dies"].put()
    worker.until(lambda: bool(worker.record))
    os.kill(int(worker.record[0].split()[1]), signal.SIGKILL)
    worker.until(lambda: handle.state() == "dead")
    found = handle.look()
    assert found is not None
    assert found.reason == "ChildDied"
    assert client.job_error(Number(handle.number or 0)) == "ChildDied: its process has ended by signal 9 (SIGKILL)"


def test_a_killed_worker_is_a_timeout_in_the_history_of_its_job(start: Start, client: Client, app: App) -> None:
    app_text = APP.replace("retain=60, tries=1", "retain=60, expire=600")      # no lease ends while its worker lives
    worker = start(app_text, "-c", "1")
    handle = app.tasks["dies"].put()
    worker.until(lambda: bool(worker.record))
    worker.end(signal.SIGKILL)
    (running,) = client.running()
    client.touch(running.id, 0.001)         # the lease is over now, not in ten minutes
    other = start(app_text, "-c", "1")
    other.until(lambda: len(worker.record) == 2)
    stat = client.job_stat(handle.number or 0)
    assert (stat.timeouts, stat.attempts) == (1, 2)

