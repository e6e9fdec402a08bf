"""The relay of a backend's outbox."""

from __future__ import annotations

from urllib.parse import quote, urlencode

from django.core.exceptions import ImproperlyConfigured
from django.db import connections
from sockpq_outbox import Relay

from sockpq_django.backend import SockpqBackend


def relay_of(backend: SockpqBackend) -> Relay:
    """Return the relay for the outbox of this backend. Raises ImproperlyConfigured if it has none.

    Its ledger has the prefix and the alias of the database in its name, so that projects may share a cluster.
    """
    settings = backend.settings
    if settings.outbox is None:
        raise ImproperlyConfigured(f'TASKS["{backend.alias}"] has no OUTBOX, so there is nothing to relay')
    return Relay(database_for_relay(settings.outbox), name=f"{settings.prefix}{settings.outbox}", **settings.client)


def database_for_relay(alias: str) -> str:
    """Return a database as the relay takes it: the URL of PostgreSQL, where it listens for rows, else the alias."""
    connection = connections[alias]
    if connection.vendor != "postgresql":
        return alias
    try:
        from psycopg.pq import Conninfo
    except ImportError:                 # the project uses psycopg2
        return alias
    known = {option.keyword.decode() for option in Conninfo.get_defaults()}
    given = {name: value for name, value in connection.get_connection_params().items() if name in known}
    # What is not given is libpq's to find, as it is for Django: PGHOST and other variables, or a socket.
    return f"postgresql:///{quote(given.pop('dbname', ''), safe='')}?{urlencode(given)}"
