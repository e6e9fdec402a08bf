"""Verdicts: an attack is held off under all conditions or reported, and the table lists them."""

from __future__ import annotations

import pytest
from msgspec import structs

from tests.hostile.arena import Arena
from tests.hostile.attack import MIB, Attack, Bounds
from tests.hostile.inventory import wrongs
from tests.hostile.ordinary import Report, unusual
from tests.hostile.verdict import Outcome, gap_s, judge, p50_ms, table


async def nothing(arena: Arena) -> None:
    """An attack that does nothing."""


BOUNDS = Bounds(p50_ms=20, gap_s=2, back_s=3, rss_mb=100, growth_mb=40)
ATTACK = Attack("greedy", "", nothing, excused=("PUT: 503 Busy",), bounds=BOUNDS)
GOOD = Outcome("greedy", p50_ms=20, gap_s=2, back_s=3, rss_before_bytes=60 * MIB, rss_bytes=100 * MIB)


def judged(changes: dict[str, float | None], report: Report | None = None, begin_s: float = 0.0) -> Outcome:
    """Return the verdict on GOOD with these changes."""
    outcome = structs.replace(GOOD, reasons=[], notes=[], **changes)
    judge(outcome, ATTACK, report or Report(), begin_s)
    return outcome


def test_what_is_within_its_bounds_is_held() -> None:
    assert judged({}).held


@pytest.mark.parametrize(("changes", "reason"), [
    ({"p50_ms": 20.1}, "p50 20.1 ms > 20 ms"),
    ({"p50_ms": None}, "the ordinary client got no answer"),
    ({"gap_s": 2.5}, "gap 2.5 s > 2 s"),
    ({"back_s": 3.5}, "back after 3.5 s > 3 s"),
    ({"back_s": None}, "not all nodes came back"),
    ({"rss_bytes": 101 * MIB, "rss_before_bytes": 101 * MIB}, "memory 101 MiB > 100 MiB"),
    ({"rss_before_bytes": 50 * MIB}, "memory grew by 50 MiB > 40 MiB"),
])
def test_what_is_beyond_a_bound_is_not_held(changes: dict[str, float | None], reason: str) -> None:
    outcome = judged(changes)
    assert not outcome.held
    assert outcome.reasons == [reason]


def test_errors_that_nobody_must_expect_are_counted_from_the_attack_on() -> None:
    errors = [(1.0, "PUT: 413 Data Too Large"), (3.0, "GET: 503 Busy"), (4.0, "GET: 503 Busy")]
    assert judged({}, Report(errors=errors), 2.0).reasons == ["2 times GET: 503 Busy"]


def test_what_is_excused_or_usual_is_no_error() -> None:
    errors = [(0.0, "PUT: 503 Busy"), (0.0, "connect: no answer"), (0.0, "DONE: 500 Offline Mode"),
              (0.0, "GET: 404 Queue Empty"), (0.0, "GET: 503 Busy")]
    assert unusual(errors, ("PUT: 503 Busy",)) == {"GET: 503 Busy": 1}


def test_a_gap_reaches_to_the_edges() -> None:
    assert gap_s([1.0, 2.0, 7.0, 8.0], 0, 10) == 5
    assert gap_s([], 0, 10) == 10
    assert gap_s([1.0, 2.0, 11.0], 0, 10) == 8
    assert gap_s([-1.0, 4.0], 0, 6) == 4


def test_the_median_is_of_commands_sent_meanwhile() -> None:
    report = Report(commands=[(0.5, 100.0), (1.0, 1.0), (1.5, 2.0), (1.6, 3.0), (2.0, 100.0)])
    assert p50_ms(report, 1, 2) == 2
    assert p50_ms(report, 3, 4) is None


def test_jobs_are_compared_with_what_the_client_was_told() -> None:
    report = Report(acknowledged=[1, 2, 3, 4], maybe_put=[5], finished=[1, 2], maybe_finished=[3])
    assert wrongs(report, [4, 5]) == []
    assert wrongs(report, [1, 3]) == ["1 jobs lost: [4]", "1 jobs finished and there: [1]"]


def test_the_table_has_a_line_for_each_attack() -> None:
    assert table([
        structs.replace(GOOD, p50_before_ms=1.25, notes=["a|b\nc"]),
        Outcome("flood", reasons=["n1 ended with 70"], notes=["60 connections"]),
        Outcome("clock", left_out="needs libfaketime"),
    ]).splitlines() == [
        "| attack | held | p50 | p50 before | longest gap | back after | memory before | memory | notes |",
        "|---|---|---|---|---|---|---|---|---|",
        "| greedy | yes | 20.0 ms | 1.2 ms | 2.0 s | 3.0 s | 60 MiB | 100 MiB | a/b c |",
        "| flood | **no** |  |  |  |  | 0 MiB | 0 MiB | n1 ended with 70; 60 connections |",
        "| clock | left out |  |  |  |  |  |  | needs libfaketime |",
    ]


def test_what_was_left_out_is_not_held() -> None:
    assert not Outcome("clock", left_out="needs libfaketime").held
