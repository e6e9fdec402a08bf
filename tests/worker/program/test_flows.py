"""Flows and batches with the real program and a real node, in each kind of pool."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sockpq import Client
from sockpq.testing import Server
from sockpq.worker import App, TaskFailed

from tests.worker.program.conftest import Start

APP = '''
@app.task("flows", name="fetch", result=True, tries=1)
def fetch(number):
    return number

@app.task("flows", name="double", result=True, tries=1)
async def double(number):
    return 2 * number

@app.task("flows", name="report", result=True, tries=1)
def report(results):
    return sum(results)

@app.task("flows", name="fail", result=True, tries=1)
def fail(number):
    raise ValueError(number)

@app.task("flows", name="told")
def told(what):
    record(what)

@app.task("flows", name="spread")
def spread(count):
    for number in range(count):
        app.current_batch().add(told, f"member{number}")
'''


@pytest.fixture
def app(one_server: Server) -> Iterator[App]:
    """Return the author's side of the app."""
    app = App(one_server.address)
    for name in ("fetch", "double", "report", "fail"):
        app.task("flows", name=name, result=True)(lambda given: None)
    app.task("flows", name="told")(lambda what: None)
    app.task("flows", name="spread")(lambda count: None)
    yield app
    app.close()


@pytest.mark.parametrize("kind", ["processes", "threads", "asyncio"])
def test_results_failures_and_batches(start: Start, client: Client, app: App, kind: str) -> None:
    worker = start(APP, "-c", "3", "--pool", kind)
    fetch, double, report, fail, told, spread = app.tasks.values()
    handle = app.flow(fetch.s(1) >> (double.s() | fetch.s()) >> report.s() >> double.s())
    assert handle.wait(timeout=60) == 6
    failing = app.flow((fail.s(1) | fetch.s(2)) >> report.s() >> double.s(), on_failure=told.s("failed"))
    with pytest.raises(TaskFailed, match="ValueError: 1"):
        failing.wait(timeout=60)
    worker.until(lambda: "failed" in worker.record)
    worker.until(lambda: [node.state for node in failing.graph().nodes] == ["dead", "done", "cancelled", "cancelled"])
    with app.batch(on_success=told.s("success"), on_failure=told.s("never")) as batch:
        batch.add(spread, 3)
    worker.until(lambda: "success" in worker.record)
    assert sorted(worker.record) == ["failed", "member0", "member1", "member2", "success"]
    assert batch.progress() is None
    worker.until(lambda: all(item.dead for item in client.items()))
