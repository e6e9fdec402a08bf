"""How much of a client is read and how much is written to it, and what is held for it meanwhile."""

from __future__ import annotations

import asyncio

from gateway.limits import AHEAD_BYTES_MAX
from gateway.link import Link
from gateway.server.hub import Hub, Talk


class Flow:
    """Between the pipeline of a client and its connection. It does not refer to the pipeline, so that there is no ring
    of references when the client goes: `talk` is the pipeline.
    """

    __slots__ = ("_hub", "_link", "_room", "full", "held_bytes", "out", "paused")

    def __init__(self, hub: Hub, link: Link) -> None:
        self.out: list[bytes] = []          # answers that are not written yet
        self.full = False                   # the client does not take its answers
        self.paused = False                 # it is not read
        self.held_bytes = 0                 # as the account was told
        self._hub = hub
        self._link = link
        self._room: asyncio.Future[None] | None = None

    # ---- out

    def flush(self) -> None:
        """Write the answers."""
        data = b"".join(self.out)
        self.out.clear()
        self._link.write(data)

    @property
    def overflows(self) -> bool:
        """Does the client leave more of its answers unread than it may?"""
        return self.full and self._link.unsent_bytes() > self._hub.limits.output_bytes_max

    def write(self, piece: bytes) -> None:
        """Write a piece of a long answer."""
        self._link.write(piece)

    async def room(self) -> None:
        """Wait until the client has taken most of its answers."""
        self._room = asyncio.get_running_loop().create_future()
        await self._room

    def taken(self) -> None:
        """It has."""
        self.full = False
        if self._room is not None and not self._room.done():
            self._room.set_result(None)

    # ---- in

    def throttle(self, talk: Talk, backlog_bytes: int, *, sated: bool) -> None:
        """Do not read a client that is ahead of us; go on at the half. `sated`: its share of the log is used up."""
        hub = self._hub
        limit = AHEAD_BYTES_MAX if hub.account.high else hub.limits.pipeline_bytes_max
        ahead = backlog_bytes * (2 if self.paused else 1) > limit
        if hub.crowded or (sated and hub.congested()):
            hub.wake_when_relieved(talk)
            ahead = True
        if ahead and not self.paused:
            self._link.pause()
        elif self.paused and not ahead:
            self._link.resume()
        self.paused = ahead

    # ---- what is held

    def weigh(self, talk: Talk, held_bytes: int) -> None:
        """Tell the account what is held: this, and what was written and not taken."""
        if self.full:
            held_bytes += self._link.unsent_bytes()
        if held_bytes != self.held_bytes:
            self.held_bytes = held_bytes
            self._hub.account.hold(talk, held_bytes)
