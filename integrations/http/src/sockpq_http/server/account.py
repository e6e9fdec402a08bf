"""The bytes that an instance holds for its clients: bodies that have come, and answers that are not read yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sockpq_http.server.metrics import Metrics


class Unread:
    """A large answer. `left`: bytes of it that are not sent yet; `cut` ends its connection."""

    def __init__(self, left: int, cut: Callable[[], None]) -> None:
        self.left = left
        self.cut = cut


class Account:
    """All bodies and unread answers together, of which there should be `bytes_max`.

    For a body without room there is none, so it is refused. An answer is there already, so for its room the client is
    cut off that has read nothing for longest.
    """

    def __init__(self, bytes_max: int, metrics: Metrics) -> None:
        self._bytes_max = bytes_max
        self._metrics = metrics
        self._bodies = 0
        self._answers = 0
        self._unread: dict[Unread, None] = {}       # the one whose client has read nothing for longest first

    def has_room(self, count: int) -> bool:
        """Return whether so many further bytes of a body may come."""
        return self._bodies + self._answers + count <= self._bytes_max

    def hold(self, count: int) -> None:
        """Add bytes of a body; negative when they are gone."""
        if count:
            self._bodies += count
            self._metrics.body_bytes.set(self._bodies)

    @contextmanager
    def answer(self, size: int, cut: Callable[[], None]) -> Iterator[Unread]:
        """Hold an answer until the end of the block; `sent` says what is gone of it, `cut` ends its connection."""
        unread = Unread(size, cut)
        self._unread[unread] = None
        self._add(size)
        self._make_room(unread)
        try:
            yield unread
        finally:
            self._unread.pop(unread, None)
            self._release(unread, unread.left)

    def sent(self, unread: Unread, count: int) -> None:
        """Note that the client takes so many bytes of its answer."""
        if unread in self._unread:              # else it is cut off
            self._release(unread, count)
            del self._unread[unread]
            self._unread[unread] = None

    def _make_room(self, newest: Unread) -> None:
        for unread in [*self._unread]:
            if self.has_room(0) or unread is newest:
                return
            del self._unread[unread]
            self._release(unread, unread.left)
            unread.cut()

    def _release(self, unread: Unread, count: int) -> None:
        unread.left -= count
        self._add(-count)

    def _add(self, count: int) -> None:
        self._answers += count
        self._metrics.answer_bytes.set(self._answers)
