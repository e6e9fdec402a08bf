"""Places for commands that hold something scarce while they run: few at a time, and not all of them for one user."""

from __future__ import annotations

import asyncio
from typing import Any

from sockpqd.gateway.commands.context.session_owners import source


class Places:
    """`most` places, of which one owner has at most `of_one`. `taken`: how many are in use."""

    def __init__(self, most: int, of_one: int) -> None:
        self.taken = 0
        self._most = most
        self._of_one = of_one
        self._owners: dict[str, int] = {}

    def free(self, owner: str) -> bool:
        """Return whether there is a place for this owner."""
        return self.taken < self._most and self._owners.get(owner, 0) < self._of_one

    def take(self, owner: str) -> bool:
        """Take a place for this owner; returns False if there is none."""
        if not self.free(owner):
            return False
        self.taken += 1
        self._owners[owner] = self._owners.get(owner, 0) + 1
        return True

    def leave(self, owner: str) -> None:
        """Return a place of this owner."""
        self.taken -= 1
        self._owners[owner] -= 1
        if not self._owners[owner]:
            del self._owners[owner]

    def leave_after(self, owner: str, work: asyncio.Future[Any] | None) -> None:
        """Return a place of this owner when the work has ended; at once if there is none."""
        if work is None or work.done():
            self.leave(owner)
        else:
            work.add_done_callback(lambda _: self.leave(owner))


def owner_of(user: str | None, peer: str) -> str:
    """Return the owner of the places that a client uses: its user, or its address if there are no users.

    `peer`: the client, HOST:PORT.
    """
    return user or source(peer.rpartition(":")[0])
