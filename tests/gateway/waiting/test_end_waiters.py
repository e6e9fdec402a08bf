"""Clients that wait for the end of a job get it from the entry that ends the job, and cost nothing until then."""

from __future__ import annotations

import asyncio
import sys
import tracemalloc
from collections.abc import Callable
from types import FrameType
from typing import Any, cast

import pytest

from sockpqd.core import Await, AwaitSelector, JobAwaited, JobEnded, NotFound, Number, Operation, Reply, TouchSession
from sockpqd.gateway.limits import ENDS_TOLD_AT_ONCE
from sockpqd.gateway.protocol import responses
from sockpqd.gateway.waiting.end_waiters import EndWaiter, EndWaiters
from sockpqd.gateway.waiting.slots import NoReply

QUESTION = Await(Number(7))
DONE, GONE = JobEnded("q", 5), NotFound()


class Watched:
    """The watches of a machine: those asked for last, and those that are kept."""

    def __init__(self) -> None:
        self.known: int | None = None           # the job that the state has
        self.kept: set[int] = set()

    def watch(self, selector: AwaitSelector) -> tuple[int, str] | None:
        return None if self.known is None else (self.known, "q")

    def keep_watch(self, job: int) -> None:
        self.kept.add(job)

    def unwatch(self, job: int) -> None:
        self.kept.remove(job)

    def unwatch_all(self) -> None:
        self.kept.clear()


class Cluster:
    """Keeps what is proposed; a test answers it."""

    def __init__(self) -> None:
        self.serving = True
        self.machine = Watched()
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

    def refusal_to_await(self, queue: str, *, by_key: bool) -> bytes | None:
        return self.refusal

    def wake(self) -> None:
        self.woken += 1


class Line:
    """The line of waiting clients, whose log answers that a job has not ended, or how."""

    def __init__(self) -> None:
        self.cluster = Cluster()
        self.machine = self.cluster.machine
        self.answer: Reply = JobAwaited(7, "q")
        self.waiters = EndWaiters(cast("Any", self.cluster))

    def come(self, job: int | None = None, within_ms: int | None = None, **more: Any) -> EndWaiter:
        """Add a client. `job`: the one that the state has."""
        waiter = EndWaiter(cast("Any", Client()), self.waiters, question=QUESTION, by_key=False, **more)
        self.machine.known = job
        self.waiters.add(waiter, within_ms)
        return waiter

    def ended(self, job: int, end: JobEnded | NotFound = DONE) -> None:
        """Let an entry end the job, which the machine then watches no longer."""
        self.machine.kept.discard(job)
        self.waiters.ended({job: end})

    def apply(self) -> None:
        """Answer all that was asked."""
        proposed, self.cluster.proposed = self.cluster.proposed, []
        for _, pending in proposed:
            pending.applied(self.answer)

    def assert_nobody_is_left(self) -> None:
        assert not len(self.waiters)
        assert not self.waiters._of_jobs
        assert not self.waiters._requests
        assert not self.machine.kept


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
    line.ended(8)
    assert waiter.outcome is None
    line.ended(7)
    assert (waiter.outcome, woken(waiter)) == (DONE, 1)
    assert line.cluster.proposed == []
    line.assert_nobody_is_left()


def test_many_who_wait_for_one_job_hear_its_end_in_portions(line: Line) -> None:
    async def run() -> None:
        waiters = [line.come(7) for _ in range(2 * ENDS_TOLD_AT_ONCE + 5)]
        line.ended(7)
        assert sum(map(woken, waiters)) == ENDS_TOLD_AT_ONCE
        gone, again = waiters.pop(), line.come(7)       # one leaves meanwhile, and one waits for another end of it
        gone.leave()
        other = line.come(8)
        line.ended(8)
        await asyncio.sleep(0)
        assert sum(map(woken, waiters)) == 2 * ENDS_TOLD_AT_ONCE
        await asyncio.sleep(0)
        assert [(one.outcome, woken(one)) for one in (*waiters, other)] == [(DONE, 1)] * (len(waiters) + 1)
        assert (gone.outcome, again.outcome) == (NoReply.CANCELLED, None)
        assert line.machine.kept == {7}
        line.ended(7)
        await asyncio.sleep(0)
        assert again.outcome == DONE
        line.assert_nobody_is_left()
    asyncio.run(run())


def test_those_who_have_not_heard_an_end_are_refused_when_the_node_stops(line: Line) -> None:
    async def run() -> None:
        waiters = [line.come(7) for _ in range(ENDS_TOLD_AT_ONCE + 5)]
        line.ended(7)
        line.waiters.stop()
        await asyncio.sleep(0)
        assert [one.outcome for one in waiters[-5:]] == [NoReply.REFUSED] * 5
        assert all(woken(one) == 1 for one in waiters)
        line.assert_nobody_is_left()
    asyncio.run(run())


def test_a_job_that_the_state_has_costs_no_entry(line: Line) -> None:
    waiter = line.come(7)
    line.ended(7)
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
    line.ended(7)
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
        line.ended(7)
        line.assert_nobody_is_left()
    asyncio.run(test())


def test_the_time_of_a_waiter_is_over_while_the_log_is_asked() -> None:
    async def test() -> None:
        for answer, outcome in ((JobAwaited(7, "q"), responses.WAIT_TIMEOUT), (DONE, DONE)):
            reply: Reply = answer
            line = Line()
            line.answer = reply
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
        line.ended(7)
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
    late = EndWaiter(asking.client, line.waiters, question=QUESTION, by_key=False)
    line.machine.known = 7
    line.waiters.add(late, None)
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
    line.ended(7)
    assert (waiter.outcome, other.outcome) == (responses.FORBIDDEN, DONE)
    line.assert_nobody_is_left()


def test_its_session_does_not_end_meanwhile(line: Line) -> None:
    line.come(7).keep_session()
    assert line.cluster.proposed == []
    line.come(7, in_session=12).keep_session()
    assert [operation for operation, _ in line.cluster.proposed] == [TouchSession(12)]


def test_who_may_not_hear_of_the_job_that_the_log_found_is_told_that_there_is_none(line: Line) -> None:
    waiters = [line.come(), line.come()]
    cast("Client", waiters[0].client).refusal = responses.FORBIDDEN
    line.apply()
    assert [waiter.outcome for waiter in waiters] == [responses.JOB_NOT_FOUND, None]
    line.ended(7)
    assert waiters[1].outcome == DONE
    line.assert_nobody_is_left()


def test_a_job_is_watched_as_long_as_somebody_waits_for_it(line: Line) -> None:
    waiters = [line.come(7), line.come(7), line.come(8)]
    assert line.machine.kept == {7, 8}
    waiters[0].leave()
    assert line.machine.kept == {7, 8}
    waiters[1].end_of_input()
    assert line.machine.kept == {8}
    line.waiters.stop()
    line.assert_nobody_is_left()


def test_one_entry_may_end_many_jobs(line: Line) -> None:
    waiters = [line.come(7 + number) for number in range(3)]
    line.machine.kept.clear()
    line.waiters.ended({7: DONE, 8: GONE, 9: DONE, 10: DONE})
    assert [waiter.outcome for waiter in waiters] == [DONE, GONE, DONE]
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
        costs.append(calls(lambda: line.ended(7)))       # noqa: B023
        costs.append(calls(lambda: line.ended(8)))       # noqa: B023
    assert costs[:2] == costs[2:]


def test_ten_thousand_waiters_need_little_memory_and_leave_nothing() -> None:
    line = Line()
    clients = [Client() for _ in range(10_000)]
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number, client in enumerate(clients):
            waiter = EndWaiter(cast("Any", client), line.waiters, question=QUESTION, by_key=False)
            line.machine.known = 1 + number % 5_000
            line.waiters.add(waiter, None)
        del waiter
        held = tracemalloc.get_traced_memory()[0] - before
        assert held / 10_000 < 500
        line.waiters.stop()
        left = tracemalloc.get_traced_memory()[0] - before
        assert left < held / 4, "the tables of the dicts stay"
    finally:
        tracemalloc.stop()
    line.assert_nobody_is_left()
