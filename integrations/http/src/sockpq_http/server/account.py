"""The bytes that an instance holds for its clients: bodies received, and answers not read yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sockpq_http.server.metrics import Metrics

ANSWERS_DIVISOR = 4     # a quarter of the memory is for answers alone


class Body:
    """A body that is arriving. `held`: bytes of it in the account; `known`: its connection is a user's; `refused`: it
    has lost its room to others.
    """

    def __init__(self, *, known: bool) -> None:
        self.held = 0
        self.known = known
        self.refused = False


class Unread:
    """A large answer. `left`: bytes of it that are not sent yet; `cut` ends its connection."""

    def __init__(self, left: int, cut: Callable[[], None]) -> None:
        self.left = left
        self.cut = cut


class Account:
    """All bodies and unread answers together, of which there should be `bytes_max`.

    A quarter of it is for answers alone. Where there is no room, strangers' bodies that still arrive are refused, the
    largest first, as nobody knows whose they are. Then a further body is refused itself. A further answer exists
    already, so it gets room by cutting off the client that has read nothing for longest. That happens only while
    answers have more than their quarter, so bodies never cut off a client.
    """

    def __init__(self, bytes_max: int, metrics: Metrics) -> None:
        self._bytes_max = bytes_max
        self._share = bytes_max // ANSWERS_DIVISOR
        self._metrics = metrics
        self._bodies = 0
        self._answers = 0
        self._strangers: dict[Body, Callable[[], None]] = {}    # with what refuses them
        self._unread: dict[Unread, None] = {}       # the one whose client has read nothing for longest first

    @contextmanager
    def arriving(self, body: Body, refuse: Callable[[], None]) -> Iterator[None]:
        """Let a stranger's body make room for others until the end of the block; `refuse` is called when it has to."""
        if not body.known:
            self._strangers[body] = refuse
        try:
            yield
        finally:
            self._strangers.pop(body, None)

    def hold(self, body: Body, count: int, *, first: bool = False) -> bool:
        """Hold further bytes of a body; returns False if there is no room.

        `first`: bodies of strangers make room for it.
        """
        while count and not self.has_room(count):
            if not first or not self._refuse_largest(body):
                return False
        body.held += count
        self._add_to_bodies(count)
        return True

    def has_room(self, count: int) -> bool:
        """Return whether this many further bytes of a body may come."""
        bodies = self._bodies + count
        return bodies <= self._bytes_max - self._share and bodies + self._answers <= self._bytes_max

    def release(self, body: Body) -> None:
        """Give back what was held for a body."""
        self._add_to_bodies(-body.held)
        body.held = 0

    @contextmanager
    def answer(self, size: int, cut: Callable[[], None]) -> Iterator[Unread]:
        """Hold an answer until the end of the block; `sent` reports the bytes sent of it, `cut` ends its connection."""
        unread = Unread(size, cut)
        self._unread[unread] = None
        self._add_to_answers(size)
        self._make_room(unread)
        try:
            yield unread
        finally:
            self._unread.pop(unread, None)
            self._release(unread, unread.left)

    def sent(self, unread: Unread, count: int) -> None:
        """Record that the client takes this many bytes of its answer."""
        if unread in self._unread:              # else it is cut off
            self._release(unread, count)
            del self._unread[unread]
            self._unread[unread] = None

    def _make_room(self, newest: Unread) -> None:
        while self._is_over() and self._refuse_largest():
            pass
        for unread in [*self._unread]:
            if not self._is_over() or unread is newest:
                return
            del self._unread[unread]
            self._release(unread, unread.left)
            unread.cut()

    def _is_over(self) -> bool:
        return self._bodies + self._answers > self._bytes_max

    def _refuse_largest(self, but: Body | None = None) -> bool:
        """Refuse the largest body of a stranger, for others; returns False if no such body has any bytes."""
        largest = max((body for body in self._strangers if body is not but), key=_held, default=None)
        if largest is None or not largest.held:
            return False
        refuse = self._strangers.pop(largest)
        largest.refused = True
        self.release(largest)
        refuse()
        return True

    def _release(self, unread: Unread, count: int) -> None:
        unread.left -= count
        self._add_to_answers(-count)

    def _add_to_bodies(self, count: int) -> None:
        if count:
            self._bodies += count
            self._metrics.body_bytes.set(self._bodies)

    def _add_to_answers(self, count: int) -> None:
        self._answers += count
        self._metrics.answer_bytes.set(self._answers)


def _held(body: Body) -> int:
    return body.held
