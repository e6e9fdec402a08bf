"""Tasks in memory, for the tests of projects, and with them one attempt after the other."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sockpq_django
from django.utils import timezone
from sockpq.worker import SlowDown
from sockpq_django.api import TaskResultDoesNotExist, TaskResultStatus, signals
from sockpq_django.testing import IN_MEMORY, clear_tasks, in_memory, run_tasks
from sockpq_django.work.attempt import pause_after

from tests.django.conftest import Configure
from tests.django.shop import tasks

pytestmark = pytest.mark.usefixtures("databases")


def test_only_our_backends_are_replaced() -> None:
    other = {"BACKEND": "django_tasks.backends.dummy.DummyBackend"}
    ours = {"BACKEND": "sockpq_django.SockpqBackend", "QUEUES": ["a"]}
    assert in_memory({"a": ours, "b": other}) == {"a": {**ours, "BACKEND": IN_MEMORY}, "b": other}


def test_a_task_waits_until_the_test_runs_it(memory: Configure) -> None:
    memory()
    result = tasks.add.enqueue(1, b=2)
    assert result.status == TaskResultStatus.READY
    assert run_tasks() == 1
    result.refresh()
    assert (result.status, result.return_value, result.attempts) == (TaskResultStatus.SUCCESSFUL, 3, 1)
    assert run_tasks() == 0


def test_tasks_of_tasks_run_too_and_by_priority(memory: Configure) -> None:
    memory()
    tasks.enqueue_another.enqueue("second")
    tasks.note.using(priority=5).enqueue("first")
    assert run_tasks() == 3
    assert tasks.RAN == ["first", "second"]


def test_queues_are_apart(memory: Configure) -> None:
    memory()
    tasks.note.using(queue_name="mail").enqueue("mail")
    assert run_tasks(["default"]) == 0
    assert run_tasks(["mail"]) == 1


def test_what_is_due_later_waits(memory: Configure) -> None:
    memory()
    result = tasks.note.using(run_after=timezone.now() + timedelta(hours=1)).enqueue("later")
    assert run_tasks() == 0
    assert result.task.get_result(result.id).status == TaskResultStatus.READY


def test_all_tries_and_all_errors(memory: Configure) -> None:
    memory(TRIES=3)
    good, bad = tasks.succeed_at.enqueue(3), None
    assert run_tasks() == 3
    good.refresh()
    assert (good.return_value, good.attempts) == ("succeeded", 3)
    assert [one.traceback.splitlines()[-1] for one in good.errors] == [
        "tests.django.shop.tasks.Strange: attempt 1", "tests.django.shop.tasks.Strange: attempt 2"]
    assert good.errors[0].exception_class is tasks.Strange
    bad = tasks.fail.enqueue()
    assert run_tasks() == 3
    bad.refresh()
    assert (bad.status, len(bad.errors), bad.worker_ids) == (TaskResultStatus.FAILED, 3, ["test"] * 3)


def test_a_task_chooses_its_end(memory: Configure) -> None:
    memory(TRIES=3)
    given_up, retried = tasks.give_up.enqueue(), tasks.retry.enqueue()
    assert run_tasks() == 4
    assert [(one.task.get_result(one.id).status, one.task.get_result(one.id).attempts) for one in (given_up, retried)] \
        == [(TaskResultStatus.FAILED, 1), (TaskResultStatus.FAILED, 3)]


def test_exits_fail_and_interrupts_put_back(memory: Configure) -> None:
    memory()
    left, stopped = tasks.leave.enqueue(), tasks.interrupted.using(priority=-1).enqueue()
    with pytest.raises(KeyboardInterrupt):
        run_tasks()
    left.refresh()
    assert left.errors[0].exception_class is SystemExit
    stopped.refresh()
    assert (stopped.status, stopped.attempts) == (TaskResultStatus.READY, 0)
    assert run_tasks() == 1
    stopped.refresh()
    assert (stopped.status, stopped.attempts) == (TaskResultStatus.SUCCESSFUL, 1)


def test_signals_bring_the_result_and_the_class_of_the_backend(memory: Configure) -> None:
    backend = memory(TRIES=2)
    heard: list[Any] = []

    def hear(sender: Any, task_result: Any, **more: Any) -> None:
        heard.append((sender, task_result.status, task_result.attempts))

    for signal in (signals.task_enqueued, signals.task_started, signals.task_finished):
        signal.connect(hear)
    try:
        tasks.fail.enqueue()
        run_tasks()
    finally:
        for signal in (signals.task_enqueued, signals.task_started, signals.task_finished):
            signal.disconnect(hear)
    kind, status = type(backend), TaskResultStatus
    assert heard == [
        (kind, status.READY, 0), (kind, status.RUNNING, 1), (kind, status.RUNNING, 2), (kind, status.FAILED, 2)]


def test_a_try_that_fails_is_logged_and_the_last_one_as_an_error(
    memory: Configure, caplog: pytest.LogCaptureFixture
) -> None:
    memory(TRIES=2)
    tasks.fail.enqueue()
    with caplog.at_level(logging.INFO):
        run_tasks()
    failures = [record for record in caplog.records if record.exc_info]
    assert [record.levelno for record in failures] == [logging.WARNING, logging.ERROR]
    assert "attempt 1" in failures[0].getMessage()


def test_cancelled_tasks_do_not_run(memory: Configure) -> None:
    memory()
    result = tasks.note.enqueue("never")
    assert sockpq_django.cancel(result.id)
    assert not sockpq_django.cancel(result.id)
    assert run_tasks() == 0
    result.refresh()
    assert (result.status, result.errors[0].exception_class) == (TaskResultStatus.FAILED, sockpq_django.TaskCancelled)


def test_forgotten_tasks_have_no_result(memory: Configure) -> None:
    memory()
    result = tasks.note.enqueue("x")
    clear_tasks()
    with pytest.raises(TaskResultDoesNotExist):
        result.refresh()


def test_tasks_that_enqueue_each_other_for_ever_are_an_error(
    memory: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory()
    monkeypatch.setattr("sockpq_django.testing.RUNS_MAX", 3)
    for _ in range(4):
        tasks.note.enqueue("x")
    with pytest.raises(RuntimeError, match="still tasks"):
        run_tasks()


def test_times_are_those_of_the_settings(memory: Configure, settings_without_zones: None) -> None:
    memory()
    result = tasks.add.using(run_after=datetime(2026, 1, 1)).enqueue(1, 2)
    run_tasks()
    result.refresh()
    assert result.finished_at.tzinfo is result.started_at.tzinfo is result.enqueued_at.tzinfo is None
    assert abs(result.finished_at - timezone.now()) < timedelta(hours=1)
    assert result.task.run_after == datetime(2026, 1, 1)


@pytest.fixture
def settings_without_zones() -> Any:
    from django.test import override_settings

    with override_settings(USE_TZ=False, TIME_ZONE="Asia/Tokyo"):
        yield


def test_pauses_double_up_to_the_longest_and_are_shortened_by_chance() -> None:
    assert [pause_after(number, (2.0, 30.0), lambda: 0.0) for number in (1, 2, 3, 4, 5, 1000)] == [2, 4, 8, 16, 30, 30]
    assert pause_after(1, (2.0, 30.0), lambda: 1.0) == 1.0
    assert pause_after(3, (0.0, 0.0)) == 0.0


def test_a_service_that_is_too_busy_costs_no_attempt(memory: Configure, monkeypatch: pytest.MonkeyPatch) -> None:
    memory(BACKOFF=(100, 100))
    result = tasks.note.enqueue("x")
    monkeypatch.setattr(type(tasks.note), "call", _too_busy)
    assert run_tasks() == 1
    result.refresh()
    assert (result.status, result.attempts, result.errors) == (TaskResultStatus.READY, 0, [])
    assert run_tasks() == 0


def _too_busy(task: Any, *args: Any, **kwargs: Any) -> None:
    raise SlowDown("429")


def test_utc_is_what_is_kept(memory: Configure) -> None:
    memory()
    assert tasks.add.enqueue(1, 2).enqueued_at.tzinfo is UTC
