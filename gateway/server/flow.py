"""Flow control for one client: back-pressure in both directions, and the memory held for it."""

from __future__ import annotations

import asyncio

from sockpqd.gateway.limits import AHEAD_BYTES_MAX, LARGE_BODY_BYTES
from sockpqd.gateway.link import Link
from sockpqd.gateway.server.hub import Hub, Scheduled


class Flow:
    """The buffers between a client's pipeline and its connection.

    It holds no reference to the pipeline, so that no reference cycle is left when the client goes; methods that need
    the pipeline get it as `talk`.
    """

    __slots__ = ("_hub", "_link", "_room", "full", "held_bytes", "out", "paused", "read_much")

    def __init__(self, hub: Hub, link: Link) -> None:
        self.out: list[bytes] = []          # answers not written yet
        self.full = False                   # the client is not reading its answers
        self.read_much = False              # others are read first
        self.paused = False                 # reading from the client is paused
        self.held_bytes = 0                 # as last reported to the account
        self._hub = hub
        self._link = link
        self._room: asyncio.Future[None] | None = None

    # ---- out

    def flush(self) -> None:
        """Write the collected answers to the connection in one piece, but a large job at the end separately.

        Joining it would copy it: a hundred clients that take jobs of 8 MiB would need another 800 MiB of memory.
        """
        out = self.out
        if len(out) == 1:           # nearly always, with one command in flight
            self._link.write(out.pop())
            return
        last = out.pop() if len(out[-1]) > LARGE_BODY_BYTES else b""
        if out:
            self._link.write(b"".join(out))
            out.clear()
        if last:
            self._link.write(last)

    @property
    def overflows(self) -> bool:
        """True if the client has left more output unread than the limit allows."""
        return self.full and self._link.unsent_bytes() > self._hub.limits.output_bytes_max

    def write(self, piece: bytes) -> None:
        """Write a piece of a long answer."""
        self._link.write(piece)

    async def room(self) -> None:
        """Wait until the client has read most of its answers."""
        self._room = asyncio.get_running_loop().create_future()
        await self._room

    def taken(self) -> None:
        """Record that the client has read its answers, and wake `room`."""
        self.full = False
        if self._room is not None and not self._room.done():
            self._room.set_result(None)

    # ---- in

    def throttle(self, talk: Scheduled, backlog_bytes: int, *, in_flight: bool, over_share: bool) -> None:
        """Pause reading while the client is too far ahead, and until its next turn after a large read.

        Resumes at half the limit. `over_share`: its share of the log's backlog is used up.
        """
        hub = self._hub
        limit = AHEAD_BYTES_MAX if hub.account.high else hub.limits.pipeline_bytes_max
        ahead = backlog_bytes * (2 if self.paused else 1) > limit
        if hub.holds_up(backlog_bytes, in_flight=in_flight) or (over_share and hub.congested()):
            hub.wake_when_relieved(talk)
            ahead = True
        elif self.read_much:
            self.read_much = False
            hub.read_in_turn(talk)
            ahead = True
        elif hub.waits_to_be_read(talk):
            ahead = True
        if ahead and not self.paused:
            self._link.pause()
        elif self.paused and not ahead:
            self._link.resume()
        self.paused = ahead

    # ---- memory accounting

    def weigh(self, talk: Scheduled, held_bytes: int) -> None:
        """Report to the account: `held_bytes`, plus the memory of the output."""
        held_bytes += self._link.held_bytes()
        if held_bytes != self.held_bytes:
            self.held_bytes = held_bytes
            self._hub.account.hold(talk, held_bytes)
