"""What becomes of a pulse by the results of its grants (spec/pulse 4.2)."""

from __future__ import annotations

from core import limits
from core.ops.pulses import Feedback
from core.pulse.pulse import Pulse
from core.state import State


def note(state: State, pulse: Pulse, feedback: Feedback, sleep_ms: int) -> None:
    """Note a result of one of the pulse's grants."""
    sleep_ms = min(max(sleep_ms, 0), limits.DURATION_MS_MAX)
    state.pulses.note(pulse, feedback, sleep_ms, state.clock_ms)
    if feedback is Feedback.SLEEP:
        state.effects.pulse_changed(pulse.name)


def judge(state: State) -> None:
    """Judge the results of the periods that are over."""
    for pulse in state.pulses.judge(state.clock_ms):
        tell_speed(state, pulse)


def tell_speed(state: State, pulse: Pulse) -> None:
    """The pulse goes at another speed from now on."""
    whole, rest = divmod(pulse.pause_ms, 1000)
    pause = f"{whole}.{rest:03d}".rstrip("0") if rest else str(whole)
    state.events.tell("PULSE", pulse.name, pulse.now, pause)
    state.effects.pulse_changed(pulse.name)
