"""One pulse: its settings, its current rate, its grants, and the control law that slows it down and restores it.

A period of the law begins with the first result after the last evaluation (SLEEP takes effect at once and begins none)
and ends after PER + PAUSE. Then all of its results are judged together (spec/pulse 4.2).
"""

from __future__ import annotations

from collections import deque

from msgspec import Struct, field

from sockpqd.core.ops.jobs import Feedback
from sockpqd.core.ops.pulses import PulseChange

OWN_PREFIX = "queue:"           # of the pulse of a queue with a RATE of its own, before the queue's name


class Pulse(Struct, eq=False):
    """A pulse. Times are milliseconds; those that end with `until` or `ends` are replicated times."""

    name: str
    rate: int = 10                      # grants per period when nothing slows it down
    per_ms: int = 1_000
    step_ms: int = 1_000
    max_pause_ms: int = 300_000
    max_run_ms: int = 7_000
    together: bool = False
    spread: bool = False                # grants are at least `length_ms` / `now` apart; not with `together`
    max_wait_ms: int = 7_000
    payload: bytes = b""
    deny: bool = False                  # its grants say not to act, and its queues hand out nothing
    now: int = 10                       # grants per period at present
    pause_ms: int = 0                   # by which a period is longer at present
    sleep_until_ms: int = 0
    granted: int = 0                    # grants so far
    errors: int = 0                     # results so far that were not OK
    period_ends_ms: int = 0             # of the period of the law; 0: none has begun
    slow: bool = False                  # there was a SLOW in it
    failed: bool = False                # there was a FAIL in it
    window: deque[tuple[int, int]] = field(default_factory=deque)   # grants that may count: when, how many
    tickets: dict[int, int] = field(default_factory=dict)           # the open ones: number, when it is given up

    @property
    def length_ms(self) -> int:
        """The length of the window that may contain `now` grants."""
        return self.per_ms + self.pause_ms

    @property
    def at_once(self) -> int:
        """The number of grants that may be given at once."""
        return 1 if self.spread else self.now

    def change(self, change: PulseChange) -> None:
        """Change settings. A rate or period starts over; results not judged yet are dropped, the window stays."""
        for name in ("step_ms", "max_pause_ms", "max_run_ms", "max_wait_ms", "spread"):
            value = getattr(change, name)
            if value is not None:
                setattr(self, name, value)
        if change.rate is None and change.per_ms is None:
            return
        self.rate = self.rate if change.rate is None else change.rate
        self.per_ms = self.per_ms if change.per_ms is None else change.per_ms
        self.now, self.pause_ms, self.sleep_until_ms = self.rate, 0, 0
        self.drop_period()

    @property
    def results(self) -> tuple[int, int, int, bool, bool]:
        """All fields that a result changes, for `Pulses.restore_results`."""
        return self.errors, self.sleep_until_ms, self.period_ends_ms, self.slow, self.failed

    def drop_period(self) -> None:
        """Forget the results that have not been judged."""
        self.period_ends_ms, self.slow, self.failed = 0, False, False

    def note(self, result: Feedback, sleep_ms: int, clock_ms: int) -> bool:
        """Record a result; returns whether it begins a period of the control law."""
        self.errors += result is not Feedback.OK
        if result is Feedback.SLEEP:
            self.sleep_until_ms = max(self.sleep_until_ms, clock_ms + sleep_ms)
            return False
        self.slow |= result is Feedback.SLOW
        self.failed |= result is Feedback.FAIL
        if self.period_ends_ms:
            return False
        self.period_ends_ms = clock_ms + self.length_ms
        return True

    def judge(self) -> bool:
        """End the period of the control law; returns whether the rate has changed."""
        before = self.now, self.pause_ms
        if self.slow:
            if self.now > 1:
                self.now -= 1
            else:
                self.pause_ms = min(self.pause_ms + self.step_ms, self.max_pause_ms)
        elif not self.failed:
            if self.pause_ms:
                self.pause_ms = max(0, self.pause_ms - self.step_ms)
            elif self.now < self.rate:
                self.now += 1
        self.drop_period()
        return before != (self.now, self.pause_ms)
