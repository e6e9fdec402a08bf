"""How to connect to the servers: with or without TLS, and as which user."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from sockpq import Client, ServerView


class Access(NamedTuple):
    """TLS and credentials. `tls`: None for none, a CA file, or True for the system's CAs."""

    tls: str | bool | None = None
    user: str | None = None
    secret: str | None = None

    def survey(self, servers: Iterable[str], timeout: float) -> list[ServerView]:
        """Ask each server for its view of the cluster; raises BadArguments."""
        from sockpq import survey

        return survey(servers, timeout, tls=self.tls, user=self.user, secret=self.secret)

    def client(self, servers: Iterable[str], timeout: float = 30.0, connections: int = 1) -> Client:
        """Create a client for `connections` concurrent calls, `timeout` in seconds each; raises BadArguments."""
        from sockpq import Client

        return Client(
            servers, tls=self.tls, user=self.user, secret=self.secret,
            timeout=timeout, server_timeout=timeout, idle_connections_max=connections,
        )

    def __repr__(self) -> str:
        return f"Access(tls={self.tls!r}, user={self.user!r})"
