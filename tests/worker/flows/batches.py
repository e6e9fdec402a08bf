"""The app of batches, whose tasks record that they ran."""

from __future__ import annotations

from sockpq.worker import App, GiveUp, current_job
from sockpq.worker.flows.batch import Batch

from tests.worker.flows.working import RAN


def batch_app(address: str) -> App:
    """Return an app with tasks that work, fail, add members, and are put by batches."""
    app = App(address)

    @app.task("q", name="work", tries=1, retain=60)
    def work(name: str) -> None:
        RAN.append(name)

    @app.task("q", name="fail", tries=1)
    def fail() -> None:
        if "mended" not in RAN:
            raise GiveUp("no")

    @app.task("q", name="spread")
    def spread(count: int) -> None:
        batch = app.current_batch()
        for number in range(count):
            batch.add(work, f"member {number}")
        assert batch.item == current_job().item

    @app.task("q", name="aspread")
    async def aspread(count: int) -> None:
        batch = app.acurrent_batch()
        for number in range(count):
            await batch.add(work, f"member {number}")

    @app.task("q", name="told")
    def told(what: str) -> None:
        RAN.append(what)

    return app


def watched(app: App) -> Batch:
    """Return a batch with all three callbacks."""
    told = app.tasks["told"]
    return app.batch(on_success=told.s("success"), on_complete=told.s("complete"), on_failure=told.s("failure"))
