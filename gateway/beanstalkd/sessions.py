"""The sessions of this node's connections: those in use, the free ones, and portions for keeping them alive."""

from __future__ import annotations

FREE_MAX = 1000                 # sessions kept for connections to come
KEPT_MAX = 1000                 # that one operation keeps


class NodeSession:
    """A session of this node, used by one connection at a time."""

    __slots__ = ("_next", "number")

    def __init__(self, number: int) -> None:
        self.number = number
        self._next = 1

    def next_number(self) -> int:
        """The number of the next request."""
        number = self._next
        self._next = number + 1
        return number


class NodeSessions:
    """All sessions of this node's connections. They expire when the node is silent for too long."""

    def __init__(self) -> None:
        self._all: dict[int, None] = {}
        self._free: list[NodeSession] = []

    def portions(self) -> list[tuple[int, ...]]:
        """Return the numbers of all sessions, in portions that one operation can keep alive."""
        numbers = list(self._all)
        return [tuple(numbers[start:start + KEPT_MAX]) for start in range(0, len(numbers), KEPT_MAX)]

    def opened(self, number: int) -> NodeSession:
        """Return a new session for the connection to use."""
        self._all[number] = None
        return NodeSession(number)

    def ended(self, session: NodeSession) -> None:
        """Forget a session that has ended."""
        self._all.pop(session.number, None)

    def lost(self, session: NodeSession) -> None:
        """Forget a session that ended because this node was silent, and all free ones, which have ended as well."""
        self.ended(session)
        for free in self._free:
            self.ended(free)
        self._free.clear()

    def take(self) -> NodeSession | None:
        """Return a free session, None if there is none."""
        return self._free.pop() if self._free else None

    def give_back(self, session: NodeSession) -> None:
        """Keep the session of an ended connection for others; nothing is bound to it."""
        if len(self._free) < FREE_MAX:
            self._free.append(session)
        else:
            self.ended(session)         # when it has not been used for a while
