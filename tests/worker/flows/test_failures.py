"""Steps that fail, and flows that are cancelled: what comes after them does not run, all else does."""

from __future__ import annotations

import pytest
from sockpq import Client
from sockpq.worker import App, TaskFailed

from tests.worker.flows.working import RAN, Worker, call, left_over


def test_a_failing_step_fails_what_comes_after_it_and_nothing_else(app: App, worker: Worker, client: Client) -> None:
    fetch, show, fail = call(app, "fetch"), call(app, "show"), call(app, "fail")
    left = fetch.s(1) >> fail.s() >> show.s("never") >> show.s("nor")
    right = fetch.s(2) >> show.s("yes")
    handle = app.flow((left | right) >> show.s("joined"), on_failure=call(app, "sorry").s("failed"))
    worker.work_off()
    assert ("show", 2, "yes") in RAN
    assert not [ran for ran in RAN if {"never", "nor", "joined"} & set(ran[1:2] + ran[-1:])]
    assert RAN.count(("sorry", "failed")) == 1
    states = [node.state for node in handle.graph().nodes]
    assert states == ["done", "dead", "cancelled", "cancelled", "done", "done", "cancelled"]
    with pytest.raises(TaskFailed, match="GiveUp: no"):
        handle.wait(timeout=0)
    assert left_over(client)[0] == 1        # the dead one, to be looked at
    assert "1  fail   dead       after 0" in str(handle.graph())


def test_both_of_two_failures_fail_what_comes_after_them(app: App, worker: Worker, client: Client) -> None:
    fetch, show, fail = call(app, "fetch"), call(app, "show"), call(app, "fail")
    handle = app.flow((fail.s(1) >> show.s("a")) | (fetch.s(1) >> fail.s(2) >> show.s("b")))
    worker.work_off()
    assert [node.state for node in handle.graph().nodes] == ["dead", "cancelled", "done", "dead", "cancelled"]
    assert left_over(client)[0] == 2


def test_continue_on_failure(app: App, worker: Worker, client: Client) -> None:
    fetch, show, fail = call(app, "fetch"), call(app, "show"), call(app, "fail")
    handle = app.flow((fetch.s(1) | fail.s(2).continue_on_failure()) >> show.s(), on_failure=call(app, "sorry").s("no"))
    worker.work_off()
    assert handle.wait(timeout=0) == [[1, None]]
    assert ("sorry", "no") not in RAN
    RAN.clear()
    both = app.flow((fail.s(1) | fail.s(2).continue_on_failure()) >> show.si("never"))
    worker.work_off()
    assert ("show", "never") not in RAN
    with pytest.raises(TaskFailed):
        both.wait(timeout=0)


def test_cancel_removes_what_has_not_ended(app: App, worker: Worker, client: Client) -> None:
    show = call(app, "show")
    handle = app.flow(show.s(1) >> show.s(2) >> show.s(3))
    job = worker.take()
    assert job is not None
    worker.work(job)
    assert handle.cancel()
    worker.work_off()
    assert not handle.cancel()
    assert RAN == [("show", 1)]
    assert [node.state for node in handle.graph().nodes] == ["done", "cancelled", "cancelled"]
    assert left_over(client) == (0, [])
    with pytest.raises(TaskFailed, match="cancelled"):
        handle.wait(timeout=0)
