"""Checks that a job keeps its number for life, and is found by it until it is finished."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tests.chaos.checker.evidence.moments import is_ok, latest
from tests.chaos.checker.extended.tasks import Task, Tasks
from tests.chaos.checker.violation import Teller, Violation
from tests.chaos.workload.history import GetMany, Record


def numbers(tasks: Tasks, records: Iterable[Record], teller: Teller) -> Iterator[Violation]:
    """Check that no job has two numbers and no number two jobs, and that GET NUMBER finds each unfinished job."""
    owners: dict[int, Task] = {}
    for task in tasks:
        for turn in task.turns:
            number = turn.hand_out.handed.number
            first = task.turns[0].hand_out.handed.number
            owner = task if number is None else owners.setdefault(number, task)
            if number != first or owner is not task:
                text = f"{task.body} has the number {number}, {owner.body} the number {first}"
                yield Violation("number", text, (turn.hand_out.record,))
    for record in records:
        get = record.command
        if not isinstance(get, GetMany) or get.number is None or not is_ok(record):
            continue
        for handed in record.given:
            if handed.number != get.number:
                yield Violation("number", f"{teller.record(record)}, which has another number", (record,))
        known = owners.get(get.number)
        if record.missing and known is not None and _unfinished(known, record):
            yield Violation("number", f"{teller.record(record)}, but {known.body} was not finished", (record,))


def _unfinished(task: Task, record: Record) -> bool:
    """Return whether the job was certainly unfinished then: it was seen before, and no DONE of it had been sent."""
    seen = any(turn.hand_out.latest_ns < record.start_ns for turn in task.turns)
    return seen and task.over_earliest_ns() > latest(record)
