"""All pulses, their tickets, and which of them has results to judge next.

What is free in a window is known to the leader that writes the grants, and comes with the operations (spec/pulse 2.1).
The state only remembers when it gave grants, for the next leader: that cannot know which of them were written, and
counts them all as written at its Lead entry (2.2).
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
    """The pulses by name."""

    __slots__ = ("by_name", "next_ticket", "periods", "tickets")

    def __init__(self) -> None:
        self.by_name: dict[str, Pulse] = {}
        self.tickets: dict[int, str] = {}           # the open ones in rising order, with the names of their pulses
        self.next_ticket = 1
        self.periods: TimerIndex[tuple[int, str]] = TimerIndex(limits.DUE_BITS)     # of the law: when they end, of whom

    def add(self, pulse: Pulse) -> None:
        """Add a pulse, with the tickets it has."""
        self.by_name[pulse.name] = pulse
        if pulse.period_ends_ms:
            self.periods.add((pulse.period_ends_ms, pulse.name))

    def remove(self, name: str) -> None:
        """Remove a pulse and its tickets."""
        pulse = self.by_name.pop(name)
        self.end_period(pulse)
        deque(map(self.tickets.__delitem__, pulse.tickets), 0)      # there may be a million: no loop in Python

    def end_period(self, pulse: Pulse) -> None:
        """Take the pulse off the list of those with results to judge, before its period is dropped or judged."""
        if pulse.period_ends_ms:
            self.periods.remove((pulse.period_ends_ms, pulse.name))

    # ---- grants

    def count(self, pulse: Pulse, count: int, clock_ms: int) -> None:
        """Note that `count` grants were given at this time."""
        pulse.granted += count
        self.remember(pulse, count, clock_ms)

    def remember(self, pulse: Pulse, count: int, clock_ms: int) -> None:
        """Note that `count` grants, new ones or such as a session asks for again, may be written from now on."""
        window = pulse.window
        since_ms = _may_count_since(pulse, clock_ms)
        while window and window[0][0] < since_ms:
            window.popleft()
        if window and window[-1][0] == clock_ms:
            count += window.pop()[1]
        window.append((clock_ms, count))

    def issue(self, pulse: Pulse, count: int, clock_ms: int) -> int:
        """Give `count` grants with tickets; returns the number of the first, which the others follow."""
        self.count(pulse, count, clock_ms)
        self._give_up(pulse, clock_ms, 2 * count)
        first = self.next_ticket
        self.next_ticket = first + count
        numbers = range(first, first + count)
        pulse.tickets.update(dict.fromkeys(numbers, clock_ms + pulse.max_run_ms))
        self.tickets.update(dict.fromkeys(numbers, pulse.name))
        excess = len(self.tickets) - limits.TICKETS_MAX
        if excess > 0:
            for ticket in list(islice(self.tickets, excess)):   # at once: to begin anew walks over all that are gone
                self.close(ticket)
        return first

    def _give_up(self, pulse: Pulse, clock_ms: int, count: int) -> None:
        """Forget tickets of the pulse whose time is over, `count` at most: so what is forgotten costs no entry."""
        over: list[int] = []
        for ticket, until_ms in pulse.tickets.items():
            if until_ms > clock_ms or len(over) == count:
                break
            over.append(ticket)
        for ticket in over:
            self.close(ticket)

    def of_ticket(self, ticket: int, clock_ms: int) -> Pulse | None:
        """The pulse of an open ticket; None: there is none, or its time is over."""
        name = self.tickets.get(ticket)
        if name is None:
            return None
        pulse = self.by_name[name]
        return pulse if pulse.tickets[ticket] > clock_ms else None

    def close(self, ticket: int) -> None:
        """Forget a ticket."""
        del self.by_name[self.tickets.pop(ticket)].tickets[ticket]

    # ---- results

    def note(self, pulse: Pulse, result: Feedback, sleep_ms: int, clock_ms: int) -> None:
        """Note a result of one of the pulse's grants."""
        if pulse.note(result, sleep_ms, clock_ms):
            self.periods.add((pulse.period_ends_ms, pulse.name))

    def restore_results(self, pulse: Pulse, results: tuple[int, int, int, bool, bool]) -> None:
        """Take back results: these were those before."""
        self.end_period(pulse)
        pulse.errors, pulse.sleep_until_ms, pulse.period_ends_ms, pulse.slow, pulse.failed = results
        if pulse.period_ends_ms:
            self.periods.add((pulse.period_ends_ms, pulse.name))

    def judge(self, clock_ms: int, most: int) -> list[Pulse]:
        """Judge the results of periods that are over, of `most` pulses at most; returns whose speed has changed."""
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
        """A new leader: count each grant that the ones before may have written not long ago as written now.

        How long ago is told by the stamp of the entry before, `before_ms`, which the leader before counted as it did
        those of its grants. The new leader's own, `clock_ms`, may be ahead of them by anything (spec/clock 2.1).
        """
        for pulse in self.by_name.values():
            since_ms = _may_count_since(pulse, before_ms)
            counted = sum(count for at_ms, count in pulse.window if at_ms >= since_ms)
            pulse.window = deque([(clock_ms, counted)] if counted else ())

    def adopt(self, before: Pulses, clock_ms: int) -> None:
        """These pulses were restored (CLONE) in place of `before`.

        What was granted counts on for pulses of the same name, with their tickets. Of any other as many grants as it
        may give in a period count as written now.
        """
        self.next_ticket = before.next_ticket
        self.tickets = {ticket: name for ticket, name in before.tickets.items() if name in self.by_name}
        for pulse in self.by_name.values():
            old = before.by_name.get(pulse.name)
            pulse.window = deque([(clock_ms, pulse.now)]) if old is None else old.window
            pulse.tickets = {} if old is None else old.tickets


def _may_count_since(pulse: Pulse, clock_ms: int) -> int:
    """Since which stamp grants may have been written within the window that ends now, slewed time considered."""
    return clock_ms - pulse.length_ms - pulse.length_ms // SLEWED - limits.GRANT_WRITTEN_MS_MAX
