"""Sessions in the client: how a call is executed exactly once.

The cluster keeps a session through failovers. Each request has a number in it: a repeated request is not executed again
but gets its first answer again. So a lost answer does no harm while the session exists; it expires after some time
without use. Then `404 Session Not Found` distinguishes "not executed" from "unknown".
"""

from __future__ import annotations

from sockpq.errors import SockpqError

WINDOW = 64             # how many of the newest requests the server remembers the answers of
NUMBER_BYTES_MAX = 25   # "REQ " and a 64-bit number before a command


class SessionLost(SockpqError):
    """The session is gone, or has forgotten this request. Internal: callers see at most OutcomeUnknown."""


class NumberUsed(SessionLost):
    """Another command was executed under this number, so the session must be given up. Internal, like SessionLost."""


class Session:
    """One session, for one call at a time."""

    __slots__ = ("_last", "sid")

    def __init__(self, sid: str) -> None:
        """`sid`: its name, as given by the server."""
        self.sid = sid
        self._last = 0

    def take(self) -> int:
        """Return the number of the next request."""
        self._last += 1
        return self._last


class Request:
    """One command in all its attempts: under the same number in the same session."""

    __slots__ = ("_number", "_session")

    def __init__(self) -> None:
        self._session: Session | None = None
        self._number = 0

    def number(self, session: Session) -> int:
        """Return its number in this session."""
        if self._session is not session:
            self._session = session
            self._number = session.take()
        return self._number
