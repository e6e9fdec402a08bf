"""Messages that a thread publishes as one transaction, all or none, together with other commands if necessary."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:       # Celery imports this for whatever broker it uses
    from sockpq_kombu.link import Link

COMMANDS_MAX = 1000                 # of a transaction of the servers'
BYTES_MAX = 15 * 1024 * 1024        # the same, with room for the lines of its commands

Put = Callable[[Any], object]       # adds a message to a transaction


class Collected:
    """Messages in the order in which they were published, usually from one connection."""

    def __init__(self) -> None:
        self._of_link: dict[Link, _Piece] = {}

    def add(self, link: Link, data_bytes: int, put: Put) -> None:
        """Keep a message of this connection; `put` adds it to a transaction, and `data_bytes` is its length.

        Messages that exceed one transaction are split into several, all but the last sent as soon as they are full.
        """
        piece = self._of_link.setdefault(link, _Piece())
        if not piece.has_room(data_bytes):
            link.commit(piece.puts)
            piece = self._of_link[link] = _Piece()
        piece.puts.append(put)
        piece.data_bytes += data_bytes

    def send(self, last: Link | None = None, finish: Put | None = None) -> bool:
        """Publish them; returns whether `finish` was executed with the last ones of the connection `last`."""
        done = False
        for link in sorted(self._of_link, key=lambda link: link is last):
            puts = self._of_link[link].puts
            if link is last and finish is not None:
                puts = [*puts, finish]
                done = True
            link.commit(puts)
        return done

    @property
    def links(self) -> list[Link]:
        """The connections that have messages."""
        return list(self._of_link)


class _Piece:
    """The messages of one transaction, which has room for one more command."""

    def __init__(self) -> None:
        self.puts: list[Put] = []
        self.data_bytes = 0

    def has_room(self, data_bytes: int) -> bool:
        """Return whether there is room for a message of this length."""
        return not self.puts or (
            len(self.puts) < COMMANDS_MAX - 1 and self.data_bytes + data_bytes <= BYTES_MAX
        )


class _Thread(threading.local):
    """The messages that this thread collects."""

    collected: Collected | None = None


_thread = _Thread()


def collected_now() -> Collected | None:
    """Return the collection of this thread's messages; None if they are sent at once."""
    return _thread.collected


@contextmanager
def collect() -> Iterator[Collected]:
    """Collect the messages that this thread publishes in the block, for Collected.send(); an error discards them."""
    before, _thread.collected = _thread.collected, Collected()
    try:
        yield _thread.collected
    finally:
        _thread.collected = before
