"""How the servers are talked to: with TLS or without, and as whom."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from sockpq import Client, ServerView


class Access(NamedTuple):
    """`tls`: None without, a CA file, True for the CAs of the system."""

    tls: str | bool | None = None
    user: str | None = None
    secret: str | None = None

    def survey(self, servers: Iterable[str], timeout: float) -> list[ServerView]:
        """What each server tells; raises BadArguments."""
        from sockpq import survey

        return survey(servers, timeout, tls=self.tls, user=self.user, secret=self.secret)

    def client(self, servers: Iterable[str], timeout: float = 30.0, connections: int = 1) -> Client:
        """For `connections` calls at a time, each with so many seconds; raises BadArguments."""
        from sockpq import Client

        return Client(
            servers, tls=self.tls, user=self.user, secret=self.secret,
            timeout=timeout, server_timeout=timeout, idle_connections_max=connections,
        )

    def __repr__(self) -> str:
        return f"Access(tls={self.tls!r}, user={self.user!r})"
