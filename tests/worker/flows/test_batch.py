"""Batches against the real server in this process: what waits for them, members that add, retries."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sockpq import BadArguments, Client
from sockpq.testing import inline
from sockpq.worker import App, BatchCancelled

from tests.client.real_server import RealServer
from tests.worker.flows.batches import batch_app, watched
from tests.worker.flows.working import RAN, Worker, left_over


@pytest.fixture
def app(server: RealServer) -> Iterator[App]:
    app = batch_app(server.address)
    yield app
    app.close()


def test_success(app: App, worker: Worker, client: Client) -> None:
    with watched(app) as batch:
        first = batch.add(app.tasks["work"], "a")
        worker.work_off()                       # it runs, and is done, but the batch goes on
        assert RAN == ["a"]
        assert first.state() == "done"
        batch.add(app.tasks["work"].options(priority=5), name="b")
        stat = batch.progress()
        assert stat is not None
        assert (stat.ready, stat.done, stat.held) == (1, 1, True)
    worker.work_off()
    assert (RAN[:2], sorted(RAN[2:])) == (["a", "b"], ["complete", "success"])
    assert batch.progress() is None
    assert batch.retry() == 0
    assert left_over(client) == (0, [])


def test_failure_the_end_and_a_retry(app: App, worker: Worker, client: Client) -> None:
    with watched(app) as batch:
        for task in ("fail", "fail"):
            batch.add(app.tasks[task])
        batch.add(app.tasks["work"], "a")
    worker.work_off()
    assert sorted(RAN) == ["a", "complete", "failure"]
    other = app.batch_handle(batch.item)
    stat = other.progress()
    assert stat is not None
    assert (stat.dead, stat.done, stat.held) == (2, 1, False)
    RAN.append("mended")
    assert other.retry() == 2
    worker.work_off()
    assert sorted(RAN) == ["a", "complete", "failure", "mended", "success"]
    assert left_over(client) == (0, [])


def test_an_empty_batch_succeeds(app: App, worker: Worker) -> None:
    with watched(app):
        pass
    worker.work_off()
    assert sorted(RAN) == ["complete", "success"]


@pytest.mark.parametrize("spread", ["spread", "aspread"])
def test_a_member_adds_to_its_batch(app: App, worker: Worker, client: Client, spread: str) -> None:
    with watched(app) as batch:
        batch.add(app.tasks[spread], 3)
    worker.work_off()
    assert RAN[:3] == ["member 0", "member 1", "member 2"]
    assert sorted(RAN[3:]) == ["complete", "success"]
    assert left_over(client) == (0, [])


def test_only_a_running_member_has_a_current_batch(app: App, worker: Worker) -> None:
    with pytest.raises(LookupError):
        app.current_batch()
    app.tasks["spread"].put(1)
    job = worker.take()
    assert job is not None
    outcome = worker._serving.work(job)
    assert outcome.failure is not None
    assert "belongs to no batch" in outcome.failure.message


def test_what_does_not_fit_is_refused_before_anything_is_sent(app: App, server: RealServer) -> None:
    work, told = app.tasks["work"], app.tasks["told"]
    before = len(server.entries())
    with pytest.raises(TypeError, match=r"told\(\)"):
        app.batch(on_success=told)
    with pytest.raises(TypeError, match="callback"):
        app.batch(on_success="told")        # type: ignore[arg-type]
    with pytest.raises(BatchCancelled):
        app.batch().add(work, "outside of a block")
    assert len(server.entries()) == before
    with app.batch() as batch:
        with pytest.raises(BadArguments, match="does not take item"):
            batch.add(work.options(item="other"), "a")
        with pytest.raises(TypeError, match=r"work\(\)"):
            batch.add(work)
    with inline(app), pytest.raises(BadArguments, match=r"testing\.Server"):
        app.batch().__enter__()
