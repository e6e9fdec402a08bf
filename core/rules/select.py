"""The queues that have a job for a Get, and the choice among them (spec/state-machine 4.1).

The candidates are determined once. A caller that hands out several jobs calls `gave` after each, and only the queue of
that job is inspected again, as a hand-out changes nothing for the others. For Gets of any queue the state keeps sorted
lists, so there is nothing to determine; for others the candidates are in a heap, or in the order of their names.

Turns (RR, ties of PRIORITY): the first in the order of the Get comes first, and with `in_turn` a queue moves to the end
after each job. Without names it is the next one by name, cyclically.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Iterator
from heapq import heapify, heappop, heappush, heapreplace
from typing import Protocol

from msgspec import Struct

from sockpqd.core import limits
from sockpqd.core.fair.choice import FairChoice
from sockpqd.core.ops.jobs import Policy
from sockpqd.core.rules.fair_choice import (
    FairOffers,
    by_groups,
    first_open_job,
    found_in,
    has_open,
    looks_for_open,
    next_queue,
    nothing_open,
    without_closed,
)
from sockpqd.core.rules.hand_out import can_hand_out
from sockpqd.core.state import State
from sockpqd.core.store.job import Job
from sockpqd.core.store.policies.choice import draw
from sockpqd.core.store.policies.oldest import ready_since
from sockpqd.core.store.queues import Queue


class Way(Struct, frozen=True):
    """The rule by which a queue is chosen."""

    policy: Policy
    in_turn: bool = False           # by the turns of a connection
    after: str | None = None        # without names: the queue that gave it the last job


class Offers(Protocol):
    """The queues that have a job, while several jobs are handed out."""

    turned: bool
    """True if the queue just chosen turns the cycle."""

    found: FairChoice | None
    """The job to hand out, where the policy has chosen it as well."""

    @property
    def ranks(self) -> bool:
        """True if the first jobs of several queues decide which is chosen."""

    def choose(self, bits: int) -> Queue | None:
        """Choose the queue of the next job; returns None if there is none."""

    def gave(self, *, exhausted: bool) -> None:
        """Record that a job of the chosen queue was handed out; `exhausted`: none of its other jobs may be."""

    def leave_out(self) -> None:
        """Record that the chosen queue can hand out nothing: it is left out from now on, and advances no turn."""

    def leave_out_closed(self) -> None:
        """Leave out all queues with jobs of an item of which only closed groups have jobs."""

    def move_behind(self, job: Job) -> bool:
        """Rank the chosen queue by this job instead of its first one, until it hands out a job.

        Returns False, and changes nothing, if the queue is ranked there or behind it already.
        """

    def end(self) -> None:
        """Record that all jobs have been handed out."""


def offers(state: State, asked: tuple[str, ...] | None, item: str | None, way: Way) -> Offers:
    """Return the offers of the queues asked for (None: any), with a job of the item if there is one."""
    if way.policy is Policy.FAIR:
        return FairOffers(state, asked, item)
    if asked is None and item is None:
        return _Any(state, way)
    if way.policy is Policy.RANDOM:
        return _Random(state, asked, item)
    if way.policy is Policy.WEIGHT:
        return _Weighted(state, asked, item)
    if way.policy is Policy.PRIORITY and (asked is None or not way.in_turn):
        return _ByRank(state, asked, item, way)
    return _Ordered(state, asked, item, way)


def chosen(
    state: State, offered: Offers, item: str | None, bits: int, *, by_group: bool = True, first: bool = True,
) -> tuple[Queue | None, FairChoice | None]:
    """Return the queue of the next job, and the job if it is chosen by its group; None: there is none.

    A queue that chooses by groups is listed by its first job. When it comes first it is re-ranked by the first job of
    its open groups, if that is further behind; if all its groups are closed it is left out from now on. Each happens to
    at most CLOSED_QUEUES_MAX queues. If so many queues of an item are left out, all others with closed groups are too
    for the `first` job of a command. `by_group`: False: each queue gives its first job.
    """
    left_out = moved = 0
    while left_out <= limits.CLOSED_QUEUES_MAX:
        queue = offered.choose(bits)
        if queue is None or offered.found is not None or not by_group or not by_groups(state, queue) or queue.closed:
            return queue, offered.found
        if offered.ranks and moved < limits.CLOSED_QUEUES_MAX:
            job = first_open_job(state, queue, item)
            if job is not None and offered.move_behind(job):
                state.spent += limits.STEP
                moved += 1
                continue
        found = found_in(state, queue, item)
        if found is not None:
            return queue, found
        state.spent += limits.CLOSED_QUEUE_STEPS * limits.STEP
        offered.leave_out()
        left_out += 1
        if left_out == limits.CLOSED_QUEUES_MAX and item is not None and first:
            offered.leave_out_closed()
    return None, None


def next_job(state: State, queue: Queue, item: str | None) -> Job:
    """Return the next job of the queue, which must have one."""
    return queue.ready.first if item is None else state.items.by_name[item].by_queue[queue.name].ready.first


def offering(state: State, asked: tuple[str, ...] | None, item: str | None) -> Iterator[str | None]:
    """Yield the names of the queues that have a job (of the item, if given), searched lazily.

    None stands for a queue with jobs of closed groups only, as finding that out takes much longer than another name, or
    for some closed groups of the item in the next one.
    """
    if asked is None and item is None:
        if state.fair is None:
            yield from state.queues.nonempty
        else:
            by_name = state.queues.by_name
            yield from (name if has_open(state, by_name[name], None) else None for name in state.queues.nonempty)
        return
    if asked is None:
        found = state.items.by_name.get(item or "")
        asked = () if found is None else tuple(found.nonempty)
    by_name = state.queues.by_name
    for name in asked:
        queue = by_name.get(name)
        if queue is None or (queue.ready_for is not None and not queue.granted):
            continue                            # or it lacks a grant, as very many may
        if not _can_hand_out(state, queue, item):
            continue
        if item is None:
            yield name if has_open(state, queue, None) else None
        else:
            for opened in looks_for_open(state, queue, item):
                yield name if opened else None


def _candidates(state: State, asked: tuple[str, ...] | None, item_name: str | None) -> list[str]:
    """Return the names of the queues that have a job, each once, in the order asked for, otherwise sorted."""
    by_name = state.queues.by_name
    if item_name is None:
        if state.fair is not None and state.queues.grouped:
            return without_closed(state, state.fair, asked or ())
        return [
            name for name in dict.fromkeys(asked or ())
            if (queue := by_name.get(name)) is not None and queue.front is not None
        ]
    item = state.items.by_name.get(item_name)
    if item is None:
        return []
    by_queue = item.by_queue
    if asked is None:
        state.spent += limits.STEP * len(item.nonempty)        # there may be any number of them
        return [
            name for name in item.nonempty
            if ((queue := by_name[name]).settings is None and not queue.withheld) or can_hand_out(queue, by_queue[name])
        ]
    return [
        name for name in dict.fromkeys(asked)
        if (item_queue := by_queue.get(name)) is not None and can_hand_out(by_name[name], item_queue)
    ]


def _open_of_item(state: State, queues: Iterable[Queue], item: str | None) -> set[str]:
    """Return the names of the queues among these, all with a job of the item, that do not hold it back."""
    looked_at = list(queues)
    state.spent += limits.CLOSED_OF_ITEM_STEPS * limits.STEP * len(looked_at)
    return {queue.name for queue in looked_at if has_open(state, queue, item)}


def _can_hand_out(state: State, queue: Queue, item_name: str | None) -> bool:
    """Return whether the queue has a job."""
    if item_name is None:
        return queue.front is not None
    item_queue = state.items.in_queue(item_name, queue.name)
    return item_queue is not None and can_hand_out(queue, item_queue)


def _ranks(state: State, names: list[str], item: str | None) -> list[int]:
    """Return the ranks of the next jobs of these queues, each of which must have one."""
    if item is None:
        by_name = state.queues.by_name
        return [by_name[name].ready.front for name in names]
    by_queue = state.items.by_name[item].by_queue if names else {}
    return [by_queue[name].ready.first.rank for name in names]


class _Any:
    """Jobs of any queue, from lists that the state maintains.

    Any number of queues may have only closed groups: after CLOSED_QUEUES_MAX of these, the queue of the next group by
    FAIR is chosen. So an available job is always found.
    """

    found: FairChoice | None = None

    def __init__(self, state: State, way: Way) -> None:
        self._state = state
        self._queues = state.queues
        self._way = way
        self._after = self._before = way.after or ""        # now, and before the last turn
        self._chosen: Queue | None = None
        self._withdrawn: list[Queue] = []
        self._closed = 0                                    # queues left out
        self._nothing_open = False
        self.turned = False

    @property
    def ranks(self) -> bool:
        return self._way.policy in (Policy.PRIORITY, Policy.OLDEST)

    def choose(self, bits: int) -> Queue | None:
        if not self._queues.nonempty or self._nothing_open:
            return None
        if self._closed == limits.CLOSED_QUEUES_MAX:
            self.turned = False
            self._chosen = next_queue(self._state)
            return self._chosen
        self._chosen = self._queues.by_name[self._name(bits)]
        return self._chosen

    def _name(self, bits: int) -> str:
        names, policy = self._queues.nonempty, self._way.policy
        name: str
        if policy is Policy.RANDOM:
            name = names[draw(len(names), bits)]
        elif policy is Policy.PRIORITY:
            name = self._of_highest(bits)
        elif policy is Policy.WEIGHT:
            name = self._queues.weights.choose(names, bits)
        elif policy is Policy.RR:
            self.turned = True
            at = names.bisect_right(self._after)
            name = names[at if at < len(names) else 0]
            if self._way.in_turn:
                self._before, self._after = self._after, name
        elif policy is Policy.OLDEST:
            name = self._queues.index_oldest().entries[0][2]
        else:
            name = names[0]
        return name

    def _of_highest(self, bits: int) -> str:
        """Choose a queue with a job of the highest priority: the next one in turn, or a random one."""
        pairs = self._queues.by_rank
        rank = pairs[0][0]
        name: str
        if not self._way.in_turn:
            name = pairs[draw(pairs.bisect_left((rank + 1,)), bits)][1]
            return name
        self.turned = len(pairs) > 1 and pairs[1][0] == rank
        at = pairs.bisect_right((rank, self._after)) if self.turned else 0
        name = pairs[at if at < len(pairs) and pairs[at][0] == rank else 0][1]
        if self.turned:
            self._before, self._after = self._after, name
        return name

    def gave(self, *, exhausted: bool) -> None:
        if exhausted and self._chosen is not None and self._chosen.front is not None:
            self._queues.hide(self._chosen)
            self._withdrawn.append(self._chosen)

    def leave_out(self) -> None:
        self._turn_back()
        self.gave(exhausted=True)
        if self._closed < limits.CLOSED_QUEUES_MAX:
            self._closed += 1
        self._nothing_open = self._closed == 1 and nothing_open(self._state)

    def leave_out_closed(self) -> None:
        pass        # it is of no item

    def move_behind(self, job: Job) -> bool:
        queue, moved = self._chosen, False
        assert queue is not None
        if self._way.policy is Policy.PRIORITY:
            moved = self._queues.rank_behind(queue, job)
        elif self._way.policy is Policy.OLDEST:
            moved = self._queues.date_behind(queue, job)
        if moved:
            self._turn_back()
            self._withdrawn.append(queue)
        return moved

    def _turn_back(self) -> None:
        """Undo the turn of the last choice, if that was made by turns."""
        if self.turned:
            self._after = self._before

    def end(self) -> None:
        for queue in self._withdrawn:
            self._queues.reindex(queue)


class _Random:
    """Jobs of some queues or of an item, each queue equally likely."""

    turned = ranks = False
    found: FairChoice | None = None

    def __init__(self, state: State, asked: tuple[str, ...] | None, item: str | None) -> None:
        self._state = state
        self._item = item
        names = _candidates(state, asked, item)
        self._names = names if asked is None else sorted(names)
        self._at = 0                                            # the position of the chosen one

    def choose(self, bits: int) -> Queue | None:
        names = self._names
        if not names:
            return None
        self._at = draw(len(names), bits)
        return self._state.queues.by_name[names[self._at]]

    def gave(self, *, exhausted: bool) -> None:
        if exhausted or not _can_hand_out(self._state, self._state.queues.by_name[self._names[self._at]], self._item):
            del self._names[self._at]

    def leave_out(self) -> None:
        self.gave(exhausted=True)

    def leave_out_closed(self) -> None:
        by_name = self._state.queues.by_name
        opened = _open_of_item(self._state, [by_name[name] for name in self._names], self._item)
        self._names = [name for name in self._names if name in opened]

    def move_behind(self, job: Job) -> bool:
        return False

    def end(self) -> None:
        pass


class _Weighted:
    """Jobs of some queues or of an item, each queue with a probability proportional to its WEIGHT.

    The sums of weights are a Fenwick tree over the sorted names, so a draw costs O(log names).
    """

    turned = ranks = False
    found: FairChoice | None = None

    def __init__(self, state: State, asked: tuple[str, ...] | None, item: str | None) -> None:
        self._state = state
        self._item = item
        self._weigh([state.queues.by_name[name] for name in sorted(_candidates(state, asked, item))])

    def _weigh(self, queues: list[Queue]) -> None:
        """Let these queues be the candidates."""
        self._queues = queues
        self._weights = [1 if queue.settings is None else queue.settings.weight for queue in queues]
        self._sums = [0, *self._weights]
        for at in range(1, len(self._sums)):
            above = at + (at & -at)
            if above < len(self._sums):
                self._sums[above] += self._sums[at]
        self._total = sum(self._weights)
        self._at = 0

    def choose(self, bits: int) -> Queue | None:
        if not self._total:
            return None
        left, at, step = draw(self._total, bits), 0, 1 << len(self._queues).bit_length()
        while step:
            if at + step < len(self._sums) and self._sums[at + step] <= left:
                at += step
                left -= self._sums[at]
            step >>= 1
        self._at = at
        return self._queues[at]

    def gave(self, *, exhausted: bool) -> None:
        if not exhausted and _can_hand_out(self._state, self._queues[self._at], self._item):
            return
        weight, at = self._weights[self._at], self._at + 1
        self._total -= weight
        while at < len(self._sums):
            self._sums[at] -= weight
            at += at & -at

    def leave_out(self) -> None:
        self.gave(exhausted=True)

    def leave_out_closed(self) -> None:
        opened = _open_of_item(self._state, self._queues, self._item)
        self._weigh([queue for queue in self._queues if queue.name in opened])

    def move_behind(self, job: Job) -> bool:
        return False

    def end(self) -> None:
        pass


class _ByRank:
    """Jobs of some queues, or of an item, the highest priority first.

    For a GetWith without turns, and for one with turns of an item in any queue, where ties are decided by name.
    """

    found: FairChoice | None = None

    def __init__(self, state: State, asked: tuple[str, ...] | None, item: str | None, way: Way) -> None:
        self._state = state
        self._item = item
        self._ordered = asked is not None       # of equal ones the first, in the order asked for; otherwise any,
        self._in_turn = way.in_turn             # or the next one in turn
        self._names = _candidates(state, asked, item)
        self.ranks = len(self._names) > 1
        self._next = bisect_right(self._names, way.after or "") if way.in_turn else 0   # the place where a turn begins
        self._before = self._next                                                       # before the last choice
        self.turned = False
        self._equal: dict[int, list[int]] = {}                  # by rank: the places of the names, in rising order
        for place, rank in enumerate(_ranks(state, self._names, item)):
            self._equal.setdefault(rank, []).append(place)
        self._first = list(self._equal)                         # a heap of the ranks
        heapify(self._first)
        self._at = 0                                            # which of the first ones was chosen

    def choose(self, bits: int) -> Queue | None:
        if not self._first:
            return None
        places = self._equal[self._first[0]]
        self._before = self._next
        self.turned = self._in_turn and len(places) > 1
        if self.turned:
            self._at = bisect_left(places, self._next) % len(places)
        else:
            self._at = 0 if self._ordered or self._in_turn else draw(len(places), bits)
        place = places[self._at]
        queue = self._state.queues.by_name[self._names[place]]
        if self.turned and not queue.closed:    # a closed one is passed over
            self._next = place + 1
        return queue

    def gave(self, *, exhausted: bool) -> None:
        place = self._take_out()
        name = self._names[place]
        if exhausted or not _can_hand_out(self._state, self._state.queues.by_name[name], self._item):
            return
        (rank,) = _ranks(self._state, [name], self._item)
        self._insert(place, rank)

    def _take_out(self) -> int:
        """Remove the chosen queue from the list of its rank; returns its place."""
        places = self._equal[self._first[0]]
        place = places.pop(self._at)
        if not places:
            del self._equal[heappop(self._first)]
        return place

    def _insert(self, place: int, rank: int) -> None:
        if rank not in self._equal:
            self._equal[rank] = []
            heappush(self._first, rank)
        insort(self._equal[rank], place)

    def leave_out(self) -> None:
        self._next = self._before
        self._take_out()

    def leave_out_closed(self) -> None:
        by_name, names = self._state.queues.by_name, self._names
        left = [by_name[names[place]] for places in self._equal.values() for place in places]
        opened = _open_of_item(self._state, left, self._item)
        equal = {rank: [place for place in places if names[place] in opened] for rank, places in self._equal.items()}
        self._equal = {rank: places for rank, places in equal.items() if places}
        self._first = list(self._equal)
        heapify(self._first)

    def move_behind(self, job: Job) -> bool:
        if job.rank <= self._first[0]:
            return False
        self._next = self._before
        self._insert(self._take_out(), job.rank)
        return True

    def end(self) -> None:
        pass


# The sort key of a queue, from its next job, and its turn; the smallest comes first.
_Key = Callable[[Job, int], tuple[int, int]]

_KEYS: dict[Policy, _Key] = {
    Policy.PRIORITY: lambda job, turn: (job.rank, turn),
    Policy.OLDEST: lambda job, turn: ready_since(job),
    Policy.PLACE: lambda job, turn: (job.rank, job.seq),
    Policy.RR: lambda job, turn: (0, turn),
    Policy.ORDER: lambda job, turn: (0, turn),
    Policy.SORTED: lambda job, turn: (0, turn),
}


class _Ordered:
    """Jobs of some queues or of an item, always of the first queue by the policy."""

    found: FairChoice | None = None

    def __init__(self, state: State, asked: tuple[str, ...] | None, item: str | None, way: Way) -> None:
        self._state = state
        self._item = item
        self._way = way
        names = _candidates(state, asked, item)
        if way.policy is Policy.SORTED:
            names.sort()
        elif asked is None and way.after is not None and way.policy is Policy.RR:
            at = bisect_right(names, way.after)
            names = names[at:] + names[:at]
        self._turn = len(names)
        self.ranks = self._turn > 1 and way.policy in (Policy.PRIORITY, Policy.OLDEST, Policy.PLACE)
        key, by_name = _KEYS[way.policy], state.queues.by_name
        self._heap = [(*key(next_job(state, by_name[name], item), at), at, name) for at, name in enumerate(names)]
        heapify(self._heap)
        self.turned = False

    def choose(self, bits: int) -> Queue | None:
        heap = self._heap
        if not heap:
            return None
        self.turned = self._way.policy is Policy.RR or (
            self._way.policy is Policy.PRIORITY and any(one[0] == heap[0][0] for one in heap[1:3])
        )
        return self._state.queues.by_name[heap[0][3]]

    def gave(self, *, exhausted: bool) -> None:
        _, _, place, name = self._heap[0]
        queue = self._state.queues.by_name.get(name)
        if exhausted or queue is None or not _can_hand_out(self._state, queue, self._item):
            heappop(self._heap)
            return
        if self.turned and self._way.in_turn:
            self._turn += 1
            place = self._turn
        key = _KEYS[self._way.policy]
        heapreplace(self._heap, (*key(next_job(self._state, queue, self._item), place), place, name))

    def leave_out(self) -> None:
        heappop(self._heap)

    def leave_out_closed(self) -> None:
        by_name = self._state.queues.by_name
        opened = _open_of_item(self._state, [by_name[name] for *_, name in self._heap], self._item)
        self._heap = [entry for entry in self._heap if entry[3] in opened]
        heapify(self._heap)

    def move_behind(self, job: Job) -> bool:
        *before, place, name = self._heap[0]
        key = _KEYS[self._way.policy](job, place)
        if key <= tuple(before):
            return False
        heapreplace(self._heap, (*key, place, name))
        return True

    def end(self) -> None:
        pass
