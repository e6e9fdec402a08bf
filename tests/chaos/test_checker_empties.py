"""Verdicts about empty queues, and about turns by a node after another one has served, on hand-written histories."""

from __future__ import annotations

import pytest

from tests.chaos.checker.empties import Asked, Kept, Saw, false_empties
from tests.chaos.checker.grants import after_another
from tests.chaos.workload.history import Cut, Outcome, Put, Record
from tests.chaos.workload.turns import Grant

MS = 1_000_000
STANDS = Kept("q", "n2", 10 * MS, 20 * MS)


def asked(start: int, end: int, saw: Saw = Saw.EMPTY, node: str = "n1", queue: str = "q") -> Asked:
    return Asked(queue, node, start * MS, end * MS, saw)


@pytest.mark.parametrize(
    ("questions", "false"),
    [
        ([asked(21, 22)], 1),
        ([asked(21, 22, node="n2")], 1),
        ([asked(19, 22)], 0),                                               # it may have been answered before
        ([asked(21, 22, queue="another")], 0),
        ([asked(21, 22, Saw.JOB)], 0),
        ([asked(21, 22), asked(15, 30, Saw.JOB, "n3")], 0),                 # it was taken,
        ([asked(21, 22), asked(15, 30, Saw.UNKNOWN, "n3")], 0),             # or may have been,
        ([asked(21, 22), asked(22, 30, Saw.JOB, "n3")], 1),                 # but not so late
        ([asked(21, 22), asked(15, 30, Saw.JOB, "n3", "another")], 1),
        ([asked(21, 22), asked(23, 24)], 2),
    ],
)
def test_a_queue_with_a_job_that_nobody_took_is_not_empty(questions: list[Asked], false: int) -> None:
    assert len(list(false_empties([STANDS], questions))) == false


CUT = Cut("n1", 1_000 * MS, 5_000 * MS)
NAMES = {"a": "n1", "b": "n2"}


def grant(server: str, after: float, before: float) -> Grant:
    return Grant(1, 1, None, None, after, before, server)


def put(server: str, start_ms: int, end_ms: int, outcome: Outcome = Outcome.OK) -> Record:
    return Record("c", Put("A", "q", 0), start_ms * MS, end_ms * MS, outcome, server)


@pytest.mark.parametrize(
    ("grants", "records", "late"),
    [
        ([grant("a", 3.0, 3.1)], [put("n2", 1500, 2000)], 1),
        ([grant("a", 3.0, 3.1), grant("b", 1.5, 2.0)], [], 1),
        ([grant("a", 1.9, 2.1)], [put("n2", 1500, 2000)], 0),               # it may have been written before
        ([grant("a", 3.0, 3.1)], [put("n2", 500, 2000)], 0),                # that may have been before the cut
        ([grant("a", 3.0, 3.1)], [put("n2", 1500, 2000, Outcome.UNKNOWN)], 0),
        ([grant("a", 3.0, 3.1)], [put("n1", 1500, 2000)], 0),
        ([grant("b", 3.0, 3.1)], [put("n2", 1500, 2000)], 0),
        ([grant("a", 5.5, 5.6)], [put("n2", 1500, 2000)], 0),               # the cut is over
    ],
)
def test_no_turn_is_given_by_a_node_that_was_cut_off_once_another_one_has_served(
    grants: list[Grant], records: list[Record], late: int,
) -> None:
    assert len(list(after_another(grants, records, [CUT], NAMES))) == late
