"""Batches that are cancelled: by somebody, by an error in their block, by an author that dies or is late."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from sockpq import Client
from sockpq.worker import App, AsyncBatch, BatchCancelled
from sockpq.worker.flows import batch as batch_module
from sockpq.worker.flows.batch import HOLD_S

from tests.client.real_server import RealServer
from tests.worker.flows.batches import batch_app, watched
from tests.worker.flows.working import RAN, Death, Dying, Worker, left_over


@pytest.fixture
def app(server: RealServer) -> Iterator[App]:
    app = batch_app(server.address)
    yield app
    app.close()


def test_cancel(app: App, worker: Worker, client: Client) -> None:
    with watched(app) as batch:
        batch.add(app.tasks["work"], "a")
        batch.add(app.tasks["work"], "b")
    assert batch.cancel() == 2
    worker.work_off()
    assert sorted(RAN) == ["complete", "failure"]
    assert left_over(client) == (0, [])
    assert batch.cancel() == 0


def test_an_error_in_the_block_cancels_the_batch(app: App, worker: Worker, client: Client) -> None:
    batch = watched(app)

    def block() -> None:
        with batch:
            batch.add(app.tasks["work"], "a")
            raise KeyError

    with pytest.raises(KeyError):
        block()
    worker.work_off()
    assert sorted(RAN) == ["complete", "failure"]
    assert left_over(client) == (0, [])
    with pytest.raises(BatchCancelled):
        batch.add(app.tasks["work"], "b")


def test_who_goes_on_adding_to_a_cancelled_batch_is_told(app: App, worker: Worker, client: Client) -> None:
    def block() -> None:
        with watched(app) as batch:
            batch.add(app.tasks["work"], "a")
            assert app.batch_handle(batch.item).cancel() == 1
            batch.add(app.tasks["work"], "b")

    with pytest.raises(BatchCancelled):
        block()
    worker.work_off()
    assert sorted(RAN) == ["complete", "failure"]
    assert left_over(client) == (0, [])


@pytest.mark.parametrize("executed", [False, True])
def test_wherever_its_author_dies_a_batch_is_cancelled_or_as_if_it_had_not_begun(
    server: RealServer, app: App, worker: Worker, client: Client, executed: bool, monkeypatch: pytest.MonkeyPatch,
) -> None:
    ends = []
    for at in range(20):
        RAN.clear()
        dying: Any = Dying(app.client._router, at, executed)
        monkeypatch.setattr(batch_module, "router_of", lambda app, dying=dying: dying)
        batch = watched(app)
        try:
            batch.__enter__()
            for name in "abc":
                batch.add(app.tasks["work"], name)
                batch._hold._renew_at = 0           # so that each add renews the hold first
            batch.__exit__(None, None, None)
        except Death:
            pass
        else:
            break
        server.pass_time(HOLD_S + 1)
        worker.work_off()
        ends.append("".join(sorted(ran[0] for ran in RAN)))
        assert left_over(client) == (0, []), at
    assert ends[:2] == (["", ""] if not executed else ["", "cf"])
    assert set(ends[2:-1]) == {"cf"}        # complete, failure; no member that had not begun
    assert ends[-1] == ("abccs" if executed else "cf")


def test_a_hold_is_renewed_and_a_lost_one_is_noticed(
    app: App, server: RealServer, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(batch_module, "monotonic", lambda: now[0])

    def block() -> None:
        with watched(app) as batch:
            for _ in range(5):
                batch.add(app.tasks["work"], "a")
                now[0] += HOLD_S * 0.6
                server.pass_time(HOLD_S * 0.6)
            assert app.batch_handle(batch.item).progress() is not None
            now[0] += HOLD_S
            batch.add(app.tasks["work"], "late")

    with pytest.raises(BatchCancelled, match="nothing was added"):
        block()
    server.pass_time(HOLD_S + 1)
    assert left_over(client)[1] == []


def test_in_asyncio(app: App, worker: Worker, client: Client) -> None:
    told = app.tasks["told"]

    async def block(other: AsyncBatch) -> None:
        async with other:
            await other.add(app.tasks["work"], "never")
            raise KeyError

    async def main() -> Any:
        async with app.abatch(on_complete=told.s("complete"), on_success=told.s("success")) as batch:
            await batch.add(app.tasks["work"], "a")
            await batch.add(app.tasks["fail"])
        await asyncio.to_thread(worker.work_off)
        stat = await app.abatch_handle(batch.item).progress()
        RAN.append("mended")
        retried = await batch.retry()
        await asyncio.to_thread(worker.work_off)
        ended = await batch.progress()
        other = app.abatch()
        with pytest.raises(KeyError):
            await block(other)
        gone = await other.cancel()
        await app.close_async_client()
        return stat, retried, ended, gone

    stat, retried, ended, gone = asyncio.run(main())
    assert (stat.dead, retried, ended, gone) == (1, 1, None, 0)
    assert RAN == ["a", "complete", "mended", "success"]
    assert left_over(client) == (0, [])
