"""Whose operation is next when more are queued than one entry holds: a lane for each client, and turns among them.

Fair queueing, as routers do it for packets: each lane has a clock of its own, which advances by the cost of what the
lane was given. Next is the lane whose first operation would finish earliest; a lane that arrives and has had no turn
yet comes before all of them. The common clock advances by what each lane would have been given if all were served at
once, and a new lane starts one turn before it. So a client that sends something small and waits for the answer is
served by the next entry, however much the others pipeline and however expensive it is. The others share the rest, and
each takes so much in a turn that its answers leave in one write.
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
HELD_MAX = 16 << 20             # bytes of memory in all lanes together, about
TURN_S = 1.0                    # who had no turn for so long is told that there is too much to do
LOOK_S = 0.1                    # between two looks for those

# With its bytes and its work (core/handlers/cost.py) and its bytes of memory; True: it stands behind the one before. At
# the end what it is charged for: its bytes, or WORK_BYTES for each unit of its work if that is more.
Queued = tuple[Operation, Pending, int, int, int, bool, int]
OfClient = tuple[Operation, ClientPending, int, int, int, bool, int]


class _Lane:
    """The operations of one client."""

    __slots__ = ("client", "held", "place", "served", "since", "time", "waiting")

    def __init__(self, client: object, time: int) -> None:
        self.client = client
        self.time = time                # in bytes that were given
        self.served = False             # it had a turn
        self.place = 0                  # of its entry in the heap that counts
        self.since = 0.0                # when it had its last turn, or stopped being empty; monotonic seconds
        self.held = 0                   # bytes of memory
        self.waiting: deque[OfClient] = deque()


class Lanes:
    """All lanes."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._lanes: dict[object, _Lane] = {}
        # Of each lane that is not empty: whether it had a turn (or asks too much for a first one), when its first
        # operation would end, and its place among equals: when a round of turns has ended, all lanes are.
        self._heap: list[tuple[bool, int, int, _Lane]] = []
        self._empty: deque[_Lane] = deque()     # those that became so; they stay while their time is ahead
        self._time = 0
        self._places = 0
        self.count = 0                  # operations in all of them
        self._looked_at = 0.0

    @property
    def share(self) -> int:
        """Operations that each client may have queued, so that all of them together are not too many."""
        return max(1, QUEUED_MAX // max(1, len(self._lanes)))

    def add(self, client: object, queued: OfClient) -> bool:
        """Queue an operation of this client; has it as much memory in use as it should have at most?"""
        lane = self._lanes.get(client)
        if lane is None:
            lane = self._lanes[client] = _Lane(client, self._time - QUANTUM_BYTES)
        if not lane.waiting:
            lane.time = max(lane.time, self._time - QUANTUM_BYTES)
            lane.since = self._monotonic()
            self._line_up(lane, queued)
        lane.waiting.append(queued)
        lane.held += queued[4]
        self.count += 1
        return lane.held * len(self._lanes) > HELD_MAX

    def _line_up(self, lane: _Lane, first: OfClient) -> None:
        self._places += 1
        lane.place = self._places
        heapq.heappush(self._heap, (lane.served or first[6] > QUANTUM_BYTES, lane.time + first[6], lane.place, lane))

    def give(self, queue: deque[Queued], now: float) -> bool:
        """Move the operations of the next turn to `queue`; False: there are none."""
        if not self.count:
            return False
        while True:
            _, _, place, lane = heapq.heappop(self._heap)
            if lane.place == place and lane.waiting:        # else it was emptied since
                break
        waiting = lane.waiting
        before, given, held = len(waiting), 0, 0
        while waiting:
            queued = waiting[0]
            if given and given + queued[6] > QUANTUM_BYTES and not queued[5]:
                break
            given += queued[6]
            held += queued[4]
            queue.append(waiting.popleft())
        lane.held -= held
        self._time = max(self._time, lane.time) + given // len(self._lanes)
        self._took_out(before - len(waiting))
        lane.time += given
        lane.served = True
        lane.since = now
        if waiting:
            self._line_up(lane, waiting[0])
        elif self.count:
            self._empty.append(lane)
            self._forget_empty()
        return True

    def _forget_empty(self) -> None:
        """Forget lanes that would come back as new ones would."""
        empty = self._empty
        while empty and (empty[0].waiting or empty[0].time <= self._time - QUANTUM_BYTES):
            lane = empty.popleft()
            if not lane.waiting and self._lanes.get(lane.client) is lane:
                del self._lanes[lane.client]

    def withdraw(self, client: object) -> list[OfClient]:
        """Take out what is in the lane of this client, and forget it."""
        lane = self._lanes.pop(client, None)
        return [] if lane is None else self._take_all(lane)

    def overdue(self, now: float) -> list[OfClient]:
        """Take out what is in lanes that had no turn for too long. It is looked for now and then."""
        taken: list[OfClient] = []
        if now - self._looked_at >= LOOK_S:
            self._looked_at = now
            for lane in list(self._lanes.values()):
                if lane.waiting and now - lane.since > TURN_S:
                    taken += self._take_all(lane)
                    self._empty.append(lane)
        return taken

    def clear(self) -> list[OfClient]:
        """Take out everything, the operations of each client in their order."""
        taken = [queued for lane in self._lanes.values() for queued in lane.waiting]
        self._forget()
        return taken

    def _take_all(self, lane: _Lane) -> list[OfClient]:
        taken = list(lane.waiting)
        lane.waiting.clear()
        lane.held = 0
        self._took_out(len(taken))
        return taken

    def _took_out(self, count: int) -> None:
        self.count -= count
        if not self.count:
            self._forget()

    def _forget(self) -> None:
        self._lanes.clear()
        self._heap.clear()
        self._empty.clear()
        self.count = 0
