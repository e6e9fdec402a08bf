"""All pulses, their tickets, and the pulses with results to judge.

The leader, which writes the grants, knows how much of a window is free, and passes that with the operations
(spec/pulse 2.1). The state only records when it gave grants, for the next leader, which cannot know which of them were
written and counts all of them as written at its Lead entry (2.2).
"""

from __future__ import annotations

from collections import deque
from itertools import islice

from sockpqd.core import limits
from sockpqd.core.ops.jobs import Feedback
from sockpqd.core.pulse.pulse import Pulse
from sockpqd.core.store.timer_index import TimerIndex

SLEWED = 1000       # replicated time runs faster by less than this part of it (spec/clock 2.2)


class Pulses:
    """All pulses by name, with their tickets."""

    __slots__ = ("by_name", "next_ticket", "periods", "tickets")

    def __init__(self) -> None:
        self.by_name: dict[str, Pulse] = {}
        self.tickets: dict[int, str] = {}           # the open ones in rising order, with the names of their pulses
        self.next_ticket = 1
        self.periods: TimerIndex[tuple[int, str]] = TimerIndex(limits.DUE_BITS)     # of the law: when they end, of whom

    def add(self, pulse: Pulse) -> None:
        """Add a pulse and the tickets it has."""
        self.by_name[pulse.name] = pulse
        if pulse.period_ends_ms:
            self.periods.add((pulse.period_ends_ms, pulse.name))

    def remove(self, name: str) -> None:
        """Remove a pulse and its tickets."""
        pulse = self.by_name.pop(name)
        self.end_period(pulse)
        deque(map(self.tickets.__delitem__, pulse.tickets), 0)      # there may be a million: no loop in Python

    def end_period(self, pulse: Pulse) -> None:
        """Remove the pulse from the list of pulses with results to judge, before its period is dropped or judged."""
        if pulse.period_ends_ms:
            self.periods.remove((pulse.period_ends_ms, pulse.name))

    # ---- grants

    def count(self, pulse: Pulse, count: int, clock_ms: int) -> None:
        """Record that `count` grants were given at this time."""
        pulse.granted += count
        self.remember(pulse, count, clock_ms)

    def remember(self, pulse: Pulse, count: int, clock_ms: int) -> None:
        """Record that `count` grants, new or requested again by a session, may be written to clients from now on."""
        window = pulse.window
        since_ms = _may_count_since(pulse, clock_ms)
        while window and window[0][0] < since_ms:
            window.popleft()
        if window and window[-1][0] == clock_ms:
            count += window.pop()[1]
        window.append((clock_ms, count))

    def issue(self, pulse: Pulse, count: int, clock_ms: int) -> int:
        """Issue `count` grants with consecutive tickets; returns the first ticket."""
        self.count(pulse, count, clock_ms)
        self._give_up(pulse, clock_ms, 2 * count)
        first = self.next_ticket
        self.next_ticket = first + count
        numbers = range(first, first + count)
        pulse.tickets.update(dict.fromkeys(numbers, clock_ms + pulse.max_run_ms))
        self.tickets.update(dict.fromkeys(numbers, pulse.name))
        excess = len(self.tickets) - limits.TICKETS_MAX
        if excess > 0:
            for ticket in list(islice(self.tickets, excess)):   # at once: a new iteration walks over all that are gone
                self.close(ticket)
        return first

    def _give_up(self, pulse: Pulse, clock_ms: int, count: int) -> None:
        """Forget expired tickets of the pulse, `count` at most, so that forgetting needs no entry of its own."""
        over: list[int] = []
        for ticket, until_ms in pulse.tickets.items():
            if until_ms > clock_ms or len(over) == count:
                break
            over.append(ticket)
        for ticket in over:
            self.close(ticket)

    def of_ticket(self, ticket: int, clock_ms: int) -> Pulse | None:
        """Return the pulse of an open ticket; None if the ticket does not exist or has expired."""
        name = self.tickets.get(ticket)
        if name is None:
            return None
        pulse = self.by_name[name]
        return pulse if pulse.tickets[ticket] > clock_ms else None

    def close(self, ticket: int) -> None:
        """Forget a ticket, whose result has arrived."""
        del self.by_name[self.tickets.pop(ticket)].tickets[ticket]

    # ---- results

    def note(self, pulse: Pulse, result: Feedback, sleep_ms: int, clock_ms: int) -> None:
        """Record a result of one of the pulse's grants."""
        if pulse.note(result, sleep_ms, clock_ms):
            self.periods.add((pulse.period_ends_ms, pulse.name))

    def restore_results(self, pulse: Pulse, results: tuple[int, int, int, bool, bool]) -> None:
        """Undo the recording of results: `results` are the earlier ones."""
        self.end_period(pulse)
        pulse.errors, pulse.sleep_until_ms, pulse.period_ends_ms, pulse.slow, pulse.failed = results
        if pulse.period_ends_ms:
            self.periods.add((pulse.period_ends_ms, pulse.name))

    def judge(self, clock_ms: int, most: int) -> list[Pulse]:
        """Judge the results of ended periods, of at most `most` pulses; returns the pulses whose rate changed."""
        changed: list[Pulse] = []
        for _ in range(most):
            due = self.periods.first_due(clock_ms)
            if due is None:
                break
            pulse = self.by_name[due[1]]
            self.end_period(pulse)
            if pulse.judge():
                changed.append(pulse)
        return changed

    # ---- changes of leader

    def lead(self, before_ms: int, clock_ms: int) -> None:
        """Count every grant that earlier leaders may have written recently as written now, at a new leader.

        The age of a grant is measured against `before_ms`, the timestamp of the previous entry, which like the grants
        was stamped by the earlier leader. The new leader's `clock_ms` may be ahead of it by any
        amount (spec/clock 2.1).
        """
        for pulse in self.by_name.values():
            since_ms = _may_count_since(pulse, before_ms)
            counted = sum(count for at_ms, count in pulse.window if at_ms >= since_ms)
            pulse.window = deque([(clock_ms, counted)] if counted else ())

    def adopt(self, before: Pulses, clock_ms: int) -> None:
        """Take over grants when these pulses were restored (CLONE) in place of `before`.

        The grants and tickets of pulses of the same name are kept. For any other pulse, as many grants as it may give
        in a period count as written now.
        """
        self.next_ticket = before.next_ticket
        self.tickets = {ticket: name for ticket, name in before.tickets.items() if name in self.by_name}
        for pulse in self.by_name.values():
            old = before.by_name.get(pulse.name)
            pulse.window = deque([(clock_ms, pulse.now)]) if old is None else old.window
            pulse.tickets = {} if old is None else old.tickets


def _may_count_since(pulse: Pulse, clock_ms: int) -> int:
    """Return the earliest time at which a grant of the current window may have been written, despite clock slew."""
    return clock_ms - pulse.length_ms - pulse.length_ms // SLEWED - limits.GRANT_WRITTEN_MS_MAX
