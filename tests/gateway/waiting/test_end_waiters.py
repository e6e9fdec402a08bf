"""Who waits for the end of a job gets it from the entry that ends the job, and costs nothing until then."""

from __future__ import annotations

import asyncio
import sys
import tracemalloc
from collections.abc import Callable
from types import FrameType
from typing import Any, cast

import pytest

from sockpqd.core import Accepted, Get, Operation, TouchSession
from sockpqd.gateway.protocol import responses
from sockpqd.gateway.rights import Rights
from sockpqd.gateway.waiting.end_waiters import EndWaiter, EndWaiters
from sockpqd.gateway.waiting.slots import NoReply, Outcome

QUESTION = Get(("q",))          # whatever: the line does not look into it
DONE, GONE = b"200 OK DONE 0\r\n", b"404 Job Not Found\r\n"


def anybody(rights: Rights) -> bytes | None:
    return None


class Cluster:
    """Keeps what is proposed; a test answers it."""

    def __init__(self) -> None:
        self.serving = True
        self.proposed: list[tuple[Operation, Any]] = []

    def propose(self, operation: Operation, pending: Any) -> None:
        self.proposed.append((operation, pending))

    def propose_for(self, client: object, operation: Operation, pending: Any) -> None:
        self.proposed.append((operation, pending))


class Client:
    """A connection, whose user may lose the rights, and how often it was woken."""

    def __init__(self) -> None:
        self.ended = False
        self.woken = 0
        self.refusal: bytes | None = None
        self.guard = self

    def refusal_meanwhile(self, rule: Callable[[Rights], bytes | None]) -> bytes | None:
        return self.refusal

    def wake(self) -> None:
        self.woken += 1


class Line:
    """The line, whose log answers with a number, that of an unfinished job, or an answer."""

    def __init__(self) -> None:
        self.cluster = Cluster()
        self.answer: int | Outcome = 7
        self.waiters = EndWaiters(cast("Any", self.cluster), lambda reply: self.answer)

    def come(self, job: int | None = None, within_ms: int | None = None, **more: Any) -> EndWaiter:
        waiter = EndWaiter(cast("Any", Client()), self.waiters, question=QUESTION, right=anybody, **more)
        self.waiters.add(waiter, within_ms, job)
        return waiter

    def apply(self) -> None:
        """The log answers all that was asked."""
        proposed, self.cluster.proposed = self.cluster.proposed, []
        for _, pending in proposed:
            pending.applied(Accepted())

    def assert_nobody_is_left(self) -> None:
        assert not len(self.waiters)
        assert not self.waiters._of_jobs
        assert not self.waiters._requests


def woken(waiter: EndWaiter) -> int:
    return cast("Client", waiter.client).woken


@pytest.fixture(name="line")
def fixture_line() -> Line:
    return Line()


def test_the_log_is_asked_once_and_the_end_of_the_job_is_the_answer(line: Line) -> None:
    waiter = line.come()
    assert [operation for operation, _ in line.cluster.proposed] == [QUESTION]
    line.apply()
    assert (waiter.outcome, len(line.waiters), line.waiters.waiting(7)) == (None, 1, 1)
    assert waiter.question is None, "it may be long"
    line.waiters.ended(8, DONE)
    assert waiter.outcome is None
    line.waiters.ended(7, DONE)
    assert (waiter.outcome, woken(waiter)) == (DONE, 1)
    assert line.cluster.proposed == []
    line.assert_nobody_is_left()


def test_a_job_that_the_state_has_costs_no_entry(line: Line) -> None:
    waiter = line.come(7)
    line.waiters.ended(7, DONE)
    assert waiter.outcome == DONE
    assert line.cluster.proposed == []


def test_what_has_ended_already_is_answered_by_the_log(line: Line) -> None:
    line.answer = GONE
    waiter = line.come()
    line.apply()
    assert (waiter.outcome, woken(waiter)) == (GONE, 1)
    line.assert_nobody_is_left()


def test_all_who_wait_for_a_job_get_its_end_in_the_order_of_arrival(line: Line) -> None:
    order: list[int] = []
    waiters = [line.come(7 + number % 2) for number in range(6)]
    for number, waiter in enumerate(waiters):
        waiter.client.wake = lambda number=number: order.append(number)     # type: ignore[method-assign, misc]
    line.waiters.ended(7, DONE)
    assert order == [0, 2, 4]
    assert [waiter.outcome for waiter in waiters] == [DONE, None] * 3
    assert line.waiters.waiting(8) == 3


def test_the_time_of_a_waiter_is_over() -> None:
    async def test() -> None:
        line = Line()
        waiter, other = line.come(7, within_ms=1), line.come(7)
        while waiter.outcome is None:
            await asyncio.sleep(0.001)
        assert (waiter.outcome, other.outcome, woken(waiter)) == (responses.WAIT_TIMEOUT, None, 1)
        line.waiters.ended(7, DONE)
        line.assert_nobody_is_left()
    asyncio.run(test())


def test_the_time_of_a_waiter_is_over_while_the_log_is_asked() -> None:
    async def test() -> None:
        for answer, outcome in ((7, responses.WAIT_TIMEOUT), (DONE, DONE)):
            line = Line()
            line.answer = answer
            waiter = line.come(within_ms=1)
            while not waiter.timed_out:
                await asyncio.sleep(0.001)
            assert waiter.outcome is None, "the log may know more"
            line.apply()
            assert waiter.outcome == outcome
            line.assert_nobody_is_left()
    asyncio.run(test())


def test_no_time_at_all_asks_the_log_even_if_the_state_has_the_job(line: Line) -> None:
    waiter = line.come(7, within_ms=0)
    assert waiter.outcome is None
    line.apply()
    assert waiter.outcome == responses.WAIT_TIMEOUT
    line.assert_nobody_is_left()


def test_a_timer_ends_with_its_waiter() -> None:
    async def test() -> None:
        line = Line()
        waiter = line.come(7, within_ms=60_000)
        timer = waiter.timer
        line.waiters.ended(7, DONE)
        assert timer is not None
        assert timer.cancelled()
    asyncio.run(test())


def test_a_client_that_is_gone_is_forgotten(line: Line) -> None:
    standing, asking = line.come(7), line.come()
    for waiter in (standing, asking):
        waiter.leave()
        assert waiter.outcome is NoReply.CANCELLED
    line.apply()
    assert asking.outcome is NoReply.CANCELLED
    line.assert_nobody_is_left()


def test_a_client_that_has_sent_its_last_byte_waits_no_longer(line: Line) -> None:
    standing, asking = line.come(7), line.come()
    standing.end_of_input()
    assert (standing.outcome, woken(standing)) == (NoReply.CANCELLED, 1)
    asking.client.ended = True
    line.apply()
    assert asking.outcome is NoReply.CANCELLED
    late = EndWaiter(asking.client, line.waiters, question=QUESTION, right=anybody)
    line.waiters.add(late, None, 7)
    assert late.outcome is NoReply.CANCELLED
    line.assert_nobody_is_left()


def test_another_leader_must_be_asked(line: Line) -> None:
    standing, refused, unknown = line.come(7), line.come(), line.come()
    line.cluster.proposed[0][1].refused()
    line.cluster.proposed[1][1].unknown()
    line.cluster.serving = False
    line.waiters.stop()
    assert [waiter.outcome for waiter in (standing, refused, unknown)] == [NoReply.REFUSED] * 3
    assert line.come(7).outcome is NoReply.REFUSED
    line.assert_nobody_is_left()


def test_an_overloaded_node_asks_once_more_if_there_is_time() -> None:
    async def test() -> None:
        line = Line()
        patient, hurried = line.come(), line.come(within_ms=0)
        for _, pending in line.cluster.proposed[:]:
            pending.overdue()
        assert [pending for _, pending in line.cluster.proposed] == [patient, hurried, patient]
        assert (patient.outcome, hurried.outcome) == (None, responses.BUSY)
    asyncio.run(test())


def test_who_has_lost_the_right_is_refused_at_the_end(line: Line) -> None:
    waiter, other = line.come(7), line.come(7)
    cast("Client", waiter.client).refusal = responses.FORBIDDEN
    line.waiters.ended(7, DONE)
    assert (waiter.outcome, other.outcome) == (responses.FORBIDDEN, DONE)
    line.assert_nobody_is_left()


def test_its_session_does_not_end_meanwhile(line: Line) -> None:
    line.come(7).keep_session()
    assert line.cluster.proposed == []
    line.come(7, in_session=12).keep_session()
    assert [operation for operation, _ in line.cluster.proposed] == [TouchSession(12)]


def test_nothing_is_known_of_a_state_that_was_replaced(line: Line) -> None:
    waiters = [line.come(7 + number) for number in range(3)]
    line.waiters.all_ended(GONE)
    assert [waiter.outcome for waiter in waiters] == [GONE] * 3
    line.assert_nobody_is_left()


def calls(work: Callable[[], object]) -> int:
    """Return how many Python functions are called."""
    counted = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal counted
        counted += event == "call"
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return counted


def test_the_end_of_a_job_costs_no_more_among_ten_thousand_waiters() -> None:
    costs = []
    for others in (10, 10_000):
        line = Line()
        for number in range(others):
            line.come(100 + number)
        line.come(7)
        costs.append(calls(lambda: line.waiters.ended(7, DONE)))       # noqa: B023
        costs.append(calls(lambda: line.waiters.ended(8, DONE)))       # noqa: B023
    assert costs[:2] == costs[2:]


def test_ten_thousand_waiters_need_little_memory_and_leave_nothing() -> None:
    line = Line()
    clients = [Client() for _ in range(10_000)]
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number, client in enumerate(clients):
            waiter = EndWaiter(cast("Any", client), line.waiters, question=QUESTION, right=anybody)
            line.waiters.add(waiter, None, 1 + number % 5_000)
        del waiter
        held = tracemalloc.get_traced_memory()[0] - before
        assert held / 10_000 < 500
        line.waiters.stop()
        left = tracemalloc.get_traced_memory()[0] - before
        assert left < held / 4, "the tables of the dicts stay"
    finally:
        tracemalloc.stop()
    line.assert_nobody_is_left()
