"""Undoes a batch after one of its operations was refused (spec/state-machine 9.3), step by step, the last one first.

Operations that are not allowed in a batch (hand-outs, settings, sessions) need no step here.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from sockpqd.core.ops.effects import Effects
from sockpqd.core.pulse.pulse import Pulse
from sockpqd.core.records.records import RecordPlace
from sockpqd.core.state import State
from sockpqd.core.store.items.dependents import ItemRelease
from sockpqd.core.store.items.holds import Hold
from sockpqd.core.store.items.item import Item
from sockpqd.core.store.job import BuriedJob, DelayedJob, Job, RunningJob
from sockpqd.core.store.queues import NOTHING_COUNTED
from sockpqd.core.store.watches import Handles


class Undo:
    """The steps made in `state` since this object was created, with a way to undo each."""

    __slots__ = (
        "_counters",
        "_effects",
        "_events",
        "_fair",
        "_items",
        "_next_item",
        "_next_seq",
        "_places",
        "_state",
        "_steps",
    )

    def __init__(self, state: State) -> None:
        self._state = state
        self._steps: list[Callable[[], None]] = []
        self._places: dict[tuple[str, str | None], None] = {}       # queues and items into which jobs were put
        self._items: dict[str, None] = {}                           # items that were held or released
        self._counters: dict[str, tuple[list[int], int]] = {}       # of the queues touched, and their last use
        self._next_seq = state.next_seq
        self._next_item = state.items.next_item
        self._events = (state.events.seq, len(state.events.of_entry))
        self._effects = state.effects
        self._fair = state.fair
        if state.fair is not None:
            state.fair.save()
        state.effects = Effects()       # steps that are undone have no effects
        state.undo = self

    def commit(self) -> None:
        """Keep all steps, and record no more."""
        self._steps.clear()             # they refer to this object: nothing else would let go of their jobs soon
        self._state.undo = None
        if self._fair is not None:
            self._fair.commit()
        effects, self._state.effects = self._state.effects, self._effects
        self._effects.add(effects)

    def back(self) -> None:
        """Undo all steps, the last one first."""
        state = self._state
        state.undo = None
        state.fair = state.queues.fair = self._fair
        for step in reversed(self._steps):
            step()
        self._steps.clear()             # as in commit()
        for queue, item in self._places:
            state.close(queue, item)
        for item in self._items:
            state.end_item(item)
        for name, (counters, used_ms) in self._counters.items():
            known = state.queues.find(name)
            if known is not None:
                known.counters, known.used_ms = counters, used_ms
            if state.queues.gone is not None:
                state.queues.gone.pop(name, None)       # it is not gone
        if self._fair is not None:
            self._fair.undo()
        state.turned_items.clear()
        state.next_seq = self._next_seq
        state.items.next_item = self._next_item
        state.effects = self._effects
        events = state.events
        events.seq, count = self._events
        del events.of_entry[count:]
        events.endings.clear()

    # ---- the steps, reported by the state

    def _keep_counters(self, queue: str) -> None:
        """Save the counters and the last use.

        Each step is reported before anything is counted, and before the queue may end.
        """
        if queue not in self._counters:
            known = self._state.queues.find(queue)
            self._counters[queue] = ([*NOTHING_COUNTED], 0) if known is None else ([*known.counters], known.used_ms)

    def added(self, job: Job) -> None:
        self._keep_counters(job.queue)
        self._places[job.queue, job.item] = None
        self._steps.append(lambda: self._state.remove(self._state.queues.get_or_create(job.queue), job))

    def removed(self, job: Job) -> None:
        self._keep_counters(job.queue)
        self._steps.append(lambda: self._state.add(self._state.queues.get_or_create(job.queue), job))

    def deferred(self, job: DelayedJob) -> None:
        self._keep_counters(job.queue)
        self._places[job.queue, job.item] = None
        self._steps.append(lambda: self._state.undefer(self._state.queues.get_or_create(job.queue), job))

    def undeferred(self, job: DelayedJob, releases: list[ItemRelease]) -> None:
        self._keep_counters(job.queue)
        def step() -> None:
            self._state.defer(self._state.queues.get_or_create(job.queue), job)
            self._state.delays.dependents.reinstate(job, releases)

        self._steps.append(step)

    def buried(self, job: BuriedJob) -> None:
        self._keep_counters(job.queue)
        self._places[job.queue, job.item] = None
        self._steps.append(lambda: self._state.unbury(job))

    def unburied(self, job: BuriedJob) -> None:
        self._keep_counters(job.queue)
        self._steps.append(lambda: self._state.bury(job))

    def stopped(self, job: RunningJob) -> None:
        self._keep_counters(job.queue)
        number = job.session

        def step() -> None:
            queue = self._state.queues.get_or_create(job.queue)
            self._state.start(queue, job)
            self._state.disordered = queue.disordered = True
            if number is not None:
                session = self._state.sessions.by_number[number]
                session.bind(job)
                session.disordered = True       # the id came back behind greater ones

        self._steps.append(step)

    def swapped(self, old: RunningJob, new: RunningJob) -> None:
        self._places[new.queue, new.item] = None
        self._steps.append(lambda: self._state.swap(new, old))

    def noted(self, pulse: Pulse) -> None:
        before = pulse.results
        self._steps.append(lambda: self._state.pulses.restore_results(pulse, before))

    def slept(self, queue: str, group: str) -> None:
        scheduler = self._state.fair
        assert scheduler is not None
        window = scheduler.open.gates.windows.find(queue, group)
        before = None if window is None else replace(window)
        self._steps.append(lambda: scheduler.open.set_window(queue, group, before))

    def alarmed(self, queue: str, alarmed: bool) -> None:
        self._steps.append(lambda: self._state.set_alarmed(queue, not alarmed))

    def used_fair(self) -> None:
        pass

    def remembered(self, queue: str, key: str, before: tuple[int, int]) -> None:
        self._steps.append(lambda: self._state.remembered_keys.set(queue, key, *before))

    def retained(self, queue: str, key: str, before_ms: int, forgotten: tuple[int, str] | None) -> None:
        def step() -> None:
            self._state.retained_keys.retain(queue, key, before_ms)
            if forgotten is not None:
                until_ms, other = forgotten
                self._state.retained_keys.retain(queue, other, until_ms)

        self._steps.append(step)

    def recorded(self, queue: str) -> None:
        self._steps.append(lambda: self._state.records.take_back(queue))

    def passed(self, queue: str, over: int, count: int, total_bytes: int) -> None:
        self._steps.append(lambda: self._state.records.restore(queue, over, count, total_bytes))

    def forgot(self, number: int, place: RecordPlace) -> None:
        self._steps.append(lambda: self._state.records.put_back(number, place))

    def ended_item(self, item: Item) -> None:
        def step() -> None:
            self._state.items.restore(item)

        self._steps.append(step)

    def held(self, item: Item, before: Hold | None) -> None:
        self._items[item.name] = None

        def step() -> None:
            item.hold = before
            self._state.items.holds.set(item.name, before)

        self._steps.append(step)

    def counted_done(self, item: Item) -> None:
        def step() -> None:
            item.done -= 1

        self._steps.append(step)

    def counted_cancelled(self, item: Item) -> None:
        def step() -> None:
            assert item.fate is not None
            item.fate.cancelled -= 1

        self._steps.append(step)

    def failed_item(self, item: Item) -> None:
        def step() -> None:
            item.failed = not item.failed

        self._steps.append(step)

    def carried(self, old: int, new: int) -> None:
        self._steps.append(lambda: self._state.watches.carry(new, old, None))

    def unwatched(self, seq: int, handles: Handles) -> None:
        self._steps.append(lambda: self._state.watches.watch_again(seq, handles))
