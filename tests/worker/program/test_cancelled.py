"""Running jobs that are cancelled, in each kind of pool, with the real program; and how far a job is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sockpq import Client
from sockpq.testing import Server
from sockpq.worker import App

from tests.worker.program.conftest import Start

APP = '''
def cleaned_up(job):
    record("cleaned", job.queue)

async def acleaned_up(job):
    record("cleaned", job.queue)

@app.task("q", name="waits", retain=60, on_cancel=acleaned_up)
async def waits():
    record("begin", os.getpid())
    try:
        await asyncio.sleep(600)
    except asyncio.CancelledError:
        record("cancelled")
        raise

@app.task("q", name="works", retain=60, on_cancel=cleaned_up)
def works():
    record("begin", os.getpid())
    try:
        for number in range(10_000):
            try:
                current_job().progress(number % 101)
            except Exception:
                pass
            time.sleep(0.05)
    except JobCancelled:
        record("cancelled")
        raise

@app.task("q", name="stuck", retain=60)
def stuck():
    record("begin", os.getpid())
    while True:
        try:
            time.sleep(600)
        except BaseException:
            record("cancelled")

@app.task("q", name="next", retain=60)
def next_():
    record("next")
'''


@pytest.fixture
def app(one_server: Server) -> Iterator[App]:
    """Return the producer's side of the app."""
    app = App(one_server.address)
    for name in ("waits", "works", "stuck", "next"):
        app.task("q", name=name, retain=60)(lambda: None)
    yield app
    app.close()


@pytest.mark.parametrize("task", ["waits", "works"])
@pytest.mark.parametrize("kind", ["processes", "threads", "asyncio"])
def test_a_running_job_is_interrupted_and_the_pool_goes_on(start: Start, app: App, kind: str, task: str) -> None:
    worker = start(APP, "-c", "1", "--pool", kind)
    handle = app.tasks[task].put()
    worker.until(lambda: len(worker.record) == 1)
    assert handle.cancel()
    after = app.tasks["next"].put()
    worker.until(lambda: len(worker.record) == 4)
    assert worker.record[1:] == ["cancelled", "cleaned q", "next"]
    assert (handle.state(), after.result(timeout=60)) == ("cancelled", None)
    assert any(line["message"] == "a job was cancelled" for line in worker.log)
    assert not any(line["level"] in ("WARNING", "ERROR") for line in worker.log)


def test_a_process_that_goes_on_with_a_cancelled_job_is_killed(start: Start, app: App) -> None:
    worker = start(APP, "-c", "1")
    handle = app.tasks["stuck"].put()
    worker.until(lambda: len(worker.record) == 1)
    assert handle.cancel()
    app.tasks["next"].put()
    worker.until(lambda: "next" in worker.record)
    worker.until(lambda: any("its job was cancelled" in line["message"] for line in worker.log))


def test_a_job_that_waits_in_the_pool_is_dropped(start: Start, app: App) -> None:
    worker = start(APP, "-c", "1", "--strategy", "fast")
    first = app.tasks["waits"].put()
    second, third = app.tasks["works"].put(), app.tasks["next"].put()
    worker.until(lambda: (first.state(), second.state(), third.state()) == ("running",) * 3)
    worker.until(lambda: len(worker.record) == 1)
    assert second.cancel()
    assert first.cancel()
    worker.until(lambda: "next" in worker.record)
    assert [line.split()[0] for line in worker.record] == ["begin", "cancelled", "cleaned", "next"]


def test_how_far_a_job_is(start: Start, client: Client, app: App) -> None:
    worker = start(APP, "-c", "1")
    handle = app.tasks["works"].put()

    def progress() -> int:
        job = handle.look()
        return (job and job.progress) or 0

    worker.until(lambda: progress() > 3)
    assert handle.cancel()
