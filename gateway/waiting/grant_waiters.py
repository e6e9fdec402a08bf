"""Clients that wait for grants, first come first served, and the grants proposed for them (spec/pulse 3).

Whenever grants may be free (a grant leaves the window, a client arrives, the pulse changes) the pulse is checked, once
per iteration of the loop: all free grants of a pulse are one operation, and those of all pulses one entry. A grant is
assigned to a client when the entry is applied, so if a client has gone the next one gets it. Only a numbered command
has an operation of its own, as the session must remember its ticket.

An answer is formed when it is written: only then is it known whether this node may still write it.
"""

from __future__ import annotations

import asyncio
from typing import Any

from msgspec import Struct
from sortedcontainers import SortedDict

from sockpqd.core import (
    GRANTS_MAX,
    Effects,
    Empty,
    Grant,
    Granted,
    Operation,
    Pulse,
    PulseNotFound,
    Reply,
    TakeTurn,
    Turn,
)
from sockpqd.gateway.limits import GRANT_PROPOSALS_MAX
from sockpqd.gateway.protocol import responses
from sockpqd.gateway.protocol.request_id import Numbering
from sockpqd.gateway.protocol.responses import AtWriting
from sockpqd.gateway.pulses.window import GrantId
from sockpqd.gateway.pulses.windows import GrantClaim, PulseWindows
from sockpqd.gateway.waiting.slots import NoReply, Outcome
from sockpqd.gateway.waiting.waiting_line import Waiter, WaitingLine


class GrantWaiter(Waiter, gc=False, eq=False, kw_only=True):
    """A PULSE WAIT whose grant is not free yet."""

    pulse: str
    numbering: Numbering | None = None      # of a numbered command
    claim: GrantClaim | None = None         # of the grant that the operation in flight asks for

    def __post_init__(self) -> None:
        if self.numbering is not None:
            self.request_key = self.numbering.session, self.numbering.number

    @property
    def operation(self) -> Operation:
        """Return the operation to propose: for a numbered command its own, otherwise one that looks up the pulse."""
        if self.numbering is None:
            return Grant(self.pulse, 0)
        return self.numbering.request(TakeTurn(self.pulse, self.claim is not None), keep_waiting=True)

    @property
    def refusal(self) -> bytes | None:
        """Return the refusal if its client may no longer have a grant, otherwise None."""
        return self.client.guard.refusal_of_turn(self.pulse)


class PulseLine(Struct, eq=False):
    """The clients that wait for grants of one pulse."""

    standing: Any                       # SortedDict[int, GrantWaiter] by number
    sent: dict[int, GrantWaiter]        # waiters whose grant is in flight, in their order
    free_since: float | None = None     # TOGETHER: when somebody began to wait while the window is clear
    timer: asyncio.TimerHandle | None = None


class PendingGrant(Struct, gc=False, eq=False):
    """A grant assigned to a client and not written yet.

    It does not refer to its waiter, whose outcome refers to it: the garbage collector would not see that cycle.
    """

    waiters: GrantWaiters
    claim: GrantClaim
    ticket: int
    stamp_ms: int               # replicated time of its entry
    numbered: bool = False

    def write(self) -> bytes:
        """Return the answer with this grant, called when it is written; without the grant if that is too late."""
        pulse = self.waiters.cluster.machine.pulses.get(self.claim.pulse)
        numbers = (_number(self.ticket),) if self.numbered else ()
        if pulse is None or not self.claim.may_write(self.stamp_ms, numbers):
            self.claim.release()
            return responses.OFFLINE_MODE if pulse is not None else responses.PULSE_NOT_FOUND
        self.claim.write(numbers)
        return responses.turn(self.ticket, pulse)

    def drop(self) -> None:
        """Give it to the next waiter, as its client is gone; a numbered command keeps its grant."""
        if self.numbered:
            self.claim.release()
        else:
            self.waiters.pass_on(self)


class GrantProposal(Struct, gc=False, eq=False):
    """Grants in flight for the first clients in a line."""

    waiters: GrantWaiters
    claim: GrantClaim

    def applied(self, reply: Reply) -> None:
        """Give the grants to the current waiters."""
        self.waiters.settled()
        if isinstance(reply, Granted) and reply.count:
            self.waiters.hand_out(self.claim, reply)
        else:
            self.waiters.take_back(self.claim)

    def refused(self) -> None:
        """Let the clients keep waiting, if this node still serves."""
        self.waiters.settled()
        self.waiters.take_back(self.claim)

    def unknown(self) -> None:
        """Take the grants back: nothing was written, and nothing will be."""
        self.waiters.settled()
        self.waiters.take_back(self.claim)


class GrantWaiters(WaitingLine[GrantWaiter]):
    """All clients of this node that wait for grants."""

    def __init__(self, windows: PulseWindows) -> None:
        super().__init__(windows.cluster)
        self._windows = windows
        self._loop = asyncio.get_running_loop()
        self._first_number = 0
        self._lines: dict[str, PulseLine] = {}
        self._due: dict[str, None] = {}             # pulses to look at in this round, or when fewer are in flight
        self._looking = False                       # a look is scheduled
        self._proposals = 0                         # in flight

    def waiting(self, pulse: str) -> int:
        """Return the number of clients that wait for a turn."""
        line = self._lines.get(pulse)
        return 0 if line is None else len(line.standing) + len(line.sent)

    # ---- arriving and leaving

    def add(self, waiter: GrantWaiter, within_ms: int | None) -> None:
        """Let a client wait, for this long at most."""
        self.limit(waiter, within_ms)
        pulse = self.cluster.machine.pulses.get(waiter.pulse)
        if waiter.numbered:
            nobody_waits = pulse is not None and waiter.pulse not in self._lines
            if pulse is not None and nobody_waits and not pulse.together and self._windows.free(pulse):
                waiter.claim = self._windows.claim(waiter.pulse)
            self.propose(waiter)
        elif pulse is None:                     # it may be created by a command before this one
            self.propose(waiter)
        elif self.cluster.serving:
            self.enqueue(waiter)
        else:
            self.finish(waiter, NoReply.REFUSED)

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
        self.look_at(waiter.pulse)
        if waiter.timed_out:
            self._loop.call_soon(self._time_out, waiter)    # unless this look finds a grant for it

    def remove(self, waiter: GrantWaiter) -> None:
        """Take a waiter out of its line, even if a grant is in flight for it."""
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

    def _end_line(self, pulse: str, outcome: Outcome) -> None:
        line = self._lines[pulse]
        for waiter in (*line.sent.values(), *line.standing.values()):
            self.remove(waiter)
            self.finish(waiter, outcome)

    # ---- checking pulses

    def effects(self, effects: Effects) -> None:
        """Check the pulses that an applied entry has changed."""
        self._windows.effects(effects)
        if effects.restored:
            for name in list(self._lines):
                self.look_at(name)

    def look_at(self, pulse: str) -> None:
        """Check this pulse at the end of the round: there may be grants for waiting clients."""
        if pulse not in self._lines:
            return
        if pulse not in self.cluster.machine.pulses:
            self._end_line(pulse, responses.PULSE_NOT_FOUND)
            return
        self._due[pulse] = None
        self._look_soon()

    def settled(self) -> None:
        """Record that a proposal of grants has its outcome."""
        self._proposals -= 1
        self._look_soon()

    def _look_soon(self) -> None:
        if self._due and not self._looking and self._proposals < GRANT_PROPOSALS_MAX:
            self._looking = True
            self._loop.call_soon(self._look)

    def _look(self) -> None:
        self._looking = False
        due, self._due = self._due, {}
        while due:
            if self._proposals >= GRANT_PROPOSALS_MAX:
                self._due = {**due, **self._due}
                return
            name = next(iter(due))
            del due[name]
            line, pulse = self._lines.get(name), self.cluster.machine.pulses.get(name)
            if line is None or pulse is None or not self.cluster.serving:
                continue
            count = self._releasable(line, pulse)
            if count:
                self._propose(line, pulse, count)
            self._look_later(line, pulse)
            self._close(name, line)

    def _releasable(self, line: PulseLine, pulse: Pulse) -> int:
        """Return how many of the clients in this line may be given grants now."""
        standing = len(line.standing)
        free = min(self._windows.free(pulse), standing, GRANTS_MAX)
        if not free or not pulse.together:
            return free
        now = self._windows.now_s
        if not self._windows.of(pulse.name).clear(pulse, now):
            line.free_since = None
            return 0
        if line.free_since is None:
            line.free_since = now
        if standing < pulse.now and now < line.free_since + pulse.max_wait_ms / 1000:
            return 0
        line.free_since = None
        return free

    def _propose(self, line: PulseLine, pulse: Pulse, count: int) -> None:
        anonymous = 0
        for _ in range(count):
            number, waiter = line.standing.popitem(0)
            if not waiter.numbered:
                line.sent[number] = waiter
                anonymous += 1
            else:
                super().remove(waiter)
                if not self.finish_if_refused(waiter):
                    waiter.claim = self._windows.claim(pulse.name)
                    self.propose(waiter)
        if anonymous:
            claim = self._windows.claim(pulse.name, anonymous)
            self._proposals += 1
            self.cluster.propose(Grant(pulse.name, anonymous), GrantProposal(self, claim))

    def _look_later(self, line: PulseLine, pulse: Pulse) -> None:
        """Check again when a grant becomes free by time."""
        if line.timer is not None:
            line.timer.cancel()
            line.timer = None
        if not line.standing:
            return
        windows = self._windows
        if not pulse.together or self.cluster.time_ms < pulse.sleep_until_ms:
            pause_s = windows.opens_s(pulse)
        elif line.free_since is not None:
            pause_s = line.free_since + pulse.max_wait_ms / 1000 - windows.now_s
        else:
            pause_s = windows.of(pulse.name).last_leaves_s(windows.now_s)
        if pause_s is not None:
            line.timer = windows.call_later(pause_s, self.look_at, pulse.name)

    # ---- grants

    def hand_out(self, claim: GrantClaim, granted: Granted) -> None:
        """Give these grants to the clients for which they were requested, or to those that wait now."""
        stamp_ms = self.cluster.machine.clock_ms
        for ticket in range(granted.first, granted.first + granted.count):
            one = GrantClaim(claim.windows, claim.pulse, claim.window)
            self.pass_on(PendingGrant(self, one, ticket, stamp_ms))

    def pass_on(self, pending: PendingGrant) -> None:
        """Give the grant to the first client that waits; if there is none it is not used."""
        pulse = pending.claim.pulse
        line = self._lines.get(pulse)
        waiter = None if line is None else self._next(line)
        if waiter is None:
            pending.claim.release()
        else:
            self._give(waiter, pending)
        if line is not None:
            self._close(pulse, line)

    def _next(self, line: PulseLine) -> GrantWaiter | None:
        """Remove and return the first client in the line that may still get a grant."""
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

    def _give(self, waiter: GrantWaiter, pending: PendingGrant) -> None:
        pending.numbered = waiter.numbered
        self.finish(waiter, AtWriting(pending.write, pending.drop))

    def take_back(self, claim: GrantClaim) -> None:
        """Return clients to the line whose grants will not arrive."""
        claim.release()
        line = self._lines.get(claim.pulse)
        if line is None:
            return
        for number in list(line.sent)[:claim.count]:
            waiter = line.standing[number] = line.sent.pop(number)
            if waiter.timed_out:
                self.last_chance(waiter)

    # ---- numbered commands

    def settle(self, waiter: GrantWaiter, reply: Reply) -> None:
        """Handle the reply to a waiter's operation."""
        claim, waiter.claim = waiter.claim, None
        if isinstance(reply, Turn) and claim is None and self._may_repeat(waiter.pulse, reply.ticket):
            claim = self._windows.claim(waiter.pulse)
        if (
            isinstance(reply, Turn) and claim is not None and waiter.outcome is None
            and not self.finish_if_refused(waiter)
        ):
            self._give(waiter, PendingGrant(self, claim, reply.ticket, self.cluster.machine.clock_ms))
            return
        if claim is not None:
            claim.release()
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
        pulse, now = self.cluster.machine.pulses.get(name), self._windows.now_s
        if pulse is None:
            return True
        window = self._windows.of(name)
        room = not pulse.together and window.free(pulse, now) > 0
        return room or window.holds(_number(ticket), pulse, now)

    def release(self, waiter: GrantWaiter) -> None:
        """Free the grant that the operation of this waiter claims."""
        claim, waiter.claim = waiter.claim, None
        if claim is not None:
            claim.release()


def _number(ticket: int) -> GrantId:
    return GrantId("ticket", ticket)
