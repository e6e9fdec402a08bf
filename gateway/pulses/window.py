"""The window of a pulse: how many grants may be given now, so that never too many are written (spec/pulse 2.1).

A grant is in flight from its proposal until it is written, or is known never to be. Grants in flight and written ones
count; the time of a written one is taken after its bytes were sent, so that it is never too early. Times are monotonic
seconds of this node.

With SPREAD only one grant is in flight at a time, and none until the gap after the last written one has passed. A grant
whose client does not read must not hold up the others: after STALLED_S the next one may be given, and the stalled one
is then written only if the gaps allow it.

A session may request an answer again, with the same grant. That needs no room if the grant is still in the window,
where it then counts from the new time; otherwise it needs room like any other.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from sockpqd.core import GRANT_WRITTEN_MS_MAX, Pulse

STALLED_S = 0.25        # much longer than an entry takes to be committed and its answer to be written
MARGIN_S = 0.001        # for clients that measure: their clocks do not tick when ours does
KEEP_S = GRANT_WRITTEN_MS_MAX / 1000        # grants that have left are remembered this long at least; see _pass


class GrantId(NamedTuple):
    """A grant that a session may ask for again: a ticket, or a job that was handed out."""

    kind: str
    number: int


class Window:
    """The grants of one pulse that this leader has written or has in flight."""

    __slots__ = ("_claimed_at", "_count", "_fresh", "_left", "_length_s", "_numbered", "_written", "_written_at",
                 "in_flight", "unstamped")

    def __init__(self, counted: int = 0, now: float = 0.0) -> None:
        """`counted`: grants that may have been written before; they count from `now` on."""
        self.in_flight = 0
        self.unstamped = 0                                      # written, but the time is not taken yet
        self._written: deque[tuple[float, int]] = deque()       # those in the window: when, how many
        self._left: deque[tuple[float, int]] = deque()          # those that have left it
        self._count = counted                                   # how many are in the window
        self._length_s = 0.0
        self._claimed_at = float("-inf")                        # the last time from which a grant was in flight,
        self._written_at = now if counted else float("-inf")    # and when one was last written
        self._fresh: list[GrantId] = []                          # the numbered ones of those without a time
        self._numbered: dict[GrantId, float] = {}                # the others in the window: when
        if counted:
            self._written.append((now, counted))

    def claim(self, count: int, now: float) -> None:
        """Add `count` grants in flight."""
        self.in_flight += count
        if count:
            self._claimed_at = now

    def write(self, count: int, numbers: tuple[GrantId, ...] = ()) -> None:
        """Record that grants in flight are being written; `stamp` must follow. `numbers` may be requested again."""
        self.in_flight -= count
        self.unstamped += count
        for number in numbers:
            at = self._numbered.pop(number, None)
            if at is not None:
                self._take_out(at)
        self._fresh += numbers

    def stamp(self, now: float) -> None:
        """Record that the grants being written have been written."""
        if self.unstamped:
            self._written.append((now, self.unstamped))
            self._written_at = now
            self._count += self.unstamped
            self.unstamped = 0
            self._numbered.update(dict.fromkeys(self._fresh, now))
            self._fresh.clear()

    def holds(self, number: GrantId, pulse: Pulse, now: float) -> bool:
        """Return whether this grant was written and is still in the window, so that writing it again needs no room."""
        self._pass(pulse, now)
        at = self._numbered.get(number)
        return number in self._fresh or (at is not None and at >= now - self._length_s)

    def _take_out(self, at: float) -> None:
        """Remove one grant written at the time `at`, as it is being written again."""
        for times in (self._written, self._left):
            for place, (when, count) in enumerate(times):
                if when == at:
                    times[place] = when, count - 1
                    self._count -= times is self._written
                    return

    def free(self, pulse: Pulse, now: float, own: int = 0) -> int:
        """Return the number of further grants allowed now, not counting `own` of those in flight."""
        self._pass(pulse, now)
        if not pulse.spread:
            return max(0, pulse.now - self._count - self.in_flight + own - self.unstamped)
        alone = self.in_flight <= own or now >= self._claimed_at + STALLED_S
        return int(alone and self._count < pulse.now and self.keeps_gap(pulse, now))

    def keeps_gap(self, pulse: Pulse, now: float) -> bool:
        """Return whether a grant of a pulse with SPREAD may be written now."""
        return not self.unstamped and now >= self._written_at + _gap_s(pulse)

    def opens_s(self, pulse: Pulse, now: float) -> float | None:
        """Return the seconds until there may be room for a grant, or None if that depends on grants in flight."""
        if not pulse.spread:
            return self.first_leaves_s(now)
        until = self._written_at + _gap_s(pulse)
        if self._count >= pulse.now:
            until = max(until, self._written[0][0] + self._length_s)
        if self.in_flight:
            until = max(until, self._claimed_at + STALLED_S)
        return None if self.unstamped else max(until - now, 0.0)

    def clear(self, pulse: Pulse, now: float) -> bool:
        """Return whether no grant is in the window or in flight."""
        self._pass(pulse, now)
        return not (self._count or self.in_flight or self.unstamped)

    def first_leaves_s(self, now: float) -> float | None:
        """Return the seconds until the first grant leaves the window, as of the last check; None: there is none."""
        return self._written[0][0] + self._length_s - now if self._written else None

    def last_leaves_s(self, now: float) -> float | None:
        """Return the seconds until the last grant leaves the window, as of the last check; None: there is none."""
        return self._written[-1][0] + self._length_s - now if self._written else None

    def _pass(self, pulse: Pulse, now: float) -> None:
        length_s = pulse.length_ms / 1000 + MARGIN_S
        begin = now - length_s
        if length_s > self._length_s:           # the pause has grown: some come back
            while self._left and self._left[-1][0] >= begin:
                self._written.appendleft(self._left.pop())
                self._count += self._written[0][1]
        self._length_s = length_s
        while self._written and self._written[0][0] < begin:
            self._count -= self._written[0][1]
            self._left.append(self._written.popleft())
        forgotten = begin - max(KEEP_S, pulse.step_ms / 1000)       # it grows by a step, and then lasts that longer
        while self._left and self._left[0][0] < forgotten:
            self._left.popleft()
        while self._numbered and (oldest := next(iter(self._numbered.items())))[1] < forgotten:
            del self._numbered[oldest[0]]


def _gap_s(pulse: Pulse) -> float:
    """Return the minimum time between two grants with SPREAD, in seconds."""
    return pulse.length_ms / pulse.now / 1000
