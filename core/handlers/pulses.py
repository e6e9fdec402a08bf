"""Handlers of the operations on pulses (PROTOCOL "Pulses")."""

from __future__ import annotations

from msgspec.structs import replace

from sockpqd.core import limits
from sockpqd.core.handlers.cost import BASE_BYTES, CHANGE_BYTES, JOB, Cost, of_names
from sockpqd.core.ops import pulses as ops
from sockpqd.core.ops import replies
from sockpqd.core.ops.pulses import PulseChange
from sockpqd.core.ops.replies import ACCEPTED, EMPTY_UNFINISHED, Granted, Reply, Turn
from sockpqd.core.pulse.pulse import OWN_PREFIX, Pulse
from sockpqd.core.rules.pulses import note, tell_speed
from sockpqd.core.state import State

_NO_GRANTS = Granted(0, 0)


def _create(state: State, operation: ops.ConfigurePulse) -> Reply:
    """Create a pulse at its full rate."""
    if operation.pulse in state.pulses.by_name:
        return replies.PULSE_EXISTS
    if operation.pulses_max is not None and len(state.pulses.by_name) >= operation.pulses_max:
        return replies.TOO_MANY_PULSES
    pulse = Pulse(operation.pulse, together=operation.together)
    pulse.change(bounded(operation.change))
    pulse.spread = pulse.spread and not pulse.together
    state.pulses.add(pulse)
    state.effects.pulse_changed(pulse.name)
    return ACCEPTED


def configure_brings(state: State, operation: ops.ConfigurePulse) -> tuple[str, ...]:
    """Return the pulse if it is new."""
    return (operation.pulse,) if operation.create else ()


def configure(state: State, operation: ops.ConfigurePulse, seed: int) -> Reply:
    """Change settings of a pulse, or create one."""
    if operation.create:
        return _create(state, operation)
    pulse, change = state.pulses.by_name.get(operation.pulse), operation.change
    if pulse is None:
        return replies.PULSE_NOT_FOUND
    changes_rate = change.rate is not None or change.per_ms is not None
    fits = change.max_wait_ms is None if not pulse.together else not change.spread
    if (changes_rate and pulse.name.startswith(OWN_PREFIX)) or not fits:
        return replies.BAD_SETTING
    if changes_rate:
        state.pulses.end_period(pulse)
    before = pulse.now, pulse.pause_ms
    pulse.change(bounded(change))
    if before != (pulse.now, pulse.pause_ms):
        tell_speed(state, pulse)
    state.effects.pulse_changed(pulse.name)
    return ACCEPTED


def bounded(change: PulseChange) -> PulseChange:
    """Return the change, with each value limited to its range."""
    values: dict[str, int] = {}
    if change.rate is not None:
        values["rate"] = min(max(change.rate, 1), limits.RATE_MAX)
    for name, least in (("per_ms", limits.PER_MS_MIN), ("step_ms", 1), ("max_pause_ms", 0), ("max_run_ms", 1),
                        ("max_wait_ms", 0)):
        length_ms = getattr(change, name)
        if length_ms is not None:
            values[name] = min(max(length_ms, least), limits.PER_MS_MAX)
    return replace(change, **values)


def delete(state: State, operation: ops.DeletePulse, seed: int) -> Reply:
    """Remove a pulse that no queue uses."""
    pulse = state.pulses.by_name.get(operation.pulse)
    if pulse is None:
        return replies.PULSE_NOT_FOUND
    if pulse.name in state.queues.of_pulse:
        return replies.PULSE_IN_USE
    state.pulses.remove(pulse.name)
    state.effects.pulse_changed(pulse.name)
    return ACCEPTED


def delete_cost(operation: ops.DeletePulse) -> Cost:
    """Return the bytes and work of a DeletePulse, which may have many tickets to remove."""
    return BASE_BYTES + of_names(operation.pulse), limits.OPERATION_WORK_MAX


def set_payload(state: State, operation: ops.SetPulse, seed: int) -> Reply:
    """Set the payload of the pulse's grants and whether they allow or deny."""
    pulse = state.pulses.by_name.get(operation.pulse)
    if pulse is None:
        return replies.PULSE_NOT_FOUND
    pulse.payload, pulse.deny = operation.data, operation.deny
    state.effects.pulse_changed(pulse.name)
    return ACCEPTED


def set_cost(operation: ops.SetPulse) -> Cost:
    """Return the bytes and work of a SetPulse."""
    return BASE_BYTES + of_names(operation.pulse) + len(operation.data), JOB


def grant(state: State, operation: ops.Grant, seed: int) -> Reply:
    """Issue grants, unless the pulse sleeps."""
    pulse = state.pulses.by_name.get(operation.pulse)
    if pulse is None:
        return replies.PULSE_NOT_FOUND
    count = min(max(operation.count, 0), limits.GRANTS_MAX)
    if not count or state.clock_ms < pulse.sleep_until_ms:
        return _NO_GRANTS
    return Granted(state.pulses.issue(pulse, count, state.clock_ms), count)


def grant_cost(operation: ops.Grant) -> Cost:
    """Return the bytes and work of a Grant."""
    return CHANGE_BYTES + of_names(operation.pulse), JOB + 2 * max(0, min(operation.count, limits.GRANTS_MAX))


def take_turn(state: State, operation: ops.TakeTurn, seed: int) -> Reply:
    """Issue one grant if the window has room and the pulse does not sleep."""
    pulse = state.pulses.by_name.get(operation.pulse)
    if pulse is None:
        return replies.PULSE_NOT_FOUND
    if not operation.free or state.clock_ms < pulse.sleep_until_ms:
        return EMPTY_UNFINISHED
    return Turn(state.pulses.issue(pulse, 1, state.clock_ms))


def give_result(state: State, operation: ops.GiveResult, seed: int) -> Reply:
    """Record the result of a grant and close its ticket."""
    pulse = state.pulses.of_ticket(operation.ticket, state.clock_ms)
    if pulse is None:
        return replies.TICKET_NOT_FOUND
    state.pulses.close(operation.ticket)
    note(state, pulse, operation.result, operation.sleep_ms)
    return ACCEPTED
