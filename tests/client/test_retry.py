"""The repetition of failed attempts, and the error that the caller gets otherwise."""

from __future__ import annotations

import pytest
from sockpq import (
    Busy,
    DataTooLarge,
    ForeignCluster,
    JobNotFound,
    NoOutput,
    NotServing,
    OutcomeUnknown,
    ProtocolError,
    Unavailable,
)
from sockpq._engine.retry import ForeignLeader, Lost, NoLeader, Retry, pause_s
from sockpq._protocol.command import Repeat
from sockpq.model import Waiting

NOT_SENT = Lost("refused", sent=False)
SENT = Lost("closed", sent=True)


def retry(repeat: Repeat, retry_unknown: bool = False, deadline: float = 10.0) -> Retry:
    return Retry(repeat, retry_unknown=retry_unknown, deadline=deadline)


@pytest.mark.parametrize("failure", [NOT_SENT, NotServing("500 Offline Mode"), Busy("503 Busy")])
@pytest.mark.parametrize("repeat", list(Repeat))
def test_what_was_surely_not_executed_is_always_repeated(failure: Exception, repeat: Repeat) -> None:
    assert retry(repeat).pause(failure, 0.0) > 0


@pytest.mark.parametrize("failure", [SENT, ProtocolError("rubbish"), OutcomeUnknown("504 Outcome Unknown")])
def test_an_unknown_outcome_is_repeated_only_where_that_is_harmless_or_wanted(failure: Exception) -> None:
    assert retry(Repeat.FREELY).pause(failure, 0.0) > 0
    assert retry(Repeat.HARMLESS).pause(failure, 0.0) > 0
    assert retry(Repeat.IF_ASKED, retry_unknown=True).pause(failure, 0.0) > 0
    with pytest.raises(OutcomeUnknown):
        retry(Repeat.IF_ASKED).pause(failure, 0.0)


def test_a_lost_output_is_never_repeated_because_its_job_is_queued() -> None:
    for failure in (Lost("closed", sent=True, waiting=Waiting("i1")), NoOutput("500", "i1")):
        with pytest.raises(NoOutput) as lost:
            retry(Repeat.IF_ASKED, retry_unknown=True).pause(failure, 0.0)
        assert lost.value.item == "i1"


def test_a_refusal_for_good_is_raised_as_it_is() -> None:
    refusal = DataTooLarge("413 Data Too Large")
    with pytest.raises(DataTooLarge) as raised:
        retry(Repeat.FREELY).pause(refusal, 0.0)
    assert raised.value is refusal


def test_not_found_after_an_unanswered_try_is_unknown() -> None:
    first = retry(Repeat.HARMLESS)
    with pytest.raises(JobNotFound):
        first.pause(JobNotFound("404"), 0.0)
    second = retry(Repeat.HARMLESS)
    second.pause(SENT, 0.0)
    with pytest.raises(OutcomeUnknown):
        second.pause(JobNotFound("404"), 0.0)


def test_a_last_attempt_without_an_answer_does_not_hide_another_cluster() -> None:
    first = retry(Repeat.FREELY, deadline=3.0)
    first.pause(ForeignLeader("n9 belongs to another cluster"), 0.0)
    with pytest.raises(ForeignCluster, match="n9 belongs"):
        first.pause(NoLeader("n9: no answer in time"), 3.0)


def test_another_cluster_is_forgotten_when_its_own_answers() -> None:
    first = retry(Repeat.FREELY, deadline=3.0)
    first.pause(ForeignLeader("n9 belongs to another cluster"), 0.0)
    first.pause(Busy("503 Busy"), 1.0)
    with pytest.raises(Unavailable):
        first.pause(NoLeader("n1 knows no leader"), 3.0)


def test_the_deadline_tells_not_executed_from_unknown() -> None:
    with pytest.raises(Unavailable):
        retry(Repeat.HARMLESS, deadline=1.0).pause(NOT_SENT, 1.0)
    with pytest.raises(Busy):
        retry(Repeat.HARMLESS, deadline=1.0).pause(Busy("503 Busy"), 1.0)
    with pytest.raises(Unavailable):
        retry(Repeat.FREELY, deadline=1.0).pause(SENT, 1.0)
    doubtful = retry(Repeat.HARMLESS, deadline=1.0)
    doubtful.pause(SENT, 0.0)
    with pytest.raises(OutcomeUnknown):
        doubtful.pause(NOT_SENT, 1.0)


def test_the_first_word_of_an_elected_leader_makes_impatient_again() -> None:
    call = retry(Repeat.FREELY, deadline=1000.0)
    for _ in range(20):
        assert call.pause(NoLeader("nobody knows one"), 0.0) > 0
    assert call.pause(NotServing("500 Offline Mode"), 0.0) <= 0.01
    for _ in range(20):
        last = call.pause(NotServing("500 Offline Mode"), 0.0)
    assert last > 0.1


def test_pauses_grow_are_jittered_and_bounded() -> None:
    assert all(0.005 <= pause_s(1) <= 0.01 for _ in range(50))
    assert all(0.5 <= pause_s(attempts) <= 1.0 for attempts in (15, 100, 10_000))
    assert len({pause_s(5) for _ in range(20)}) > 1


def test_a_server_that_always_closes_the_connection_may_expect_tls() -> None:
    for orderly, hint in ((True, " (does it expect TLS, or is it not a client port?)"), (False, "")):
        closed = Lost("a:1: the server closed the connection", sent=False, orderly=orderly)
        with pytest.raises(Unavailable) as refused:
            retry(Repeat.FREELY).pause(closed, 11.0)
        assert str(refused.value).endswith(f"last: a:1: the server closed the connection{hint}")
