"""Authors of flows that die at every call, are refused, or come too late: all of a flow runs, or nothing."""

from __future__ import annotations

from typing import Any

import pytest
from sockpq import Aborted, Client, ItemNotHeld, Unavailable
from sockpq.worker import App, chain
from sockpq.worker.flows.batch import called
from sockpq.worker.flows.calls import made
from sockpq.worker.flows.handle import FlowHandle, flow_of
from sockpq.worker.flows.plan import Plan
from sockpq.worker.flows.writing import HOLD_S, flow_name, written
from sockpq.worker.signature import Canvas

from tests.client.real_server import RealServer
from tests.worker.flows.working import RAN, Death, Dying, Worker, call, left_over


def canvases(app: App) -> dict[str, Canvas]:
    fetch, show = call(app, "fetch"), call(app, "show")
    return {
        "in one transaction": show.s(1) >> (show.si(2) | show.si(3)) >> show.si(4),
        "with results": fetch.s(1) >> (show.s(2) | show.s(3)) >> show.s(4),
        "a long chain": chain(show.s(n) for n in range(4)),
    }


def put_by(app: App, canvas: Canvas, router: Any) -> FlowHandle:
    """Put a flow as app.flow() does, by this router."""
    plan = Plan(canvas, flow_name())
    failing = called(call(app, "sorry").s("failed"))
    numbers = made(router, written(plan, app.codec, router.bodies, failing))
    return FlowHandle(app, flow_of(plan, numbers, canvas.last, canvas.joined))


@pytest.mark.parametrize("kind", ["in one transaction", "with results", "a long chain"])
@pytest.mark.parametrize("executed", [False, True])
def test_all_of_it_runs_or_nothing_wherever_its_author_dies(
    server: RealServer, app: App, worker: Worker, client: Client, kind: str, executed: bool,
) -> None:
    canvas = canvases(app)[kind]
    ends = []
    for at in range(20):
        RAN.clear()
        dying: Any = Dying(app.client._router, at, executed)
        try:
            put_by(app, canvas, dying)
        except Death:
            pass
        else:
            break
        worker.work_off()
        server.pass_time(HOLD_S + 1)
        worker.work_off()
        ends.append(len(RAN))
        assert len(RAN) in (0, len(canvas.steps)), (at, RAN)
        assert left_over(client) == (0, []), at
    assert len(RAN) == 0
    assert ends == [0] * (len(ends) - 1) + [len(canvas.steps) if executed else 0]


@pytest.mark.parametrize("kind", ["with results", "a long chain"])
def test_a_flow_that_is_refused_is_withdrawn_at_once(
    app: App, worker: Worker, client: Client, kind: str
) -> None:
    canvas = canvases(app)[kind]
    for at in range(20):
        dying: Any = Dying(app.client._router, at, False, Unavailable)
        try:
            put_by(app, canvas, dying)
        except Unavailable:
            pass
        else:
            break
        worker.work_off()
        assert RAN == []
        if at:
            assert left_over(client) == (0, []), at


def test_an_author_that_comes_too_late_starts_nothing(
    server: RealServer, app: App, worker: Worker, client: Client
) -> None:
    canvas = canvases(app)["a long chain"]

    class Late(Dying):
        async def run(self, command: Any, **options: Any) -> Any:
            if self.calls == late_at:
                server.pass_time(HOLD_S + 1)
            return await super().run(command, **options)

    refusals: set[type] = set()
    for late_at in range(1, 20):
        late: Any = Late(app.client._router, -1, False)
        try:
            put_by(app, canvas, late)
        except Aborted as error:
            refusals.add(type(error.reason))
        else:
            break
        worker.work_off()
        server.pass_time(HOLD_S + 1)
        assert RAN == []
        assert left_over(client) == (0, []), late_at
    assert refusals == {ItemNotHeld}
    assert late_at == 2 + len(canvas.steps)
