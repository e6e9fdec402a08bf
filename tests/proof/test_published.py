"""The published histories match the rows, and are few; nothing is wrong in them, and forged ones are found out."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.chaos.workload.history import Done, Outcome, Put
from tests.proof.judge import violations
from tests.proof.page import RESULTS
from tests.proof.results import HISTORIES, PASSED, Evidence, lines_of, load, read

BYTES_MAX = 5 << 20
PATHS = sorted((RESULTS / HISTORIES).rglob("*.xz"), key=lambda path: path.stat().st_size)


@pytest.fixture(scope="module")
def path() -> Path:
    """The smallest published history; without any the test is skipped."""
    if not PATHS:
        pytest.skip("no history is published")
    return PATHS[0]


def test_histories_are_those_of_the_rows_and_few() -> None:
    known = {f"seed-{piece.seed}/{episode.history}": episode.digest for piece in read(RESULTS)
             for episode in piece.episodes if episode.history}
    names = {path.relative_to(RESULTS / HISTORIES).as_posix() for path in PATHS}
    assert names == known.keys()
    assert sum(path.stat().st_size for path in PATHS) < BYTES_MAX
    for name in sorted(names)[:1]:
        lines = b"".join(lines_of(load(RESULTS / HISTORIES / name)))
        assert hashlib.sha256(lines).hexdigest() == known[name]


def test_all_say_that_they_passed_or_why_not() -> None:
    for piece in read(RESULTS):
        for episode in piece.episodes:
            assert episode.verdict == PASSED or episode.violations or episode.reason


def test_nothing_is_wrong_in_a_history_until_a_job_is_lost_or_done_again(path: Path) -> None:
    evidence = load(path)
    assert list(violations(evidence)) == []
    lost = _lose(evidence)
    assert {one.rule for one in violations(evidence) if f"{lost} " in one.text} & {"lost", "order"}
    evidence = load(path)
    _end_again(evidence)
    assert "done" in {one.rule for one in violations(evidence)}


def _lose(evidence: Evidence) -> str:
    """Let a job that was put, taken and done vanish after its PUT; returns its name."""
    records = evidence.history.records
    put = {one.command.body for one in records if isinstance(one.command, Put) and one.outcome is Outcome.OK}
    done = {one.command.id for one in records if isinstance(one.command, Done) and one.finished}
    body = next(one.handed.body for one in records if one.handed and one.handed.id in done and one.handed.body in put)
    ids = {one.handed.id for one in records if one.handed and one.handed.body == body}
    records[:] = [one for one in records if not (one.handed and one.handed.body == body)
                  and not (isinstance(one.command, Done) and one.command.id in ids)]
    return body


def _end_again(evidence: Evidence) -> None:
    """Let a job be found by a second DONE under the same id."""
    records = evidence.history.records
    done = next(record for record in records
                if isinstance(record.command, Done) and record.outcome is Outcome.OK and record.finished)
    late_ns = max(record.end_ns or 0 for record in records)
    records.append(type(done)(
        "forger", done.command, late_ns + 1, late_ns + 2, Outcome.OK, done.server, finished=done.finished))
