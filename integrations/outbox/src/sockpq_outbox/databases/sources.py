"""Opens connections to a database, for relays and operators: by a URL, an engine of SQLAlchemy or Django's alias."""

from __future__ import annotations

import os
import sqlite3
from typing import Any, Protocol
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from sockpq_outbox.databases.base import Database
from sockpq_outbox.databases.found import database_of
from sockpq_outbox.errors import UnknownDatabase
from sockpq_outbox.sql import CHANNEL

PACKAGES = {"psycopg": "psycopg[binary]"}      # what is installed for a driver whose package has another name
URLS = "postgresql://user@host/name, mariadb://user@host/name or sqlite:///path"


class Listener(Protocol):
    """Waits until a transaction has put jobs."""

    def wait(self, seconds: float) -> bool:
        """Wait for a notification for at most `seconds`; returns whether there was one."""
        ...

    def close(self) -> None:
        """End the connection."""
        ...


class Opened(Protocol):
    """An open connection."""

    database: Database

    def close(self) -> None:
        """End the connection."""
        ...


class Source(Protocol):
    """A database to which connections can be opened."""

    def open(self, lease: float) -> Opened:
        """Open a connection whose transactions give up when they have waited, or stood idle, for `lease` seconds."""
        ...

    def listen(self) -> Listener | None:
        """Open a connection that is notified of jobs that were put; None where the database has no notifications."""
        ...


def source_of(given: Any) -> Source:
    """Return the database of a URL, a SQLAlchemy engine, or an alias of a Django database. Raises UnknownDatabase."""
    if not isinstance(given, str):
        return EngineSource(given)
    if "://" not in given:
        return AliasSource(given)
    url = urlsplit(given)
    kind = url.scheme.partition("+")[0]         # of SQLAlchemy's URLs, which may name a driver
    if kind in ("postgresql", "postgres"):
        return PostgresSource(f"postgresql:{given.partition(':')[2]}")     # geturl() loses an empty host
    if kind in ("mysql", "mariadb"):
        return MariaSource(url)
    if kind == "sqlite":
        return SqliteSource(given.partition("://")[2].removeprefix("/"))
    raise UnknownDatabase(f"a database at {kind}://: give {URLS}")


class _Connection:
    """A connection of a driver."""

    def __init__(self, connection: Any) -> None:
        self.database = database_of(connection)
        self._connection = connection

    def close(self) -> None:
        self._connection.close()


class PostgresSource:
    """PostgreSQL, by psycopg."""

    def __init__(self, url: str) -> None:
        self._url = url

    def open(self, lease: float) -> Opened:
        psycopg = _driver("psycopg")
        connection = psycopg.connect(self._url, application_name="pqoutbox")
        milliseconds = max(int(lease * 1000), 1)
        # A relay that sleeps within a transaction holds the row of its ledger, for which its successor waits.
        connection.execute(f"SET idle_in_transaction_session_timeout = {milliseconds}")
        connection.execute(f"SET lock_timeout = {milliseconds}")
        connection.commit()
        return _Connection(connection)

    def listen(self) -> Listener | None:
        connection = _driver("psycopg").connect(self._url, autocommit=True, application_name="pqoutbox listen")
        connection.execute(f"LISTEN {CHANNEL}")
        return _PostgresListener(connection)


class _PostgresListener:
    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def wait(self, seconds: float) -> bool:
        return any(True for _ in self._connection.notifies(timeout=seconds, stop_after=1))

    def close(self) -> None:
        self._connection.close()


class MariaSource:
    """MariaDB, by PyMySQL; the URL's query has further arguments of its connect()."""

    def __init__(self, url: SplitResult) -> None:
        self._given: dict[str, Any] = {
            "host": url.hostname or "localhost", "port": url.port or 3306, "user": unquote(url.username or ""),
            "password": unquote(url.password or ""), "database": unquote(url.path.removeprefix("/")),
            **dict(parse_qsl(url.query)),
        }

    def open(self, lease: float) -> Opened:
        connection = _driver("pymysql").connect(**self._given)
        with connection.cursor() as cursor:
            # Otherwise what the relay reads would be locked with the gaps, in which programs put their rows.
            cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
            cursor.execute(f"SET SESSION innodb_lock_wait_timeout = {max(int(lease), 1)}")
            if "mariadb" in connection.get_server_info().lower():
                cursor.execute(f"SET SESSION idle_transaction_timeout = {max(int(lease), 1)}")
        return _Connection(connection)

    def listen(self) -> Listener | None:
        return None


class SqliteSource:
    """A file of SQLite. `may_be_new`: it is made if there is none, instead of an error; a name may be mistyped."""

    def __init__(self, path: str) -> None:
        self.may_be_new = False
        self._path = path

    def open(self, lease: float) -> Opened:
        if not self.may_be_new and not os.path.exists(self._path):
            raise UnknownDatabase(f"there is no file {self._path}: `pqoutbox create-tables` would make it")
        return _Connection(sqlite3.connect(self._path, timeout=lease))

    def listen(self) -> Listener | None:
        return None


class EngineSource:
    """An engine of SQLAlchemy, whose settings are the program's."""

    def __init__(self, engine: Any) -> None:
        if not hasattr(engine, "connect"):
            raise UnknownDatabase(f"a relay takes a URL or an engine of SQLAlchemy, not {type(engine).__name__}")
        self._engine = engine

    def open(self, lease: float) -> Opened:
        return _Connection(self._engine.connect())

    def listen(self) -> Listener | None:
        return None


class AliasSource:
    """A database of Django's settings: this thread's connection."""

    def __init__(self, alias: str) -> None:
        self._alias = alias

    def open(self, lease: float) -> Opened:
        try:
            from django.db import connections
        except ImportError:
            raise UnknownDatabase(
                f"{self._alias!r} is no URL, such as {URLS}; and Django, one of whose databases may have that name, is"
                " not installed") from None

        return _Alias(self._alias, connections[self._alias])

    def listen(self) -> Listener | None:
        return None


class _Alias:
    def __init__(self, alias: str, connection: Any) -> None:
        self.database = database_of(alias)
        self._connection = connection

    def close(self) -> None:
        self._connection.close()


def _driver(name: str) -> Any:
    """Import a driver. Raises UnknownDatabase when it is not installed."""
    try:
        return __import__(name)
    except ImportError:
        package = PACKAGES.get(name, name)
        raise UnknownDatabase(f"{name} is needed for this database: pip install '{package}'") from None
