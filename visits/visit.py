"""One accepted connection of any door: its place, its timeouts, and what the kernel holds for it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Protocol, cast

from sockpqd.visits.limits import VisitLimits
from sockpqd.visits.places import Place, Places
from sockpqd.visits.tcp import drop_when_closed, is_silent, kernel_bytes, set_up
from sockpqd.visits.timeouts import ClientTimeouts


class Guest(Protocol):
    """A connection, as its visit sees it."""

    @property
    def stranger(self) -> bool:
        """True if it has yet to authenticate."""

    def turn(self) -> tuple[str, int]:
        """The event it waits for (a Turn), and a number that changes when the client makes progress."""

    def taken_bytes(self) -> int:
        """How many bytes the kernel has accepted of what was written."""

    def unsent_bytes(self) -> int:
        """How many bytes were written that the kernel has not accepted yet."""

    def weigh(self) -> None:
        """Report to the account what is held for it: that has changed, here or in the kernel."""

    def cut(self, why: str) -> None:
        """Close immediately, log the reason, and drop what is unsent."""


class Visit:
    """The stay of a connection; `leave` ends it. Without a place (`place`) it has not begun."""

    __slots__ = (
        "_guest",
        "_leave",
        "_places",
        "_socket",
        "_timeouts",
        "_transport",
        "_trial",
        "_unsent",
        "host",
        "kernel_bytes",
        "peer",
        "place",
    )

    def __init__(
        self, transport: asyncio.BaseTransport, guest: Guest, limits: VisitLimits, places: Places,
        leave: Callable[[Visit], None],
    ) -> None:
        """`leave`: called when it ends."""
        host, number = (transport.get_extra_info("peername") or ("", 0))[:2]    # empty: it is gone already
        self.host, self.peer = host, f"{host}:{number}"
        self.place = places.take(host) if host else Place.NONE
        self.kernel_bytes = 0               # held for it by the kernel, as last measured
        self._guest = guest
        self._places = places
        self._leave = leave
        self._transport = cast(asyncio.Transport, transport)
        self._unsent = 0                    # at the last look
        self._trial = self.place is Place.TRIAL
        if self.place is Place.NONE:
            return
        self._socket: socket.socket = transport.get_extra_info("socket")
        set_up(self._socket)
        self._transport.set_write_buffer_limits(0)      # whatever the kernel does not take is counted
        self._timeouts = ClientTimeouts(limits, asyncio.get_running_loop().time())

    def end_trial(self) -> None:
        """It has turned out to be an administrator, or is leaving."""
        if self._trial:
            self._trial = False
            self._places.end_trial(self.host)

    def leave(self) -> None:
        """The connection is gone, or is not wanted here."""
        if self.place is not Place.NONE:
            self.end_trial()
            self._places.leave(self.host)
            self.place = Place.NONE
            self._leave(self)

    def measure(self) -> None:
        """Measure what the kernel holds: its buffer is full."""
        self.kernel_bytes = kernel_bytes(self._socket)

    def drop_when_closed(self) -> None:
        """Let the kernel drop what it has not sent, if that is much: the connection is about to be closed unread."""
        if self.place is not Place.NONE:
            self.measure()
            if self.kernel_bytes:
                drop_when_closed(self._socket)

    def look(self, now: float) -> None:
        """Enforce the timeouts, and measure what the kernel holds."""
        guest = self._guest
        unsent = guest.unsent_bytes()
        why = self._timeouts.end(now, guest.turn(), guest.taken_bytes(), unsent, stranger=guest.stranger)
        if why is None and is_silent(self._socket):
            why = "it does not acknowledge what was sent to it"
        if why is not None:
            guest.cut(why)
            return
        before = self.kernel_bytes, self._unsent
        self.measure()
        self._unsent = unsent
        if (self.kernel_bytes, unsent) != before:
            guest.weigh()
