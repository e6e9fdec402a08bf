"""Flows against the real server in this process: their order, results, and what is found of them later."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from sockpq import Client
from sockpq.worker import App, group
from sockpq.worker.flows import plan

from tests.client.real_server import RealServer
from tests.worker.flows.working import RAN, Worker, call, left_over


def test_results_are_handed_down_a_chain_and_joined(app: App, worker: Worker, client: Client) -> None:
    fetch, add, show = call(app, "fetch"), call(app, "add"), call(app, "show")
    handle = app.flow(fetch.s(1) >> (add.s(10) | add.s(more=20)) >> show.s("end"))
    assert client.queue_stat("q")["delayed"] >= 3      # the others wait
    worker.work_off()
    assert handle.wait(timeout=0) == [[11, 21], "end"]
    assert RAN == [("fetch", 1), ("add", 1), ("add", 1), ("show", [11, 21], "end")]
    assert [node.state for node in handle.graph().nodes] == ["done"] * 4
    assert handle.graph().edges == [(0, 1), (0, 2), (1, 3), (2, 3)]
    assert left_over(client) == (0, [])


def test_the_results_come_from_the_jobs_and_not_through_the_author(app: App, client: Client) -> None:
    handle = app.flow(call(app, "fetch").s(1) >> call(app, "show").s())
    first, second = (step.number for step in handle.steps)
    found = client.ended(second)
    assert found is not None
    assert f'"numbers":[{first}]' in bytes(found.data).decode()


def test_a_flow_without_results_is_one_entry(app: App, server: RealServer, worker: Worker) -> None:
    show = call(app, "show")
    before = len(server.entries())
    handle = app.flow(show.s(1) >> group(show.si(n) for n in range(20)) >> show.si("end"))
    assert server.entries()[before:] == [["OpenSession"], ["Batch"]]
    worker.work_off()
    assert RAN[0] == ("show", 1)
    assert sorted(RAN[1:-1]) == [("show", n) for n in range(20)]
    assert RAN[-1] == ("show", "end")
    assert handle.wait(timeout=0) == ["end"]


def test_a_group_of_one_gives_a_list_and_the_end_in_a_group_returns_one(app: App, worker: Worker) -> None:
    fetch, show = call(app, "fetch"), call(app, "show")
    handle = app.flow(group([fetch.s(1)]) >> show.s())
    other = app.flow(fetch.s(2) | fetch.s(3))
    worker.work_off()
    assert handle.wait(timeout=0) == [[1]]
    assert other.wait(timeout=0) == [2, 3]


def test_a_handle_is_saved_and_found_again(app: App, worker: Worker) -> None:
    handle = app.flow_handle(app.codec.decode(app.codec.encode(app.flow(call(app, "fetch").s(5)).saved())))
    with pytest.raises(TimeoutError):
        handle.wait(timeout=0)
    worker.work_off()
    assert handle.wait(timeout=0) == 5


def test_in_asyncio(app: App, worker: Worker) -> None:
    async def main() -> Any:
        handle = await app.aflow(call(app, "fetch").s(1) >> call(app, "show").s())
        await asyncio.to_thread(worker.work_off)
        value = await handle.wait(timeout=30)
        graph = await app.aflow_handle(handle.saved()).graph()
        await app.close_async_client()
        return value, [node.state for node in graph.nodes]

    assert asyncio.run(main()) == ([1], ["done", "done"])


def test_what_comes_after_many_chains(
    app: App, worker: Worker, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "WAITED_ITEMS_MAX", 3)
    fetch, add = call(app, "fetch"), call(app, "add")
    handle = app.flow(group(fetch.s(n) >> add.s() for n in range(10)) >> add.s())
    assert len([job for job in client.find("q") if job.item and job.number is None]) == 4 + 2       # joins, and theirs
    worker.work_off()
    assert handle.wait(timeout=0) == sum(range(10))
    assert left_over(client) == (0, [])
