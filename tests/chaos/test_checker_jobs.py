"""The checker's rules about single jobs: each bad history, next to a good one that is nearly the same."""

from __future__ import annotations

from typing import Any

import pytest

from tests.chaos.checker import Facts, Running, check
from tests.chaos.histories.handwritten import OK, REFUSED, UNKNOWN, Written
from tests.chaos.workload.history import Get, Handed

SECOND_LEASE = Get(("q",), 1000)
DROPPING = Get(("q",), 1000, then_done=True)

# ---- lost


def test_a_job_that_vanished_is_lost() -> None:
    assert Written().put("A", 1, 1.1).broken(drained=True) == ["lost"]


def test_a_job_that_was_done_is_not_lost() -> None:
    assert Written().put("A", 1, 1.1).get("A", 1, 2, 2.1).done(1, 3, 3.1).broken(drained=True) == []


def test_without_a_drain_nobody_knows() -> None:
    assert Written().put("A", 1, 1.1).broken() == []


@pytest.mark.parametrize("outcome", [UNKNOWN, REFUSED])
def test_only_an_acknowledged_job_can_be_lost(outcome: Any) -> None:
    assert Written().put("A", 1, 1.1, outcome=outcome).broken(drained=True) == []


def test_a_job_that_ran_and_was_not_done_is_lost() -> None:
    assert Written().put("A", 1, 1.1).get("A", 1, 2, 2.1).broken(drained=True) == ["lost"]


def test_it_is_not_lost_when_it_still_runs() -> None:
    written = Written().put("A", 1, 1.1).get("A", 1, 2, 2.1)
    assert written.broken(drained=True, running=(Running(1, "A"),)) == []


@pytest.mark.parametrize(("outcome", "broken"), [(UNKNOWN, []), (REFUSED, ["lost"])])
def test_a_done_that_may_have_been_executed_explains_it(outcome: Any, broken: list[str]) -> None:
    written = Written().put("A", 1, 1.1).get("A", 1, 2, 2.1).done(1, 3, 3.1, outcome=outcome, finished=None)
    assert written.broken(drained=True) == broken


@pytest.mark.parametrize(("get", "broken"), [(DROPPING, []), (SECOND_LEASE, ["lost"])])
def test_a_lease_then_done_explains_it(get: Get, broken: list[str]) -> None:
    assert Written().put("A", 1, 1.1).get("A", 1, 2, 2.1, get).broken(drained=True) == broken


def test_a_lease_then_done_that_was_ended_by_later_explains_nothing() -> None:
    written = Written().put("A", 1, 1.1).get("A", 1, 2, 2.1, DROPPING).later(1, 2.2, 2.3)
    assert written.broken(drained=True) == ["lost"]


def test_a_job_lost_after_later_may_have_been_there_for_finq() -> None:
    written = Written().put("A", 1, 1.1).get("A", 1, 2, 2.1, SECOND_LEASE).put("B", 2, 2.1).get("B", 2, 2.2, 2.3)
    assert written.later(1, 2.4, 2.5).done(2, 8, 8.1, "").broken(drained=True, lease_late_ms=100) == ["lost"]


def test_a_hidden_lease_then_done_explains_one_job_but_not_two() -> None:
    written = Written().put("A", 1, 1.1).ask(DROPPING, 2, 2.1, outcome=UNKNOWN)
    assert written.broken(drained=True) == []
    assert written.put("B", 1, 1.1).broken(drained=True) == ["lost"]


def test_jobs_that_wait_after_the_drain_were_not_given_to_it() -> None:
    written = Written().put("A", 1, 1.1).get("A", 1, 2, 2.1).done(1, 3, 3.1)
    assert written.broken(drained=True, waiting=1) == ["lost"]
    assert written.put("B", 1, None, outcome=UNKNOWN).broken(drained=True, waiting=1) == []


# ---- invented, refused


def test_a_body_nobody_put_is_invented() -> None:
    assert Written().get("A", 1, 2, 2.1).broken() == ["invented"]
    assert Written().broken(running=(Running(1, "A"),)) == ["invented"]


@pytest.mark.parametrize(
    "handed",
    [Handed(1, "r", 5, "A", "i"), Handed(1, "q", 4, "A", "i"), Handed(1, "q", 5, "A", "j"), Handed(1, "q", 5, "A")],
)
def test_a_job_that_changed_is_invented(handed: Handed) -> None:
    good = Handed(1, "q", 5, "A", "i")
    any_queue = Get(())
    put: dict[str, Any] = {"priority": 5, "item": "i"}
    assert Written().put("A", 1, 1.1, **put).get("A", 1, 2, 2.1, any_queue, handed=handed).broken() == ["invented"]
    assert Written().put("A", 1, 1.1, **put).get("A", 1, 2, 2.1, any_queue, handed=good).broken() == []


def test_a_job_from_a_queue_or_item_nobody_asked_for_is_invented() -> None:
    assert Written().put("A", 1, 1.1).get("A", 1, 2, 2.1, Get(("r",))).broken() == ["invented"]
    assert Written().put("A", 1, 1.1, item="i").get("A", 1, 2, 2.1, Get(("q",), item="j")).broken() == ["invented"]


def test_a_job_cannot_come_before_its_put() -> None:
    assert Written().put("A", 3, 3.1).get("A", 1, 2, 2.1).broken() == ["invented"]
    assert Written().put("A", 2.05, 3.1).get("A", 1, 2, 2.1).broken() == []


def test_nobody_heard_the_name_of_an_item_when_the_answer_was_lost() -> None:
    for name, broken in (("i7", []), ("mine", ["invented"])):
        written = Written().put("A", 1, 1.1, outcome=UNKNOWN)
        assert written.get("A", 1, 2, 2.1, handed=Handed(1, "q", 0, "A", name)).broken() == broken


def test_who_runs_unseen_was_taken_by_a_get_without_answer() -> None:
    written = Written().put("A", 1, 1.1)
    running = (Running(1, "A"),)
    assert written.broken(drained=True, running=running) == ["invented"]
    assert written.ask(Get(("q",)), 2, 2.1, outcome=UNKNOWN).broken(drained=True, running=running) == []


@pytest.mark.parametrize(("outcome", "broken"), [(REFUSED, ["refused"]), (UNKNOWN, []), (OK, [])])
def test_what_was_refused_never_appears(outcome: Any, broken: list[str]) -> None:
    assert Written().put("A", 1, 1.1, outcome=outcome).get("A", 1, 2, 2.1).broken() == broken
    written = Written().put("A", 1, 1.1, outcome=outcome).ask(Get(("q",)), 2, 2.1, outcome=UNKNOWN)
    assert written.broken(running=(Running(1, "A"),)) == broken


def test_a_body_put_twice_is_no_history() -> None:
    with pytest.raises(ValueError, match="A is put twice"):
        Written().put("A", 1, 1.1).put("A", 2, 2.1).broken()


# ---- lease


@pytest.mark.parametrize(("at", "broken"), [(2.8, ["lease"]), (3.5, [])])
def test_a_lease_holds_until_its_end(at: float, broken: list[str]) -> None:
    written = Written().put("A", 1, 1.1).get("A", 1, 2, 2.1, SECOND_LEASE).get("A", 2, at, at + 0.05)
    assert written.broken() == broken


def test_a_hand_out_is_not_after_the_end_of_one_with_a_greater_id() -> None:
    written = Written().put("A", 1, 1.1).get("A", 1, 2, 2.1, SECOND_LEASE).get("A", 2, 2, 9)
    assert written.broken() == []
    assert written.put("C", 1, 1.1, "r").get("C", 3, 2.5, 2.6, Get(("r",))).broken() == ["lease"]


def test_a_lease_may_end_a_little_early_or_at_any_time_when_clocks_jump() -> None:
    written = Written().put("A", 1, 1.1).get("A", 1, 2, 2.1, SECOND_LEASE).get("A", 2, 2.5, 2.55)
    assert written.broken(lease_slack_ms=500) == []
    assert written.broken(lease_slack_ms=None) == []
    assert written.broken(lease_slack_ms=400) == ["lease"]


def test_without_a_lease_it_holds_for_ever_even_if_clocks_jump() -> None:
    written = Written().put("A", 1, 1.1).get("A", 1, 2, 2.1).get("A", 2, 500, 500.1)
    assert written.broken(lease_slack_ms=None) == ["lease"]


@pytest.mark.parametrize(("outcome", "broken"), [(OK, []), (UNKNOWN, []), (REFUSED, ["lease"])])
def test_later_explains_another_hand_out(outcome: Any, broken: list[str]) -> None:
    written = Written().put("A", 1, 1.1).get("A", 1, 2, 2.1).later(1, 3, 3.1, outcome=outcome).get("A", 2, 3, 3.1)
    assert written.broken() == broken


def test_two_leases_are_not_a_matter_of_order() -> None:
    written = Written().put("A", 1, 1.1).put("B", 1.2, 1.3).get("A", 1, 2, 2.1).get("A", 2, 3, 3.1)
    assert written.broken() == ["lease"]


def test_who_has_a_job_that_is_done_later_had_it_at_the_same_time() -> None:
    written = Written().put("A", 1, 1.1).get("A", 1, 2, 2.1).get("A", 2, 2.2, 2.3).done(1, 3, 3.1)
    assert written.broken() == ["lease"]


def test_a_later_that_found_nothing_explains_nothing() -> None:
    written = Written().put("A", 1, 1.1).get("A", 1, 2, 2.1).later(1, 3, 3.1, missing=True).get("A", 2, 4, 4.1)
    assert "lease" in written.broken()


def test_a_later_after_the_next_hand_out_explains_nothing() -> None:
    written = Written().put("A", 1, 1.1).get("A", 1, 2, 2.1, SECOND_LEASE).get("A", 2, 5, 5.1)
    assert written.broken() == []
    assert written.later(1, 6, 6.1).broken() == ["lease"]


def test_what_is_dropped_at_the_end_of_its_lease_does_not_come_back() -> None:
    assert Written().put("A", 1, 1.1).get("A", 1, 2, 2.1, DROPPING).get("A", 2, 9, 9.1).broken() == ["lease"]


def test_a_done_that_may_have_been_executed_does_not_explain_another_hand_out() -> None:
    written = Written().put("A", 1, 1.1).get("A", 1, 2, 2.1).done(1, 3, 3.1, outcome=UNKNOWN).get("A", 2, 9, 9.1)
    assert written.broken() == ["lease"]


def test_a_job_runs_once_at_the_end_and_under_its_last_id() -> None:
    written = Written().put("A", 1, 1.1).get("A", 3, 2, 2.1).ask(Get(("q",)), 1, 1.1, outcome=UNKNOWN)
    assert written.broken(running=(Running(3, "A"),)) == []
    assert written.broken(running=(Running(3, "A"), Running(4, "A"))) == ["lease"]
    assert written.broken(running=(Running(2, "A"),)) == ["lease"]


# ---- done


def test_done_is_final() -> None:
    written = Written().put("A", 1, 1.1).get("A", 1, 2, 2.1).done(1, 3, 3.1)
    assert written.broken() == []
    assert written.get("A", 2, 4, 4.1).broken() == ["done"]


def test_a_job_that_comes_back_after_done_has_not_waited_meanwhile() -> None:
    written = Written().put("A", 1, 1.1).get("A", 1, 2, 2.1, SECOND_LEASE).done(1, 2.2, 2.3)
    written.ask(Get(("q",)), 6, 6.1).get("A", 2, 8, 8.1)
    assert written.broken(lease_late_ms=100) == ["done"]


def test_done_happens_once() -> None:
    written = Written().put("A", 1, 1.1).get("A", 1, 2, 2.1).done(1, 3, 3.1)
    assert written.done(1, 4, 4.1, missing=True, finished=None).broken() == []
    assert written.done(1, 4, 4.1).broken() == ["done"]


def test_done_and_later_do_not_both_happen() -> None:
    assert Written().put("A", 1, 1.1).get("A", 1, 2, 2.1).done(1, 3, 3.1).later(1, 3, 3.1).broken() == ["done"]


def test_what_is_done_does_not_run_at_the_end() -> None:
    written = Written().put("A", 1, 1.1).get("A", 1, 2, 2.1).done(1, 3, 3.1)
    assert written.broken(running=(Running(1, "A"),)) == ["done"]


@pytest.mark.parametrize(("at", "broken"), [(2.5, ["done"]), (3.5, [])])
def test_done_finds_the_job_as_long_as_the_lease_holds(at: float, broken: list[str]) -> None:
    written = Written().put("A", 1, 1.1).get("A", 1, 2, 2.1, SECOND_LEASE)
    assert written.done(1, at, at + 0.1, missing=True, finished=None).broken() == broken


@pytest.mark.parametrize(("outcome", "broken"), [(UNKNOWN, []), (REFUSED, ["done"])])
def test_an_earlier_end_explains_that_done_finds_nothing(outcome: Any, broken: list[str]) -> None:
    written = Written().put("A", 1, 1.1).get("A", 1, 2, 2.1).done(1, 2.2, 2.3, outcome=outcome, finished=None)
    assert written.done(1, 4, 4.1, missing=True, finished=None).broken() == broken


# ---- dedupe: the same for jobs that were put in a session


def test_a_put_in_a_session_is_one_job() -> None:
    written = Written().put("A", 1, 1.1, session=True).get("A", 1, 2, 2.1)
    assert written.broken() == []
    assert written.get("A", 2, 2.2, 2.3).broken() == ["dedupe"]
    assert written.done(1, 3, 3.1).done(2, 3, 3.1).broken() == ["dedupe"]


# ---- ids


def test_an_id_is_given_once() -> None:
    written = Written().put("A", 1, 1.1).put("B", 1, 1.1).get("A", 1, 2, 2.1)
    assert written.get("B", 1, 2, 2.1).broken() == ["ids"]


@pytest.mark.parametrize(("second", "broken"), [(6, ["ids"]), (8, [])])
def test_ids_rise(second: int, broken: list[str]) -> None:
    written = Written().put("A", 1, 1.1).put("B", 1, 1.1)
    assert written.get("A", 7, 2, 2.1).get("B", second, 3, 3.1).broken() == broken


def test_ids_may_cross_when_the_answers_did() -> None:
    assert Written().put("A", 1, 1.1).put("B", 1, 1.1).get("A", 7, 2, 3.1).get("B", 6, 3, 3.2).broken() == []


# ---- how it is told


def test_a_violation_tells_times_bodies_ids_and_clients() -> None:
    written = Written().put("A", 101, 101.1).get("A", 1, 102, 102.1).get("A", 2, 103, 103.1)
    [violation] = check(written.history, Facts(start_ns=100 * 10**9))
    assert violation.text == (
        "A was handed out as 2 to c2 by 3.100 s, although c1 held it as 1 and nobody gave it back: "
        "GET q that gave A as 1 by c1 at n1 [2.000 s .. 2.100 s]; "
        "GET q that gave A as 2 by c2 at n1 [3.000 s .. 3.100 s]"
    )
    assert violation.records == tuple(written.history.records[1:])


def test_many_violations_of_one_rule_are_cut() -> None:
    written = Written()
    for number in range(100):
        written.put(f"A{number}", 1, 1.1)
    assert len(check(written.history, Facts(drained=True))) == 20
