"""Takes out of the product what keeps the promises about pulses and events: each must make some run go red."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from sockpqd.core import Granted, Pulse
from sockpqd.core.pulse.pulses import Pulses
from sockpqd.gateway.events.subscriptions import Subscriptions
from sockpqd.gateway.pulses.window import Window
from sockpqd.gateway.pulses.windows import GrantClaim, PulseWindows
from sockpqd.gateway.waiting.grant_waiters import GrantProposal, GrantWaiter, GrantWaiters, PendingGrant, PulseLine
from tests.sim.cures.cure import Cure

RUN: dict[str, Any] = {"seconds": 60.0, "failovers": 6}


def forget_at_a_lead_entry(patch: pytest.MonkeyPatch) -> None:
    """Let a new leader not count what earlier ones may have written."""
    def lead(pulses: Pulses, before_ms: int, clock_ms: int) -> None:
        for pulse in pulses.by_name.values():
            pulse.window.clear()
    patch.setattr(Pulses, "lead", lead)


def begin_with_empty_windows(patch: pytest.MonkeyPatch) -> None:
    """The same, and the state would know it."""
    patch.setattr(PulseWindows, "serve", lambda self: self._windows.clear())


def write_without_a_lease(patch: pytest.MonkeyPatch) -> None:
    """Let a leader that was frozen write what it had."""
    patch.setattr(GrantClaim, "may_write", lambda self, stamp_ms, numbers=(): True)


def count_what_was_written_only(patch: pytest.MonkeyPatch) -> None:
    """Do not count grants in flight."""
    free = Window.free

    def without(window: Window, pulse: Pulse, now: float, own: int = 0) -> int:
        in_flight, window.in_flight = window.in_flight, 0
        found = free(window, pulse, now)
        window.in_flight = in_flight
        return found
    patch.setattr(Window, "free", without)


def tell_before_it_is_committed(patch: pytest.MonkeyPatch) -> None:
    """Write grants when they are proposed."""
    propose, tickets = GrantWaiters._propose, itertools.count(1_000_000)

    def at_once(its: GrantWaiters, line: PulseLine, pulse: Pulse, count: int) -> None:
        propose(its, line, pulse, count)
        for _ in range(len(line.sent)):
            its.hand_out(GrantClaim(its._windows, pulse.name, its._windows.of(pulse.name)), Granted(next(tickets), 1))
    patch.setattr(GrantWaiters, "_propose", at_once)
    for word in ("applied", "refused", "unknown"):
        patch.setattr(GrantProposal, word, lambda self, reply=None: None)


def count_back_from_the_lead_entry(patch: pytest.MonkeyPatch) -> None:
    """Take grants for too old when the new leader's clock is ahead."""
    lead = Pulses.lead
    patch.setattr(Pulses, "lead", lambda self, before_ms, clock_ms: lead(self, clock_ms, clock_ms))


def repeat_at_once(patch: pytest.MonkeyPatch) -> None:
    """Repeat a grant to a session even if there is no room."""
    patch.setattr(GrantWaiters, "_may_repeat", lambda self, name, ticket: True)
    patch.setattr(PulseWindows, "room", lambda self, name, own, numbers: True)


def serve_the_last_first(patch: pytest.MonkeyPatch) -> None:
    """Put each new client at the head of the line."""
    enqueue = GrantWaiters.enqueue
    patch.setattr(GrantWaiters, "enqueue", lambda self, waiter, ahead=False: enqueue(self, waiter, ahead=True))


def release_one_after_the_other(patch: pytest.MonkeyPatch) -> None:
    """Write not all grants of a group at one moment."""
    give = GrantWaiters._give

    def late(its: GrantWaiters, waiter: GrantWaiter, pending: PendingGrant) -> None:
        if pending.ticket % 2:
            its._loop.call_later(0.05, give, its, waiter, pending)
        else:
            give(its, waiter, pending)
    patch.setattr(GrantWaiters, "_give", late)


def spread_at_any_distance(patch: pytest.MonkeyPatch) -> None:
    """Give grants with SPREAD as soon as there is room for them."""
    patch.setattr(Window, "keeps_gap", lambda self, pulse, now: True)


def continue_anywhere(patch: pytest.MonkeyPatch) -> None:
    """Resume a subscription after any number, even if the node lacks the events after it."""
    patch.setattr(Subscriptions, "may_begin", lambda self, wish, after: True)


def lose_messages_in_silence(patch: pytest.MonkeyPatch) -> None:
    """Send no GAP when messages may be missing."""
    patch.setattr(Subscriptions, "notices_lost", lambda self: None)


CURES = (
    Cure(forget_at_a_lead_entry, RUN, red=0),
    Cure(begin_with_empty_windows, RUN, red=0),
    Cure(write_without_a_lease, RUN, red=11),
    Cure(count_what_was_written_only, RUN, red=5),
    Cure(tell_before_it_is_committed, RUN, red=11),
    Cure(count_back_from_the_lead_entry, RUN, red=5),
    Cure(repeat_at_once, RUN, red=2),
    Cure(serve_the_last_first, RUN, red=1),
    Cure(release_one_after_the_other, RUN, red=0),
    Cure(spread_at_any_distance, {**RUN, "spread": True}, red=0),
    Cure(continue_anywhere, RUN, red=62),
    Cure(lose_messages_in_silence, RUN, red=1),
)
