"""Pulses in the state: settings, tickets, the control law, what a new leader and a CLONE count (spec/pulse 1.1)."""

from __future__ import annotations

import pytest

from sockpqd.core import (
    Accepted,
    BadSetting,
    CloneChunk,
    ConfigurePulse,
    DeletePulse,
    Empty,
    Feedback,
    GiveResult,
    Grant,
    Granted,
    Machine,
    OpenSession,
    Operation,
    Pulse,
    PulseChange,
    PulseExists,
    PulseNotFound,
    Reply,
    Request,
    SetPulse,
    TakeTurn,
    Tick,
    TicketNotFound,
    TooManyPulses,
    Turn,
    limits,
)
from sockpqd.core.pulse.pulses import Pulses
from tests.core.helpers.logs import lead, restored, snapshot_of

START_MS = 1_000_000


class Log:
    """A machine, its log and its clock."""

    def __init__(self) -> None:
        self.machine = Machine()
        self.now_ms = START_MS
        self.index = 0
        self(lead())

    def __call__(self, *operations: Operation, after_ms: int = 0) -> Reply:
        """Apply one entry this many milliseconds after the last one; returns the last reply."""
        self.index += 1
        self.now_ms += after_ms
        applied = self.machine.apply(self.index, self.now_ms, 0, operations)
        assert snapshot_of(restored(snapshot_of(self.machine))) == snapshot_of(self.machine)
        return applied.replies[-1]

    def pulse(self, name: str = "p") -> Pulse:
        return self.machine.pulses[name]

    def speed(self) -> tuple[int, int]:
        return self.pulse().now, self.pulse().pause_ms

    def result(self, feedback: Feedback, sleep_ms: int = 0, after_ms: int = 0) -> Reply:
        """Grant one turn and give its result."""
        granted = self(Grant("p", 1), after_ms=after_ms)
        assert isinstance(granted, Granted)
        return self(GiveResult(granted.first, feedback, sleep_ms))


@pytest.fixture
def log() -> Log:
    """Return a log with a pulse of two a second."""
    log = Log()
    assert log(ConfigurePulse("p", PulseChange(rate=2, per_ms=1000), create=True)) == Accepted()
    return log


def test_defaults_are_those_of_the_original() -> None:
    log = Log()
    log(ConfigurePulse("p", PulseChange(), create=True))
    pulse = log.pulse()
    assert (pulse.rate, pulse.per_ms, pulse.step_ms) == (10, 1000, 1000)
    assert (pulse.max_pause_ms, pulse.max_run_ms, pulse.max_wait_ms) == (300_000, 7000, 7000)
    assert (pulse.now, pulse.pause_ms, pulse.together, pulse.spread) == (10, 0, False, False)


def test_grants_are_spread_until_that_is_changed(log: Log) -> None:
    assert log(ConfigurePulse("p", PulseChange(spread=True))) == Accepted()
    assert (log.pulse().spread, log.pulse().at_once) == (True, 1)
    assert log(ConfigurePulse("p", PulseChange(per_ms=2000))) == Accepted()
    assert log.pulse().spread
    assert log(ConfigurePulse("p", PulseChange(spread=False))) == Accepted()
    assert (log.pulse().spread, log.pulse().at_once) == (False, 2)
    assert log(ConfigurePulse("group", PulseChange(), create=True, together=True)) == Accepted()
    assert log(ConfigurePulse("group", PulseChange(spread=True))) == BadSetting()
    assert not log.machine.pulses["group"].spread


def test_refusals_change_nothing(log: Log) -> None:
    assert log(ConfigurePulse("p", PulseChange(rate=9), create=True)) == PulseExists()
    assert log(ConfigurePulse("q", PulseChange(), create=True, pulses_max=1)) == TooManyPulses()
    for operation in (ConfigurePulse("q", PulseChange(rate=1)), DeletePulse("q"), SetPulse("q", b""), Grant("q", 1),
                      TakeTurn("q", True)):
        assert log(operation) == PulseNotFound()
    assert log(ConfigurePulse("p", PulseChange(max_wait_ms=1))) == BadSetting()
    assert log(GiveResult(1, Feedback.OK)) == TicketNotFound()
    assert list(log.machine.pulses) == ["p"]
    assert log.pulse().rate == 2


def test_a_ticket_has_one_result_and_lives_for_maxrun(log: Log) -> None:
    assert log(Grant("p", 2)) == Granted(1, 2)
    assert log(GiveResult(1, Feedback.OK)) == Accepted()
    assert log(GiveResult(1, Feedback.OK)) == TicketNotFound()
    assert log(Tick(), after_ms=6999) == Accepted()
    assert log.machine.pulse_of_ticket(2) == "p"
    assert log(GiveResult(2, Feedback.SLOW), after_ms=1) == TicketNotFound()
    assert log.pulse().errors == 0
    log(Grant("p", 1))
    assert list(log.pulse().tickets) == [3]             # the one given up is forgotten


def test_one_ticket_too_many_gives_up_the_oldest_of_all_pulses(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    assert limits.TICKETS_MAX == 1_000_000              # spec/pulse 4.1
    monkeypatch.setattr(limits, "TICKETS_MAX", 3)
    log(ConfigurePulse("q", PulseChange(rate=10, per_ms=1000), create=True))
    assert log(Grant("p", 2)) == Granted(1, 2)
    assert log(Grant("q", 1)) == Granted(3, 1)
    assert [log.machine.pulse_of_ticket(ticket) for ticket in (1, 2, 3)] == ["p", "p", "q"]
    assert log(Grant("q", 2)) == Granted(4, 2)
    assert [log.machine.pulse_of_ticket(ticket) for ticket in (1, 2, 3, 4, 5)] == [None, None, "q", "q", "q"]
    assert log(GiveResult(1, Feedback.SLOW)) == TicketNotFound()
    assert (log.pulse().errors, list(log.pulse().tickets)) == (0, [])


def test_slower_by_one_then_by_steps_and_back(log: Log) -> None:
    log.result(Feedback.SLOW)
    assert log.machine.next_due_ms() is not None
    log(Tick(), after_ms=999)
    assert log.speed() == (2, 0)
    log(Tick(), after_ms=1)
    assert log.speed() == (1, 0)
    speeds = []
    for feedback in (Feedback.SLOW, Feedback.SLOW, Feedback.FAIL, Feedback.OK, Feedback.OK, Feedback.OK, Feedback.OK):
        log.result(feedback)
        log(Tick(), after_ms=log.pulse().length_ms)
        speeds.append(log.speed())
    assert speeds == [(1, 1000), (1, 2000), (1, 2000), (1, 1000), (1, 0), (2, 0), (2, 0)]
    assert log.machine.next_due_ms() is None            # without results there is no entry


def test_results_of_a_period_are_judged_together(log: Log) -> None:
    for feedback in (Feedback.OK, Feedback.SLOW, Feedback.SLOW, Feedback.FAIL):
        log.result(feedback, after_ms=100)
    log(Tick(), after_ms=700)
    assert log.speed() == (1, 0)
    assert log.pulse().errors == 3


def test_a_result_counts_in_the_period_in_which_it_comes(log: Log) -> None:
    log.result(Feedback.OK)
    log.result(Feedback.SLOW, after_ms=1000)            # the period of the OK is over
    assert log.speed() == (2, 0)
    log(Tick(), after_ms=1000)
    assert log.speed() == (1, 0)


def test_the_pause_has_a_limit() -> None:
    log = Log()
    log(ConfigurePulse("p", PulseChange(rate=1, max_pause_ms=1500), create=True))
    for _ in range(3):
        log.result(Feedback.SLOW)
        log(Tick(), after_ms=log.pulse().length_ms)
    assert log.speed() == (1, 1500)


def test_sleep_counts_at_once_and_the_longest_counts(log: Log) -> None:
    log.result(Feedback.SLEEP, 5000)
    until_ms = log.now_ms + 5000
    assert log.machine.next_due_ms() is None            # it begins no period
    assert log(Grant("p", 1)) == Granted(0, 0)
    assert log(TakeTurn("p", True)) == Empty(True)
    assert log.pulse().sleep_until_ms == until_ms
    assert isinstance(log(Grant("p", 1), after_ms=5000), Granted)
    first, second = 2, 3
    log(Grant("p", 1))
    log(GiveResult(first, Feedback.SLEEP, 9000))
    log(GiveResult(second, Feedback.SLEEP, 1000))
    assert log.pulse().sleep_until_ms == log.now_ms + 9000
    assert log.pulse().errors == 3


def test_a_new_rate_begins_anew_and_another_setting_does_not(log: Log) -> None:
    log.result(Feedback.SLEEP, 5000)
    log(ConfigurePulse("p", PulseChange(step_ms=250)))
    assert log.pulse().sleep_until_ms
    log(ConfigurePulse("p", PulseChange(per_ms=500)))
    assert log.pulse().sleep_until_ms == 0
    log.result(Feedback.SLOW)
    log(ConfigurePulse("p", PulseChange(rate=5)))
    log(Tick(), after_ms=500)
    assert log.speed() == (5, 0)                        # the SLOW was dropped
    assert sum(count for _, count in log.pulse().window) == 2


def test_a_new_leader_counts_what_may_have_been_written(log: Log) -> None:
    log(Grant("p", 1))
    log(Grant("p", 1), after_ms=100)
    log(Tick(), after_ms=5000)
    log(lead())
    assert list(log.pulse().window) == [(log.now_ms, 2)]
    log(Tick(), after_ms=6002)                          # more than P + PAUSE + 5 s, and what P may be slewed by
    log(lead())
    assert not log.pulse().window


def test_a_new_leader_whose_clock_is_ahead_counts_them_as_well(log: Log) -> None:
    log(Grant("p", 1))
    log(Grant("p", 1), after_ms=100)
    log(lead(), after_ms=86_400_000)
    assert list(log.pulse().window) == [(log.now_ms, 2)]
    log(lead(), after_ms=86_400_000)                    # and the next one what that one counted
    assert list(log.pulse().window) == [(log.now_ms, 2)]


def test_a_new_leader_allows_for_time_that_was_slewed() -> None:
    log = Log()
    log(ConfigurePulse("daily", PulseChange(1, 86_400_000), create=True))
    log(Grant("daily", 1))
    log(Tick(), after_ms=86_400_000 + 43_000 + 5000)    # a day, counted as fast as replicated time may be
    log(lead())
    assert log.pulse("daily").window


def test_the_rule_of_the_new_leader_is_what_counts(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pulses, "lead", lambda pulses, before_ms, clock_ms: None)
    log(Grant("p", 2))
    at_ms = log.now_ms
    log(lead(), after_ms=900)
    assert list(log.pulse().window) == [(at_ms, 2)]     # they would be free again 900 ms early


def test_a_clone_keeps_the_grants_of_pulses_of_the_same_name(log: Log) -> None:
    log(ConfigurePulse("other", PulseChange(rate=7), create=True))
    log(Grant("p", 2))
    data = b"".join(log.machine.export())
    log(Grant("p", 1), after_ms=10_000)
    log(DeletePulse("other"))
    assert log(
        CloneChunk(1, total_bytes=len(data)), CloneChunk(1, data), CloneChunk(1, last=True), after_ms=500,
    ) == Accepted()
    assert list(log.pulse().window) == [(log.now_ms - 500, 1)]
    assert list(log.pulse().tickets) == [3]
    assert list(log.pulse("other").window) == [(log.now_ms, 7)]
    assert log(Grant("p", 1)) == Granted(4, 1)


def test_a_repeated_wait_gets_its_ticket_while_that_is_open(log: Log) -> None:
    log(OpenSession(1, 60_000))

    def wait(*, free: bool) -> Reply:
        return log(Request(1, 1, b"d", 0, True, TakeTurn("p", free)))
    assert wait(free=False) == Empty(True)
    assert wait(free=True) == Turn(1)
    assert wait(free=True) == Turn(1)
    assert log(GiveResult(1, Feedback.OK)) == Accepted()
    assert wait(free=False) == Empty(True)              # executed anew
    assert wait(free=True) == Turn(2)


def test_a_new_leader_counts_what_a_session_was_told_again(log: Log) -> None:
    log(OpenSession(1, 60_000))

    def wait() -> Reply:
        return log(Request(1, 1, b"d", 0, True, TakeTurn("p", True)))
    assert wait() == Turn(1)
    log(Tick(), after_ms=6500)                          # more than P + PAUSE + 5 s, and its ticket is open
    assert wait() == Turn(1)
    log(lead(), after_ms=500)
    assert list(log.pulse().window) == [(log.now_ms, 1)]
    assert log.pulse().granted == 1


def test_data_and_denial_are_part_of_the_state(log: Log) -> None:
    log(SetPulse("p", b"pause", True))
    assert (log.pulse().payload, log.pulse().deny) == (b"pause", True)
    log(SetPulse("p", b""))
    assert (log.pulse().payload, log.pulse().deny) == (b"", False)
    log(DeletePulse("p"))
    assert not log.machine.pulses
