"""The effect of results on a pulse (spec/pulse 4.2)."""

from __future__ import annotations

from sockpqd.core import limits
from sockpqd.core.ops.jobs import Feedback
from sockpqd.core.pulse.pulse import OWN_PREFIX, Pulse
from sockpqd.core.state import State
from sockpqd.core.store.job import RunningJob


def note(state: State, pulse: Pulse, feedback: Feedback, sleep_ms: int) -> None:
    """Record a result of one of the pulse's grants."""
    if state.undo is not None:
        state.undo.noted(pulse)
    sleep_ms = min(max(sleep_ms, 0), limits.DURATION_MS_MAX)
    state.pulses.note(pulse, feedback, sleep_ms, state.clock_ms)
    if feedback is Feedback.SLEEP:
        state.effects.pulse_changed(pulse.name)


def result(state: State, job: RunningJob, feedback: Feedback, sleep_ms: int = 0) -> None:
    """Record the result of a hand-out from a queue with a rate, if its pulse still exists."""
    pulse = None if job.pulse is None else state.pulses.by_name.get(job.pulse)
    if pulse is not None:
        note(state, pulse, feedback, sleep_ms)


def time_out_results(state: State, most: int) -> None:
    """Judge the results of the periods that have ended, of at most `most` pulses."""
    if state.pulses.periods.first_ms <= state.clock_ms:
        for pulse in state.pulses.judge(state.clock_ms, most):
            tell_speed(state, pulse)


def tell_speed(state: State, pulse: Pulse) -> None:
    """Report the new rate of the pulse as an event."""
    whole, rest = divmod(pulse.pause_ms, 1000)
    pause = f"{whole}.{rest:03d}".rstrip("0") if rest else str(whole)
    state.events.tell("PULSE", pulse.name, pulse.now, pause)
    state.effects.pulse_changed(pulse.name)


def drop_own_pulse(state: State, queue: str) -> None:
    """Remove the queue's own pulse after its RATE setting has gone."""
    own = OWN_PREFIX + queue
    if own in state.pulses.by_name:
        state.pulses.remove(own)
        state.effects.pulse_changed(own)
