"""The events that subscribers received, on which node and in which order: the evidence about events."""

from __future__ import annotations

import time
from collections.abc import Sequence

from msgspec import Struct


class Line(Struct, frozen=True):
    """One line. `first`: the first number that may be missing, for a GAP; otherwise the number itself."""

    number: int
    type: bytes
    words: tuple[bytes, ...]
    first: int
    at_ns: int


class Span(Struct):
    """The events that one connection received. `after`: the number before its first; `again`: requested by FROM."""

    after: int
    again: bool
    newest: int                         # the number in the answer
    lines: list[Line | int]             # an int: a message, by its number
    begun_ns: int


class Ear:
    """One subscriber, over all of its connections."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.listening = False
        self.position: int | None = None        # the last number it received
        self.spans: list[Span] = []

    def begun(self, newest: int, *, again: bool) -> None:
        """Record that SUBSCRIBE was answered."""
        if not again or self.position is None:
            self.position = newest
        self.spans.append(Span(self.position, again, newest, [], time.monotonic_ns()))
        self.listening = True

    def hear(self, words: Sequence[bytes], data: bytes) -> None:
        """Record a line of the subscription, given as words, with the data of a message."""
        number, kind = int(words[1]), words[2]
        span = self.spans[-1]
        if kind == b"MSG":
            span.lines.append(int(data))
            return
        first = int(words[3]) if kind == b"GAP" else number
        span.lines.append(Line(number, kind, tuple(words[3:]), first, time.monotonic_ns()))
        self.position = max(number, self.position or 0)

    def left(self) -> None:
        """Record the end of the connection."""
        self.listening = False

    @property
    def last_message(self) -> int | None:
        """Return the number of the last message received on this connection."""
        return next((line for line in reversed(self.spans[-1].lines) if isinstance(line, int)), None)


class Heard:
    """All subscribers, and the messages that were acknowledged."""

    def __init__(self) -> None:
        self.ears: dict[str, Ear] = {}
        self.all_came_to_the_end = False
        self.messages: dict[int, int] = {}      # each that was acknowledged, with the time of that

    def ear(self, name: str) -> Ear:
        """Return the record of a new subscriber."""
        self.ears[name] = Ear(name)
        return self.ears[name]

    def said(self, number: int) -> None:
        """Record that a message was acknowledged."""
        self.messages[number] = time.monotonic_ns()

    def level(self) -> bool:
        """Return whether all subscribers are connected, have the last message, and are at the same number."""
        ears = self.ears.values()
        if not all(ear.listening and ear.spans for ear in ears):
            return False
        last = max(self.messages, default=None)
        return len({ear.position for ear in ears}) == 1 and all(ear.last_message == last for ear in ears)
