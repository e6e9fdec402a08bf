"""Turns of requests with large bodies: one after the other, and no client keeps others from having theirs."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from contextlib import suppress

from sockpq_http.access.peer import Peer

_Line = OrderedDict[str, deque[asyncio.Future[None]]]     # by address, the one that has waited longest for a turn first


class LargeTurns:
    """One turn at a time.

    While both wait, clients known to be a user's and strangers have every second turn each: only in its turn is it
    found out whether a stranger is a user, which may take long. Within each kind, addresses take turns.
    """

    def __init__(self) -> None:
        self._taken = False
        self._lines: dict[bool, _Line] = {True: OrderedDict(), False: OrderedDict()}    # of users, of strangers
        self._next = True       # whose turn is next

    async def take(self, peer: Peer) -> None:
        """Wait for a turn of this client."""
        if not self._taken:
            self._taken = True
            return
        turn = asyncio.get_running_loop().create_future()
        line = self._lines[peer.known]
        line.setdefault(peer.address, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():        # it came just then
                self.give_back()
            elif (waiting := line.get(peer.address)) is not None:
                with suppress(ValueError):
                    waiting.remove(turn)
                if not waiting:
                    del line[peer.address]
            raise

    def give_back(self) -> None:
        """End a turn, and give the next client its own."""
        self._taken = False
        for side in (self._next, not self._next):
            while (turn := _first(self._lines[side])) is not None:
                if not turn.done():                         # else its client has gone just now
                    self._taken, self._next = True, not side
                    turn.set_result(None)
                    return


def _first(line: _Line) -> asyncio.Future[None] | None:
    """Remove and return the first turn of the next address, which moves to the end; None if nobody waits."""
    if not line:
        return None
    address, waiting = line.popitem(last=False)
    turn = waiting.popleft()
    if waiting:
        line[address] = waiting
    return turn
