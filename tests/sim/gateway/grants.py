"""Checks the promise of pulses: in no window of P + PAUSE seconds do all nodes together write more than NOW grants.

The monitor sees what each process writes to its clients, at the moment of writing and by the true time: grants, and
jobs of queues with a rate. NOW, P and PAUSE are taken from the history that all nodes share. They may change while a
grant is in flight: one that was right at some moment between its proposal and its writing is right. A grant that a
session requests again is in flight again: from the proposal that has a grant for it, otherwise from the reply, when the
node decides whether there is room.

With SPREAD two grants are P / NOW apart as well, except those that a session asks for again.

An answer that a session asks for again is the same grant: its client acts on it once. So in each window it counts once
as long as it is there, however often it was written, and from its last time on; when it has left the window it needs
room like any other. To let it wait for room in any case would count bytes better and keep the promise of sessions
worse: with a long period the ticket would be closed before it is repeated, and the turn lost by a retry.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Any, NamedTuple

from sockpqd.core import (
    GetWith,
    Grant,
    Granted,
    Handed,
    HandedMany,
    Machine,
    Operation,
    Reply,
    Request,
    TakeTurn,
    Turn,
)
from sockpqd.gateway.pulses.window import MARGIN_S
from tests.sim.gateway.answers import Answer
from tests.sim.world.events import Events
from tests.sim.world.trace import Violation

if TYPE_CHECKING:
    from tests.sim.gateway.node import GatewayNode

ROUNDING_S = 1e-7
MOMENT_S = 0.020                # in which those who are released together must be written, but for waits for the disk
REMEMBERED_S = 60.0             # longer than any window


class Moment(NamedTuple):
    """A time, and the number of earlier changes of speed: what a node proposes may be older than one of that time."""

    at: float
    changes: int


class Speed(NamedTuple):
    """A number of grants in a number of seconds, since this moment."""

    since: Moment
    now: int
    length_s: float


class Written(NamedTuple):
    """A grant of a pulse: its number, when and by which node it was written, since when in flight, whether repeated.

    `waited_s`: how long its node had waited for its disk by then, since it began.
    """

    number: tuple[str, int]
    at: float
    node: str
    begun: Moment
    again: bool
    waited_s: float


class GrantMonitor:
    """The monitor of one run. `fast`: the speed of the fastest possible clock."""

    def __init__(self, events: Events, seen: Counter[str], fast: float) -> None:
        self._events = events
        self._seen = seen
        self._fast = fast
        self._pulse_of: dict[bytes, str] = {}           # a queue -> its pulse
        self._together: set[str] = set()
        self._spread: set[str] = set()
        self._speeds: dict[str, deque[Speed]] = {}
        self._changes = 0
        self._begun: dict[tuple[str, int], Moment] = {}     # ("ticket" or "job", number) -> under way since when
        self._told: set[tuple[str, int]] = set()
        self._repeated: set[tuple[str, int]] = set()        # asked for again, perhaps before they could be told
        self._written: dict[str, deque[Written]] = {}
        self.fullest = 0.0                              # of all windows, as a part of NOW
        self.last: dict[str, float] = {}                # when a pulse's last grant was written

    # The truth

    @property
    def moment(self) -> Moment:
        """Return the current moment."""
        return Moment(self._events.now, self._changes)

    def history(self, machine: Machine) -> None:
        """Note that an entry was executed for the first time."""
        for name, pulse in machine.pulses.items():
            speeds = self._speeds.setdefault(name, deque())
            if pulse.together:
                self._together.add(name)
            if pulse.spread:
                self._spread.add(name)
            if not speeds or (speeds[-1].now, speeds[-1].length_s) != (pulse.now, pulse.length_ms / 1000):
                self._changes += 1
                speeds.append(Speed(self.moment, pulse.now, pulse.length_ms / 1000))
        for name, queues in machine.rate_limited_queues.items():
            self._pulse_of.update(dict.fromkeys((queue.encode() for queue in queues), name))

    # From the nodes

    def decided(self, node: GatewayNode, operation: Operation, pending: Any) -> Any:
        """Note an operation that a node proposes; returns the receiver of its outcome."""
        inner = operation.operation if isinstance(operation, Request) else operation
        if isinstance(inner, Grant) or (isinstance(inner, TakeTurn | GetWith) and inner.free):
            return _Proposal(self, node, pending, self.moment)
        if isinstance(operation, Request):              # its answer may be one that was given before
            return _Proposal(self, node, pending, None)
        return pending

    def granted(self, node: GatewayNode, reply: Reply, proposed_at: Moment | None) -> None:
        """Note that a node has received these grants, proposed at that moment; None: it did not propose them."""
        if isinstance(reply, Granted):
            numbers = [("ticket", number) for number in range(reply.first, reply.first + reply.count)]
        elif isinstance(reply, Turn):
            numbers = [("ticket", reply.ticket)]
        else:
            jobs = reply.jobs if isinstance(reply, HandedMany) else (reply,) if isinstance(reply, Handed) else ()
            numbers = [("job", job.id) for job in jobs]
        for number in numbers:
            if number in self._begun:
                self._repeated.add(number)
            self._begun[number] = proposed_at or self.moment        # what is asked for again takes its place anew
        node.has_grants = node.has_grants or (bool(numbers) and proposed_at is not None)

    def wrote(self, node: GatewayNode, answer: Answer, pulse: str | None) -> None:
        """Note that a process writes an answer; `pulse`: the one that was asked for a turn."""
        if answer.ticket is not None:
            assert pulse is not None
            self._grant(node, pulse, ("ticket", answer.ticket))
        for queue, number in answer.jobs:
            if queue in self._pulse_of:
                self._grant(node, self._pulse_of[queue], ("job", number))

    # The promise

    def _grant(self, node: GatewayNode, pulse: str, number: tuple[str, int]) -> None:
        now = self._events.now
        written = self._written.setdefault(pulse, deque())
        again = number in self._told or number in self._repeated
        self._seen[f"grants written {'again' if again else 'once'}"] += 1
        self._told.add(number)
        one = Written(number, now, node.name, self._begun.get(number, self.moment), again, node.waited_s)
        while written and written[0].at < now - REMEMBERED_S:
            written.popleft()
        written.append(one)
        self.last[pulse] = now
        speeds = self._since(pulse, one.begun)
        part, speed = min((self._count(written, speed, now) / speed.now, speed) for speed in speeds)
        if again and any(one.number == number for one in self._before(written, speed, now)):
            return                              # it is there already
        self.fullest = max(self.fullest, part)
        self._seen["full windows"] += part == 1
        if part > 1:
            raise Violation(
                f"{node.name} writes {number[0]} {number[1]}{' again' if again else ''}: {round(part * speed.now)} of"
                f" {pulse} in {speed.length_s:g} s, and there may be {speed.now}: {self._tell(written, speed, now)}"
            )
        if pulse in self._together and not again:
            self._one_group(pulse, written, min(speeds, key=lambda speed: speed.length_s))
        if pulse in self._spread and not again:
            self._apart(pulse, written, min(speed.length_s / speed.now for speed in speeds))

    def _since(self, pulse: str, moment: Moment) -> list[Speed]:
        """Return the speeds that were in force from this moment on."""
        speeds = self._speeds[pulse]
        first = max((place for place, speed in enumerate(speeds) if speed.since <= moment), default=0)
        return list(speeds)[first:]

    def _window(self, written: deque[Written], speed: Speed, now: float) -> Iterator[Written]:
        """Return what was written in the window that ends now, and is as short as the fastest clock makes it."""
        begin = now - speed.length_s / self._fast + ROUNDING_S
        return takewhile(lambda one: one.at >= begin, reversed(written))

    def _before(self, written: deque[Written], speed: Speed, now: float) -> Iterator[Written]:
        """The same without the last of it, in a window as long as the slowest clock makes it: a node may be right that
        a grant has not left it yet.
        """
        begin = now - (speed.length_s + MARGIN_S) / (2 - self._fast)
        return takewhile(lambda one: one.at >= begin, islice(reversed(written), 1, None))

    def _count(self, written: deque[Written], speed: Speed, now: float) -> int:
        return len({one.number for one in self._window(written, speed, now)})

    def _tell(self, written: deque[Written], speed: Speed, now: float) -> str:
        return ", ".join(f"{one.at:.4f} {one.node}" for one in written if one.at > now - speed.length_s - 0.1)

    def _one_group(self, pulse: str, written: deque[Written], speed: Speed) -> None:
        """Grants of a group come at one moment, those of two a period apart; a repeated grant may accompany any."""
        last = written[-1]
        for one in self._window(written, speed, last.at):
            if one.again:
                continue
            apart_s = last.at - one.at
            if (one.node, one.begun) != (last.node, last.begun):
                raise Violation(f"two groups of {pulse} come within {apart_s:.4f} s")
            if apart_s - (last.waited_s - one.waited_s) > MOMENT_S:
                raise Violation(f"two grants of a group of {pulse} come {apart_s:.4f} s after each other")
            self._seen["grants together"] += one is not last

    def _apart(self, pulse: str, written: deque[Written], gap_s: float) -> None:
        """Check that grants keep their gaps by the fastest clock; a repeated grant may accompany any."""
        last = written[-1]
        before = next((one for one in islice(reversed(written), 1, None) if not one.again), None)
        if before is None:
            return
        apart_s = last.at - before.at
        if apart_s < gap_s / self._fast - ROUNDING_S:
            raise Violation(
                f"{last.node} writes {last.number[0]} {last.number[1]} of {pulse} {apart_s:.4f} s after the grant"
                f" before, and they are to be {gap_s:.4f} s apart"
            )
        self._seen["grants apart"] += 1


class _Proposal:
    """Receives the outcome of a proposal before its client does."""

    __slots__ = ("_at", "_monitor", "_node", "_pending")

    def __init__(self, monitor: GrantMonitor, node: GatewayNode, pending: Any, at: Moment | None) -> None:
        self._monitor, self._node, self._pending, self._at = monitor, node, pending, at

    def applied(self, reply: Reply) -> None:
        """Implement Pending."""
        self._monitor.granted(self._node, reply, self._at)
        self._pending.applied(reply)

    def refused(self) -> None:
        """Implement Pending."""
        self._pending.refused()

    def unknown(self) -> None:
        """Implement Pending."""
        self._pending.unknown()

    def overdue(self) -> None:
        """Implement ClientPending."""
        self._pending.overdue()
