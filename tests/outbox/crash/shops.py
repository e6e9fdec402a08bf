"""A shop over each library: a transaction that writes an order and its job, and one that works on a job, once."""

from __future__ import annotations

import asyncio
import sqlite3
from typing import Any, Protocol
from urllib.parse import urlsplit

from sockpq import Job
from sockpq_outbox import create_tables, inbox, outbox

QUEUE = "orders"
TABLES = (
    "CREATE TABLE orders (name VARCHAR(40) NOT NULL PRIMARY KEY)",
    "CREATE TABLE effects (name VARCHAR(40) NOT NULL)",     # without a key: an effect may happen twice
)
ORDER = "INSERT INTO orders (name) VALUES ('{}')"
EFFECT = "INSERT INTO effects (name) VALUES ('{}')"


class RolledBack(Exception):
    """The program changes its mind."""


class Shop(Protocol):
    """One connection of a library."""

    def order(self, name: str, *, rolls_back: bool) -> None:
        """Write an order and its job in one transaction, and commit it or roll it back."""
        ...

    def work(self, job: Job, *, exact: bool) -> None:
        """Make the effect of a job, and end it."""
        ...

    def close(self) -> None:
        """End the connection."""
        ...


class Sqlite:
    """A shop that uses sqlite3."""

    def __init__(self, url: str) -> None:
        self._connection = sqlite3.connect(url.removeprefix("sqlite:///"), timeout=60)

    def order(self, name: str, *, rolls_back: bool) -> None:
        try:
            self._connection.execute(ORDER.format(name))
            outbox.put(self._connection, QUEUE, name)
            if rolls_back:
                raise RolledBack
        except RolledBack:
            self._connection.rollback()
        else:
            self._connection.commit()

    def work(self, job: Job, *, exact: bool) -> None:
        with inbox.once(self._connection, job, exact=exact) as first:
            if first:
                self._connection.execute(EFFECT.format(job.text))

    def close(self) -> None:
        self._connection.close()


class Psycopg:
    """A shop that uses psycopg 3."""

    def __init__(self, url: str) -> None:
        import psycopg

        self._connection = psycopg.connect(url)

    def order(self, name: str, *, rolls_back: bool) -> None:
        try:
            with self._connection.transaction():
                self._connection.execute(ORDER.format(name))
                outbox.put(self._connection, QUEUE, name)
                if rolls_back:
                    raise RolledBack
        except RolledBack:
            pass

    def work(self, job: Job, *, exact: bool) -> None:
        with inbox.once(self._connection, job, exact=exact) as first:
            if first:
                self._connection.execute(EFFECT.format(job.text))

    def close(self) -> None:
        self._connection.close()


class Pymysql:
    """A shop that uses PyMySQL."""

    def __init__(self, url: str) -> None:
        import pymysql

        parts = urlsplit(url)
        self._connection = pymysql.connect(
            host=parts.hostname or "", port=parts.port or 0, user=parts.username, database=parts.path[1:])

    def order(self, name: str, *, rolls_back: bool) -> None:
        with self._connection.cursor() as cursor:
            cursor.execute(ORDER.format(name))
        outbox.put(self._connection, QUEUE, name)
        self._connection.rollback() if rolls_back else self._connection.commit()

    def work(self, job: Job, *, exact: bool) -> None:
        with inbox.once(self._connection, job, exact=exact) as first:
            if first:
                with self._connection.cursor() as cursor:
                    cursor.execute(EFFECT.format(job.text))

    def close(self) -> None:
        self._connection.close()


class Sqlalchemy:
    """A shop that uses sessions of SQLAlchemy."""

    def __init__(self, url: str) -> None:
        from sqlalchemy import create_engine
        from sqlalchemy.orm import Session

        self._engine, self._session = create_engine(engine_url(url)), Session

    def order(self, name: str, *, rolls_back: bool) -> None:
        from sqlalchemy import text

        try:
            with self._session(self._engine) as session, session.begin():
                session.execute(text(ORDER.format(name)))
                outbox.put(session, QUEUE, name)
                if rolls_back:
                    raise RolledBack
        except RolledBack:
            pass

    def work(self, job: Job, *, exact: bool) -> None:
        from sqlalchemy import text

        with self._session(self._engine) as session, inbox.once(session, job, exact=exact) as first:
            if first:
                session.execute(text(EFFECT.format(job.text)))

    def close(self) -> None:
        self._engine.dispose()


class Asyncpg:
    """asyncpg, in an event loop of its own."""

    def __init__(self, url: str) -> None:
        import asyncpg

        self._runner = asyncio.Runner()
        self._connection = self._runner.run(asyncpg.connect(url))

    def order(self, name: str, *, rolls_back: bool) -> None:
        self._runner.run(self._order(name, rolls_back))

    async def _order(self, name: str, rolls_back: bool) -> None:
        try:
            async with self._connection.transaction():
                await self._connection.execute(ORDER.format(name))
                await outbox.put(self._connection, QUEUE, name)
                if rolls_back:
                    raise RolledBack
        except RolledBack:
            pass

    def work(self, job: Job, *, exact: bool) -> None:
        self._runner.run(self._work(job, exact))

    async def _work(self, job: Job, exact: bool) -> None:
        async with inbox.once(self._connection, job, exact=exact) as first:
            if first:
                await self._connection.execute(EFFECT.format(job.text))

    def close(self) -> None:
        self._runner.run(self._connection.close())
        self._runner.close()


SHOPS: dict[str, type[Any]] = {
    "sqlite3": Sqlite, "psycopg": Psycopg, "pymysql": Pymysql, "sqlalchemy": Sqlalchemy, "asyncpg": Asyncpg,
}


def engine_url(url: str) -> str:
    """Return the URL for SQLAlchemy, with the drivers that the tests have."""
    return url.replace("postgresql://", "postgresql+psycopg://").replace("mariadb://", "mariadb+pymysql://")


def prepare(url: str) -> None:
    """Make the tables of the shop, the outbox and the inbox."""
    with Direct(url) as direct:
        for statement in (*TABLES, *create_tables(direct.dialect)):
            direct.execute(statement)


class Direct:
    """A connection of the judge, which passes no proxy."""

    def __init__(self, url: str) -> None:
        from sockpq_outbox.databases.sources import source_of

        self._opened = source_of(url).open(60.0)
        self.dialect = self._opened.database.dialect

    def __enter__(self) -> Direct:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def execute(self, sql: str) -> list[Any]:
        """Execute a statement in a transaction of its own and return its rows."""
        from sockpq_outbox.databases.base import run

        database = self._opened.database
        run(database.begin())
        rows = run(database.execute(sql, {}))
        run(database.commit())
        return rows
