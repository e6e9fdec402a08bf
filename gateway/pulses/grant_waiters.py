"""Clients that wait for grants, first come first served, and the grants proposed for them (spec/pulse 3).

Whenever something may be free (a grant leaves the window, somebody comes, the pulse changes) the pulse is looked at,
once in a round of the loop: all grants that are free then are one operation, and those of all pulses one entry. A grant
finds its client when the entry is applied, so one whose client has gone goes to the next. Only a numbered command has
an operation of its own, as the session must remember its ticket.

An answer is formed when it is written: only then is it known whether this node may still write it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from msgspec import Struct
from sortedcontainers import SortedDict

from sockpqd.cluster.api import Cluster
from sockpqd.core import (
    GRANT_WRITTEN_MS_MAX,
    GRANTS_MAX,
    Effects,
    Empty,
    Grant,
    Granted,
    Pulse,
    PulseNotFound,
    Reply,
    Turn,
)
from sockpqd.gateway.protocol import responses
from sockpqd.gateway.protocol.responses import AtWriting
from sockpqd.gateway.pulses.grant_waiter import GrantWaiter, PendingGrant
from sockpqd.gateway.pulses.window import GrantId, Window
from sockpqd.gateway.waiting.slots import NoReply, Outcome
from sockpqd.gateway.waiting.waiting_line import WaitingLine

log = logging.getLogger("sockpqd.gateway")

TIMER_S = 0.0005        # timers may fire this much early
WRITTEN_MS_MAX = GRANT_WRITTEN_MS_MAX // 2      # half of what a new leader counts on


class PulseLine(Struct, eq=False):
    """The clients that wait for grants of one pulse."""

    standing: Any                   # SortedDict[int, GrantWaiter] by number
    sent: dict[int, GrantWaiter]     # waiters whose grant is in flight, in their order
    timed_out: bool = False          # one of those standing has no more time
    free_since: float | None = None     # TOGETHER: since when somebody waits while the window is clear
    timer: asyncio.TimerHandle | None = None


class _GrantProposal:
    """Grants in flight for the first in a line."""

    def __init__(self, waiters: GrantWaiters, pulse: str, window: Window, count: int) -> None:
        self._waiters, self._pulse, self._window, self._count = waiters, pulse, window, count

    def applied(self, reply: Reply) -> None:
        """Give the grants to the current waiters."""
        if isinstance(reply, Granted) and reply.count:
            self._waiters.hand_out(self._pulse, self._window, reply)
        else:
            self._waiters.take_back(self._pulse, self._window, self._count)

    def refused(self) -> None:
        """The clients wait on, if this node still serves."""
        self._waiters.take_back(self._pulse, self._window, self._count)

    def unknown(self) -> None:
        """Take the grants back: nothing was written, and nothing will be."""
        self._waiters.take_back(self._pulse, self._window, self._count)


class GrantWaiters(WaitingLine[GrantWaiter]):
    """All clients of this node that wait for grants, and the windows of all pulses."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._loop = asyncio.get_running_loop()
        self._first_number = 0
        self._lines: dict[str, PulseLine] = {}
        self._windows: dict[str, Window] = {}
        self._term = -1                             # of the Lead entry that the windows begin with
        self._due: dict[str, None] = {}             # pulses to look at in this round
        self._hungry: dict[str, dict[str, None]] = {}   # queues whose blocked clients wait for grants, by their pulse
        self._held: dict[str, list[Callable[[], None]]] = {}    # answers that there is no room for, by their pulse
        self._timers: dict[str, asyncio.TimerHandle] = {}   # when all these should be looked at again
        self._feed: Callable[[str], None] = lambda queue: None
        self._writing: dict[str, Window] = {}       # pulses with grants written in this round

    def attach(self, feed: Callable[[str], None]) -> None:
        """Call `feed` with the name of a queue when its blocked clients may find a grant."""
        self._feed = feed

    def waiting(self, pulse: str) -> int:
        """Return the number of clients that wait for a turn."""
        line = self._lines.get(pulse)
        return 0 if line is None else len(line.standing) + len(line.sent)

    # ---- what is free

    @property
    def now_s(self) -> float:
        """The time of the windows, in monotonic seconds."""
        return self._loop.time()

    def window(self, pulse: str) -> Window:
        """The window of this pulse."""
        window = self._windows.get(pulse)
        if window is None:
            window = self._windows[pulse] = Window()
        return window

    def free(self, pulse: Pulse) -> int:
        """Return how many grants of this pulse may be proposed now."""
        if self.cluster.time_ms < pulse.sleep_until_ms:
            return 0
        return self.window(pulse.name).free(pulse, self._loop.time())

    def room(self, name: str, own: int, numbers: tuple[GrantId, ...]) -> bool:
        """Return whether there is room for these grants of hand-outs, of which `own` are in flight already.

        Rewritten grants may be more than the pulse now gives at once: then there must be room for that many.
        """
        pulse = self.cluster.machine.pulses.get(name)
        if pulse is None or not self.cluster.serving:
            return True                         # nothing is counted, or nothing will be written
        free = self.window(name).free(pulse, self._loop.time(), own)
        return free >= min(len(self._needing_room(pulse, numbers)), pulse.at_once)

    def beyond(self, name: str, numbers: tuple[GrantId, ...]) -> list[GrantId]:
        """Return those of these grants that never fit together with the others, as the pulse gives fewer by now."""
        pulse = self.cluster.machine.pulses.get(name)
        return [] if pulse is None else self._needing_room(pulse, numbers)[pulse.at_once:]

    def _needing_room(self, pulse: Pulse, numbers: tuple[GrantId, ...]) -> list[GrantId]:
        window, now = self.window(pulse.name), self._loop.time()
        return [number for number in numbers if not window.holds(number, pulse, now)]

    def may_write(self, stamp_ms: int, name: str, window: Window, numbers: tuple[GrantId, ...] = ()) -> bool:
        """Return whether grants with this stamp may be written now; a new leader relies on no later writes.

        The new leader may be this node itself: then the pulse has another window, as after deleting and recreating it.
        With SPREAD another grant may have been written by then, if the client of these has not read (window.py).
        """
        if self._windows.get(name, window) is not window:
            return False
        pulse, now = self.cluster.machine.pulses.get(name), self._loop.time()
        if pulse is not None and pulse.spread and not window.keeps_gap(pulse, now):
            again = bool(numbers) and all(window.holds(number, pulse, now) for number in numbers)
            if not again:
                return False
        return self.cluster.holds_lease and self.cluster.time_ms - stamp_ms <= WRITTEN_MS_MAX

    def written(self, pulse: str, window: Window, count: int, numbers: tuple[GrantId, ...] = ()) -> None:
        """Note that grants in flight are being written in this round; see Window."""
        window.write(count, numbers)
        if not self._writing:
            self._loop.call_soon(self._stamp)
        self._writing[pulse] = window

    def free_again(self, pulse: str, window: Window, count: int) -> None:
        """Free the room of grants in flight that will not be written."""
        window.in_flight -= count
        self.look_at(pulse)
        self.feed(pulse)

    def _stamp(self) -> None:
        now = self._loop.time()
        writing, self._writing = self._writing, {}
        for pulse, window in writing.items():
            window.stamp(now)
            self.look_at(pulse)
            self.feed(pulse)

    # ---- blocked clients of queues with a rate

    def starve(self, pulse: str, queue: str) -> None:
        """Have `feed` called when a grant may be free, for clients that wait for jobs of this queue."""
        self._hungry.setdefault(pulse, {})[queue] = None
        if pulse not in self._timers:
            self._feed_later(pulse)

    def hold(self, pulse: str, again: Callable[[], None]) -> None:
        """Have `again` called when there may be room for jobs that were handed out before."""
        self._held.setdefault(pulse, []).append(again)
        if pulse not in self._timers:
            self._feed_later(pulse)

    def _feed_later(self, name: str) -> None:
        pulse, now = self.cluster.machine.pulses.get(name), self._loop.time()
        if pulse is None or (pulse.deny and name not in self._held):
            return                              # until it is changed
        asleep_s = (pulse.sleep_until_ms - self.cluster.time_ms) / 1000
        if asleep_s > 0 and name not in self._held:     # these were granted before
            pause_s: float | None = asleep_s
        else:
            pause_s = self.window(name).opens_s(pulse, now)
        if pause_s is not None:                 # else grants in flight decide
            self._timers[name] = self._loop.call_later(max(pause_s, 0.0) + TIMER_S, self.feed, name)

    def feed(self, pulse: str) -> None:
        """Serve clients for whom grants of the pulse may be free."""
        timer = self._timers.pop(pulse, None)
        if timer is not None:
            timer.cancel()
        for again in self._held.pop(pulse, ()):
            again()
        for queue in self._hungry.pop(pulse, ()):
            self._feed(queue)

    # ---- arriving and leaving

    def add(self, waiter: GrantWaiter, within_ms: int | None) -> None:
        """Let a client wait, for this long at most."""
        self.limit(waiter, within_ms)
        pulse = self.cluster.machine.pulses.get(waiter.pulse)
        if waiter.numbered:
            line = self._lines.get(waiter.pulse)
            if pulse is not None and line is None and not pulse.together and self.free(pulse):
                self._claim(waiter)
            self.propose(waiter)
        elif pulse is None:                     # it may be created by a command before this one
            self.propose(waiter)
        elif self.cluster.serving:
            self.enqueue(waiter)
        else:
            self.finish(waiter, NoReply.REFUSED)

    def _claim(self, waiter: GrantWaiter) -> None:
        waiter.claimed = self.window(waiter.pulse)
        waiter.claimed.claim(1, self._loop.time())

    def enqueue(self, waiter: GrantWaiter, *, ahead: bool = False) -> None:
        """Put the waiter in the line of its pulse, at its old place if it has one; `ahead` if it has a ticket."""
        if ahead:
            self._first_number -= 1
            waiter.number = self._first_number
        for first in self.same_request(waiter):     # its client has given that up
            waiter.number = first.number
            self.remove(first)
            self.finish(first, NoReply.CANCELLED)
        super().enqueue(waiter)
        line = self._lines.get(waiter.pulse)
        if line is None:
            line = self._lines[waiter.pulse] = PulseLine(SortedDict(), {})
        line.standing[waiter.number] = waiter
        line.timed_out |= waiter.timed_out
        self.look_at(waiter.pulse)

    def remove(self, waiter: GrantWaiter) -> None:
        """Take a waiter out of its line, also if a grant is in flight for it."""
        super().remove(waiter)
        line = self._lines[waiter.pulse]
        if line.sent.pop(waiter.number, None) is None:
            del line.standing[waiter.number]
        self._close(waiter.pulse, line)

    def _close(self, pulse: str, line: PulseLine) -> None:
        """Forget a line without clients."""
        if not line.standing and not line.sent:
            if line.timer is not None:
                line.timer.cancel()
            self._lines.pop(pulse, None)

    def last_chance(self, waiter: GrantWaiter) -> None:
        """End a waiter whose time is up, unless a grant is in flight for it."""
        if waiter.number in self._lines[waiter.pulse].standing:
            super().last_chance(waiter)

    def cancel(self, waiter: GrantWaiter) -> None:
        """Remove the waiter of a client that is gone. A grant that was not written goes to the next."""
        if isinstance(waiter.outcome, AtWriting):
            waiter.outcome.drop()
        super().cancel(waiter)

    def stop(self) -> None:
        """Refuse all waiters: this node no longer serves."""
        super().stop()
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._hungry.clear()
        for pulse in list(self._held):
            self.feed(pulse)

    def _end_line(self, pulse: str, outcome: Outcome) -> None:
        line = self._lines.pop(pulse)
        if line.timer is not None:
            line.timer.cancel()
        for waiter in (*line.sent.values(), *line.standing.values()):
            super().remove(waiter)
            self.finish(waiter, outcome)

    # ---- what happens

    def serve(self) -> None:
        """Begin to serve: after a new Lead entry all grants in the state count as written just now."""
        machine = self.cluster.machine
        if machine.term == self._term:
            return                              # it has served before in this leadership, and nobody else has
        self._term = machine.term
        now = self._loop.time()
        self._windows = {
            name: Window(sum(count for _, count in pulse.window), now) for name, pulse in machine.pulses.items()
        }

    def effects(self, effects: Effects) -> None:
        """Look at the pulses that an applied entry has changed."""
        if effects.restored:
            self._restored()
        for name in effects.pulses or ():
            self.feed(name)
            if name in self.cluster.machine.pulses:
                self.look_at(name)
            else:
                self._windows.pop(name, None)
                if name in self._lines:
                    self._end_line(name, responses.PULSE_NOT_FOUND)

    def _restored(self) -> None:
        """Rebuild windows and lines after everything was replaced (CLONE); new pulses have the state's counts."""
        for name in [*self._hungry, *self._held]:
            self.feed(name)
        now = self._loop.time()
        pulses = self.cluster.machine.pulses
        self._windows = {
            name: self._windows.get(name) or Window(sum(count for _, count in pulse.window), now)
            for name, pulse in pulses.items()
        }
        for name in list(self._lines):
            if name in pulses:
                self.look_at(name)
            else:
                self._end_line(name, responses.PULSE_NOT_FOUND)

    def look_at(self, pulse: str) -> None:
        """Look at this pulse at the end of the round: there may be grants for those who wait."""
        if not self._due:
            self._loop.call_soon(self._look)
        self._due[pulse] = None

    def _look(self) -> None:
        due, self._due = self._due, {}
        for name in due:
            line, pulse = self._lines.get(name), self.cluster.machine.pulses.get(name)
            if line is None or pulse is None or not self.cluster.serving:
                continue
            count = self._releasable(line, pulse)
            if count:
                self._propose(line, pulse, count)
            self._end_late(line)
            self._wake_later(line, pulse)
            self._close(name, line)

    def _releasable(self, line: PulseLine, pulse: Pulse) -> int:
        """Return how many of the clients in this line may be given grants now."""
        standing = len(line.standing)
        free = min(self.free(pulse), standing, GRANTS_MAX)
        if not free or not pulse.together:
            return free
        now = self._loop.time()
        if not self.window(pulse.name).clear(pulse, now):
            line.free_since = None
            return 0
        if line.free_since is None:
            line.free_since = now
        if standing < pulse.now and now < line.free_since + pulse.max_wait_ms / 1000:
            return 0
        line.free_since = None
        return free

    def _propose(self, line: PulseLine, pulse: Pulse, count: int) -> None:
        window = self.window(pulse.name)
        anonymous = 0
        for _ in range(count):
            number, waiter = line.standing.popitem(0)
            if not waiter.numbered:
                line.sent[number] = waiter
                anonymous += 1
            else:
                super().remove(waiter)
                if not self.finish_if_refused(waiter):
                    self._claim(waiter)
                    self.propose(waiter)
        if anonymous:
            window.claim(anonymous, self._loop.time())
            self.cluster.propose(Grant(pulse.name, anonymous), _GrantProposal(self, pulse.name, window, anonymous))

    def _end_late(self, line: PulseLine) -> None:
        """End the waiters whose time was over, after their last chance in this turn."""
        if not line.timed_out:
            return
        line.timed_out = False
        for waiter in [waiter for waiter in line.standing.values() if waiter.timed_out]:
            del line.standing[waiter.number]
            super().remove(waiter)
            self.finish(waiter, responses.WAIT_TIMEOUT)

    def _wake_later(self, line: PulseLine, pulse: Pulse) -> None:
        """Look again when a grant becomes free by time."""
        if line.timer is not None:
            line.timer.cancel()
            line.timer = None
        if not line.standing:
            return
        now, window = self._loop.time(), self.window(pulse.name)
        asleep_s = (pulse.sleep_until_ms - self.cluster.time_ms) / 1000
        if asleep_s > 0:
            pause_s: float | None = asleep_s
        elif line.free_since is not None:
            pause_s = line.free_since + pulse.max_wait_ms / 1000 - now
        elif pulse.together:
            pause_s = window.last_leaves_s(now)
        else:
            pause_s = window.opens_s(pulse, now)
        if pause_s is not None:
            line.timer = self._loop.call_later(max(pause_s, 0.0) + TIMER_S, self.look_at, pulse.name)

    # ---- grants

    def hand_out(self, pulse: str, window: Window, granted: Granted) -> None:
        """Give these grants to the clients for whom they were asked, or to those that wait now."""
        stamp_ms = self.cluster.machine.clock_ms
        for ticket in range(granted.first, granted.first + granted.count):
            self._pass_on(PendingGrant(self, pulse, window, ticket, stamp_ms))

    def _pass_on(self, pending: PendingGrant) -> None:
        """Give the grant to the first client that waits; if there is none it is not used."""
        pulse = pending.pulse
        line = self._lines.get(pulse)
        waiter = None if line is None else self._next(line)
        if waiter is None:
            self.free_again(pulse, pending.window, 1)
        else:
            self._go(waiter, pending)
        if line is not None:
            self._close(pulse, line)

    def _next(self, line: PulseLine) -> GrantWaiter | None:
        """Take the first client out of the line that still may have a grant."""
        while (waiter := self._first(line)) is not None:
            super().remove(waiter)
            if not self.finish_if_refused(waiter):
                return waiter
        return None

    def _first(self, line: PulseLine) -> GrantWaiter | None:
        if line.sent:
            return line.sent.pop(next(iter(line.sent)))
        for number, waiter in line.standing.items():
            if not waiter.numbered:
                del line.standing[number]
                found: GrantWaiter = waiter
                return found
        return None

    def _go(self, waiter: GrantWaiter, pending: PendingGrant) -> None:
        pending.numbered, pending.over = waiter.numbered, False
        self.finish(waiter, AtWriting(pending.write, pending.drop))

    def write_grant(self, pending: PendingGrant) -> bytes:
        """The answer that gives this grant, if this node may still write it."""
        pulse = self.cluster.machine.pulses.get(pending.pulse)
        numbers = (_number(pending.ticket),) if pending.numbered else ()
        if pulse is None or not self.may_write(pending.stamp_ms, pending.pulse, pending.window, numbers):
            self.free_again(pending.pulse, pending.window, 1)
            return responses.OFFLINE_MODE if pulse is not None else responses.PULSE_NOT_FOUND
        self.written(pending.pulse, pending.window, 1, numbers)
        return responses.turn(pending.ticket, pulse)

    def drop_grant(self, pending: PendingGrant) -> None:
        """Give a grant that was not written to the next waiter; a numbered command keeps its own."""
        if pending.numbered:
            self.free_again(pending.pulse, pending.window, 1)
        else:
            self._pass_on(pending)

    def take_back(self, pulse: str, window: Window, count: int) -> None:
        """Grants asked for will not come: those for whom they were stand in line again."""
        self.free_again(pulse, window, count)
        line = self._lines.get(pulse)
        if line is None:
            return
        for number in list(line.sent)[:count]:
            waiter = line.standing[number] = line.sent.pop(number)
            line.timed_out |= waiter.timed_out
        self._end_late(line)
        self._close(pulse, line)

    # ---- numbered commands

    def settle(self, waiter: GrantWaiter, reply: Reply) -> None:
        """Handle the reply to a waiter's operation."""
        claimed, waiter.claimed = waiter.claimed, None
        if isinstance(reply, Turn) and claimed is None and self._may_repeat(waiter.pulse, reply.ticket):
            claimed = self.window(waiter.pulse)
            claimed.claim(1, self._loop.time())
        if (
            isinstance(reply, Turn) and claimed is not None and waiter.outcome is None
            and not self.finish_if_refused(waiter)
        ):
            self._go(waiter, PendingGrant(self, waiter.pulse, claimed, reply.ticket, self.cluster.machine.clock_ms))
            return
        if claimed is not None:
            self.free_again(waiter.pulse, claimed, 1)
        if waiter.outcome is not None:
            return
        if not isinstance(reply, Empty | Granted | Turn):
            self.finish(waiter, responses.PULSE_NOT_FOUND if isinstance(reply, PulseNotFound) else reply)
        elif isinstance(reply, Turn) and self.cluster.serving and not waiter.client.ended:
            self.enqueue(waiter, ahead=True)
        else:
            self.enqueue_or_end(waiter)

    def _may_repeat(self, name: str, ticket: int) -> bool:
        """Return whether a ticket that was given before may be sent again at once."""
        pulse, now = self.cluster.machine.pulses.get(name), self._loop.time()
        if pulse is None:
            return True
        window = self.window(name)
        room = not pulse.together and window.free(pulse, now) > 0
        return room or window.holds(_number(ticket), pulse, now)

    def release(self, waiter: GrantWaiter) -> None:
        """Free the grant that the operation of this waiter claims."""
        claimed, waiter.claimed = waiter.claimed, None
        if claimed is not None:
            self.free_again(waiter.pulse, claimed, 1)


def _number(ticket: int) -> GrantId:
    return GrantId("ticket", ticket)
