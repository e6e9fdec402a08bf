"""The clients of this process: one for all backends with the same servers and user, however many threads use them.

Django makes an object of a backend for each thread, and a client is meant to be shared by threads.
"""

from __future__ import annotations

import atexit
from collections.abc import Mapping
from threading import Lock
from typing import Any

from sockpq import Client

_lock = Lock()
_clients: dict[tuple[tuple[str, Any], ...], Client] = {}


def shared_client(arguments: Mapping[str, Any]) -> Client:
    """Return the client with these arguments of sockpq.Client."""
    key = tuple(sorted(arguments.items()))
    with _lock:
        client = _clients.get(key)
        if client is None:
            client = _clients[key] = Client(**arguments)
        return client


@atexit.register
def close_clients() -> None:
    """Close all clients; the next call makes new ones."""
    with _lock:
        clients = list(_clients.values())
        _clients.clear()
    for client in clients:
        client.close()
