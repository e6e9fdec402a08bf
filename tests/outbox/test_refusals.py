"""Refused jobs: which rows are left out of a batch, and for how long."""

from __future__ import annotations

import pytest
from sockpq import (
    Aborted,
    BadArguments,
    ClusterMap,
    Elsewhere,
    ForbiddenError,
    JobExists,
    JobNotFound,
    QueueFull,
    QueuePaused,
    SockpqError,
)
from sockpq_outbox.jobs import Row
from sockpq_outbox.relay.ledger import LEDGER_COMMANDS, RowRefused
from sockpq_outbox.relay.refusals import across_clusters, refusal_of
from sockpq_outbox.relay.relay import namespaces
from sockpq_outbox.rows import Namespace

ROWS = [Row(number, queue, b"", "{}") for number, queue in enumerate(("a", "b", "a", "a"))]


def aborted(row: int, reason: SockpqError) -> Aborted:
    return Aborted("409 Aborted", row + 1 + LEDGER_COMMANDS, reason)


@pytest.mark.parametrize("reason", [QueueFull("503"), QueuePaused("503"), Elsewhere("409", None)])
def test_a_queue_that_takes_none_now_keeps_its_rows_from_there_on(reason: SockpqError) -> None:
    refusal = refusal_of(aborted(2, reason), ROWS)
    assert refusal is not None
    assert refusal.waits
    assert [row.id for row in refusal.rows] == [2, 3]


@pytest.mark.parametrize("reason", [JobExists("409"), ForbiddenError("403"), BadArguments("400")])
def test_a_job_that_is_never_accepted_is_left_out_alone(reason: SockpqError) -> None:
    refusal = refusal_of(aborted(2, reason), ROWS)
    assert refusal is not None
    assert (refusal.waits, [row.id for row in refusal.rows]) == (False, [2])
    assert refusal.reason == f"{type(reason).__name__}: {reason}"


def test_a_row_that_the_client_refuses_is_left_out() -> None:
    refusal = refusal_of(RowRefused(ROWS[1], ValueError("bad")), ROWS)
    assert refusal == ([ROWS[1]], False, "ValueError: bad")


def test_the_ledger_is_lost_or_cannot_be_used() -> None:
    assert refusal_of(Aborted("409", 1, JobNotFound("404")), ROWS) is None
    with pytest.raises(ForbiddenError):
        refusal_of(Aborted("409", 2, ForbiddenError("403")), ROWS)


def test_rows_of_several_clusters() -> None:
    clusters = ClusterMap(1, {"a": None, "b": None}, {"b": "b"}, {}, frozenset({"c"}))      # type: ignore[dict-item]
    assert across_clusters(ROWS, "ledger", clusters) is None        # the map has changed
    for spread in "c", "c_dead":
        refusal = across_clusters([*ROWS, Row(9, spread, b"", "{}")], "ledger", clusters)
        assert refusal is not None
        assert ([row.id for row in refusal.rows], refusal.waits) == ([9], False)
    refusal = across_clusters([ROWS[0], ROWS[2]], "ledger", clusters)
    assert refusal is not None
    assert len(refusal.rows) == 2


def test_prefixes_of_the_map_are_namespaces() -> None:
    assert namespaces(ClusterMap()) == [Namespace()]
    clusters = ClusterMap(1, {}, {"shop.": "b", "shop.new.": "a", "x": None}, {})
    assert namespaces(clusters) == [
        Namespace("", ("shop.", "shop.new.", "x")), Namespace("shop.", ("shop.new.",)), Namespace("shop.new."),
        Namespace("x"),
    ]
