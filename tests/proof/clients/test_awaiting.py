"""The judge of tasks whose results are waited for: what it accuses, and what it does not."""

from __future__ import annotations

import threading
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from sockpq._protocol.commands import records

from tests.proof.clients import awaiting
from tests.proof.clients.awaiting import Awaiting, Task
from tests.waiting import until

DONE = ("done", b"a")


def told(task: Task) -> list[str]:
    clients = Awaiting()
    clients.tasks[task.number] = task
    return list(clients.judge())


@pytest.mark.parametrize("task", [
    Task("t", 1, [b"a"], [], [DONE, DONE]),
    Task("t", 1, [b"a"], [b"b"], [DONE]),
    Task("t", 1, [], [b"b", b"a"], [DONE]),
], ids=["sure", "one more that is not sure", "none is sure"])
def test_one_result_for_all_accuses_nobody(task: Task) -> None:
    assert told(task) == []


@pytest.mark.parametrize(("task", "what"), [
    (Task("t", 1, [b"a"]), "never heard of"),
    (Task("t", 1, [b"a"], [], [DONE, ("done", b"b")]), "several ends"),
    (Task("t", 1, [b"a"], [], [DONE, ("lost", b"")]), "several ends"),
    (Task("t", 1, [b"a"], [], [("lost", b"")]), "is lost"),
    (Task("t", 1, [b"a", b"b"], [], [DONE]), "was done 2 times"),
    (Task("t", 1, [b"b"], [b"a"], [DONE]), "its workers gave"),
    (Task("t", 1, [], [], [DONE]), "its workers gave"),
])
def test_what_cannot_be_is_told(task: Task, what: str) -> None:
    (sentence,) = told(task)
    assert what in sentence


def test_no_more_tasks_are_put_than_can_be_worked_off_after_a_long_episode(monkeypatch: pytest.MonkeyPatch) -> None:
    """So many in a short time that two workers, who sleep now and then, would need minutes for the rest of them."""
    monkeypatch.setattr(awaiting, "PAUSE_S", 0.0)
    clients = Awaiting()

    class Putting:
        """A client that puts, and that ends the loop some time after the bound should have stopped it."""

        def put(self, _queue: str, _data: str, *, number: bool) -> Any:
            assert number
            if len(clients.tasks) == awaiting.OPEN_MAX + 10:
                clients._putting.set()
            return SimpleNamespace(number=len(clients.tasks) + 1)

    putting = threading.Thread(target=clients._put, args=(Putting(),))
    putting.start()
    until(lambda: clients._open >= awaiting.OPEN_MAX, "there are as many as there may be")
    clients._putting.wait(0.2)
    clients._putting.set()
    putting.join()
    assert clients._open == len(clients.tasks) == awaiting.OPEN_MAX


def test_each_task_is_asked_for_once_more_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that one which ended late, and was not waited for, is not called unheard of."""
    class Asking(nullcontext[None]):
        """A client, as far as its calls are checked before they are sent."""

        def __init__(self, _servers: list[str], *, timeout: float) -> None:
            super().__init__()

        def __enter__(self) -> Any:
            return self

        def await_job(self, number: int, *, wait: float) -> Any:
            records.await_job(number, wait)
            return SimpleNamespace(state="done", data=b"a")

    monkeypatch.setattr(awaiting, "Client", Asking)
    clients = Awaiting()
    clients.tasks[7] = Task("t", 7, [b"a"])
    assert list(clients.finish()) == []
    assert clients.tasks[7].seen == [DONE]
