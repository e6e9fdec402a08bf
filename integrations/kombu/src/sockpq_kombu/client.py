"""The client of a connection, or of a result backend.

All clients of a process stay with the cluster of the first one, and the clusters of its map, as kombu keeps creating
new clients.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sockpq import Client

from sockpq_kombu.mapping.addresses import Access

PATIENCE_S = 30.0           # without a leader for this long, the connection is lost
SESSION_PATIENCES = 4       # for this many times a command may be repeated; then the session of a dead program ends
SESSION_MIN_S = 10.0


clusters: dict[str, str] = {}       # of each server that this process was given: the cluster that it has used


def client_of(access: Access, options: Mapping[str, Any]) -> Client:
    """Make a client. `options`: kombu's transport_options. A secret in a file may be replaced while programs run."""
    secret_file = options.get("secret_file") if access.user else None
    patience = float(options.get("patience", PATIENCE_S))
    return Client(
        access.servers, tls=access.tls, user=access.user, secret=None if secret_file else access.secret,
        secret_file=secret_file, timeout=patience,
        session_ttl=max(SESSION_PATIENCES * patience, SESSION_MIN_S),
        cluster=next((clusters[server] for server in access.servers if server in clusters), None),
        follow_map=True,
    )


def remember(access: Access, client: Client) -> None:
    """Remember the cluster that this client has used: later clients stay with it."""
    if client.cluster is not None:
        for server in access.servers:
            clusters.setdefault(server, client.cluster)
