"""Writes pulses to a snapshot as frames, and restores them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from sockpqd.core import limits
from sockpqd.core.pulse.pulse import Pulse
from sockpqd.core.pulse.pulses import Pulses
from sockpqd.core.snapshot import frames
from sockpqd.core.snapshot.frames import check

_FIELDS = tuple(name for name in frames.PulseRow.__struct_fields__ if name not in ("window", "tickets"))


def pulse_frames(pulses: Pulses) -> Iterator[frames.PulseTable | frames.PulseRow]:
    """Yield the frames of all pulses, none if there has never been one."""
    if not pulses.by_name and pulses.next_ticket == 1:
        return
    yield frames.PulseTable(pulses.next_ticket, len(pulses.by_name))
    for _, pulse in sorted(pulses.by_name.items()):
        values: dict[str, Any] = {name: getattr(pulse, name) for name in _FIELDS}
        yield frames.PulseRow(**values | {"window": list(pulse.window), "tickets": list(pulse.tickets.items())})


def restored_pulse(row: frames.PulseRow, next_ticket: int) -> Pulse:
    """Return the pulse in the row. Raises SnapshotError."""
    check(0 < row.now <= row.rate <= limits.RATE_MAX, "rate out of range")
    check(limits.PER_MS_MIN <= row.per_ms <= limits.PER_MS_MAX, "period out of range")
    check(bool(row.period_ends_ms) or not (row.slow or row.failed), "results outside of a period")
    check(sorted({at_ms for at_ms, _ in row.window}) == [at_ms for at_ms, _ in row.window], "grants are not in order")
    numbers = [number for number, _ in row.tickets]
    check(sorted(set(numbers)) == numbers, "tickets are not in order")
    check(not numbers or 0 < numbers[0] <= numbers[-1] < next_ticket, "ticket out of range")
    values = {name: getattr(row, name) for name in _FIELDS}
    return Pulse(**values, window=deque(row.window), tickets=dict(row.tickets))


def order_tickets(pulses: Pulses) -> None:
    """Restore the list of tickets after all pulses. Raises SnapshotError when two have the same."""
    tickets = sorted((number, name) for name, pulse in pulses.by_name.items() for number in pulse.tickets)
    pulses.tickets = dict(tickets)
    check(len(pulses.tickets) == len(tickets), "two pulses have one ticket")
