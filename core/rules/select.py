"""The queues that have a job for a Get, and the choice among them (spec/state-machine 4.1).

RANDOM: each of them is equally likely. PRIORITY: the one with the job of the highest priority; among equals the first
in the order of the Get, or each equally likely if the Get names no queues.

The candidates are determined once. A caller that hands out several jobs calls `gave` after each, and only the queue of
that job is looked at again, as a hand-out changes nothing for the others. For Gets of any queue the state keeps sorted
lists, so there is nothing to determine.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import Protocol

from core import limits
from core.ops.jobs import Policy
from core.rules.hand_out import can_hand_out
from core.state import State
from core.store.choice import draw
from core.store.job import Job
from core.store.queues import Queue


class Offers(Protocol):
    """The queues that have a job, while several jobs are handed out."""

    def choose(self, bits: int) -> Queue | None:
        """The queue of the next job; None: there is none."""

    def gave(self, *, exhausted: bool) -> None:
        """A job of the chosen queue was handed out; `exhausted`: none of its other jobs may be."""

    def end(self) -> None:
        """All jobs are handed out."""


def offers(state: State, asked: tuple[str, ...] | None, item: str | None, policy: Policy) -> Offers:
    """The choices for several jobs: of the queues asked for (None: any), and of the item if there is one."""
    if asked is None and item is None:
        return _Any(state, policy)
    if policy is Policy.PRIORITY:
        return _ByRank(state, asked, item)
    return _Random(state, asked, item)


def choice(state: State, asked: tuple[str, ...] | None, item: str | None, policy: Policy, bits: int) -> Queue | None:
    """The queue of a single job; None: there is none."""
    if asked is None and item is None:
        return _Any(state, policy).choose(bits)
    if policy is not Policy.PRIORITY:
        return _Random(state, asked, item).choose(bits)
    names = _candidates(state, asked, item)
    if not names:
        return None
    ranks = _ranks(state, names, item)
    best = min(ranks)
    if asked is not None:
        return state.queues.by_name[names[ranks.index(best)]]
    names = [name for name, rank in zip(names, ranks, strict=True) if rank == best]
    return state.queues.by_name[names[draw(len(names), bits)]]


def next_job(state: State, queue: Queue, item: str | None) -> Job:
    """The next job of the queue, which must have one."""
    return queue.ready.first if item is None else state.items.by_name[item].by_queue[queue.name].ready.first


def offering(state: State, asked: tuple[str, ...] | None, item: str | None) -> Iterator[str]:
    """The names of the queues that have a job, of the item if there is one; looked for as they are asked for."""
    if asked is None and item is None:
        yield from state.queues.nonempty
        return
    if asked is None:
        found = state.items.by_name.get(item or "")
        asked = () if found is None else tuple(found.nonempty)
    by_name = state.queues.by_name
    for name in asked:
        queue = by_name.get(name)
        if queue is not None and _can_hand_out(state, queue, item):
            yield name


def _candidates(state: State, asked: tuple[str, ...] | None, item_name: str | None) -> list[str]:
    """The names of the queues that have a job, each once, in the order asked for, otherwise sorted."""
    by_name = state.queues.by_name
    if item_name is None:
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
            if (queue := by_name[name]).settings is None or can_hand_out(queue, by_queue[name])
        ]
    return [
        name for name in dict.fromkeys(asked)
        if (item_queue := by_queue.get(name)) is not None and can_hand_out(by_name[name], item_queue)
    ]


def _can_hand_out(state: State, queue: Queue, item_name: str | None) -> bool:
    """Whether the queue has a job."""
    if item_name is None:
        return queue.front is not None
    item_queue = state.items.in_queue(item_name, queue.name)
    return item_queue is not None and can_hand_out(queue, item_queue)


def _ranks(state: State, names: list[str], item: str | None) -> list[int]:
    """The ranks of the next jobs of these queues, each of which must have one."""
    if item is None:
        by_name = state.queues.by_name
        return [by_name[name].ready.front for name in names]
    by_queue = state.items.by_name[item].by_queue if names else {}
    return [by_queue[name].ready.first.rank for name in names]


class _Any:
    """Jobs of any queue, from the lists that the state keeps."""

    def __init__(self, state: State, policy: Policy) -> None:
        self._queues = state.queues
        self._by_rank = policy is Policy.PRIORITY
        self._chosen: Queue | None = None
        self._withdrawn: list[Queue] = []

    def choose(self, bits: int) -> Queue | None:
        """Implements Offers."""
        names = self._queues.nonempty
        if not names:
            return None
        if self._by_rank:
            pairs = self._queues.by_rank
            first = pairs.bisect_left((pairs[0][0] + 1,))       # behind those of the highest priority
            name: str = pairs[draw(first, bits)][1]
        else:
            name = names[draw(len(names), bits)]
        self._chosen = self._queues.by_name[name]
        return self._chosen

    def gave(self, *, exhausted: bool) -> None:
        """Implements Offers."""
        if exhausted and self._chosen is not None and self._chosen.front is not None:
            self._queues.withdraw(self._chosen)
            self._withdrawn.append(self._chosen)

    def end(self) -> None:
        """Implements Offers."""
        for queue in self._withdrawn:
            self._queues.relist(queue)


class _Random:
    """Jobs of some queues or of an item, each queue equally likely."""

    def __init__(self, state: State, asked: tuple[str, ...] | None, item: str | None) -> None:
        self._state = state
        self._item = item
        names = _candidates(state, asked, item)
        self._names = names if asked is None else sorted(names)
        self._at = 0                                            # the position of the chosen one

    def choose(self, bits: int) -> Queue | None:
        """Implements Offers."""
        names = self._names
        if not names:
            return None
        self._at = draw(len(names), bits)
        return self._state.queues.by_name[names[self._at]]

    def gave(self, *, exhausted: bool) -> None:
        """Implements Offers."""
        if exhausted or not _can_hand_out(self._state, self._state.queues.by_name[self._names[self._at]], self._item):
            del self._names[self._at]

    def end(self) -> None:
        """Implements Offers."""


class _ByRank:
    """Jobs of some queues, or of an item, those of the highest priority first."""

    def __init__(self, state: State, asked: tuple[str, ...] | None, item: str | None) -> None:
        self._state = state
        self._item = item
        self._ordered = asked is not None       # of equal ones the first, in the order asked for; otherwise any
        self._names = _candidates(state, asked, item)
        self._equal: dict[int, list[int]] = {}                  # by rank: the places of the names, in rising order
        for place, rank in enumerate(_ranks(state, self._names, item)):
            self._equal.setdefault(rank, []).append(place)
        self._first = list(self._equal)                         # a heap of the ranks
        heapify(self._first)
        self._at = 0                                            # which of the first ones was chosen

    def choose(self, bits: int) -> Queue | None:
        """Implements Offers."""
        if not self._first:
            return None
        places = self._equal[self._first[0]]
        self._at = 0 if self._ordered else draw(len(places), bits)
        return self._state.queues.by_name[self._names[places[self._at]]]

    def gave(self, *, exhausted: bool) -> None:
        """Implements Offers."""
        places = self._equal[self._first[0]]
        place = places.pop(self._at)
        if not places:
            del self._equal[heappop(self._first)]
        name = self._names[place]
        if exhausted or not _can_hand_out(self._state, self._state.queues.by_name[name], self._item):
            return
        (rank,) = _ranks(self._state, [name], self._item)
        if rank not in self._equal:
            self._equal[rank] = []
            heappush(self._first, rank)
        insort(self._equal[rank], place)

    def end(self) -> None:
        """Implements Offers."""
