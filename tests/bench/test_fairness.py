"""The cases of bench/fairness come out as docs/FAIRNESS.md tells, and what is simulated is sound."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner

from bench.fairness import __main__ as program
from bench.fairness.cases import FULL_MS, KINDS, customers, dependent, full, hung, stream, ten
from bench.fairness.simulation import DISCIPLINES, FAIR, FAIR_4, FIFO, PRIORITY, Course, Discipline, simulate
from bench.fairness.tables import sections
from bench.fairness.tenants import ALONE, BOTH, TENANT_CASES, waits
from bench.fairness.tenants import FAIR as ONE_LEVEL
from bench.fairness.tenants import FIFO as FIFO_QUEUE
from bench.reports.tables import replaced

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "FAIRNESS.md"


def test_short_queries_need_8_2_seconds_where_fifo_needs_15() -> None:
    assert round(simulate(ten(1), FAIR, 1).mean_s, 1) == 8.2
    assert simulate(ten(1), FIFO, 1).mean_s == 15
    assert simulate(ten(1), PRIORITY, 1).mean_s == 5


def test_more_workers_and_a_greater_multiplier_win_more() -> None:
    assert simulate(ten(1), FAIR_4, 1).mean_s < simulate(ten(1), FAIR, 1).mean_s
    assert simulate(ten(2), FAIR, 2).mean_s < simulate(ten(2), FIFO, 2).mean_s


def test_nobody_starves_where_short_ones_keep_coming() -> None:
    assert simulate(stream(1), PRIORITY, 1).long_s == 130       # only when no more come
    assert simulate(stream(1), FAIR, 1).long_s < 30


def test_what_depends_on_others_comes_after_them() -> None:
    for discipline in DISCIPLINES:
        course = simulate(dependent(2), discipline, 2)
        begun = next(run.start_ms for run in course.runs if run.query == 6)
        assert begun == max(run.end_ms for run in course.runs if run.query < 6)


def test_a_hung_query_costs_a_worker_and_nothing_more() -> None:
    fifo, fair = simulate(hung(2), FIFO, 2), simulate(hung(2), FAIR, 2)
    assert fair.mean_s == fifo.mean_s == 5
    assert len({run.worker for run in fair.runs if run.query}) == 1


def test_groups_share_one_account() -> None:
    assert simulate(customers(4), FIFO, 4).mean_s > 10 * simulate(customers(4), FAIR, 4).mean_s


@pytest.mark.parametrize("discipline", DISCIPLINES, ids=lambda one: one.name)
def test_each_query_runs_as_long_as_it_takes_and_a_worker_does_one_at_a_time(discipline: Discipline) -> None:
    course = simulate(dependent(3), discipline, 3)
    for number, query in enumerate(course.case.queries):
        own = [run for run in course.runs if run.query == number]
        assert sum(run.end_ms - run.start_ms for run in own) == query.run_ms
        assert course.latency_ms[number] == max(run.end_ms for run in own)
    for worker in range(3):
        own = sorted((run for run in course.runs if run.worker == worker), key=lambda run: run.start_ms)
        assert all(one.end_ms <= other.start_ms for one, other in pairwise(own))


@pytest.fixture(scope="module")
def hour() -> Course:
    """An hour in which all levels fill up."""
    return simulate(full(4), FAIR, 4)


def test_each_level_has_twice_the_share_of_the_next_one(hour: Course) -> None:
    windows = hour.shares(300_000)
    four = windows[4]                               # level 4 has no work yet: 8:4:2:1
    assert [round(100 * share) for share in four] == [53, 27, 13, 7, 0]
    assert all(abs(sum(window) - 1) < 1e-9 for window in windows)
    assert len(windows) == FULL_MS // 300_000
    late = hour.shares(FULL_MS // 2)[1]
    for share, target in zip(late[:3], (51.6, 25.8, 12.9), strict=True):
        assert abs(100 * share - target) < 2


def test_the_number_of_queries_of_a_kind_stays_the_same(hour: Course) -> None:
    for kind, (_, count) in enumerate(KINDS):
        of_kind = [number for number, query in enumerate(hour.case.queries) if query.kind == kind]
        assert len(of_kind) - sum(number in hour.latency_ms for number in of_kind) == count


def test_quiet_tenants_hardly_notice_one_with_many_jobs() -> None:
    alone = waits(ALONE).percentile(0.99)
    assert waits(FIFO_QUEUE).percentile(0.99) > 100 * alone
    assert waits(ONE_LEVEL).percentile(0.99) < 3 * alone
    assert waits(BOTH).percentile(0.99) < 2.5 * alone
    assert waits(BOTH).percentile(0.5) == waits(ALONE).percentile(0.5) == 0
    assert waits(BOTH).flooded > waits(ONE_LEVEL).flooded / 2
    assert all(waits(one).busy <= 1.001 for one in TENANT_CASES)


def test_the_page_has_these_tables_and_pictures(tmp_path: Path) -> None:
    page = PAGE.read_text()
    assert replaced(page, sections()) == page
    for name in ("fair_courses", "fair_latencies", "fair_levels"):
        assert f"](pictures/{name}.svg)" in page
        assert (ROOT / "docs" / "pictures" / f"{name}.svg").exists()
    wrong = tmp_path / "page.md"
    wrong.write_text("no places\n")
    ended = CliRunner().invoke(program.main, ["--into", str(wrong)])
    assert ended.exit_code == 1
    assert "there is no place" in ended.output
    assert wrong.read_text() == "no places\n"


def test_pictures_are_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    from bench.fairness import pictures

    monkeypatch.delitem(pictures.PICTURES, "fair_latencies")        # many simulations, drawn as the others are
    program.draw(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"fair_courses.svg", "fair_levels.svg"}
    assert all(b"<svg" in path.read_bytes() for path in tmp_path.iterdir())
