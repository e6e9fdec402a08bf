"""Access to the servers: with or without TLS, and as which user."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from sockpq import Client, ServerView

# How long the cluster keeps the session of a pqctl that was killed, beyond the time in which a call may be repeated.
SESSION_SPARE_S = 60.0


class ClusterAccess(NamedTuple):
    """TLS and credentials. `tls`: None for none, a CA file, or True for the system's CAs.

    `secret_file`: a regular file from which the secret was read. It is read again by long-running commands.
    """

    tls: str | bool | None = None
    user: str | None = None
    secret: str | None = None
    secret_file: str | None = None

    @property
    def present_secret(self) -> str | None:
        """The current secret in its file; if the file no longer has one, the secret that was read first."""
        if self.secret_file is None:
            return self.secret
        try:
            found = Path(self.secret_file).read_text("utf-8").removesuffix("\n").removesuffix("\r")
        except (OSError, UnicodeDecodeError):
            return self.secret
        return found or self.secret

    def survey(self, servers: Iterable[str], timeout: float) -> list[ServerView]:
        """Ask each server for its view of the cluster; raises BadArguments."""
        from sockpq import survey

        return survey(servers, timeout, tls=self.tls, user=self.user, secret=self.present_secret)

    def client(self, servers: Iterable[str], timeout: float = 30.0, connections: int = 1) -> Client:
        """Create a client for `connections` concurrent calls, `timeout` in seconds each; raises BadArguments."""
        from sockpq import Client

        return Client(
            servers, tls=self.tls, user=self.user, secret=None if self.secret_file else self.secret,
            secret_file=self.secret_file,
            timeout=timeout, server_timeout=timeout, idle_connections_max=connections,
            session_ttl=timeout + SESSION_SPARE_S,
            follow_map=False,       # the operator says which cluster is meant, by its servers
        )

    def __repr__(self) -> str:
        return f"ClusterAccess(tls={self.tls!r}, user={self.user!r})"
