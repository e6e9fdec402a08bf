"""True histories, to judge the checker by: the real queue machine, and around it everything that hides what it did.

There is one machine, so what it does is right by definition. Commands take a while to get there and so do answers, both
may be lost, clients lose patience, leaders die with commands half done, waiting clients vanish, and sessions repeat.
Time is simulated, and a seed makes a history.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from functools import partial
from random import Random

from msgspec import Struct

from sockpqd import core
from tests.chaos.checker.evidence.moments import MS, SECOND
from tests.chaos.workload.history import Cut, Get, History, Outcome, Policy

NAMES = ("n1", "n2", "n3")
BASE_MS = 1_700_000_000_000
GRACE_MS = 400
LEASE_LATE_MS = 3000        # the grace, the longest time without a leader, and what ticks need
THEN = {False: core.Then.LATER, True: core.Then.DONE}


class Knobs(Struct, frozen=True):
    """The degree to which the simulated world is unkind."""

    clients: int = 6
    session_clients: int = 2
    seconds: float = 8.0
    lost: float = 0.03              # share of the messages that do not arrive
    failover_s: float = 2.5         # between two of them; 0: none
    leaseless: float = 0.1          # share of GETs without a lease
    then_done: float = 0.1
    think_ms: int = 40
    puts: float = 0.45              # share of PUTs among PUTs and GETs
    blocks: float = 0.6             # share of GETs that wait
    policies: tuple[Policy | None, ...] = (None,)       # of GETs
    forgets: str = ""               # a queue whose waiting clients the servers forget, for 4 s: a fault of theirs


class Call(Struct, eq=False):
    """One attempt of a command in flight. `settle` gives its client the outcome, and the reply if it was executed."""

    operation: core.Operation
    settle: Callable[[Outcome, core.Reply | None, str | None], None]
    get: Get | None = None
    open: bool = True               # the client listens
    deaf: bool = False              # the server will not notice that it does not

    def tell(self, outcome: Outcome, reply: core.Reply | None = None, server: str | None = None) -> None:
        """Record the command's outcome, once."""
        if self.open:
            self.open = False
            self.settle(outcome, reply, server)


class World:
    """The cluster, seen from outside."""

    def __init__(self, seed: int, knobs: Knobs) -> None:
        self.random = Random(seed)
        self.knobs = knobs
        self.now = 5 * SECOND
        self.history = History()
        self.machine = core.Machine()
        self.events: list[tuple[int, core.Event]] = []      # with the time of each, if the machine records any
        self.leader: str | None = None
        self._term = self._index = self._events_made = 0
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._waiters: list[Call] = []
        self._answering: list[Call] = []        # executed, and the answer is on its way

    # ---- time

    def after(self, ms: float, event: Callable[[], None]) -> None:
        """Schedule an event, `ms` simulated milliseconds from now."""
        self._events_made += 1
        heapq.heappush(self._events, (self.now + round(ms * MS), self._events_made, event))

    def run(self, until: Callable[[], bool]) -> None:
        """Advance until this condition holds."""
        while not until():
            self.now, _, event = heapq.heappop(self._events)
            event()

    def delay_ms(self) -> float:
        """Return the delay of a message; a few are very late."""
        usual = self.random.uniform(0.2, 8)
        return usual if self.random.random() > 0.03 else usual + self.random.uniform(50, 900)

    # ---- leaders

    def lead(self) -> None:
        """Begin a new term, with a leader that is not cut off."""
        self._term += 1
        cut = [one.node for one in self.history.cuts if one.end_ns >= self.now]
        self.leader = self.random.choice([name for name in NAMES if name not in cut])
        self.apply([core.Lead(self.leader, self._term, NAMES, b"c" * 16, GRACE_MS)])
        self.after(5, self.tick)

    def tick(self) -> None:
        """End leases that have expired."""
        due = self.machine.next_due_ms()
        if self.leader is not None and due is not None and due <= BASE_MS + self.now // MS:
            self.apply([core.Tick()])
        if self.knobs.forgets and self._remembers():
            self._wake()
        self.after(10, self.tick)

    def fail(self) -> None:
        """Let the leader die, be cut off or step back; another one takes over, and finds what was in flight or
        does not.
        """
        old, self.leader = self.leader, None
        assert old is not None
        kind = self.random.choice(["dies", "cut", "steps back"])
        if any(cut.end_ns >= self.now for cut in self.history.cuts):
            kind = "dies"                       # a majority remains
        waiters, self._waiters = self._waiters, []
        for call in waiters:
            if kind == "steps back":
                self._answer(call, Outcome.NOT_EXECUTED, None, old)
            else:
                self.after(self.random.uniform(0, 400), partial(call.tell, Outcome.UNKNOWN))
        for call in self._answering:
            if self.random.random() < 0.6:
                call.tell(Outcome.UNKNOWN)
        if kind == "cut":
            self.history.cuts.append(Cut(old, self.now, self.now + 3 * SECOND))
        self.after(self.random.uniform(20, 1200), self.lead)

    # ---- commands

    def send(self, call: Call) -> None:
        """Send the command to the presumed leader; the client loses patience at some time unless the command blocks."""
        server = self.leader if self.leader is not None and self.random.random() < 0.97 else self.random.choice(NAMES)
        if self.random.random() < self.knobs.lost:
            self.after(self.random.uniform(5, 300), lambda: call.tell(Outcome.UNKNOWN))
            if self.random.random() < 0.5:
                return
        self.after(self.delay_ms(), lambda: self._arrive(call, server))
        if call.get is None or not call.get.blocks:
            self.after(self.random.uniform(400, 800), lambda: call.tell(Outcome.UNKNOWN))
        elif self.random.random() < 0.1:
            call.deaf = self.random.random() < 0.5
            self.after(self.random.uniform(10, 1500), lambda: call.tell(Outcome.UNKNOWN))

    def _arrive(self, call: Call, server: str) -> None:
        if self.leader is None and self.random.random() < 0.3:
            # It lies in a dying leader's log, and is executed, or not, when the next one comes.
            self.after(self.random.uniform(0, 50), lambda: call.tell(Outcome.UNKNOWN))
            call.deaf = True
            self.after(1300, lambda: self._execute(call))
        elif server != self.leader:
            self._answer(call, Outcome.NOT_EXECUTED, None, server)
        else:
            self._execute(call)

    def _execute(self, call: Call) -> None:
        if self.leader is None:
            return
        [reply] = self.apply([call.operation])
        if _goes_on_waiting(call.get, reply):
            self._waiters.append(call)
            return
        self._answer(call, Outcome.OK, reply, self.leader)

    def _answer(self, call: Call, outcome: Outcome, reply: core.Reply | None, server: str) -> None:
        lost = self.random.random() < self.knobs.lost
        noticed = (lost or not call.open) and not call.deaf and self.random.random() < 0.6
        if isinstance(reply, core.Handed) and noticed and isinstance(call.operation, core.Get | core.GetWith):
            lost = True                 # and the job returns to its place; not so in a session
            self.after(self.random.uniform(0, 300), partial(self._return, reply.id))
        if lost:
            self.after(self.random.uniform(0, 500), lambda: call.tell(Outcome.UNKNOWN))
            return
        self._answering.append(call)
        self.after(self.delay_ms(), lambda: self._deliver(call, outcome, reply, server))

    def _deliver(self, call: Call, outcome: Outcome, reply: core.Reply | None, server: str) -> None:
        self._answering.remove(call)
        call.tell(outcome, reply, server)

    def _return(self, number: int) -> None:
        if self.leader is not None:
            self.apply([core.Return(number)])

    def apply(self, operations: list[core.Operation]) -> list[core.Reply]:
        """Apply one entry with these operations, and return their replies."""
        self._index += 1
        applied = self.machine.apply(self._index, BASE_MS + self.now // MS, self.random.getrandbits(64), operations)
        if applied.effects.ready or applied.effects.ended:
            self.after(self.random.uniform(0.5, 4), self._wake)
        self.events += [(self.now, event) for event in applied.events]
        return applied.replies

    def _wake(self) -> None:
        """Try to serve clients that wait, those for an item first."""
        if self.leader is None:
            return
        for call in sorted(self._waiters, key=lambda call: call.get is None or call.get.item is None):
            if call not in self._waiters or not (call.open or call.deaf):
                self._waiters = [other for other in self._waiters if other is not call]
                continue
            assert call.get is not None
            queues = [queue for queue in call.get.queues if queue != self.knobs.forgets or self._remembers()]
            if call.get.until_finished or any(self.machine.ready(queue) for queue in queues):
                self._waiters.remove(call)
                self._execute_again(call)

    def _remembers(self) -> bool:
        return self.now % (4 * SECOND) < SECOND // 5

    def _execute_again(self, call: Call) -> None:
        waiting = len(self._waiters)
        self._execute(call)
        if len(self._waiters) > waiting:        # nothing for it: back to its old place, more or less
            self._waiters.insert(0, self._waiters.pop())


def _goes_on_waiting(get: Get | None, reply: core.Reply) -> bool:
    if get is None or not get.blocks or not isinstance(reply, core.Empty):
        return False
    return reply.unfinished or not get.until_finished
