"""The answers that sessions remember, in a snapshot: of what moves jobs, and of groups."""

from __future__ import annotations

import pytest

from sockpqd.core import (
    ConfigureGroup,
    ConfigureQueue,
    DeleteGroup,
    GroupBy,
    GroupDecided,
    GroupNotFound,
    Machine,
    Moved,
    MoveJobs,
    OpenSession,
    Put,
    PutWith,
    QueueChange,
    QueueFull,
    Reply,
    Request,
    Requested,
    Sched,
    TooManyGroups,
    limits,
)
from tests.core.helpers.logs import ask, restored, snapshot_of


@pytest.mark.parametrize(("operation", "answer"), [
    (ConfigureGroup("none", paused=False), GroupNotFound()),
    (DeleteGroup("none"), GroupNotFound()),
    (ConfigureGroup("one more", paused=True), TooManyGroups()),
    (PutWith(Put("by_item", 0, b""), group="g"), GroupDecided()),
    (MoveJobs("q", "p", 9), Moved(2)),
    (MoveJobs("q", "small", 9), Moved(1, refusal=QueueFull())),
])
def test_a_repeated_request_has_its_answer_after_a_restart(
    operation: Requested, answer: Reply, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "GROUPS_MAX", 0)
    machine = Machine()
    ask(machine, OpenSession(1, 60_000), Put("q", 0, b"a"), Put("q", 0, b"b"))
    ask(machine, ConfigureQueue("small", QueueChange(capacity=1), create=True))
    ask(machine, ConfigureQueue("by_item", QueueChange(sched=Sched.FAIR, group_by=GroupBy.ITEM), create=True))
    request = Request(1, 1, b"sixteen bytes id", 0, False, operation)
    assert ask(machine, request) == [answer]
    again = restored(snapshot_of(machine))
    assert snapshot_of(again) == snapshot_of(machine)
    assert ask(again, request) == [answer]
