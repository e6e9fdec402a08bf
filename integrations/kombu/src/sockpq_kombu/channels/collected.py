"""Messages that a thread publishes as one transaction, together with other commands: all of them or none."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sockpq_kombu.link import Link

COMMANDS_MAX = 1000                 # of a transaction of the servers'
BYTES_MAX = 15 * 1024 * 1024        # the same, with room for the lines of its commands

Put = Callable[[Any], None]         # adds a message to a transaction


class Collected:
    """Messages in the order in which they were published, of one connection as a rule."""

    def __init__(self) -> None:
        self._of_link: dict[Link, list[tuple[int, Put]]] = {}

    def add(self, link: Link, data_bytes: int, put: Put) -> None:
        """Keep a message of this connection; `put` adds it to a transaction, and `data_bytes` is its length."""
        self._of_link.setdefault(link, []).append((data_bytes, put))

    def send(self, last: Link | None, finish: Put) -> bool:
        """Publish them; returns whether `finish` was executed with the last of them, in their transaction.

        `last`: the connection in whose transaction `finish` can be; None: in none. What is too much for one transaction
        goes in several ones, of which the last has `finish`.
        """
        done = False
        for link in sorted(self._of_link, key=lambda link: link is last):
            pieces = _pieces(self._of_link[link])
            for number, piece in enumerate(pieces, 1):
                ends = link is last and number == len(pieces)
                link.commit([*piece, finish] if ends else piece)
                done = done or ends
        return done

    @property
    def links(self) -> list[Link]:
        """The connections that have messages."""
        return list(self._of_link)


class _Thread(threading.local):
    """The messages that this thread collects."""

    collected: Collected | None = None


_thread = _Thread()


def collected_now() -> Collected | None:
    """Return what collects the messages of this thread; None if they are sent at once."""
    return _thread.collected


@contextmanager
def collect() -> Iterator[Collected]:
    """Collect what this thread publishes in the block, for Collected.send(); a block that raises publishes nothing."""
    before, _thread.collected = _thread.collected, Collected()
    try:
        yield _thread.collected
    finally:
        _thread.collected = before


def _pieces(messages: list[tuple[int, Put]]) -> list[list[Put]]:
    """Divide messages into transactions, each with room for one command more."""
    pieces: list[list[Put]] = [[]]
    piece_bytes = 0
    for data_bytes, put in messages:
        if len(pieces[-1]) == COMMANDS_MAX - 1 or (pieces[-1] and piece_bytes + data_bytes > BYTES_MAX):
            pieces.append([])
            piece_bytes = 0
        pieces[-1].append(put)
        piece_bytes += data_bytes
    return pieces
