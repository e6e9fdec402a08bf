"""Fair queueing among clients when more operations are queued than one entry holds: one queue for each client.

This is the fair queueing of network routers. Each queue has a virtual clock that advances by the cost of the operations
taken from it. The next turn goes to the queue whose first operation would finish earliest, and a new queue comes before
all queues that already had a turn. The common clock advances by what each queue would have received if all were served
at once, and a new queue starts one turn before it. So a client that sends one small command and waits for the answer is
served by the next entry, however much the others pipeline and however expensive that is. The others share the rest, and
a turn is large enough that its answers leave in one write. A large operation has one turn for each of its fragments,
and only one such operation is cut at a time.

The cost of some operations is known only when they are executed, for example of a PUT to a topic. An entry then leaves
out the operations after it (Machine.apply): they go back to the heads of their queues, and the client of the expensive
operation is charged with an entry. So its waiting operations do not slow down the others. The common clock is set back
as well, along with the queues that were added while the entry was in flight: otherwise the clients whose turn was
wasted would lag behind the clock, and take precedence over all new ones.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from sockpqd.cluster import limits
from sockpqd.cluster.leader.fragments import Cut, OfClient, Part, Queued

# Indexes into a queued operation.
_SIZE: Final = 2
_WORK: Final = 3
_BEHIND: Final = 5
_CHARGE: Final = 6
_CLIENT: Final = 7


def charge_of(size: int, work: int) -> int:
    """Return the charge of an operation of this size and work."""
    return max(size, limits.CLIENT_WORK_BYTES * work)


class _ClientQueue:
    """The operations of one client."""

    __slots__ = ("charge", "client", "lifted", "place", "served", "since", "time", "waiting")

    def __init__(self, client: object, time: int) -> None:
        self.client = client
        self.time = time                # virtual time in charged bytes
        self.lifted = 0                 # how much of that it got from the common clock when it last came
        self.served = False             # it had a turn
        self.place = 0                  # of its valid entry in the heap
        self.since = 0.0                # when it had its last turn or stopped being empty, monotonic seconds
        self.charge = 0                 # of all that waits
        self.waiting: deque[OfClient] = deque()


_LONG_AGO: Final = 1 << 62     # far more than all charges

_Place = tuple[bool, int, int, _ClientQueue]


class ClientQueues:
    """The queues of all clients that have operations queued, or had until recently."""

    def __init__(self, monotonic: Callable[[], float], level: Callable[[], int]) -> None:
        """`level()`: the feature level of the cluster, for whose programs operations are encoded and then cut."""
        self._monotonic = monotonic
        self._clients: dict[object, _ClientQueue] = {}
        # For each queue with operations: whether it had a turn (or asks too much for a first one), when its first
        # operation would finish, and its place among equals, which all queues are after a round of turns.
        self._heap: list[_Place] = []
        self._large: list[_Place] = []      # the same for those whose first operation is large: it can wait for a rest
        self._empty: deque[_ClientQueue] = deque()     # queues that became empty, kept while their time is ahead
        self._cutting: tuple[_ClientQueue, Cut] | None = None      # whose first operation has some fragments in the log
        self._cuts = 0
        self._time = 0
        self._came: list[_ClientQueue] = []     # queues that stopped being empty since the last turn
        self._places = 0
        self.count = 0                  # operations in all of them
        self.gave_large = False         # a large operation had a turn; the caller resets it
        self._level = level
        self._looked_at = 0.0

    @property
    def share(self) -> int:
        """The number of operations that each client may have queued, so that the total is limited."""
        return max(1, limits.QUEUED_OPERATIONS_MAX // max(1, len(self._clients)))

    def add(self, client: object, queued: OfClient) -> None:
        """Queue an operation of this client."""
        own = self._of(client)
        if not own.waiting:
            time, least = own.time, self._time - limits.CLIENT_QUANTUM_BYTES
            if time <= least:               # no longer ahead: it is like a new one, see _forget_empty
                own.served = False
            own.time = max(time, least)
            own.lifted += own.time - time
            self._came.append(own)
            own.since = self._monotonic()
            self._line_up(own, queued)
        own.waiting.append(queued)
        own.charge += queued[_CHARGE]
        self.count += 1

    def _of(self, client: object) -> _ClientQueue:
        own = self._clients.get(client)
        if own is None:
            own = self._clients[client] = _ClientQueue(client, self._time - limits.CLIENT_QUANTUM_BYTES)
            own.lifted = own.time + _LONG_AGO
        return own

    def put_back(self, left: Iterable[Queued], filled: object) -> None:
        """Put operations that were taken but not executed back at the heads of their clients' queues, in order.

        `filled`: the client, if any, whose operation filled the entry, which counts as its turn.
        """
        if filled is not None:
            last = self._of(filled)
            last.served = True
            last.time += charge_of(0, limits.ENTRY_WORK_MAX)
            self._empty.append(last)
        changed: dict[_ClientQueue, None] = {}
        for queued in reversed(list(left)):
            pending = queued[1]
            if isinstance(pending, Part):
                own = self._take_back_fragment(pending.cut, queued)
                if own is None:
                    continue
            else:
                own = self._of(queued[_CLIENT])
                charge = queued[_CHARGE] or charge_of(queued[_SIZE], queued[_WORK])
                self._put_first(own, (*queued[:_CHARGE], charge, queued[_CLIENT]))     # type: ignore[arg-type]
                own.charge += charge
            if not own.served and own not in changed:       # it was forgotten meanwhile
                own.served = True
                self._came.append(own)
            own.time -= queued[_CHARGE]
            changed[own] = None
        self._set_back(changed)
        for own in reversed(changed):
            self._line_up(own, own.waiting[0])
        if not self.count:
            self._forget()

    def _set_back(self, changed: dict[_ClientQueue, None]) -> None:
        """Set the common clock back so far that none of these queues precedes a new one."""
        quantum = limits.CLIENT_QUANTUM_BYTES
        self._time = min((self._time, *(own.time + quantum for own in changed if not own.lifted)))
        for own in self._came:
            if own.waiting:
                own.time = max(own.time - own.lifted, self._time - quantum)
                if own not in changed:
                    self._line_up(own, own.waiting[0])
            own.lifted = 0
        self._came.clear()

    def _put_first(self, own: _ClientQueue, queued: OfClient) -> None:
        if not own.waiting:
            own.since = self._monotonic()
        own.waiting.appendleft(queued)
        self.count += 1

    def _take_back_fragment(self, cut: Cut, queued: Queued) -> _ClientQueue | None:
        """Offer this fragment as the next one again; return the queue, None if its operation was withdrawn."""
        own = self._of(queued[_CLIENT])
        if cut.complete:
            self._put_first(own, cut.queued)
        elif not own.waiting or own.waiting[0] is not cut.queued:
            self._empty.append(own)
            return None
        cut.take_back()
        own.charge += queued[_CHARGE]
        self._cutting = (own, cut) if cut.begun else None
        return own

    def has_any(self, client: object) -> bool:
        """Return whether operations of this client are queued."""
        own = self._clients.get(client)
        return own is not None and bool(own.waiting)

    def sated(self, client: object) -> bool:
        """Return whether this client may have used up its share of the memory of all queues."""
        own = self._clients.get(client)
        held = 0 if own is None else own.charge * limits.QUEUED_PER_CHARGE_MAX     # bytes, at most
        return held * len(self._clients) > limits.QUEUED_BYTES_MAX

    def _line_up(self, own: _ClientQueue, first: OfClient) -> None:
        self._places += 1
        own.place = self._places
        charge = first[_CHARGE]
        late = own.served or charge > limits.CLIENT_QUANTUM_BYTES
        turn = limits.FRAGMENT_BYTES if first[_SIZE] > limits.WHOLE_BYTES_MAX else charge
        large = first[_WORK] > limits.LARGE_WORK and first[_SIZE] <= limits.WHOLE_BYTES_MAX
        heapq.heappush(self._large if large else self._heap, (late, own.time + turn, own.place, own))

    def offers(self, *, resting: bool) -> bool:
        """Return whether `give` may have operations to move."""
        return not resting or _first(self._heap) is not None

    def give(self, queue: deque[Queued], now: float, *, resting: bool = False) -> int:
        """Append the operations of the next turn to `queue`; returns their charge, 0 if there are none.

        `resting`: large operations have to wait. Fragments do not, as all but the last are small.
        """
        for came in self._came:
            came.lifted = 0
        self._came.clear()
        own = self._next(resting=resting) if self.count else None
        if own is None:
            return 0
        waiting = own.waiting
        if waiting[0][_WORK] > limits.LARGE_WORK:
            self.gave_large = True
        if waiting[0][_SIZE] > limits.WHOLE_BYTES_MAX:
            count, given = self._give_fragment(own, queue, now)
        elif own.charge <= limits.CLIENT_QUANTUM_BYTES:
            count, given = len(waiting), own.charge
            queue += waiting
            waiting.clear()
        else:
            count = given = 0
            while waiting and waiting[0][_SIZE] <= limits.WHOLE_BYTES_MAX and not (
                given and given + waiting[0][_CHARGE] > limits.CLIENT_QUANTUM_BYTES and not waiting[0][_BEHIND]
            ):
                queue.append(waiting.popleft())
                count += 1
                given += queue[-1][_CHARGE]
        own.charge -= given
        self._time = max(self._time, own.time) + given // len(self._clients)
        self._took_out(count)
        own.time += given
        own.served = True
        own.since = now
        if waiting:
            self._line_up(own, waiting[0])
        elif self.count:
            self._empty.append(own)
            self._forget_empty()
        return given

    def _next(self, *, resting: bool) -> _ClientQueue | None:
        """Return the queue whose turn it is. While a large operation is being cut, no other one can be."""
        cutting = None if self._cutting is None else self._cutting[0]
        put_off = []
        found = None
        while (turn := self._pop(resting=resting)) is not None:
            own = turn[3]
            if cutting is None or cutting is own or own.waiting[0][_SIZE] <= limits.WHOLE_BYTES_MAX:
                found = own
                break
            put_off.append(turn)
        for turn in put_off:
            heapq.heappush(self._heap, turn)
        return found

    def _pop(self, *, resting: bool) -> _Place | None:
        """Remove and return the first place in the line; while `resting`, large operations are skipped."""
        first = _first(self._heap)
        large = None if resting else _first(self._large)
        if large is not None and (first is None or large < first):
            return heapq.heappop(self._large)
        return None if first is None else heapq.heappop(self._heap)

    def _give_fragment(self, own: _ClientQueue, queue: deque[Queued], now: float) -> tuple[int, int]:
        """Give the next fragment of the first operation; returns how many operations left the queue, and the charge."""
        waiting = own.waiting
        if self._cutting is None:
            self._cuts += 1
            self._cutting = own, Cut(self._cuts, waiting[0], self._level())
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
        """Forget empty queues whose state no longer differs from a new one's."""
        empty = self._empty
        while empty and (empty[0].waiting or empty[0].time <= self._time - limits.CLIENT_QUANTUM_BYTES):
            own = empty.popleft()
            if not own.waiting and self._clients.get(own.client) is own:
                del self._clients[own.client]

    def withdraw(self, client: object) -> list[OfClient]:
        """Remove the queue of this client and return its operations."""
        own = self._clients.pop(client, None)
        return [] if own is None else self._take_all(own)

    def overdue(self, now: float) -> list[OfClient]:
        """Remove and return the operations in queues that have waited too long; checked every CLIENTS_LOOK_S."""
        taken: list[OfClient] = []
        if now - self._looked_at >= limits.CLIENTS_LOOK_S:
            self._looked_at = now
            for own in list(self._clients.values()):
                if own.waiting and now - own.since > _patience_s(own.waiting[0]):
                    taken += self._take_all(own)
                    self._empty.append(own)
        return taken

    def clear(self) -> list[OfClient]:
        """Remove and return all operations; each client's are in order."""
        taken = [queued for own in self._clients.values() for queued in own.waiting]
        self._forget()
        return taken

    def _take_all(self, own: _ClientQueue) -> list[OfClient]:
        taken = list(own.waiting)
        own.waiting.clear()
        if self._cutting is not None and self._cutting[0] is own:
            self._cutting = None        # the rest of it never follows, so it is never executed
        own.charge = 0
        self._took_out(len(taken))
        return taken

    def _took_out(self, count: int) -> None:
        self.count -= count
        if not self.count:
            self._forget()

    def _forget(self) -> None:
        self._clients.clear()
        self._heap.clear()
        self._large.clear()
        self._empty.clear()
        self._cutting = None
        self._came.clear()
        self.count = 0


def _patience_s(first: OfClient) -> float:
    """Return how long a queue with this first operation may wait for a turn."""
    return limits.CLIENT_WAIT_S_MAX * (1 + limits.REST_FACTOR if first[_WORK] > limits.LARGE_WORK else 1)


def _first(heap: list[_Place]) -> _Place | None:
    """Return the first place that is valid, None if there is none; stale places of emptied queues are removed."""
    while heap:
        _, _, place, own = heap[0]
        if own.place == place and own.waiting:
            return heap[0]
        heapq.heappop(heap)
    return None
