"""Finds the library of a session, without importing any that the program does not use."""

from __future__ import annotations

import sys
from typing import Any

from sockpq_outbox.databases.base import Database
from sockpq_outbox.errors import UnknownDatabase

SUPPORTED = (
    "a Session, AsyncSession, Connection or AsyncConnection of SQLAlchemy 2, a connection or cursor of psycopg 3, "
    "a connection of asyncpg, PyMySQL or sqlite3, or the alias of a database of Django"
)


def database_of(session: Any) -> Database:
    """Return the session as a database. Raises UnknownDatabase."""
    if isinstance(session, str):
        from sockpq_outbox.databases.django import DjangoDatabase

        return DjangoDatabase(session)
    found = _of_sqlalchemy(session) or _of_driver(session)
    if found is None:
        raise UnknownDatabase(f"an outbox takes {SUPPORTED}, not {type(session).__name__}")
    return found


def _of_sqlalchemy(session: Any) -> Database | None:
    if "sqlalchemy" not in sys.modules:
        return None
    blocking = _is(session, "sqlalchemy.orm", "Session", "scoped_session") or _is(session, "sqlalchemy", "Connection")
    waiting = _is(session, "sqlalchemy.ext.asyncio", "AsyncSession", "AsyncConnection", "async_scoped_session")
    if not blocking and not waiting:
        return None
    from sockpq_outbox.databases.sqlalchemy import SqlalchemyDatabase

    return SqlalchemyDatabase(session, blocking=blocking)


def _of_driver(session: Any) -> Database | None:
    if _is(session, "psycopg", "Connection", "AsyncConnection", "Cursor", "AsyncCursor"):
        from sockpq_outbox.databases.psycopg import PsycopgDatabase

        return PsycopgDatabase(session, blocking=_is(session, "psycopg", "Connection", "Cursor"))
    if _is(session, "asyncpg.connection", "Connection") or _is(session, "asyncpg.pool", "PoolConnectionProxy"):
        from sockpq_outbox.databases.asyncpg import AsyncpgDatabase

        return AsyncpgDatabase(session)
    if _is(session, "sqlite3", "Connection"):
        from sockpq_outbox.databases.sqlite import SqliteDatabase

        return SqliteDatabase(session)
    if _is(session, "pymysql.connections", "Connection"):
        from sockpq_outbox.databases.pymysql import PymysqlDatabase

        return PymysqlDatabase(session)
    return None


def _is(value: object, module: str, *names: str) -> bool:
    """Return whether this is an instance of one of these classes; not if nobody has imported the module."""
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(value, tuple(getattr(loaded, name) for name in names))
