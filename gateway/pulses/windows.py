"""The windows of all pulses of this leader, and the callbacks for when a grant may be free (spec/pulse 2.1).

Every request for a grant first claims room for it. The claim ends when the grant is written, which only a leader with a
lease may do and not too long after the entry, or when it is known that it never will be.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec import Struct

from sockpqd.cluster.api import Cluster
from sockpqd.core import GRANT_WRITTEN_MS_MAX, Effects, Pulse
from sockpqd.gateway.pulses.window import GrantId, Window

TIMER_S = 0.0005        # timers may fire this much early
WRITTEN_MS_MAX = GRANT_WRITTEN_MS_MAX // 2      # half of what a new leader counts on


class GrantClaim(Struct, gc=False, eq=False):
    """Grants of a pulse in flight: proposed, and not written yet."""

    windows: PulseWindows
    pulse: str
    window: Window
    count: int = 1

    def may_write(self, stamp_ms: int, numbers: tuple[GrantId, ...] = ()) -> bool:
        """Return whether they may be written now; `stamp_ms` is the time of their entry.

        A new leader relies on no later writes. It may be this node itself: then the pulse has another window, as after
        deleting and recreating it. With SPREAD another grant may have been written in the meantime, if this client has
        not read (window.py).
        """
        windows, cluster = self.windows, self.windows.cluster
        if not windows.current(self):
            return False
        pulse, now = cluster.machine.pulses.get(self.pulse), windows.now_s
        if pulse is not None and pulse.spread and not self.window.keeps_gap(pulse, now):
            again = bool(numbers) and all(self.window.holds(number, pulse, now) for number in numbers)
            if not again:
                return False
        return cluster.holds_lease and cluster.time_ms - stamp_ms <= WRITTEN_MS_MAX

    def write(self, numbers: tuple[GrantId, ...] = ()) -> None:
        """Record that they are being written in this round; `numbers` may be requested again."""
        self.window.write(self.count, numbers)
        self.windows.stamp_soon(self)

    def release(self) -> None:
        """Free their room: they will not be written."""
        self.window.in_flight -= self.count
        self.windows.changed(self.pulse)


class PulseWindows:
    """Tracks which grants are free. Whenever that may have changed, all waiting requests are checked again."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._loop = asyncio.get_running_loop()
        self._windows: dict[str, Window] = {}
        self._term = -1                                         # of the Lead entry that the windows begin with
        self._writing: dict[str, Window] = {}                   # pulses with grants written in this round
        self.shut: set[str] = set()                             # pulses with no free grant, until `changed`
        self._held: dict[str, list[Callable[[], None]]] = {}    # answers that there is no room for, by their pulse
        self._timers: dict[str, asyncio.TimerHandle] = {}       # when all these should be looked at again
        self._look_at: Callable[[str], None] = lambda pulse: None
        self._feed: Callable[[str], None] = lambda pulse: None

    def attach(self, look_at: Callable[[str], None], feed: Callable[[str], None]) -> None:
        """Set callbacks that get the name of a pulse when it may have a free grant; `feed` serves blocked hand-outs."""
        self._look_at, self._feed = look_at, feed

    # ---- free grants

    @property
    def now_s(self) -> float:
        """The time of the windows, in monotonic seconds."""
        return self._loop.time()

    def of(self, pulse: str) -> Window:
        """Return the window of this pulse."""
        window = self._windows.get(pulse)
        if window is None:
            window = self._windows[pulse] = Window()
        return window

    def current(self, claim: GrantClaim) -> bool:
        """Return whether the claim is in the current window of its pulse."""
        return self._windows.get(claim.pulse, claim.window) is claim.window

    def free(self, pulse: Pulse) -> int:
        """Return how many grants of this pulse may be proposed now."""
        if self.cluster.time_ms < pulse.sleep_until_ms:
            return 0
        return self.of(pulse.name).free(pulse, self.now_s)

    def opens_s(self, pulse: Pulse) -> float | None:
        """Return the seconds until there may be a free grant, None if that depends on grants in flight."""
        asleep_s = (pulse.sleep_until_ms - self.cluster.time_ms) / 1000
        return asleep_s if asleep_s > 0 else self.of(pulse.name).opens_s(pulse, self.now_s)

    def claim(self, pulse: str, count: int = 1, window: Window | None = None) -> GrantClaim:
        """Claim grants for an operation that is being proposed, or was proposed with grants of `window`."""
        claim = GrantClaim(self, pulse, window or self.of(pulse), count)
        claim.window.claim(count, self.now_s)
        return claim

    def room(self, name: str, own: int, numbers: tuple[GrantId, ...]) -> bool:
        """Return whether there is room for these grants of hand-outs, of which `own` are in flight already.

        Repeated grants may exceed the number that the pulse now gives at once: then room for that number is enough.
        """
        pulse = self.cluster.machine.pulses.get(name)
        if pulse is None or not self.cluster.serving:
            return True                         # nothing is counted, or nothing will be written
        free = self.of(name).free(pulse, self.now_s, own)
        return free >= min(len(self._needing_room(pulse, numbers)), pulse.at_once)

    def beyond(self, name: str, numbers: tuple[GrantId, ...]) -> list[GrantId]:
        """Return the grants among these that no longer fit into the window together, as the pulse now gives fewer."""
        pulse = self.cluster.machine.pulses.get(name)
        return [] if pulse is None else self._needing_room(pulse, numbers)[pulse.at_once:]

    def _needing_room(self, pulse: Pulse, numbers: tuple[GrantId, ...]) -> list[GrantId]:
        window, now = self.of(pulse.name), self.now_s
        return [number for number in numbers if not window.holds(number, pulse, now)]

    # ---- changes

    def changed(self, pulse: str) -> None:
        """Check all requests that wait for grants of this pulse, as some may be free."""
        self._look_at(pulse)
        self._serve_queues(pulse)

    def stamp_soon(self, claim: GrantClaim) -> None:
        """Record the time of grants being written, once their bytes have been sent."""
        if not self._writing:
            self._loop.call_soon(self._stamp)
        self._writing[claim.pulse] = claim.window

    def _stamp(self) -> None:
        now = self.now_s
        writing, self._writing = self._writing, {}
        for pulse, window in writing.items():
            window.stamp(now)
            self.changed(pulse)

    def serve(self) -> None:
        """Begin to serve: after a new Lead entry all grants in the state count as written just now."""
        machine = self.cluster.machine
        if machine.term != self._term:          # else nobody else has served since it did
            self._term = machine.term
            self._windows = {name: self._counted(pulse) for name, pulse in machine.pulses.items()}
            self.shut.clear()

    def _counted(self, pulse: Pulse) -> Window:
        return Window(sum(count for _, count in pulse.window), self.now_s)

    def stop(self) -> None:
        """Stop, as this node no longer serves."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self.shut.clear()
        for pulse in list(self._held):
            self._serve_queues(pulse)

    def effects(self, effects: Effects) -> None:
        """Update the pulses that an applied entry has changed."""
        pulses = self.cluster.machine.pulses
        if effects.restored:                    # CLONE: new pulses have the state's counts
            for name in (*self.shut, *self._held):
                self._serve_queues(name)
            self._windows = {name: self._windows.get(name) or self._counted(pulse) for name, pulse in pulses.items()}
        for name in effects.pulses or ():
            self.changed(name)
            if name not in pulses:
                self._windows.pop(name, None)

    # ---- queues with a rate

    def await_grants(self, pulse: str, *, shut: bool) -> None:
        """Serve the queues of this pulse when it may have more free grants; `shut`: it has none now."""
        if shut:
            self.shut.add(pulse)
        self._serve_later(pulse)

    def hold(self, pulse: str, again: Callable[[], None]) -> None:
        """Call `again` when there may be room for jobs that were handed out before."""
        self._held.setdefault(pulse, []).append(again)
        self._serve_later(pulse)

    def _serve_later(self, name: str) -> None:
        pulse = self.cluster.machine.pulses.get(name)
        if name in self._timers or pulse is None or (pulse.deny and name not in self._held):
            return                              # or until it is changed
        # Held jobs were granted before, so it does not matter whether the pulse sleeps.
        pause_s = self.of(name).opens_s(pulse, self.now_s) if name in self._held else self.opens_s(pulse)
        if pause_s is not None:                 # else grants in flight decide
            self._timers[name] = self.call_later(pause_s, self._serve_queues, name)

    def call_later(self, pause_s: float, call: Callable[[str], None], pulse: str) -> asyncio.TimerHandle:
        """Call this for the pulse when a grant leaves its window."""
        return self._loop.call_later(max(pause_s, 0.0) + TIMER_S, call, pulse)

    def _serve_queues(self, pulse: str) -> None:
        self.shut.discard(pulse)
        timer = self._timers.pop(pulse, None)
        if timer is not None:
            timer.cancel()
        for again in self._held.pop(pulse, ()):
            again()
        self._feed(pulse)
