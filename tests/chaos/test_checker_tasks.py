"""The checker's rules about extended commands: bad histories, next to good ones that are nearly the same."""

from __future__ import annotations

from typing import Any

import pytest

from tests.chaos.checker import Running
from tests.chaos.histories.handwritten import REFUSED, UNKNOWN
from tests.chaos.histories.handwritten_extended import WrittenExtended

DRAINED: dict[str, Any] = {"drained": True}

# ---- early


@pytest.mark.parametrize(("taken", "broken"), [(2.5, ["early"]), (3.0, [])])
def test_a_delayed_job_is_not_handed_out_early(taken: float, broken: list[str]) -> None:
    written = WrittenExtended().wish("A", 1, 1.1, delay_ms=2000).took(taken, taken + 0.1, A=1)
    assert written.broken() == broken


def test_only_when_the_clocks_are_right() -> None:
    assert WrittenExtended().wish("A", 1, 1.1, delay_ms=2000).took(1.5, 1.6, A=1).broken(lease_slack_ms=None) == []
    assert WrittenExtended().wish("A", 1, 1.1, delay_ms=2000).took(2.7, 2.8, A=1).broken(lease_slack_ms=300) == []


def test_the_ids_tell_that_it_was_early() -> None:
    written = WrittenExtended().wish("A", 1, 1.1, delay_ms=2000).wish("B", 1, 1.1)
    assert written.took(1.5, 4, A=1).took(1.6, 1.7, B=2).broken() == ["early"]


@pytest.mark.parametrize(("taken", "broken"), [(2.5, ["early"]), (3.3, [])])
def test_nor_when_it_was_put_off(taken: float, broken: list[str]) -> None:
    written = WrittenExtended().wish("A", 1, 1.1).took(1.2, 1.3, A=1).off(1, 2000, 1.4, 1.5)
    assert written.took(taken, taken + 0.1, A=2, attempt=2).broken() == broken


def test_nobody_knows_whether_it_was_put_off_without_an_answer() -> None:
    written = WrittenExtended().wish("A", 1, 1.1).took(1.2, 1.3, A=1).off(1, 2000, 1.4, 1.5, outcome=UNKNOWN)
    assert written.took(2.5, 2.6, A=2, attempt=2).broken() == []


def test_a_dead_job_does_not_wait() -> None:
    written = WrittenExtended().wish("A", 1, 1.1).took(1.2, 1.3, A=1).off(1, 2000, 1.4, 1.5)
    assert written.took(1.6, 1.7, A=2, queue="q_dead", attempt=2).broken(tries={"q": 1}) == []


@pytest.mark.parametrize(("taken", "broken"), [(2.5, ["early"]), (3.4, [])])
def test_nor_when_it_was_moved(taken: float, broken: list[str]) -> None:
    written = WrittenExtended().wish("A", 1, 1.1).took(1.2, 1.3, A=1).move(1, "r", 1.4, 1.5, delay_ms=2000)
    assert written.took(taken, taken + 0.1, A=2, queue="r").broken() == broken


# ---- groups


@pytest.mark.parametrize(("group", "broken"), [("g", []), ("h", ["invented"]), (None, ["invented"])])
def test_the_group_stays_with_the_job(group: str | None, broken: list[str]) -> None:
    written = WrittenExtended().wish("A", 1, 1.1, group="g").took(1.2, 1.3, A=1, group="g").off(1, 10, 1.4, 1.5)
    assert written.took(2, 2.1, A=2, attempt=2, group=group).broken() == broken
    assert WrittenExtended().wish("A", 1, 1.1).took(1.2, 1.3, A=1, group="g").broken() == ["invented"]


# ---- numbers


def test_a_job_keeps_its_number() -> None:
    written = WrittenExtended().wishes("AB", 1, 1.1).took(2, 2.1, number=7, A=1)
    assert written.off(1, 10, 2.2, 2.3).took(3, 3.1, number=7, A=2, attempt=2).broken() == []
    assert written.took(3, 3.1, number=7, B=3).broken() == ["number"]
    written = WrittenExtended().wish("A", 1, 1.1).took(2, 2.1, number=7, A=1).off(1, 10, 2.2, 2.3)
    assert written.took(3, 3.1, number=8, A=2, attempt=2).broken() == ["number"]


@pytest.mark.parametrize(("asked", "broken"), [(7, []), (8, ["number"])])
def test_who_asks_for_a_number_is_given_its_job(asked: int, broken: list[str]) -> None:
    written = WrittenExtended().wish("A", 1, 1.1).by_number(asked, 2, 2.1, number=7, A=1)
    assert written.broken() == broken


def test_an_unfinished_job_is_found_by_its_number() -> None:
    def written() -> WrittenExtended:
        return WrittenExtended().wish("A", 1, 1.1).took(2, 2.1, number=7, A=1)

    assert written().by_number(7, 3, 3.1, missing=True).broken() == ["number"]
    assert written().by_number(7, 3, 3.1).broken() == []                                # it runs
    assert written().by_number(8, 3, 3.1, missing=True).broken() == []                  # nobody has seen that one
    assert written().by_number(7, 1.5, 1.9, missing=True).broken() == []                # it may not have had it yet
    assert written().done(1, 2.2, 2.3).by_number(7, 3, 3.1, missing=True).broken() == []
    assert written().done(1, 2.2, 2.3, outcome=UNKNOWN).by_number(7, 3, 3.1, missing=True).broken() == []
    assert written().off(1, 10, 2.2, 2.3).by_number(7, 3, 3.1, missing=True).broken() == ["number"]


# ---- rates


@pytest.mark.parametrize(("last", "broken"), [(2.95, ["rate"]), (3.05, [])])
def test_a_rate_holds_in_any_window(last: float, broken: list[str]) -> None:
    written = WrittenExtended().wishes("ABC", 1, 1.1).took(2, 2.1, A=1, B=2).took(last - 0.05, last, C=3)
    assert written.broken(rates={"q": (2, 1.0)}) == broken
    assert written.broken(rates={"r": (2, 1.0)}) == []


# ---- lost


def test_a_job_that_vanished_is_lost() -> None:
    assert WrittenExtended().wish("A", 1, 1.1).broken(**DRAINED) == ["lost"]
    assert WrittenExtended().wishes("AB", 1, 1.1).took(2, 2.1, A=1).done(1, 2.2, 2.3).broken(**DRAINED) == ["lost"]
    assert WrittenExtended().wish("A", 1, 1.1).broken() == []


@pytest.mark.parametrize("rest", [{"outcome": UNKNOWN}, {"outcome": REFUSED}])
def test_only_an_acknowledged_job_can_be_lost(rest: dict[str, Any]) -> None:
    assert WrittenExtended().wish("A", 1, 1.1, **rest).broken(**DRAINED) == []


def test_it_is_not_lost_when_it_was_done_or_runs() -> None:
    written = WrittenExtended().wishes("AB", 1, 1.1).took(2, 2.1, A=1, B=2)
    assert written.broken(**DRAINED, running=(Running(1, "A"), Running(2, "B"))) == []
    assert written.ended(2.2, 2.3, i1=True, i2=True).broken(**DRAINED) == []


@pytest.mark.parametrize("word", ["off", "move", "touch", "backs", "touches"])
def test_no_other_word_ends_it(word: str) -> None:
    written = WrittenExtended().wish("A", 1, 1.1).took(2, 2.1, A=1)
    if word == "backs":
        written.backs(2.2, 2.3, i1=True)
    else:
        getattr(written, word)(1, "r" if word == "move" else 2000, 2.2, 2.3)
    assert written.broken(**DRAINED) == ["lost"]


def test_a_done_without_answer_explains_it_unless_it_ran_again() -> None:
    written = WrittenExtended().wish("A", 1, 1.1).took(2, 2.1, A=1).done(1, 2.2, 2.3, outcome=UNKNOWN)
    assert written.broken(**DRAINED) == []
    assert written.took(9, 9.1, A=2, attempt=2).broken(**DRAINED) == ["lost"]


# ---- invented, refused, attempts


def test_a_job_that_nobody_put_is_invented() -> None:
    assert WrittenExtended().took(2, 2.1, A=1).broken() == ["invented"]


@pytest.mark.parametrize("rest", [{"outcome": REFUSED}, {"good": False, "key": "k"}])
def test_a_refused_job_does_not_appear(rest: dict[str, Any]) -> None:
    written = WrittenExtended().wish("B", 0.5, 0.6, key="k").wish("A", 1, 1.1, **rest)
    assert written.took(2, 2.1, A=1).broken() == ["refused"]


def test_a_job_comes_from_where_it_is() -> None:
    written = WrittenExtended().wish("A", 1, 1.1).took(2, 2.1, A=1)
    assert written.move(1, "r", 2.2, 2.3, outcome=UNKNOWN).took(4, 4.1, A=2, attempt=2).broken() == []
    written = WrittenExtended().wish("A", 1, 1.1).took(2, 2.1, A=1).move(1, "r", 2.2, 2.3)
    assert written.took(4, 4.1, A=2).broken() == ["invented"]
    written = WrittenExtended().wish("A", 1, 1.1).took(2, 2.1, A=1).move(1, "r", 2.2, 2.3)
    assert written.took(4, 4.1, A=2, queue="r").broken() == []


@pytest.mark.parametrize(("queue", "attempt", "broken"), [
    ("q", 2, []), ("q", 3, ["attempts"]), ("q_dead", 3, []), ("q_dead", 2, ["attempts"]),
])
def test_a_job_is_dead_after_its_tries(queue: str, attempt: int, broken: list[str]) -> None:
    written = WrittenExtended().wish("A", 1, 1.1).took(2, 2.1, A=1, queue=queue, attempt=attempt)
    assert written.broken(tries={"q": 2}) == broken


# ---- lease, done


@pytest.mark.parametrize(("again", "broken"), [(2.5, ["lease"]), (3.1, [])])
def test_a_job_is_of_one_at_a_time(again: float, broken: list[str]) -> None:
    written = WrittenExtended().wish("A", 1, 1.1).took(2, 2.1, A=1)
    assert written.took(again, again + 0.1, A=2, attempt=2).broken() == broken


@pytest.mark.parametrize(("again", "broken"), [(4.0, ["lease"]), (4.9, [])])
def test_a_touch_makes_the_lease_longer(again: float, broken: list[str]) -> None:
    written = WrittenExtended().wish("A", 1, 1.1).took(2, 2.1, A=1).touch(1, 2000, 2.8, 2.9)
    assert written.took(again, again + 0.1, A=2, attempt=2).broken() == broken


@pytest.mark.parametrize(("again", "broken"), [(4.0, ["lease"]), (4.9, [])])
def test_a_touch_of_several_does_the_same(again: float, broken: list[str]) -> None:
    written = WrittenExtended().wish("A", 1, 1.1).took(2, 2.1, A=1).touches(1, 2000, 2.8, 2.9)
    assert written.took(again, again + 0.1, A=2, attempt=2).broken() == broken


def test_several_that_are_put_back_are_free() -> None:
    written = WrittenExtended().wishes("AB", 1, 1.1).took(2, 2.1, A=1, B=2)
    assert written.backs(2.2, 2.3, i1=True, i2=True).took(2.4, 2.5, A=3, B=4, attempt=2).broken() == []
    written = WrittenExtended().wishes("AB", 1, 1.1).took(2, 2.1, A=1, B=2)
    assert written.backs(2.2, 2.3, i1=True, i2=False).broken() == ["done"]


def test_whoever_holds_a_job_is_not_told_that_it_does_not_run() -> None:
    written = WrittenExtended().wish("A", 1, 1.1).took(2, 2.1, A=1)
    assert written.off(1, 100, 2.3, 2.4, good=False).broken() == ["done"]
    written = WrittenExtended().wish("A", 1, 1.1).took(2, 2.1, A=1).touch(1, 100, 3.3, 3.4, good=False)
    assert written.broken() == []
    written = WrittenExtended().wish("A", 1, 1.1, session=True).took(2, 2.1, A=1).touch(1, 100, 2.3, 2.4, good=False)
    assert written.broken() == ["dedupe"]


def test_done_is_final_and_happens_once() -> None:
    written = WrittenExtended().wishes("AB", 1, 1.1).took(2, 2.1, A=1, B=2).ended(2.2, 2.3, i1=True, i2=True)
    assert written.took(9, 9.1, A=3, attempt=2).broken() == ["done"]
    written = WrittenExtended().wish("A", 1, 1.1).took(2, 2.1, A=1).done(1, 2.2, 2.3)
    assert written.broken(running=(Running(1, "A"),)) == ["done"]
    assert written.done(1, 2.4, 2.5).broken() == ["done"]


def test_the_ids_are_of_one_row_with_those_of_others() -> None:
    written = WrittenExtended().wish("A", 1, 1.1)
    written.put("B", 1, 1.1, queue="r").get("B", 5, 2, 2.1)
    assert written.took(3, 3.1, A=4).broken() == ["ids"]


# ---- transactions


def _cascade(**rest: Any) -> WrittenExtended:
    return WrittenExtended().wish("A", 1, 1.1).took(2, 2.1, A=1).cascade(1, "BC", 2.2, 2.3, **rest)


def _all_done(written: WrittenExtended) -> WrittenExtended:
    written.took(3, 3.1, B=2, C=3).ended(3.2, 3.3, i2=True, i3=True)
    return written


def test_a_committed_transaction_is_there_entirely() -> None:
    assert _all_done(_cascade()).broken(**DRAINED) == []
    written = _cascade().took(3, 3.1, B=2)
    assert written.done(2, 3.2, 3.3).broken(**DRAINED) == ["transaction"]
    assert _all_done(_cascade()).took(9, 9.1, A=4, attempt=2).broken(**DRAINED) == ["transaction"]


def test_an_aborted_one_is_not_there_at_all() -> None:
    written = _cascade(outcome=REFUSED)
    assert written.done(1, 2.4, 2.5).broken(**DRAINED) == []
    assert written.took(3, 3.1, B=2).broken() == ["transaction"]
    written = WrittenExtended().cascade(9, "BC", 2.2, 2.3, good=False)
    assert written.broken(**DRAINED) == []
    assert written.took(3, 3.1, C=2).broken() == ["transaction"]


def test_one_of_unknown_outcome_is_there_entirely_or_not_at_all() -> None:
    assert _all_done(_cascade(outcome=UNKNOWN)).broken(**DRAINED) == []
    half = _cascade(outcome=UNKNOWN).took(3, 3.1, B=2)
    assert half.done(2, 3.2, 3.3).broken(**DRAINED) == ["transaction"]
    assert _all_done(_cascade(outcome=UNKNOWN)).took(9, 9.1, A=4, attempt=2).broken(**DRAINED) == ["transaction"]
    only_done = _cascade(outcome=UNKNOWN)
    assert only_done.broken(**DRAINED) == ["lost"]
    assert only_done.broken() == []
    nothing = _cascade(outcome=UNKNOWN).took(9, 9.1, A=4, attempt=2)
    assert nothing.done(4, 9.2, 9.3).broken(**DRAINED) == []


# ---- copies


def _copies(**rest: Any) -> WrittenExtended:
    return WrittenExtended().copy("A", "pq", 1, 1.1, **rest)


def _one_done(**rest: Any) -> WrittenExtended:
    return _copies(**rest).took(2, 2.1, A_p=1).done(1, 2.2, 2.3)


def test_a_job_put_into_two_queues_is_in_both_once() -> None:
    both = _one_done().took(3, 3.1, A_q=2).done(2, 3.2, 3.3)
    assert both.broken(**DRAINED) == []
    assert _one_done().broken(**DRAINED) == ["copies"]
    assert both.took(4, 4.1, A_q=3, attempt=2).broken(**DRAINED) == ["done"]
    assert _copies().took(2, 2.1, queue="r", A_p=1).broken() == ["invented"]


def test_one_of_unknown_outcome_is_in_both_or_in_none() -> None:
    assert _copies(outcome=UNKNOWN).broken(**DRAINED) == []
    assert _one_done(outcome=UNKNOWN).broken(**DRAINED) == ["copies"]
    assert _one_done(outcome=REFUSED).broken() == ["refused"]


# ---- keys


def _two(**rest: Any) -> WrittenExtended:
    return WrittenExtended().wish("A", 1, 1.1, key="k").wish("B", 2, 2.1, key="k", **rest)


def test_two_unfinished_jobs_do_not_have_one_key() -> None:
    assert _two().broken() == ["key"]
    assert _two(queue="r").broken() == []
    assert _two(outcome=UNKNOWN).broken() == []
    assert _two(good=False).broken() == []


def test_the_key_of_a_finished_job_is_free() -> None:
    written = WrittenExtended().wish("A", 1, 1.1, key="k").took(1.2, 1.3, A=1)
    assert written.done(1, 1.9, 2.05, outcome=UNKNOWN).wish("B", 2, 2.1, key="k").broken() == []
    written = WrittenExtended().wish("A", 1, 1.1, key="k").took(1.2, 1.3, A=1).done(1, 2.2, 2.3)
    assert written.wish("B", 2, 2.1, key="k").broken() == ["key"]


def test_a_key_that_nobody_has_is_not_refused() -> None:
    assert WrittenExtended().wish("A", 1, 1.1, key="k", good=False).broken() == ["key"]
    written = WrittenExtended().wish("A", 1, 1.1, key="k", good=False)
    assert written.wish("B", 1.05, 1.2, key="k").broken() == []
    assert WrittenExtended().wish("A", 1, 1.1, key="k", good=False).wish("B", 2, 3, key="k").broken() == ["key"]
