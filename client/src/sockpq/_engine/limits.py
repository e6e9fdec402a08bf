"""The settings of a client: its time limits, and what to do with unknown outcomes."""

from __future__ import annotations

from typing import NamedTuple

from sockpq._protocol import arguments


class Limits(NamedTuple):
    """The settings of one client, in seconds."""

    timeout: float              # a whole call, all its attempts together
    server_timeout: float       # one server's silence while it owes an answer
    connect_timeout: float
    retry_unknown: bool
    sessions: bool              # use them, if the servers have them
    session_ttl: float          # a session ends after being unused for this long
    idle_max: int               # connections kept without work

    def checked(self) -> Limits:
        """Check the settings and return them; raises TypeError and BadArguments."""
        for what in ("timeout", "server_timeout", "connect_timeout"):
            arguments.span(getattr(self, what), what)
        for what in ("retry_unknown", "sessions"):
            arguments.switch(getattr(self, what), what)
        arguments.session_ttl(self.session_ttl)
        arguments.integer(self.idle_max, "idle_connections_max", 0, 1_000_000)
        return self
