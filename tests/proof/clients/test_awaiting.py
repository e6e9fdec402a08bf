"""The judge of tasks whose results are waited for: what it accuses, and what it does not."""

from __future__ import annotations

import pytest

from tests.proof.clients.awaiting import Awaiting, Task

DONE = ("done", b"a")


def told(task: Task) -> list[str]:
    awaiting = Awaiting()
    awaiting.tasks[task.number] = task
    return list(awaiting.judge())


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
