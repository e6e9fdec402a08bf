"""Servers, user and TLS of a connection's URL."""

from __future__ import annotations

from typing import Any, NamedTuple
from urllib.parse import urlsplit

from kombu import Connection

DEFAULT_PORT = 11361


class Access(NamedTuple):
    """The connection arguments of a sockpq.Client."""

    servers: list[str]
    tls: Any
    user: str | None
    secret: str | None


def access_of(connection: Connection, tls: bool) -> Access:
    """Return the arguments for a client of all servers in the URLs; `tls`: the scheme requires it."""
    servers = [server_of(url) for url in connection.alt or () if url]
    if not servers:
        servers = [own_server(connection)]
    user = connection.userid or None
    secret = connection.password if user else None
    return Access(list(dict.fromkeys(servers)), tls_of(connection.ssl, tls), user, secret)


def own_server(connection: Connection) -> str:
    """Return the server in this URL, one of several."""
    return _address(connection.hostname, connection.port)


def server_of(url: str) -> str:
    """Return `host:port` of one URL, or of a part between semicolons without a scheme."""
    parts = urlsplit(url if "://" in url else f"sockpq://{url}")
    return _address(parts.hostname, parts.port)


def tls_of(option: Any, scheme: bool) -> Any:
    """Return `tls` by `broker_use_ssl`: True, an ssl.SSLContext, or {"ca_certs": file}; else by the scheme."""
    if isinstance(option, dict):
        return option.get("ca_certs", True)
    return option or scheme or None


def _address(host: str | None, port: int | None) -> str:
    host = host or "localhost"
    return f"{f'[{host}]' if ':' in host else host}:{port or DEFAULT_PORT}"
