"""The checker's rules about whole queues: order, emptiness, FINQ and FINI, wake-ups."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tests.chaos.histories.handwritten import OK, REFUSED, UNKNOWN, Written, ns
from tests.chaos.workload.history import Get, Policy

GET = Get(("q",))
GETB = Get(("q",), blocks=True)
GETBE = Get(("q",), blocks=True, until_finished=True)
LEASE = Get(("q",), 1000)

# ---- order


@pytest.mark.parametrize(("priority", "broken"), [(9, ["order"]), (5, []), (1, [])])
def test_the_greatest_priority_comes_first(priority: int, broken: list[str]) -> None:
    written = Written().put("B", 1, 1.1, priority=5).put("A", 2, 2.1, priority=priority)
    assert written.get("B", 1, 3, 3.1).broken() == broken


@pytest.mark.parametrize(("policy", "broken"), [
    ("order", ["policy"]), ("sorted", ["policy"]), ("priority", []), ("place", ["policy"]), ("oldest", []), (None, []),
])
def test_a_policy_chooses_the_queue(policy: Policy | None, broken: list[str]) -> None:
    """Both jobs wait with the same priority; B comes from the queue that is named last, is last by name, and came
    later.
    """
    written = Written().put("A", 1, 1.1, queue="q").put("B", 2, 2.1, queue="r")
    assert written.get("B", 1, 3, 3.1, Get(("q", "r"), policy=policy)).broken() == broken
    assert written.get("A", 2, 3.2, 3.3, Get(("q", "r"), policy=policy)).broken() == broken     # nothing else is there


@pytest.mark.parametrize("policy", ["priority", "place"])
def test_the_greatest_priority_of_all_queues_comes_first(policy: Policy) -> None:
    written = Written().put("A", 2, 2.1, queue="q", priority=5).put("B", 1, 1.1, queue="r")
    assert written.get("B", 1, 3, 3.1, Get(("r", "q"), policy=policy)).broken() == ["policy"]


def test_it_must_be_sure_that_the_other_queue_had_a_job() -> None:
    written = Written().put("A", 2, 3.05, queue="q").put("B", 1, 1.1, queue="r")
    assert written.get("B", 1, 3, 3.1, Get(("q", "r"), policy="order")).broken() == []
    written = Written().put("A", 1, 1.1, queue="q").put("B", 1, 1.1, queue="r")
    written.get("A", 1, 2.9, 3.2).get("B", 2, 3, 3.1, Get(("q", "r"), policy="order"))
    assert written.broken() == []


@pytest.mark.parametrize(("start", "broken"), [(2.2, ["order"]), (2.05, [])])
def test_first_come_first_served_if_it_is_sure_who_came_first(start: float, broken: list[str]) -> None:
    written = Written().put("A", 2, 2.1).put("B", start, 2.5)
    assert written.get("B", 1, 3, 3.1).broken() == broken


@pytest.mark.parametrize(("end", "broken"), [(3.0, ["order"]), (3.6, [])])
def test_it_must_be_sure_that_the_other_came_before_the_get(end: float, broken: list[str]) -> None:
    written = Written().put("B", 1, 1.1).put("A", 2, end, priority=9)
    assert written.get("B", 1, 3.5, 3.7).broken() == broken


def test_it_must_be_sure_that_the_other_was_not_taken_before() -> None:
    written = Written().put("A", 1, 1.1).put("B", 2, 2.1)
    assert written.get("B", 2, 3, 3.5).get("A", 1, 3.4, 3.6).broken() == []


def test_ids_tell_what_the_records_do_not() -> None:
    # Both overlap. But 1 is before 2, so A still waited when B was given.
    written = Written().put("A", 1, 1.1).put("B", 2, 2.1).get("B", 1, 3, 3.5).get("A", 2, 3, 3.5)
    assert written.broken() == ["order"]
    written = Written().put("A", 1, 1.1).put("C", 1, 1.1, queue="r").put("B", 2, 2.1)
    written.get("B", 1, 3, 9, GETB).get("C", 2, 4, 4.1).get("A", 3, 8, 8.1)
    assert written.broken() == ["order"]


def test_no_hand_out_is_before_the_put_of_one_with_a_smaller_id() -> None:
    written = Written().put("X", 1, 1.1, priority=9).put("B", 1, 1.1).put("C", 5, 5.1, "r")
    written.get("C", 1, 0, 9, Get(("r",), blocks=True)).get("B", 2, 0, 9, GETB)
    assert written.get("X", 3, 8, 8.1).broken() == ["order"]


@pytest.mark.parametrize("queue", ["q", "r"])
def test_only_the_same_queue_counts(queue: str) -> None:
    written = Written().put("A", 1, 1.1, queue=queue).put("B", 2, 2.1)
    assert written.get("B", 1, 3, 3.1, Get(("q", "r"))).broken() == (["order"] if queue == "q" else [])


def test_a_hand_out_by_item_takes_any_of_its_item() -> None:
    written = Written().put("A", 1, 1.1).put("B", 2, 2.1, item="i")
    assert written.get("B", 1, 3, 3.1, Get(("q",), item="i", blocks=True)).broken() == []


@pytest.mark.parametrize(("get", "id_", "broken"), [("A", 2, []), ("B", 2, ["order"])])
def test_later_puts_it_at_the_end(get: str, id_: int, broken: list[str]) -> None:
    written = Written().put("B", 1, 1.1).get("B", 1, 1.2, 1.3).put("A", 2, 2.1).later(1, 3, 3.1)
    assert written.get(get, id_, 4, 4.1).broken() == broken


@pytest.mark.parametrize(("late", "broken"), [(500, ["order"]), (None, []), (5000, [])])
def test_a_lease_is_surely_over_when_it_cannot_be_later(late: int | None, broken: list[str]) -> None:
    written = Written().put("A", 1, 1.1, priority=9).get("A", 1, 2, 2.1, LEASE).put("B", 2, 2.1)
    assert written.get("B", 2, 4, 4.1).broken(lease_late_ms=late) == broken


def test_the_end_of_a_lease_puts_it_behind_the_others() -> None:
    written = Written().put("A", 1, 1.1).get("A", 1, 2, 2.1, LEASE).put("B", 2, 2.1).get("B", 2, 4, 4.1)
    assert written.broken(lease_late_ms=500) == []
    assert written.put("C", 4, 4.1).get("C", 3, 5, 5.1).broken(lease_late_ms=500) == ["order"]


@pytest.mark.parametrize(
    ("outcome", "start", "broken"),
    [(UNKNOWN, 2.2, []), (REFUSED, 2.2, ["order"]), (UNKNOWN, 5, ["order"])],
)
def test_a_get_without_answer_may_have_it(outcome: Any, start: float, broken: list[str]) -> None:
    written = Written().put("A", 1, 1.1).put("B", 2, 2.1).ask(GET, start, start + 0.1, outcome=outcome)
    assert written.get("B", 2, 3, 3.1).broken() == broken


def test_where_ids_have_no_gap_nothing_was_taken_unseen() -> None:
    written = Written().put("A", 1, 1.1).put("B", 2, 2.1).ask(GET, 2.2, 2.3, outcome=UNKNOWN)
    assert written.get("B", 1, 3, 3.1).broken() == ["order"]


def test_one_get_without_answer_has_one_job() -> None:
    written = Written().put("A", 1, 1.1).put("B", 1.2, 1.3).put("C", 2, 2.1)
    written.ask(GET, 2.2, 2.3, outcome=UNKNOWN)
    assert written.get("C", 7, 3, 3.1).broken() == ["order"]


def test_what_was_taken_unseen_before_it_came_does_not_count() -> None:
    written = Written().put("X", 0, 0.1).put("Y", 0, 0.1, queue="r").ask(GET, 0.2, 0.3, outcome=UNKNOWN)
    written.get("Y", 2, 0.5, 0.6, Get(("r",))).put("A", 1, 1.1).put("B", 2, 2.1)
    assert written.get("B", 3, 3, 3.1).broken() == ["order"]


@pytest.mark.parametrize(("priority", "broken"), [(9, ["order"]), (0, [])])
def test_a_job_taken_unseen_is_back_when_its_lease_is_over_but_at_the_end(priority: int, broken: list[str]) -> None:
    written = Written().put("A", 1, 1.1, priority=priority).put("B", 2, 2.1)
    written.ask(LEASE, 2.2, 2.3, outcome=UNKNOWN).put("Y", 3, 3.1, queue="r").get("Y", 2, 3.2, 3.3, Get(("r",)))
    assert written.get("B", 3, 7, 7.1).broken(lease_late_ms=500) == broken


def test_a_get_in_a_session_may_have_lost_a_job_before_it_got_another() -> None:
    written = Written().put("A", 1, 1.1).put("B", 2, 2.1)
    assert written.get("B", 2, 3, 3.2, LEASE, session=True).broken() == []


@pytest.mark.parametrize(("end", "broken"), [(2.8, ["order"]), (5, [])])
def test_a_get_in_a_session_may_have_lost_a_job_for_each_lease_that_had_time(end: float, broken: list[str]) -> None:
    written = Written().put("A", 1, 1.1).put("B", 1.2, 1.3).put("C", 1.4, 1.5)
    assert written.get("C", 3, 2, end, LEASE, session=True).broken() == broken


def test_a_get_without_answer_took_nothing_before_it_began() -> None:
    written = Written().put("A", 0, 0.1).put("Y", 0, 0.1, "r").get("Y", 2, 0.5, 0.6, Get(("r",))).put("B", 1, 1.1)
    assert written.ask(GET, 2.2, 2.3, outcome=UNKNOWN).get("B", 3, 3, 3.1).broken() == ["order"]


@pytest.mark.parametrize(("start", "broken"), [(2.0, ["order"]), (1.05, [])])
def test_empty_is_said_only_when_it_is(start: float, broken: list[str]) -> None:
    written = Written().put("A", 1, 1.1).ask(Get(("p", "q")), start, start + 0.1)
    assert written.broken() == broken


def test_empty_is_right_when_the_job_may_run() -> None:
    assert Written().put("A", 1, 1.1).get("A", 1, 2, 2.5).ask(GET, 2.4, 2.6).broken() == []
    assert Written().put("A", 1, 1.1).ask(GET, 2, 2.1).get("A", 1, 2.2, 2.5).broken() == ["order"]
    assert Written().put("A", 1, 1.1).ask(Get(()), 2, 2.1).broken() == ["order"]


# ---- finished


@pytest.mark.parametrize(("start", "broken"), [(2.5, ["finished"]), (3.05, [])])
def test_finq_is_not_said_while_there_is_another_job(start: float, broken: list[str]) -> None:
    written = Written().put("A", 1, 1.1).get("A", 1, 2, 2.1).put("B", start, start + 0.01).done(1, 3, 3.1)
    assert written.get("B", 2, 4, 4.1).done(2, 5, 5.1).broken() == broken


@pytest.mark.parametrize(("said", "broken"), [("", ["finished"]), ("FINQ", [])])
def test_finq_is_said_when_there_is_no_other(said: str, broken: list[str]) -> None:
    assert Written().put("A", 1, 1.1).get("A", 1, 2, 2.1).done(1, 3, 3.1, said).broken() == broken


def test_finq_need_not_be_said_when_there_may_be_another() -> None:
    written = Written().put("A", 1, 1.1).put("B", 1, None, outcome=UNKNOWN).get("A", 1, 2, 2.1).done(1, 3, 3.1, "")
    assert written.broken() == []
    # But the drain has not seen that one.
    assert written.broken(drained=True) == ["finished"]


@pytest.mark.parametrize(("first", "second", "broken"), [
    ("FINQ", "", []), ("", "FINQ", []), ("", "", ["finished"]), ("FINQ", "FINQ", ["finished"]),
])
def test_of_two_that_end_together_one_is_last(first: str, second: str, broken: list[str]) -> None:
    written = Written().put("A", 1, 1.1).put("B", 1, 1.1).get("A", 1, 2, 2.1).get("B", 2, 2, 2.1)
    assert written.done(1, 3, 3.2, first).done(2, 3.1, 3.3, second).broken() == broken


def test_two_may_both_be_last_when_the_second_came_after_the_first() -> None:
    written = Written().put("A", 1, 1.1).get("A", 1, 2, 2.1).done(1, 3, 5)
    assert written.put("B", 3.1, 3.2).get("B", 2, 3.3, 3.4).done(2, 4, 5).broken() == []


@pytest.mark.parametrize(("then_done", "broken"), [(True, []), (False, ["finished"])])
def test_a_job_may_have_been_dropped_before_finq(then_done: bool, broken: list[str]) -> None:
    written = Written().put("A", 1, 1.1).put("B", 1, 1.1).get("A", 1, 2, 2.1, Get(("q",), 1000, then_done))
    assert written.get("B", 2, 2.2, 2.3).done(2, 4, 4.1).broken() == broken


def test_a_job_that_was_put_back_before_it_was_dropped_is_unfinished() -> None:
    written = Written().put("A", 1, 1.1).put("B", 1, 1.1).get("A", 1, 2, 2.1, Get(("q",), 1000, then_done=True))
    assert written.later(1, 2.2, 2.3).get("B", 2, 2.2, 2.3).done(2, 4, 4.1).broken() == ["finished"]


def test_a_job_of_a_put_without_answer_may_have_been_there_and_dropped() -> None:
    written = Written().put("A", 1, 1.1).put("B", 1, None, outcome=UNKNOWN).get("A", 1, 2, 2.1).done(1, 3, 3.1, "")
    assert written.ask(Get(("q",), 1000, then_done=True), 2, 2.1, outcome=UNKNOWN).broken(drained=True) == []


@pytest.mark.parametrize(("at", "late", "broken"), [(2.6, 100, []), (8, 100, ["finished"]), (8, None, [])])
def test_a_job_that_never_came_back_was_done_before_its_lease_was_over(
    at: float, late: int | None, broken: list[str],
) -> None:
    written = Written().put("A", 1, 1.1).put("B", 1, 1.1).get("A", 1, 2, 2.1, LEASE).get("B", 2, 2, 2.1)
    written.done(1, 2.2, 2.3, outcome=UNKNOWN, finished=None).done(2, at, at + 0.1, "")
    assert written.broken(drained=True, lease_late_ms=late) == broken


@pytest.mark.parametrize(("said", "broken"), [("FINQ FINI", []), ("FINQ", ["finished"])])
def test_fini_is_said_when_the_item_is_finished(said: str, broken: list[str]) -> None:
    written = Written().put("A", 1, 1.1, item="i").get("A", 1, 2, 2.1)
    assert written.done(1, 3, 3.1, said).broken() == broken


def test_fini_counts_the_jobs_of_all_queues() -> None:
    written = Written().put("A", 1, 1.1, item="i").put("B", 1, 1.1, "r", item="i").get("A", 1, 2, 2.1)
    assert written.done(1, 3, 3.1, "FINQ FINI").broken() == ["finished"]
    written = Written().put("A", 1, 1.1, item="i").put("B", 1, 1.1, "r", item="j").get("A", 1, 2, 2.1)
    assert written.done(1, 3, 3.1, "FINQ FINI").broken() == []


def test_fini_is_not_said_of_a_job_without_item() -> None:
    assert Written().put("A", 1, 1.1).get("A", 1, 2, 2.1).done(1, 3, 3.1, "FINQ FINI").broken() == ["finished"]


@pytest.mark.parametrize(("end", "broken"), [(2.9, ["finished"]), (3.5, [])])
def test_getbe_is_told_404_only_when_all_is_done(end: float, broken: list[str]) -> None:
    written = Written().put("A", 1, 1.1).get("A", 1, 1.2, 1.3).ask(GETBE, 2, end).done(1, 3, 3.1)
    assert written.broken() == broken


def test_getbe_is_not_told_404_while_a_job_waits() -> None:
    assert Written().put("A", 1, 1.1).ask(GETBE, 2, 2.1).broken() == ["finished"]


# ---- wakeup


def _waiting(until: float, beats: float = 0.2, get: Get = GETB, **rest: Any) -> Written:
    """A waits in q from 2 s on, a client waits for it until then, and n1 serves others all the time."""
    written = Written().put("A", 1.9, 2).put("Y", 0, 0.1, "other")
    for number in range(round(10 / beats)):
        start = number * beats
        written.ask(Get(("none",)), start, start + 0.01, client="beat")
    written.get("Y", 1, until - 0.2, until - 0.1, Get(("other",)))
    return written.get("A", 2, 0.5, until, get, **rest)


@pytest.mark.parametrize(("until", "broken"), [(4.0, ["wakeup"]), (2.9, [])])
def test_a_job_and_who_waits_for_it_come_together(until: float, broken: list[str]) -> None:
    assert _waiting(until).broken() == broken


@pytest.mark.parametrize(
    ("different"),
    [{"beats": 0.5}, {"server": None}, {"server": "n2"}, {"session": True}, {"get": GET}],
    ids=["the server does not serve", "nobody knows where", "elsewhere", "in a session", "not blocked"],
)
def test_it_must_be_sure_that_he_waits_where_it_is_served(different: dict[str, Any]) -> None:
    assert _waiting(4.0, **different).broken() == []


def test_only_answers_to_short_commands_show_that_a_server_serves() -> None:
    written = Written().put("A", 1.9, 2).ask(GETB, 0.5, 8, outcome=REFUSED)
    for number in range(50):
        written.ask(Get(("none",)), number * 0.2 - 1, number * 0.2)
    assert written.broken() == []


def test_who_has_his_job_waits_no_more_though_his_answer_comes_late() -> None:
    written = _waiting(2.5).put("C", 2.6, 2.7).put("Z", 0, 0.1, "other").get("C", 4, 4.5, 4.6)
    late = written.history.records[-4]
    assert late.handed is not None
    written.get("Z", 3, 2.5, 2.55, Get(("other",)))
    written.history.records[-5] = replace(late, end_ns=ns(5))
    assert written.broken() == []


def test_of_those_who_wait_beside_him_only_some_may_be_taken_unseen() -> None:
    written = Written().put("A", 1.9, 2).put("B", 5.9, 6).ask(GETB, 0.5, 9, outcome=REFUSED)
    written.ask(GET, 1, 1.1, outcome=UNKNOWN)
    for number in range(40):
        written.ask(Get(("none",)), number * 0.2, number * 0.2 + 0.01)
        if number == 25:
            assert written.broken() == []       # nobody knows whether the server served when B came
    assert written.broken() == ["wakeup"]


def test_his_command_may_need_a_while_until_it_is_there() -> None:
    assert _waiting(4.0).broken(wake_slack_ms=3000) == []


def test_a_get_without_answer_may_have_the_job_he_waits_for() -> None:
    written = _waiting(4.0)
    assert written.ask(GET, 1, 1.1, outcome=UNKNOWN).broken() == ["wakeup"]     # no: the ids have no gap
    written = Written().put("A", 1.9, 2)
    for number in range(50):
        written.ask(Get(("none",)), number * 0.2, number * 0.2 + 0.01, client="beat")
    written.ask(GETB, 0.5, 6, outcome=REFUSED)
    assert written.broken() == ["wakeup"]
    assert written.ask(GET, 1, 1.1, outcome=UNKNOWN).broken() == []


@pytest.mark.parametrize(("stand", "broken"), [(True, ["wakeup"]), (False, [])])
def test_who_never_got_an_answer_waited_if_connections_stand(stand: bool, broken: list[str]) -> None:
    written = Written().put("A", 1.9, 2).ask(GETB, 0.5, None, outcome=UNKNOWN)
    for number in range(50):
        written.ask(Get(("none",)), number * 0.2, number * 0.2 + 0.01)
    written.put("B", 1, 1.1, "r").get("B", 1, 9.9, 10, Get(("r",)))
    assert written.broken(connections_stand=stand) == broken


def test_the_wait_for_an_item_is_for_its_jobs_only() -> None:
    for item, broken in (("i", ["wakeup"]), ("j", [])):
        written = Written().put("A", 1.9, 2, item=item).ask(Get(("q",), blocks=True, item="i"), 0, 8, outcome=REFUSED)
        for number in range(50):
            written.ask(Get(("none",)), number * 0.2, number * 0.2 + 0.01, outcome=OK)
        assert written.broken() == broken
