"""Whose operation is next when more are queued than one entry holds: a lane for each client, and turns among them.

Fair queueing, as routers have it for packets: a lane has a time of its own, which goes on by what it gave, and the lane
with the least is next. The time of all goes on by what each would have been given, had all been served at once; a lane
that comes begins a turn before that. So whoever waits for each answer is served by the next entry, however much others
pipeline; these share the rest, and take so much in a turn that their answers are many in one write.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable

from cluster.api import ClientPending, Pending
from core import Operation

QUANTUM_BYTES = 8192            # of a turn: 128 plain operations
WORK_BYTES = 8                  # what a unit of work counts for: a plain operation costs as much by either measure
QUEUED_MAX = 16_384             # operations in all lanes together, about: a quarter of a second of small ones
TURN_S = 1.0                    # who had no turn for so long is told that there is too much to do
LOOK_S = 0.1                    # between two looks for those

# With its bytes and its work (core/cost.py); True: it stands behind the one before.
Queued = tuple[Operation, Pending, int, int, bool]
OfClient = tuple[Operation, ClientPending, int, int, bool]


class _Lane:
    """The operations of one client."""

    __slots__ = ("client", "number", "served", "since", "time", "waiting")

    def __init__(self, client: object, time: int, number: int) -> None:
        self.client = client
        self.time = time                # in bytes that were given
        self.served = False             # of equal times those come first that had no turn yet:
        self.number = number            # all others are equal when a round has ended; then by their coming
        self.since = 0.0                # when it had its last turn, or stopped being empty; monotonic seconds
        self.waiting: deque[OfClient] = deque()

    def __lt__(self, other: _Lane) -> bool:
        return (self.time, self.served, self.number) < (other.time, other.served, other.number)


class Lanes:
    """All lanes."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._lanes: dict[object, _Lane] = {}
        self._heap: list[_Lane] = []    # one that is empty stays until it is next, so that its time is not forgotten
        self._time = 0
        self._numbers = 0
        self.count = 0                  # operations in all of them
        self._looked_at = 0.0

    @property
    def share(self) -> int:
        """Operations that each client may have queued, so that all of them together are not too many."""
        return max(1, QUEUED_MAX // max(1, len(self._lanes)))

    def add(self, client: object, queued: OfClient) -> None:
        """Queue an operation of this client."""
        lane = self._lanes.get(client)
        if lane is None:
            self._numbers += 1
            lane = self._lanes[client] = _Lane(client, self._time - QUANTUM_BYTES, self._numbers)
            heapq.heappush(self._heap, lane)
        if not lane.waiting:
            lane.since = self._monotonic()
        lane.waiting.append(queued)
        self.count += 1

    def give(self, queue: deque[Queued], now: float) -> bool:
        """Move the operations of the next turn to `queue`; False: there are none."""
        if not self.count:
            return False
        lane = self._heap[0]
        while not lane.waiting:
            heapq.heappop(self._heap)
            del self._lanes[lane.client]
            lane = self._heap[0]
        waiting = lane.waiting
        before, given = len(waiting), 0
        while waiting and (given < QUANTUM_BYTES or waiting[0][4]):
            queued = waiting.popleft()
            given += max(queued[2], WORK_BYTES * queued[3])
            queue.append(queued)
        self.count -= before - len(waiting)
        self._time = max(self._time, lane.time) + given // len(self._lanes)
        if not self.count:
            self._forget()
        else:
            lane.time += given
            lane.served = True
            lane.since = now
            heapq.heapreplace(self._heap, lane)
        return True

    def withdraw(self, client: object) -> list[OfClient]:
        """Take out what is in the lane of this client."""
        lane = self._lanes.get(client)
        if lane is None:
            return []
        taken = list(lane.waiting)
        lane.waiting.clear()
        self._took_out(len(taken))
        return taken

    def overdue(self, now: float) -> list[OfClient]:
        """Take out what is in lanes that had no turn for too long. It is looked for now and then."""
        taken: list[OfClient] = []
        if now - self._looked_at >= LOOK_S:
            self._looked_at = now
            for lane in self._lanes.values():
                if lane.waiting and now - lane.since > TURN_S:
                    taken += lane.waiting
                    lane.waiting.clear()
            self._took_out(len(taken))
        return taken

    def clear(self) -> list[OfClient]:
        """Take out everything, the operations of each client in their order."""
        taken = [queued for lane in self._lanes.values() for queued in lane.waiting]
        self._forget()
        return taken

    def _took_out(self, count: int) -> None:
        self.count -= count
        if not self.count:
            self._forget()

    def _forget(self) -> None:
        self._lanes.clear()
        self._heap.clear()
        self.count = 0
