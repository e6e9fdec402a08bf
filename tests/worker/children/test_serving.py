"""A child's time limit is raised in a task until the task has seen it."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from sockpq import Client
from sockpq.model import Handed
from sockpq.worker import App
from sockpq.worker.children import serving
from sockpq.worker.children.serving import Serving
from sockpq.worker.errors import SoftTimeLimit

from tests.client.real_server import RealServer

LIMIT_S = 0.05
LONG_S = 20.0


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    assert threading.current_thread() is threading.main_thread()
    handler, hook = signal.getsignal(signal.SIGALRM), sys.unraisablehook
    yield
    signal.signal(signal.SIGALRM, handler)
    sys.unraisablehook = hook


class Slow:
    """A value whose destructor runs when the limit has passed."""

    def __del__(self) -> None:
        time.sleep(2 * LIMIT_S)


class Held(Serving):
    """On a busy machine: the report of what was dropped takes longer than the pause before the next alarm."""

    held_up = False

    def _arm(self, seconds: float | None) -> None:
        super()._arm(seconds)
        if seconds == serving.AGAIN_S and not self.held_up:
            self.held_up = True
            time.sleep(5 * serving.AGAIN_S)


@pytest.mark.parametrize("kind", [Serving, Held])
def test_a_limit_that_is_over_in_a_destructor_is_raised_after_it(
    kind: type[Serving], monkeypatch: pytest.MonkeyPatch,
) -> None:
    raised: list[SoftTimeLimit] = []

    def task(*_: Any) -> None:
        until = time.monotonic() + LONG_S
        try:
            Slow()
            while time.monotonic() < until:
                time.sleep(0.01)
        except SoftTimeLimit as end:
            raised.append(end)

    monkeypatch.setattr(serving, "run", task)
    app: Any = SimpleNamespace(child_starts=[])
    kind(app, LIMIT_S).work(Handed(1, "q", 0, b"", None))
    assert len(raised) == 1


@pytest.mark.parametrize("timed", [True, False])
def test_progress_is_charged_to_a_group_unless_the_pool_tells_the_time(timed: bool) -> None:
    with RealServer() as server, Client(server.address, timeout=60) as client:
        app = App(server.address)

        @app.handler("q")
        def work(job: Any) -> None:
            server.pass_time(30)
            job.progress(50)

        client.put("q", b"1", group="g")
        held = client.get("q", expire=60)
        assert held is not None
        given = Handed(held.id, "q", 0, b"1", None, None)
        assert Serving(app).work(given, timed).kind == "done"
        assert (client.sched_group("g").used_us >= 30_000_000) is not timed
        app.close()
