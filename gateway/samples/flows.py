"""The rates of all queues, from their counters: each pass reads some thousand queues a second, a few at a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from itertools import islice

from msgspec import Struct

from sockpqd.core import Machine, QueueFlow, flow_of

QUEUES_MAX = 100_000            # further queues are in no rate; 20 MB for this many
QUEUES_PER_SECOND = 10_000      # looked at; of more than that a pass takes several seconds
BETWEEN_S = 0.5                 # from one look to the next, at least
PORTION = 200                   # queues looked at before others have a turn: a tenth of a millisecond

NOTHING = QueueFlow(0, 0, 0, 0, 0)


class QueueRates(Struct, frozen=True, gc=False):
    """Jobs per second: that came, were handed out, done, put back (LATER, or the end of a lease), and died."""

    put: float = 0.0
    taken: float = 0.0
    done: float = 0.0
    failed: float = 0.0
    died: float = 0.0

    @property
    def busy(self) -> float:
        """Return a measure of the activity in the queue."""
        return self.put + self.taken


STILL = QueueRates()


class Flows:
    """The rates of each active queue, and of all queues together, as of the last pass."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.of: dict[str, QueueRates] = {}
        self.total: QueueRates | None = None         # None: not known
        self._clock = clock
        self._counted: dict[str, QueueFlow] = {}
        self._passed: float | None = None       # the time of the last pass

    def forget(self) -> None:
        """Make the next pass a first one: this node was behind, so its counters have jumped."""
        self.total, self.of, self._passed = None, {}, None

    async def look(self, machine: Machine) -> None:
        """Look at all queues once."""
        now = self._clock()
        if self._passed is not None and now - self._passed < BETWEEN_S:
            return                      # the last look was late: one job in a moment would be hundreds a second
        changed, counted = dict[str, list[int]](), dict[str, QueueFlow]()
        before = self._counted
        gone = machine.take_gone()
        # The counters of a new queue begin at 0, so the counters of queues removed since the last pass must be added.
        for at, (name, counters) in enumerate(gone.items(), start=1):
            changed[name] = _less(flow_of(counters), before.pop(name, NOTHING))
            if at % PORTION == 0:
                await asyncio.sleep(0)
        names = iter(list(islice(machine.all_queue_names(), QUEUES_MAX)))
        looked = 0
        while portion := list(islice(names, PORTION)):
            for name, flow in zip(portion, machine.flows(portion), strict=True):
                if flow is not None and name not in counted:
                    counted[name] = flow
                    last = before.get(name, NOTHING)
                    if flow != last:
                        more = _less(flow, last)
                        changed[name] = list(map(sum, zip(changed[name], more, strict=True))) if name in changed \
                            else more
            looked += len(portion)
            await asyncio.sleep(1.0 if looked % QUEUES_PER_SECOND == 0 else 0)
        self._counted = counted
        passed, self._passed = self._passed, now
        if passed is not None:
            spent = now - passed
            self.of = {name: QueueRates(*(count / spent for count in counts)) for name, counts in changed.items()}
            self.total = STILL if not changed else QueueRates(
                *(sum(column) / spent for column in zip(*changed.values(), strict=True)))


def _less(flow: QueueFlow, last: QueueFlow) -> list[int]:
    """Return the counts since `last`, never below 0, even when a snapshot has replaced the state."""
    return [
        max(0, flow.put - last.put), max(0, flow.taken - last.taken), max(0, flow.done - last.done),
        max(0, flow.failed - last.failed), max(0, flow.died - last.died),
    ]
