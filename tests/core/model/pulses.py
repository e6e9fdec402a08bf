"""Pulses in the reference model, written from the rules alone (spec/pulse 1.1)."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

from sockpqd.core import (
    Accepted,
    BadSetting,
    ConfigurePulse,
    DeletePulse,
    Empty,
    Feedback,
    GiveResult,
    Grant,
    Granted,
    PulseChange,
    PulseExists,
    PulseInUse,
    PulseNotFound,
    Reply,
    SetPulse,
    TakeTurn,
    TicketNotFound,
    TooManyPulses,
    Turn,
)
from tests.core.model.queues import ModelQueues

WRITTEN_MS = 5_000      # a grant is written within this time of its entry, or never
OnPulses = ConfigurePulse | DeletePulse | SetPulse | Grant | TakeTurn | GiveResult


@dataclass
class ModelPulse:
    """A pulse. Times in ms."""

    rate: int = 10
    per: int = 1000
    step: int = 1000
    max_pause: int = 300_000
    max_run: int = 7000
    max_wait: int = 7000
    together: bool = False
    spread: bool = False
    payload: bytes = b""
    deny: bool = False
    now: int = 10
    pause: int = 0
    sleep_until: int = 0
    granted: int = 0
    errors: int = 0
    grants: list[int] = field(default_factory=list)         # when each was given
    tickets: dict[int, int] = field(default_factory=dict)   # until when each is open
    results: list[Feedback] = field(default_factory=list)   # of the present period of the law
    judged_at: int = 0

    def change(self, change: PulseChange) -> None:
        """Apply the settings of PULSE CREATE or CONFIG."""
        for name in ("step", "max_pause", "max_run", "max_wait"):
            value = getattr(change, f"{name}_ms")
            if value is not None:
                setattr(self, name, value)
        self.spread = self.spread if change.spread is None else change.spread
        if change.rate is not None or change.per_ms is not None:
            self.rate, self.per = change.rate or self.rate, change.per_ms or self.per
            self.now, self.pause, self.sleep_until = self.rate, 0, 0
            self.results = []

    def result(self, result: Feedback, sleep: int, clock: int) -> None:
        """Take the outcome of a grant."""
        self.errors += result is not Feedback.OK
        if result is Feedback.SLEEP:
            self.sleep_until = max(self.sleep_until, clock + sleep)
            return
        if not self.results:
            self.judged_at = clock + self.per + self.pause
        self.results.append(result)

    def judge(self) -> bool:
        """Apply the control law; returns whether it changes anything."""
        before = self.now, self.pause
        if Feedback.SLOW in self.results:
            if self.now > 1:
                self.now -= 1
            else:
                self.pause = min(self.pause + self.step, self.max_pause)
        elif Feedback.FAIL not in self.results:
            if self.pause > 0:
                self.pause = max(0, self.pause - self.step)
            elif self.now < self.rate:
                self.now += 1
        self.results = []
        return before != (self.now, self.pause)

    def give(self, count: int, clock: int) -> None:
        """Count grants that are given at `clock`, replicated milliseconds."""
        self.granted += count
        self.grants = [at for at in self.grants if at >= clock - self.per - self.pause - WRITTEN_MS]
        self.grants += [clock] * count

    def open(self, clock: int) -> list[int]:
        """Return the tickets that are open at `clock`, replicated milliseconds."""
        return [ticket for ticket, until in self.tickets.items() if until > clock]


class ModelPulses(ModelQueues):
    """All pulses. Only tests/core/pulse has queues with a rate."""

    def __init__(self) -> None:
        super().__init__()
        self.pulses: dict[str, ModelPulse] = {}
        self.last_ticket = 0

    def in_use(self, pulse: str) -> bool:
        """Return whether a queue uses it."""
        return False

    def on_pulse(self, operation: OnPulses) -> Reply:
        """Execute an operation on pulses."""
        match operation:
            case ConfigurePulse(create=True):
                if operation.pulse in self.pulses:
                    return PulseExists()
                if operation.pulses_max is not None and len(self.pulses) >= operation.pulses_max:
                    return TooManyPulses()
                pulse = self.pulses[operation.pulse] = ModelPulse(together=operation.together)
                pulse.change(operation.change)
                if pulse.together:
                    pulse.spread = False
                return Accepted()
            case GiveResult():
                return self._result(operation)
        if operation.pulse not in self.pulses:
            return PulseNotFound()
        pulse = self.pulses[operation.pulse]
        match operation:
            case ConfigurePulse():
                return self._configure_pulse(operation, pulse)
            case DeletePulse():
                if self.in_use(operation.pulse):
                    return PulseInUse()
                del self.pulses[operation.pulse]
            case SetPulse():
                pulse.payload, pulse.deny = operation.data, operation.deny
            case Grant():
                given = self._tickets(pulse, operation.count)
                return Granted(given.start if given else 0, len(given))
            case TakeTurn():
                given = self._tickets(pulse, int(operation.free))
                return Turn(given.start) if given else Empty(unfinished=True)
        return Accepted()

    def ticket_is_open(self, ticket: int) -> bool:
        """Return whether its result is awaited."""
        return any(ticket in pulse.open(self.clock_ms) for pulse in self.pulses.values())

    def judge_pulses(self) -> None:
        """Evaluate the results of each period that has ended, at the beginning of an entry."""
        over = [(one.judged_at, name) for name, one in self.pulses.items() if one.results]
        for _, name in sorted(one for one in over if one[0] <= self.clock_ms):
            if self.pulses[name].judge():
                self._tell_speed(name)

    def lead_pulses(self, before_ms: int) -> None:
        """Begin with a new leader: what may have been written shortly before the last entry counts as written now."""
        for pulse in self.pulses.values():
            since = before_ms - pulse.per - pulse.pause - (pulse.per + pulse.pause) // 1000 - WRITTEN_MS
            pulse.grants = [self.clock_ms for at in pulse.grants if at >= since]

    def adopt_pulses(self, restored: dict[str, ModelPulse]) -> None:
        """Adopt the pulses of a CLONE: one of the same name keeps its grants, others count what they may give as
        written now.
        """
        before, self.pulses = self.pulses, copy.deepcopy(restored)
        for name, pulse in self.pulses.items():
            old = before.get(name)
            pulse.grants = [self.clock_ms] * pulse.now if old is None else old.grants
            pulse.tickets = {} if old is None else old.tickets

    def _configure_pulse(self, operation: ConfigurePulse, pulse: ModelPulse) -> Reply:
        change = operation.change
        anew = change.rate is not None or change.per_ms is not None
        if anew and operation.pulse.startswith("queue:"):
            return BadSetting()
        if (change.spread and pulse.together) or (change.max_wait_ms is not None and not pulse.together):
            return BadSetting()
        before = pulse.now, pulse.pause
        pulse.change(change)
        if before != (pulse.now, pulse.pause):
            self._tell_speed(operation.pulse)
        return Accepted()

    def _tickets(self, pulse: ModelPulse, count: int) -> range:
        if count <= 0 or self.clock_ms < pulse.sleep_until:
            return range(0)
        pulse.give(count, self.clock_ms)
        given = range(self.last_ticket + 1, self.last_ticket + 1 + count)
        self.last_ticket += count
        pulse.tickets |= dict.fromkeys(given, self.clock_ms + pulse.max_run)
        return given

    def _result(self, operation: GiveResult) -> Reply:
        for pulse in self.pulses.values():
            if operation.ticket in pulse.open(self.clock_ms):
                del pulse.tickets[operation.ticket]
                pulse.result(operation.result, operation.sleep_ms, self.clock_ms)
                return Accepted()
        return TicketNotFound()

    def _tell_speed(self, name: str) -> None:
        pulse = self.pulses[name]
        seconds = f"{pulse.pause // 1000}.{pulse.pause % 1000:03d}"
        self.tell("PULSE", name, pulse.now, seconds.rstrip("0").rstrip("."))
