"""once(): what a task writes is written once."""

from __future__ import annotations

import threading
import time

import pytest
import sockpq_django
from django.core.management import CommandError, call_command
from django.db import connections
from sockpq import Client
from sockpq_django.api import TaskResultStatus
from sockpq_django.backend import SockpqBackend
from sockpq_django.models import InboxMark
from sockpq_django.work import processing

from tests.django.shop import tasks
from tests.django.shop.models import Effect
from tests.waiting import PATIENCE_S, until

pytestmark = pytest.mark.usefixtures("tables")


def deliver(backend: SockpqBackend, client: Client) -> None:
    """Let a worker run the next job and die before it can say DONE."""
    job = client.get("default", expire=60, meta=True)
    assert job is not None
    again = job.id
    client.later(again, first=True)
    processing.process(backend, backend.client, job, "default", "dies")


def test_an_effect_happens_once_however_often_the_job_comes(backend: SockpqBackend, client: Client) -> None:
    result = tasks.effect.enqueue("a")
    deliver(backend, client)
    deliver(backend, client)
    assert backend.run() == 1
    result.refresh()
    assert (result.status, result.return_value, result.attempts) == (TaskResultStatus.SUCCESSFUL, None, 3)
    assert [one.name for one in Effect.objects.all()] == ["a"]
    assert InboxMark.objects.get().job == result.id


def test_a_worker_and_its_successor_at_the_same_time(backend: SockpqBackend, client: Client) -> None:
    """Let a worker sleep within its transaction until the job is another worker's, which waits for the transaction."""
    result = tasks.slow_effect.enqueue("a")
    tasks.BEGUN.clear()
    tasks.GO_ON.clear()
    sleeper = threading.Thread(target=_deliver_in_thread, args=(backend, client))
    sleeper.start()
    try:
        assert tasks.BEGUN.wait(PATIENCE_S)
        successor = threading.Thread(target=_run_in_thread, args=(backend,))
        successor.start()
        until(lambda: client.running())             # it has the job, and waits or is about to
    finally:
        tasks.GO_ON.set()
    sleeper.join()
    successor.join()
    assert tasks.RAN == ["a"]
    assert Effect.objects.count() == 1
    result.refresh()
    assert (result.status, result.return_value, result.worker_ids) == (
        TaskResultStatus.SUCCESSFUL, None, ["unknown", "run"])


def _deliver_in_thread(backend: SockpqBackend, client: Client) -> None:
    deliver(backend, client)
    connections.close_all()


def _run_in_thread(backend: SockpqBackend) -> None:
    backend.run()
    connections.close_all()


def test_without_it_the_effect_is_there_twice(backend: SockpqBackend, client: Client) -> None:
    tasks.plain_effect.enqueue("a")
    deliver(backend, client)
    backend.run()
    assert Effect.objects.count() == 2


def test_two_calls_are_two_effects_with_their_values(backend: SockpqBackend) -> None:
    results = [tasks.effect.enqueue("a"), tasks.effect.enqueue("a")]
    backend.run()
    for result in results:
        result.refresh()
    assert [one.return_value for one in results] == ["a", "a"]
    assert Effect.objects.count() == 2


def test_an_error_rolls_back_the_effect_and_the_mark(backend: SockpqBackend) -> None:
    result = tasks.failing_effect.enqueue("a")
    backend.run()
    result.refresh()
    assert (result.status, result.errors[0].exception_class) == (TaskResultStatus.FAILED, tasks.Strange)
    assert (Effect.objects.count(), InboxMark.objects.count()) == (0, 0)
    assert not connections["default"].in_atomic_block


def test_another_database(backend: SockpqBackend, client: Client) -> None:
    tasks.effect_elsewhere.enqueue("a")
    deliver(backend, client)
    backend.run()
    assert Effect.objects.using("other").count() == 1
    assert (InboxMark.objects.using("other").count(), InboxMark.objects.count()) == (1, 0)


def test_called_directly_it_is_the_plain_function() -> None:
    assert [tasks.effect.call("a"), tasks.effect.call("a")] == ["a", "a"]
    assert (Effect.objects.count(), InboxMark.objects.count()) == (2, 0)


def test_async_functions_are_refused() -> None:
    with pytest.raises(TypeError, match="async"):
        sockpq_django.once(tasks.aadd.func)


def test_old_marks_are_removed_where_no_relay_does(capsys: pytest.CaptureFixture[str]) -> None:
    for days in (1, 6, 8):
        InboxMark.objects.using("other").create(job=f"{days}", created=time.time() - days * 86_400)
    call_command("sockpq_prune", database="other")
    assert capsys.readouterr().out == "1 mark was removed\n"
    call_command("sockpq_prune", "--database", "other", "--days", "3")
    assert [one.job for one in InboxMark.objects.using("other").all()] == ["1"]
    with pytest.raises(CommandError, match="one or more"):
        call_command("sockpq_prune", "--days", "0")
