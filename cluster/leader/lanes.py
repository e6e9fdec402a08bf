"""Fair queueing among clients when more operations are queued than one entry holds: a lane for each client, in turns.

It works as routers do it for packets. Each lane has a virtual clock that advances by the cost of the operations taken
from it. The next turn goes to the lane whose first operation would finish earliest, and a new lane comes before all
that already had a turn. The common clock advances by what each lane would have received if all were served at once, and
a new lane starts one turn before it. So a client that sends one small command and waits for the answer is served by the
next entry, however much the others pipeline and however expensive that is. The others share the rest, and a turn is
large enough that its answers leave in one write. A large operation has a turn for each of its fragments, and one such
operation at a time.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from typing import Final

from sockpqd.cluster import limits
from sockpqd.cluster.leader.fragments import Cut, OfClient, Queued

# Places in what is queued.
_SIZE: Final = 2
_BEHIND: Final = 5
_CHARGE: Final = 6


class _Lane:
    """The operations of one client."""

    __slots__ = ("charge", "client", "place", "served", "since", "time", "waiting")

    def __init__(self, client: object, time: int) -> None:
        self.client = client
        self.time = time                # virtual time in charged bytes
        self.served = False             # it had a turn
        self.place = 0                  # that of its valid entry in the heap
        self.since = 0.0                # when it had its last turn or stopped being empty, monotonic seconds
        self.charge = 0                 # of all that waits
        self.waiting: deque[OfClient] = deque()


class Lanes:
    """The lanes of all clients that have operations queued, or had until recently."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._lanes: dict[object, _Lane] = {}
        # For each lane with operations: whether it had a turn (or asks too much for a first one), when its first
        # operation would finish, and its place among equals, which all lanes are after a round of turns.
        self._heap: list[tuple[bool, int, int, _Lane]] = []
        self._empty: deque[_Lane] = deque()     # lanes that became empty, kept while their time is ahead
        self._cutting: tuple[_Lane, Cut] | None = None      # whose first operation has some fragments in the log
        self._cuts = 0
        self._time = 0
        self._places = 0
        self.count = 0                  # operations in all of them
        self._looked_at = 0.0

    @property
    def share(self) -> int:
        """How many operations each client may have queued, so that all clients' together are not too many."""
        return max(1, limits.LANES_OPERATIONS_MAX // max(1, len(self._lanes)))

    def add(self, client: object, queued: OfClient) -> None:
        """Queue an operation of this client."""
        lane = self._lanes.get(client)
        if lane is None:
            lane = self._lanes[client] = _Lane(client, self._time - limits.LANE_QUANTUM_BYTES)
        if not lane.waiting:
            lane.time = max(lane.time, self._time - limits.LANE_QUANTUM_BYTES)
            lane.since = self._monotonic()
            self._line_up(lane, queued)
        lane.waiting.append(queued)
        lane.charge += queued[6]
        self.count += 1

    def sated(self, client: object) -> bool:
        """Can this client have more in its lane than its share of what all lanes may hold?"""
        lane = self._lanes.get(client)
        held = 0 if lane is None else lane.charge * limits.LANE_HELD_PER_CHARGE_MAX     # bytes, at most
        return held * len(self._lanes) > limits.LANES_BYTES_MAX

    def _line_up(self, lane: _Lane, first: OfClient) -> None:
        self._places += 1
        lane.place = self._places
        charge = first[_CHARGE]
        late = lane.served or charge > limits.LANE_QUANTUM_BYTES
        turn = limits.FRAGMENT_BYTES if first[_SIZE] > limits.WHOLE_BYTES_MAX else charge
        heapq.heappush(self._heap, (late, lane.time + turn, lane.place, lane))

    def give(self, queue: deque[Queued], now: float) -> int:
        """Move the operations of the next turn to `queue`; returns what they are charged for, 0 if there are none."""
        if not self.count:
            return 0
        lane = self._next()
        waiting = lane.waiting
        if waiting[0][_SIZE] > limits.WHOLE_BYTES_MAX:
            count, given = self._give_fragment(lane, queue, now)
        elif lane.charge <= limits.LANE_QUANTUM_BYTES:
            count, given = len(waiting), lane.charge
            queue += waiting
            waiting.clear()
        else:
            count = given = 0
            while waiting and waiting[0][_SIZE] <= limits.WHOLE_BYTES_MAX and not (
                given and given + waiting[0][_CHARGE] > limits.LANE_QUANTUM_BYTES and not waiting[0][_BEHIND]
            ):
                queue.append(waiting.popleft())
                count += 1
                given += queue[-1][_CHARGE]
        lane.charge -= given
        self._time = max(self._time, lane.time) + given // len(self._lanes)
        self._took_out(count)
        lane.time += given
        lane.served = True
        lane.since = now
        if waiting:
            self._line_up(lane, waiting[0])
        elif self.count:
            self._empty.append(lane)
            self._forget_empty()
        return given

    def _next(self) -> _Lane:
        """The lane whose turn it is. While a large operation is cut no other one can be."""
        cutting = None if self._cutting is None else self._cutting[0]
        put_off = []
        while True:
            turn = heapq.heappop(self._heap)
            _, _, place, lane = turn
            if lane.place != place or not lane.waiting:     # it was emptied since
                continue
            if cutting is None or cutting is lane or lane.waiting[0][_SIZE] <= limits.WHOLE_BYTES_MAX:
                break
            put_off.append(turn)
        for turn in put_off:
            heapq.heappush(self._heap, turn)
        return lane

    def _give_fragment(self, lane: _Lane, queue: deque[Queued], now: float) -> tuple[int, int]:
        """Give the next fragment of the lane's first operation; returns how many operations left it, and the charge."""
        waiting = lane.waiting
        if self._cutting is None:
            self._cuts += 1
            self._cutting = lane, Cut(self._cuts, waiting[0])
        cut = self._cutting[1]
        queue.append(cut.next(now))
        given = queue[-1][_CHARGE]
        if not cut.complete:
            return 0, given
        self._cutting = None
        waiting.popleft()
        count = 1
        while waiting and waiting[0][_BEHIND]:
            queue.append(waiting.popleft())
            count += 1
            given += queue[-1][_CHARGE]
        return count, given

    def _forget_empty(self) -> None:
        """Forget empty lanes that no longer differ from new ones."""
        empty = self._empty
        while empty and (empty[0].waiting or empty[0].time <= self._time - limits.LANE_QUANTUM_BYTES):
            lane = empty.popleft()
            if not lane.waiting and self._lanes.get(lane.client) is lane:
                del self._lanes[lane.client]

    def withdraw(self, client: object) -> list[OfClient]:
        """Remove the lane of this client and return its operations."""
        lane = self._lanes.pop(client, None)
        return [] if lane is None else self._take_all(lane)

    def overdue(self, now: float) -> list[OfClient]:
        """Remove and return the operations in lanes that had no turn for too long; checked every LANES_LOOK_S."""
        taken: list[OfClient] = []
        if now - self._looked_at >= limits.LANES_LOOK_S:
            self._looked_at = now
            for lane in list(self._lanes.values()):
                if lane.waiting and now - lane.since > limits.LANE_WAIT_S_MAX:
                    taken += self._take_all(lane)
                    self._empty.append(lane)
        return taken

    def clear(self) -> list[OfClient]:
        """Remove and return all operations, those of each client in their order."""
        taken = [queued for lane in self._lanes.values() for queued in lane.waiting]
        self._forget()
        return taken

    def _take_all(self, lane: _Lane) -> list[OfClient]:
        taken = list(lane.waiting)
        lane.waiting.clear()
        if self._cutting is not None and self._cutting[0] is lane:
            self._cutting = None        # the rest of it never follows, so it is never executed
        lane.charge = 0
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
        self._cutting = None
        self.count = 0
