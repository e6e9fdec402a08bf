"""A host that accepts everybody and remembers what is held for them."""

from __future__ import annotations

import asyncio

from sockpqd.beanstalk import ClientConnection, Stay


class OpenStay:
    """A stay without limits."""

    kernel_bytes = 0

    def measure(self) -> None:
        """Do nothing: nothing is in the kernel."""

    def drop_when_closed(self) -> None:
        """Do nothing: nothing is in the kernel."""

    def leave(self) -> None:
        """Do nothing: nothing was taken."""


class OpenHost:
    """See the module. `full`: there is no room for bodies that have yet to arrive."""

    def __init__(self) -> None:
        self.full = False
        self.held: dict[ClientConnection, int] = {}

    def receive(self, transport: asyncio.BaseTransport, connection: ClientConnection) -> Stay | None:
        return OpenStay()

    def hold(self, connection: ClientConnection, held_bytes: int) -> None:
        self.held[connection] = held_bytes

    def no_room(self) -> bool:
        return self.full
