"""The jobs that one connection has reserved, and their deadlines."""

from __future__ import annotations

import heapq

from msgspec import Struct

from sockpqd.beanstalk.limits import FORGET_S, MARGIN_S

SPARE_ENDS = 100                # deadlines that are no longer true, besides as many as there are jobs


class Reservation(Struct, frozen=True, gc=False):
    """A reserved job; `deadline`: when its time ends, on the connection's clock."""

    handle: int
    tube: str
    ttr_s: float
    deadline: float


class Reservations:
    """The reserved jobs of a connection, by their ids.

    A job whose time has ended stays for a while: only the backend knows whether it really has, as a change of leader
    extends it.
    """

    def __init__(self) -> None:
        self._held: dict[int, Reservation] = {}
        self._ends: list[tuple[float, int]] = []    # heap of deadlines and ids; some are no longer true
        self._ended: list[tuple[float, int]] = []   # the same of those that have passed, in their order
        self.timeouts = 0                           # how many deadlines have passed

    def __bool__(self) -> bool:
        return bool(self._held)

    def __len__(self) -> int:
        return len(self._held)

    def add(self, number: int, handle: int, tube: str, ttr_s: float, now: float) -> None:
        """Keep a job of this tube that was handed out to this connection."""
        ends, deadline = self._ends, now + ttr_s
        self._held[number] = Reservation(handle, tube, ttr_s, deadline)
        heapq.heappush(ends, (deadline, number))
        if len(ends) > 2 * len(self._held) + SPARE_ENDS:            # after one that lasts they would stay for long
            self._ends = list({end for end in ends if self._is_true(end)})
            heapq.heapify(self._ends)

    def handle(self, number: int) -> int | None:
        """Return the handle of a job, None if this connection does not have it."""
        held = self._held.get(number)
        return None if held is None else held.handle

    def touched(self, number: int, now: float) -> None:
        """Record that the time to run of the job was restarted."""
        held = self._held.get(number)
        if held is not None:
            self.add(number, held.handle, held.tube, held.ttr_s, now)

    def drop(self, number: int, handle: int | None) -> str | None:
        """Forget a job that is no longer reserved under this handle; return its tube, None if it was not."""
        held = self._held.get(number)
        if held is None or held.handle != handle:
            return None
        del self._held[number]
        return held.tube

    def handles(self) -> tuple[int, ...]:
        """The handles of all jobs, in the order of their hand-out."""
        return tuple(held.handle for held in self._held.values())

    def soon(self, now: float) -> float | None:
        """Return when the first job is in the last second of its time, perhaps a past time; None: no job has an end."""
        self.pass_by(now)
        return self._ends[0][0] - MARGIN_S if self._ends else None

    def pass_by(self, now: float) -> None:
        """Count the deadlines that have passed, and forget those that passed long ago."""
        ends, ended = self._ends, self._ended
        while ends and (ends[0][0] <= now or not self._is_true(ends[0])):
            end = heapq.heappop(ends)
            if self._is_true(end):
                ended.append(end)
                self.timeouts += 1
        while ended and ended[0][0] + FORGET_S < now:
            end = ended.pop(0)
            if self._is_true(end):
                del self._held[end[1]]

    def _is_true(self, end: tuple[float, int]) -> bool:
        held = self._held.get(end[1])
        return held is not None and held.deadline == end[0]
