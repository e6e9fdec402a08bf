"""Queues with a rate: hand-outs take grants, and the ends of hand-outs are results (spec/pulse 5.1)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

import pytest
from msgspec.structs import replace

from sockpqd.core import (
    Aborted,
    Accepted,
    Allowance,
    BadSetting,
    Batch,
    ConfigurePulse,
    ConfigureQueue,
    Delete,
    DeletePulse,
    DeleteQueue,
    Done,
    Empty,
    End,
    Feedback,
    Get,
    GetWith,
    Handed,
    HandedMany,
    How,
    InTurn,
    Later,
    Move,
    OpenSession,
    Operation,
    Policy,
    PulseChange,
    PulseInUse,
    PulseNotFound,
    Put,
    QueueChange,
    Reply,
    Request,
    Selector,
    SetPulse,
    Tick,
    TooManyPulses,
    Touch,
)
from tests.core.helpers.logs import lead
from tests.core.pulse.test_pulses import Log


def configured(queue: str, **more: object) -> ConfigureQueue:
    return ConfigureQueue(queue, QueueChange(**more))       # type: ignore[arg-type]


def allowed(taking: Get | GetWith, pulse: str = "queue:q", count: int = 1) -> GetWith:
    free = (Allowance(pulse, count),)
    return GetWith(taking, free=free) if isinstance(taking, Get) else replace(taking, free=free)


@pytest.fixture
def log() -> Log:
    """Return a log with a queue q of two jobs a second, and four jobs in it."""
    log = Log()
    assert log(configured("q", rate=2, per_ms=1000)) == Accepted()
    log(*[Put("q", 0, b"%d" % number) for number in range(4)])
    return log


def taken(log: Log, pulse: str = "queue:q", queue: str = "q") -> int:
    """Take one job; returns its id."""
    reply = log(allowed(Get((queue,)), pulse))
    assert isinstance(reply, Handed)
    return reply.id


def test_without_a_grant_the_queue_is_seen_empty(log: Log) -> None:
    for taking in (Get(("q",)), Get(None), GetWith(Get(("q", "r")), 3), GetWith(Get(None), policy=Policy.PRIORITY)):
        assert log(taking) == Empty(True)
        assert log(allowed(taking, "queue:other")) == Empty(True)
    assert isinstance(log(allowed(Get(None))), Handed)
    assert log(Get(("q",))) == Empty(True)          # it is closed again
    assert log.pulse("queue:q").granted == 1


def test_count_takes_as_many_as_there_are(log: Log) -> None:
    for taking in (GetWith(Get(("q",)), 9), GetWith(Get(("q", "x")), 9), GetWith(Get(None), 9)):
        reply = log(allowed(taking, count=1))
        assert isinstance(reply, HandedMany)
        assert len(reply.jobs) == 1
    assert log.pulse("queue:q").granted == 3


@pytest.mark.parametrize("policy", list(Policy))
@pytest.mark.parametrize("names", [("q", "r", "free"), None])
def test_queues_that_share_a_pulse_share_its_grants(policy: Policy, names: tuple[str, ...] | None) -> None:
    log = Log()
    log(ConfigurePulse("p", PulseChange(), create=True))
    log(configured("q", pulse="p"), configured("r", pulse="p"))
    log(*[Put(queue, 0, b"") for queue in ("q", "r", "q", "r", "free")])
    reply = log(allowed(GetWith(Get(names), 9, policy), "p", 3))
    assert isinstance(reply, HandedMany)
    queues = [job.queue for job in reply.jobs]
    assert (len(queues), queues.count("free")) == (4, 1)
    assert log.pulse("p").granted == 3


@pytest.mark.parametrize("item", [None, "i"])
def test_a_queue_whose_grants_another_one_has_taken_has_no_turn(item: str | None) -> None:
    log = Log()
    log(ConfigurePulse("p", PulseChange(), create=True))
    log(configured("a", pulse="p"), configured("c", pulse="p"))
    log(*[Put(queue, priority, b"", "i") for queue, priority in (("a", 2), ("b", 0), ("c", 2), ("d", 2), ("e", 0))])
    reply = log(allowed(GetWith(Get(None, item=item), 9, Policy.PRIORITY, turn=InTurn()), "p"))
    assert isinstance(reply, HandedMany)
    turns = [(job.queue, job.turned is True) for job in reply.jobs]
    assert turns == [("a", True), ("d", False), ("b", True), ("e", False)]


def test_the_end_of_a_hand_out_is_its_result(log: Log) -> None:
    pulse = log.pulse("queue:q")

    def results(end: Operation) -> tuple[int, bool, bool]:
        """Return the errors that this brings, and whether it was SLOW or a FAIL."""
        errors = pulse.errors
        log(Tick(), after_ms=pulse.length_ms)
        log(end)
        return pulse.errors - errors, pulse.slow, pulse.failed
    for end in (Later, Done, lambda number: End(number, How.DONE, last=True)):
        assert results(end(taken(log))) == (0, False, False)
        assert pulse.period_ends_ms
    log(*[Put("q", 0, b"") for _ in range(9)])
    assert results(End((taken(log),), How.LATER)) == (0, False, False)
    assert results(End((taken(log),), How.DONE)) == (0, False, False)
    assert results(Move(taken(log), "other")) == (0, False, False)
    assert results(End(taken(log), How.BURY)) == (1, False, True)
    assert results(End(taken(log), How.DONE, feedback=Feedback.SLOW)) == (1, True, False)
    assert results(End(taken(log), How.LATER, feedback=Feedback.SLEEP, sleep_ms=9000)) == (1, False, False)
    assert pulse.sleep_until_ms == log.now_ms + 9000
    log(Tick(), after_ms=9000)
    assert results(Delete(Selector(taken(log)))) == (0, False, False)
    assert not pulse.period_ends_ms                 # no result


def test_a_lease_that_ends_is_no_result_and_a_long_job_counts_when_it_comes(log: Log) -> None:
    log(allowed(Get(("q",), 1000)))
    log(Tick(), after_ms=2000)
    pulse = log.pulse("queue:q")
    assert (pulse.errors, pulse.period_ends_ms) == (0, 0)
    number = taken(log)
    log(Touch(number, 10**9))
    log(End(number, How.DONE, feedback=Feedback.SLOW), after_ms=100_000)         # far beyond MAXRUN
    log(Tick(), after_ms=1000)
    assert pulse.now == 1


def test_a_result_goes_to_the_pulse_that_gave_the_grant() -> None:
    log = Log()
    log(
        ConfigurePulse("a", PulseChange(rate=2), create=True), ConfigurePulse("b", PulseChange(rate=2), create=True),
        configured("q", pulse="a"),
    )
    log(Put("q", 0, b""), Put("q", 0, b""))
    first, second = taken(log, "a"), taken(log, "a")
    log(configured("q", pulse="b"))
    log(End(first, How.DONE, feedback=Feedback.SLOW))
    assert (log.pulse("a").errors, log.pulse("b").errors) == (1, 0)
    assert log(DeletePulse("b")) == PulseInUse()
    assert log(configured("q", pulse="")) == Accepted()
    assert log(DeletePulse("a")) == Accepted()
    assert log(End(second, How.DONE, feedback=Feedback.SLOW)) != Empty(True)     # accepted, and does nothing
    assert log.pulse("b").errors == 0


def test_a_denied_or_sleeping_pulse_gives_its_queues_nothing(log: Log) -> None:
    log(SetPulse("queue:q", b"", True))
    assert log(allowed(Get(("q",)))) == Empty(True)
    log(SetPulse("queue:q", b""))
    log(End(taken(log), How.DONE, feedback=Feedback.SLEEP, sleep_ms=500))
    assert log(allowed(Get(("q",)))) == Empty(True)


def test_a_refused_batch_takes_its_results_back(log: Log) -> None:
    number = taken(log)
    pulse = log.pulse("queue:q")
    for feedback in (Feedback.SLOW, Feedback.SLEEP):
        batch = Batch((End(number, How.DONE, feedback=feedback, sleep_ms=9000), Done(99)), True)
        assert isinstance(log(batch), Aborted)
        assert pulse.results == (0, 0, 0, False, False)
    log(End(number, How.DONE, feedback=Feedback.SLOW))       # it is a job of the pulse still
    assert pulse.errors == 1
    assert isinstance(log(Batch((Done(taken(log)), Done(99)), True)), Aborted)
    assert (pulse.errors, pulse.slow) == (1, True)


def test_the_pulse_of_a_queue_comes_and_goes_with_the_setting(log: Log) -> None:
    log(configured("q", rate=5, per_ms=500))
    assert (log.pulse("queue:q").now, log.pulse("queue:q").per_ms) == (5, 500)
    assert log(DeletePulse("queue:q")) == PulseInUse()
    assert log(configured("q", rate=0)) == Accepted()
    assert not log.machine.pulses
    assert isinstance(log(Get(("q",))), Handed)
    log(configured("q", rate=1, per_ms=1000))
    log(DeleteQueue("q", True))
    assert not log.machine.pulses


def test_rate_and_pulse_exclude_each_other(log: Log) -> None:
    log(ConfigurePulse("p", PulseChange(), create=True), ConfigurePulse("r", PulseChange(), create=True))
    assert log(configured("q", pulse="p")) == BadSetting()
    assert log(configured("x", rate=1, per_ms=1000, pulse="p")) == BadSetting()
    assert log(configured("x", pulse="none")) == PulseNotFound()
    assert log(configured("x", rate=1, per_ms=1000, pulses_max=3)) == TooManyPulses()
    assert log.machine.queue_settings("x") is None
    assert log(configured("q", rate=0, pulse="p")) == Accepted()
    assert log(configured("q", rate=1, per_ms=1000)) == BadSetting()
    assert log(configured("q", pulse="r")) == Accepted()
    assert list(log.machine.pulses) == ["p", "r"]
    assert log(ConfigureQueue("y", QueueChange(rate=3, per_ms=100), create=True)) == Accepted()
    assert log.pulse("queue:y").rate == 3


def test_a_repeated_request_takes_no_second_grant(log: Log) -> None:
    log(OpenSession(1, 60_000))

    def ask() -> Reply:
        return log(Request(1, 1, b"d", 0, True, allowed(Get(("q",)))))
    first = ask()
    assert isinstance(first, Handed)
    assert ask() == first
    assert log.pulse("queue:q").granted == 1


def test_a_snapshot_has_the_pulse_of_a_running_job(log: Log) -> None:
    number = taken(log)
    assert log.machine.pulse_of_job(number) == "queue:q"
    from tests.core.helpers.logs import restored, snapshot_of
    assert restored(snapshot_of(log.machine)).pulse_of_job(number) == "queue:q"


def test_a_new_leader_counts_jobs_that_a_session_was_told_again() -> None:
    log = Log()
    log(configured("q", rate=1, per_ms=1000))
    log(OpenSession(1, 60_000), Put("q", 0, b"x"))
    take = Request(1, 1, b"d", 0, False, allowed(Get(("q",))))
    first = log(take)
    assert isinstance(first, Handed)
    assert log(take, after_ms=10_000) == first
    log(lead(), after_ms=500)
    assert list(log.pulse("queue:q").window) == [(log.now_ms, 1)]
    assert log.pulse("queue:q").granted == 1


def _steps(log: Log, operation: Operation) -> int:
    """Return the opcodes that the operation takes: a cost that does not depend on the machine."""
    steps = 0

    def trace(frame: FrameType, event: str, argument: object) -> Callable[..., object]:
        nonlocal steps
        frame.f_trace_opcodes = True
        steps += event == "opcode"
        return trace
    index, now_ms = log.index + 1, log.now_ms
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        log.machine.apply(index, now_ms, 1, [operation])
    finally:
        sys.settrace(before)
    log.index = index
    return steps


def test_a_get_of_all_queues_costs_no_more_for_those_without_jobs() -> None:
    def cost(queues: int) -> int:
        log = Log()
        log(ConfigurePulse("p", PulseChange(), create=True))
        log(*[configured(f"q{number}", pulse="p") for number in range(queues)], *[Put("q7", 0, b"")] * 3)
        _steps(log, allowed(Get(None), "p"))
        return _steps(log, allowed(Get(None), "p"))
    assert cost(2000) < 1.2 * cost(10)


def test_a_get_of_all_queues_looks_at_so_many_with_jobs() -> None:
    def cost(queues: int) -> int:
        log = Log()
        log(ConfigurePulse("p", PulseChange(), create=True))
        names = [f"q{number}" for number in range(queues)]
        log(*[configured(name, pulse="p") for name in names], *[Put(name, 0, b"") for name in names])
        _steps(log, allowed(Get(None), "p"))
        return _steps(log, allowed(Get(None), "p"))
    assert cost(2000) < 2 * cost(256)


def test_of_very_many_queues_with_jobs_each_has_its_turn() -> None:
    log = Log()
    log(ConfigurePulse("p", PulseChange(), create=True))
    names = [f"q{number}" for number in range(600)]
    log(*[configured(name, pulse="p") for name in names], *[Put(name, 0, b"") for name in names])
    seen: set[str] = set()
    for seed in range(600):
        log.index += 1
        (reply,) = log.machine.apply(log.index, log.now_ms, seed * 7919, [allowed(Get(None), "p")]).replies
        assert isinstance(reply, Handed)
        seen.add(reply.queue)
    assert seen == set(names)
