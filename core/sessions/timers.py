"""A timer wheel for the deadlines of sessions, nearly all of which are postponed before they are reached.

The end of a session moves with every use, so it is not re-sorted each time: a session is scheduled for a time at which
it cannot have ended before. When that time draws near the session is inspected, and most have moved on. The slots of
the wheel are a second long and unsorted, so a hundred thousand sessions can be inspected in one entry (after an outage,
for example); only the sessions that end within a slot that has begun are sorted.

The time for which a session is scheduled can be computed from the session, so it is not part of the state.
"""

from __future__ import annotations

from collections.abc import Mapping

from sortedcontainers import SortedList

from sockpqd.core.limits import LEASE_BITS, SESSION_SLOT_BITS
from sockpqd.core.sessions.session import Session


class TimerWheel:
    """Sessions by the time for which they are scheduled."""

    __slots__ = ("_by_number", "_earliest_ms", "_imminent", "_order", "_slots")

    def __init__(self, by_number: Mapping[int, Session]) -> None:
        """`by_number`: contains all sessions that are scheduled."""
        self._by_number = by_number
        self._imminent: SortedList = SortedList()               # (scheduled_ms, number) of those in slots that began
        self._slots: dict[int, dict[int, Session]] = {}         # by number of the slot, by number of the session
        self._order: SortedList = SortedList()                  # the numbers of the slots
        self._earliest_ms: dict[int, int] = {}                  # a lower bound of scheduled_ms, by number of the slot

    def schedule(self, session: Session) -> None:
        """Schedule the session for its deadline."""
        session.scheduled_ms = deadline_ms = session.deadline_ms
        session.imminent = False
        number = deadline_ms >> SESSION_SLOT_BITS
        slot = self._slots.get(number)
        if slot is None:
            slot = self._slots[number] = {}
            self._order.add(number)
            self._earliest_ms[number] = deadline_ms
        elif deadline_ms < self._earliest_ms[number]:
            self._earliest_ms[number] = deadline_ms
        slot[session.number] = session

    def remove(self, session: Session) -> None:
        if session.imminent:
            self._imminent.remove((session.scheduled_ms, session.number))
            return
        number = session.scheduled_ms >> SESSION_SLOT_BITS
        slot = self._slots[number]
        del slot[session.number]
        if not slot:
            del self._slots[number]
            del self._earliest_ms[number]
            self._order.remove(number)

    def next_due_ms(self) -> int | None:
        """Return a time before which `first_due` returns nothing; None: no session is scheduled."""
        earliest_ms = [self._imminent[0][0]] if self._imminent else []
        if self._order:
            earliest_ms.append(self._earliest_ms[self._order[0]])
        return ((min(earliest_ms) >> LEASE_BITS) + 1) << LEASE_BITS if earliest_ms else None

    def first_due(self, clock_ms: int) -> Session | None:
        """Return the first session in the order of (deadline, number), if it has expired.

        Never early, at most 16 ms late.
        """
        if self._order and self._order[0] <= clock_ms >> SESSION_SLOT_BITS:
            self._enter_slots(clock_ms >> SESSION_SLOT_BITS)
        imminent = self._imminent
        while imminent and imminent[0][0] >> LEASE_BITS < clock_ms >> LEASE_BITS:
            scheduled_ms, number = imminent[0]
            session = self._by_number[number]
            if session.deadline_ms == scheduled_ms:
                return session
            del imminent[0]
            self.schedule(session)
            self._enter_slots(clock_ms >> SESSION_SLOT_BITS)
        return None

    def _enter_slots(self, last: int) -> None:
        """Sort the sessions that end in the slots up to `last`, which have begun; reschedule the others."""
        order = self._order
        ending: list[tuple[int, int]] = []
        while order and order[0] <= last:
            number = order.pop(0)
            del self._earliest_ms[number]
            for session in self._slots.pop(number).values():
                if session.deadline_ms >> SESSION_SLOT_BITS == number:
                    session.scheduled_ms = session.deadline_ms
                    session.imminent = True
                    ending.append((session.deadline_ms, session.number))
                else:
                    self.schedule(session)
        self._imminent.update(ending)
