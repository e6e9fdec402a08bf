"""The backend on a real node: what Django's API promises of enqueue(), results, queues, order, time and errors."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from unittest import mock
from uuid import UUID

import pytest
import sockpq_django
from asgiref.sync import async_to_sync
from django.core.exceptions import SuspiciousOperation
from django.utils import timezone
from sockpq import Busy, Client, Key, Number, OutcomeUnknown, Unavailable
from sockpq_django.api import InvalidTask, TaskResultDoesNotExist, TaskResultStatus, signals
from sockpq_django.backend import SockpqBackend
from sockpq_django.configuration.queues import set_up_queues
from sockpq_django.work import processing
from sockpq_django.work.attempt import LOSSES_MAX

from tests.django.conftest import Configure
from tests.django.shop import tasks

READY, RUNNING = TaskResultStatus.READY, TaskResultStatus.RUNNING
SUCCESSFUL, FAILED = TaskResultStatus.SUCCESSFUL, TaskResultStatus.FAILED

pytestmark = pytest.mark.usefixtures("databases")


def state(result: Any) -> tuple[Any, int]:
    result.refresh()
    return result.status, result.attempts


# enqueue

def test_a_task_is_a_job_with_a_key_a_number_and_a_header(backend: SockpqBackend, client: Client) -> None:
    result = tasks.add.using(priority=7).enqueue(1, b=2)
    assert (result.status, result.args, result.kwargs, result.attempts) == (READY, [1], {"b": 2}, 0)
    (job,) = client.peek_queue("default", "ready", 10, headers=True)
    assert (job.key, job.priority, job.headers) == (
        result.id.rpartition("/")[2], 7, {"task": "tests.django.shop.tasks.add", "id": job.key})
    assert job.number is not None
    assert tasks.RAN == []


def test_queues_have_the_prefix(cluster: Configure, client: Client) -> None:
    cluster(PREFIX="shop.").run()
    tasks.add.using(queue_name="queue-1").enqueue(1, 2)
    assert [one.name for one in client.queues() if one.ready] == ["shop.queue-1"]


@pytest.mark.parametrize("value", [object(), {1, 2}])
def test_what_json_does_not_have_is_refused(backend: SockpqBackend, client: Client, value: object) -> None:
    with pytest.raises(TypeError):
        tasks.add.enqueue(value, 2)
    assert client.total().jobs == 0


def test_tasks_that_no_worker_would_take_are_refused(backend: SockpqBackend) -> None:
    for change in ({"queue_name": "nowhere"}, {"priority": 101}, {"priority": -101}, {"priority": 1.5}):
        with pytest.raises(InvalidTask):
            tasks.add.using(**change)
    task = tasks.add.using(queue_name="mail")
    object.__setattr__(task, "queue_name", "nowhere")
    with pytest.raises(InvalidTask):
        task.enqueue(1, 2)


def test_asyncio(backend: SockpqBackend) -> None:
    result = async_to_sync(tasks.aadd.aenqueue)(1, 2)
    assert backend.run() == 1
    async_to_sync(result.arefresh)()
    assert result.return_value == 3
    assert async_to_sync(tasks.aadd.aget_result)(result.id) == result


# results

def test_a_result_is_equal_before_and_complete_after(backend: SockpqBackend) -> None:
    result = tasks.add.enqueue(1, 2)
    assert backend.get_result(result.id) == result
    backend.run(worker="w1")
    found = tasks.add.get_result(result.id)
    assert (found.status, found.return_value, found.attempts, found.worker_ids) == (SUCCESSFUL, 3, 1, ["w1"])
    assert found.enqueued_at <= found.started_at == found.last_attempted_at <= found.finished_at
    assert found.task == tasks.add


def test_results_are_kept_as_long_as_the_options_say(cluster: Configure, client: Client) -> None:
    backend = cluster(RETENTION=0)
    result = tasks.add.enqueue(1, 2)
    backend.run()
    with pytest.raises(TaskResultDoesNotExist):
        result.refresh()
    assert client.total().jobs == 0
    cluster(RETENTION=7200).run()
    assert client.queue_config("default")["retain"] == "7200"
    cluster(RETENTION=3600).run()
    assert client.queue_config("default")["retain"] == "7200"       # the greatest wish counts


@pytest.mark.parametrize("unknown", [
    "", "123", str(UUID(int=7)), UUID(int=7).hex, "a b", "x" * 500, "default/" + "0" * 32, "nowhere/" + "0" * 32,
])
def test_unknown_ids(backend: SockpqBackend, unknown: str) -> None:
    with pytest.raises(TaskResultDoesNotExist):
        backend.get_result(unknown)
    assert not sockpq_django.cancel(unknown)


def test_values_of_all_kinds(backend: SockpqBackend) -> None:
    value = {"ä": ["日本", {"x": [1, 2.5, None, True]}], "nul\0": "tab\t"}
    echo, none = tasks.echo.enqueue(value), tasks.note.enqueue("x")
    large = tasks.size.enqueue("x" * 1_000_000)
    backend.run()
    for result in (echo, none, large):
        result.refresh()
    assert (echo.return_value, none.return_value, large.return_value) == (value, None, 1_000_000)


def test_what_a_task_knows_of_itself(backend: SockpqBackend) -> None:
    knows, looks = tasks.context.enqueue("x"), tasks.look.enqueue()
    backend.run()
    knows.refresh()
    looks.refresh()
    assert knows.return_value == [knows.id, 1, "RUNNING", "x"]
    assert looks.return_value == "RUNNING"


# failures

def test_a_failed_task_is_dead_and_has_its_errors(cluster: Configure, client: Client) -> None:
    backend = cluster(TRIES=2)
    result = tasks.fail.enqueue()
    backend.run(worker="w1")
    assert state(result) == (FAILED, 2)
    assert result.errors[1].exception_class is tasks.Strange
    assert result.errors[1].traceback.endswith("Strange: it fails\n")
    assert result.worker_ids == ["w1", "w1"]
    assert result.finished_at >= result.last_attempted_at >= result.started_at
    (job,) = client.peek_queue("default", "dead", 10)
    assert job.reason == "Strange"
    assert client.job_error(Key("default_dead", job.key or "")) == result.errors[1].traceback


def test_tries_succeed_in_the_end(cluster: Configure) -> None:
    backend = cluster(TRIES=3)
    result = tasks.succeed_at.enqueue(3)
    assert backend.run(worker="w1") == 3
    assert state(result) == (SUCCESSFUL, 3)
    assert (result.return_value, len(result.errors), result.worker_ids) == ("succeeded", 2, ["w1"] * 3)


def test_a_retry_waits(cluster: Configure, client: Client) -> None:
    backend = cluster(TRIES=2, BACKOFF=(1000, 1000))
    result = tasks.fail.enqueue()
    assert backend.run() == 1
    assert state(result) == (READY, 1)
    (job,) = client.peek_queue("default", "delayed", 10)
    assert job.at is not None
    assert job.at > time.time() + 400


def test_exits_fail_and_values_that_json_lacks_too(backend: SockpqBackend) -> None:
    left, strange, after = tasks.leave.enqueue(), tasks.strange.enqueue(), tasks.add.enqueue(1, 2)
    backend.run()
    assert [state(one)[0] for one in (left, strange, after)] == [FAILED, FAILED, SUCCESSFUL]
    assert (left.errors[0].exception_class, strange.errors[0].exception_class) == (SystemExit, TypeError)


def test_an_interrupted_task_goes_back_to_its_place(backend: SockpqBackend) -> None:
    first, second = tasks.interrupted.enqueue(), tasks.note.enqueue("second")
    with pytest.raises(KeyboardInterrupt):
        backend.run()
    assert (state(first), state(second)) == ((READY, 0), (READY, 0))
    backend.run()
    assert tasks.RAN == ["begun", "begun", "second"]
    assert state(first) == (SUCCESSFUL, 1)


def test_a_value_that_is_too_long_for_the_queue_is_a_failure(backend: SockpqBackend, client: Client) -> None:
    client.queue_config("default", data_bytes_max=2000)
    result = tasks.repeat.enqueue("x", 3000)
    backend.run()
    assert state(result) == (FAILED, 1)
    assert result.errors[0].exception_class.__name__ == "DataTooLarge"


def test_a_failure_that_is_too_long_for_the_queue_leaves_its_error(cluster: Configure, client: Client) -> None:
    client.queue_config("default", data_bytes_max=400)
    backend = cluster(TRIES=2)
    result = tasks.fail.enqueue("x" * 200)
    assert backend.run() == 2 + LOSSES_MAX          # nothing says which attempts have failed, and which were lost
    assert state(result) == (FAILED, 2 + LOSSES_MAX)
    assert "Strange: xxx" in result.errors[0].traceback


def test_a_full_queue_of_results_does_not_keep_a_task_from_its_end(backend: SockpqBackend, client: Client) -> None:
    client.queue_config("+results", capacity=1)
    client.put("+results", b"full")
    result = tasks.add.enqueue(1, 2)
    assert backend.run() == 1
    with pytest.raises(TaskResultDoesNotExist):
        result.refresh()
    assert [one.state for one in client.ended_jobs("default", 10)] == ["done"]


def test_what_another_worker_has_taken_over_is_left_to_it(backend: SockpqBackend, client: Client) -> None:
    result = tasks.add.enqueue(1, 2)
    job = backend.client.get("default", expire=60, meta=True)
    assert job is not None
    client.later(job.id)                            # as at the end of the lease
    finished = mock.Mock()
    signals.task_finished.connect(finished)
    try:
        processing.process(backend, backend.client, job, "default", "zombie")
        assert state(result) == (READY, 1)
        assert finished.call_count == 0
        assert backend.run(worker="w2") == 1
        assert finished.call_count == 1
    finally:
        signals.task_finished.disconnect(finished)
    assert state(result) == (SUCCESSFUL, 2)
    assert result.worker_ids == ["unknown", "w2"]


def test_a_lost_worker_is_an_error_when_the_attempts_are_used_up(backend: SockpqBackend, client: Client) -> None:
    result = tasks.add.enqueue(1, 2)
    job = client.get("default", expire=60)
    assert job is not None
    job.bury("ChildLost", error="its process has ended by signal 9 (SIGKILL)")      # as pqworker does
    assert state(result) == (FAILED, 1)
    assert result.errors[0].exception_class is sockpq_django.WorkerLost
    assert "SIGKILL" in result.errors[0].traceback


# cancelling

def test_a_cancelled_task_does_not_run_and_says_so(backend: SockpqBackend) -> None:
    backend.run()
    result = tasks.note.enqueue("never")
    assert sockpq_django.cancel(result.id)
    assert not sockpq_django.cancel(result.id)
    assert backend.run() == 0
    assert state(result) == (FAILED, 0)
    assert result.errors[0].exception_class is sockpq_django.TaskCancelled


def test_a_running_task_is_taken_from_its_worker(backend: SockpqBackend, client: Client) -> None:
    backend.run()
    result = tasks.note.enqueue("never")
    job = client.get("default", expire=60)
    assert job is not None
    assert state(result) == (RUNNING, 1)
    assert sockpq_django.cancel(result.id)
    assert client.running() == []
    assert state(result)[0] == FAILED


def test_what_has_ended_is_not_cancelled(backend: SockpqBackend) -> None:
    good, bad = tasks.add.enqueue(1, 2), tasks.fail.enqueue()
    backend.run()
    assert not sockpq_django.cancel(good.id)
    assert not sockpq_django.cancel(bad.id)
    assert (state(good)[0], state(bad)[0]) == (SUCCESSFUL, FAILED)


# queues, order, time

def test_queues_that_look_alike_are_apart(backend: SockpqBackend) -> None:
    here = tasks.add.using(queue_name="queue_1").enqueue(1, 2)
    there = tasks.add.using(queue_name="queue-1").enqueue(3, 4)
    assert backend.run(["queue-1"]) == 1
    assert (state(here)[0], state(there)[0]) == (READY, SUCCESSFUL)
    assert there.task.queue_name == "queue-1"


def test_greater_priority_first_across_queues_then_the_order_of_enqueue(backend: SockpqBackend) -> None:
    for name, priority, queue in (
        ("a", 0, "default"), ("b", -5, "mail"), ("c", 50, "mail"), ("d", 0, "default"), ("e", 100, "default"),
        ("f", -100, "default"),
    ):
        tasks.note.using(priority=priority, queue_name=queue).enqueue(name)
    backend.run()
    assert tasks.RAN == ["e", "c", "a", "d", "b", "f"]


def test_run_after(backend: SockpqBackend, client: Client) -> None:
    at = timezone.now() + timedelta(hours=1)
    later = tasks.note.using(run_after=at).enqueue("later")
    tasks.note.using(run_after=timezone.now() - timedelta(days=1)).enqueue("now")
    assert backend.run() == 1
    assert tasks.RAN == ["now"]
    found = backend.get_result(later.id)
    assert (found.status, found.task.run_after) == (READY, at)
    (job,) = client.peek_queue("default", "delayed", 10)
    assert job.at is not None
    assert abs(job.at - at.timestamp()) <= 1


# safety

def test_a_path_that_is_no_task_is_never_called(backend: SockpqBackend, client: Client) -> None:
    result = tasks.add.enqueue(1, 2)
    (job,) = client.peek_queue("default", "ready", 1)
    assert job.number is not None
    client.change(Number(job.number), data=job.data.replace(b"tests.django.shop.tasks.add", b"os.getcwd"))
    with pytest.raises(SuspiciousOperation):
        backend.get_result(result.id)
    backend.run()
    assert [one.reason for one in client.peek_queue("default", "dead", 10)] == ["SuspiciousOperation"]


def test_a_body_of_another_program_is_buried(backend: SockpqBackend, client: Client) -> None:
    client.put("default", b"hello", key="0" * 32, number=True)
    with pytest.raises(SuspiciousOperation):
        backend.get_result("default/" + "0" * 32)
    assert backend.run() == 1
    assert [one.reason for one in client.peek_queue("default", "dead", 10)] == ["BadTask"]


def test_a_task_of_the_next_release_is_left_to_its_workers_for_an_hour(
    backend: SockpqBackend, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks.add.enqueue(1, 2)
    (job,) = client.peek_queue("default", "ready", 1)
    assert job.number is not None
    client.change(Number(job.number), data=job.data.replace(b"tasks.add", b"tasks.new"))
    assert backend.run() == 1
    (waiting,) = client.peek_queue("default", "delayed", 10)
    assert waiting.attempt == 0
    monkeypatch.setattr(processing, "UNKNOWN_S", -1.0)
    client.kick_job(Number(job.number))
    assert backend.run() == 1
    assert [one.reason for one in client.peek_queue("default", "dead", 10)] == ["TaskUnknown"]


# when the cluster does not answer

class Flaky:
    """A client whose transactions fail at first with these errors, `after` their execution or before it."""

    def __init__(self, client: Client, errors: list[Exception], after: bool) -> None:
        self._client = client
        self._errors = errors
        self._after = after

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        error = self._errors.pop(0) if self._errors else None
        if error and not self._after:
            yield mock.MagicMock()
            raise error
        with self._client.transaction() as t:
            yield t
        if error:
            raise error


@pytest.mark.parametrize(("error", "after"), [
    (Unavailable("no leader"), False), (Busy("503 Busy"), False), (OutcomeUnknown("no answer"), False),
    (OutcomeUnknown("no answer"), True),
])
@pytest.mark.parametrize("task", [tasks.add, tasks.fail], ids=lambda task: task.name)
def test_an_outcome_is_reported_until_that_is_sure(
    backend: SockpqBackend, monkeypatch: pytest.MonkeyPatch, error: Exception, after: bool, task: Any
) -> None:
    monkeypatch.setattr("sockpq_django.work.ending.REPEAT_PAUSE_S", 0.0)
    set_up_queues(backend.client, backend.settings, ["default"])
    finished = mock.Mock()
    signals.task_finished.connect(finished)
    try:
        result = task.enqueue(1, 2) if task is tasks.add else task.enqueue()
        job = backend.client.get("default", expire=60, meta=True)
        assert job is not None
        processing.process(backend, Flaky(backend.client, [error] * 2, after), job, "default", "w1")
    finally:
        signals.task_finished.disconnect(finished)
    assert state(result) == (SUCCESSFUL if task is tasks.add else FAILED, 1)
    assert len(result.errors) == (task is tasks.fail)
    assert finished.call_count == 1
