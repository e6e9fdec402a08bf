"""The handling of a job after an error: tries, back-off with jitter, which errors are retried."""

from __future__ import annotations

import pytest
from sockpq.worker.errors import BadJob, GiveUp, Retry
from sockpq.worker.outcome import after_error, after_loss, reason_of
from sockpq.worker.policy import Policy


def test_the_pause_doubles_up_to_the_longest_and_is_shortened_by_half_at_most() -> None:
    policy = Policy(backoff=(2, 600))
    whole = [policy.pause(attempt, lambda: 0.0) for attempt in (1, 2, 3, 8, 9, 10, 100, 10**6)]
    assert whole == [2, 4, 8, 256, 512, 600, 600, 600]
    assert policy.pause(3, lambda: 1.0) == 4
    drawn = {policy.pause(5) for _ in range(100)}
    assert len(drawn) > 90
    assert all(16 <= pause <= 32 for pause in drawn)
    assert Policy(backoff=(0, 0)).pause(1000) == 0


def test_after_the_last_try_a_job_is_dead_with_the_class_as_its_reason() -> None:
    policy = Policy(tries=3, backoff=(2, 600))
    outcomes = [after_error(ValueError("x"), attempt, policy) for attempt in (1, 2, 3, 4)]
    assert [one.kind for one in outcomes] == ["later", "later", "dead", "dead"]
    assert {one.reason for one in outcomes} == {"ValueError"}
    assert outcomes[0].failure
    assert outcomes[0].failure.message == "x"


def test_which_errors_are_tried_again() -> None:
    only = Policy(retry_on=(OSError,))
    assert after_error(ConnectionError(), 1, only).kind == "later"
    assert after_error(ValueError(), 1, only).kind == "dead"
    never = Policy(give_up_on=ValueError)
    assert after_error(UnicodeError(), 1, never).kind == "dead"
    assert after_error(OSError(), 1, never).kind == "later"
    assert after_error(GiveUp(), 1, Policy(retry_on=GiveUp)).kind == "dead"
    assert after_error(BadJob(), 1, Policy()).kind == "dead"
    assert after_error(SystemExit(3), 1, Policy()).kind == "later"


def test_retry_says_when_and_counts_as_a_try() -> None:
    assert after_error(Retry(delay=7), 1, Policy(give_up_on=ValueError)).delay == 7
    assert 1 <= after_error(Retry(), 1, Policy(backoff=(2, 600))).delay <= 2
    assert after_error(Retry(delay=7), 5, Policy(tries=5)).kind == "dead"
    with pytest.raises(ValueError, match="not a number of seconds"):
        Retry(delay=-1)


def test_a_lost_child_puts_its_job_back_at_once_but_not_for_ever() -> None:
    lost = after_loss("ChildDied", "signal 9", 1, Policy(tries=2))
    assert (lost.kind, lost.delay, lost.reason) == ("later", 0, "ChildDied")
    assert after_loss("ChildDied", "signal 9", 2, Policy(tries=2)).kind == "dead"


def test_a_reason_is_a_word() -> None:
    assert reason_of("ValueError") == "ValueError"
    assert reason_of("Grün" * 50) == ("Gr_n" * 50)[:64]


def test_an_error_that_cannot_be_shown_is_told_all_the_same() -> None:
    class BrokenError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    assert after_error(BrokenError(), 1, Policy()).failure
