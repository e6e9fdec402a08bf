"""Each check can fail."""

from __future__ import annotations

import pytest

from core import Done, Finished, Get, Handed, Put, Stored, encode_entry
from tests.sim.checks import Checks
from tests.sim.events import Events
from tests.sim.outcomes import Outcome
from tests.sim.trace import Trace, Violation

PUT = Put("q", 0, b"x")


@pytest.fixture
def checks() -> Checks:
    return Checks(Trace(Events()))


def launched(checks: Checks, seed: int = 7) -> Outcome:
    outcome = Outcome(PUT, lambda outcome: None)
    checks.launched(encode_entry(1, seed, [PUT]), [outcome])
    return outcome


def test_an_entry_that_two_nodes_apply_differently(checks: Checks) -> None:
    checks.applied("n1", 2, 1, 7, [PUT], [Stored()])
    with pytest.raises(Violation, match="another entry 2"):
        checks.applied("n2", 2, 1, 8, [PUT], [Stored()])


def test_an_entry_that_is_applied_at_two_indexes(checks: Checks) -> None:
    checks.applied("n1", 2, 1, 7, [PUT], [Stored()])
    with pytest.raises(Violation, match="what was applied at 2"):
        checks.applied("n1", 3, 1, 7, [PUT], [Stored()])


def test_an_answer_that_the_model_does_not_give(checks: Checks) -> None:
    with pytest.raises(Violation, match="right is"):
        checks.applied("n1", 2, 1, 7, [Done(1)], [Finished()])


def test_a_job_that_is_handed_out_twice(checks: Checks) -> None:
    handed = Handed(1, "q", 0, b"x")
    checks.applied("n1", 2, 1, 7, [PUT, Get(("q",), 1000)], [Stored(), handed])
    with pytest.raises(Violation, match="right is"):
        checks.applied("n1", 3, 2, 9, [Get(("q",), 1000)], [handed])


def test_an_entry_that_overtakes_history(checks: Checks) -> None:
    checks.applied("n1", 5, 1, 7, [PUT], [Stored()])
    with pytest.raises(Violation, match="which nobody did"):
        checks.applied("n2", 4, 1, 8, [PUT], [Stored()])


@pytest.mark.parametrize(("command", "before"), [(b"other", 1), (b"same", 2)])
def test_logs_that_do_not_match(checks: Checks, command: bytes, before: int) -> None:
    checks.appended("n1", b"same", 3, 2, 1)
    with pytest.raises(Violation, match="has another entry"):
        checks.appended("n2", command, 3, 2, before)


def test_states_that_differ(checks: Checks) -> None:
    checks.state("n1", 16, [b"a", b"b"])
    checks.state("n2", 16, [b"ab"])
    with pytest.raises(Violation, match="another state"):
        checks.state("n3", 16, [b"ac"])


def test_a_refused_job_that_was_executed(checks: Checks) -> None:
    outcome = launched(checks)
    outcome.refused()
    checks.applied("n1", 2, 1, 7, [PUT], [Stored()])
    with pytest.raises(Violation, match="refused and executed"):
        checks.finish([outcome])


def test_an_acknowledged_job_that_is_in_no_log(checks: Checks) -> None:
    outcome = launched(checks)
    outcome.applied(Stored())
    with pytest.raises(Violation, match="not in the log"):
        checks.finish([outcome])


def test_an_acknowledged_job_that_nobody_ever_got(checks: Checks) -> None:
    outcome = launched(checks)
    checks.applied("n1", 2, 1, 7, [PUT], [Stored()])
    outcome.applied(Stored())
    checks.finish([outcome])
    with pytest.raises(Violation, match="is lost"):
        checks.nothing_lost([outcome])


def test_an_operation_with_two_outcomes() -> None:
    outcome = Outcome(PUT, lambda outcome: None)
    outcome.refused()
    with pytest.raises(Violation, match="was refused"):
        outcome.applied(Stored())
