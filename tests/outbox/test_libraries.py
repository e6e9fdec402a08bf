"""Sessions of the libraries over SQLite: rows belong to their transactions."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest
from sockpq_outbox import UnknownDatabase, create_tables, inbox, outbox
from sockpq_outbox.databases.base import run
from sockpq_outbox.databases.sources import EngineSource, source_of
from sqlalchemy import MetaData, create_engine, inspect
from sqlalchemy.engine import Engine
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker


@pytest.fixture
def engine(sqlite_file: Path) -> Engine:
    return create_engine(f"sqlite:///{sqlite_file}")


def bodies(path: Path) -> list[str]:
    connection = sqlite3.connect(path)
    found = [body.decode() for (body,) in connection.execute("SELECT body FROM sockpq_outbox ORDER BY id")]
    connection.close()
    return found


def test_sessions_and_connections_of_sqlalchemy(engine: Engine, sqlite_file: Path) -> None:
    with Session(engine) as session, session.begin():
        outbox.put(session, "mail", "session")
    with Session(engine) as session:
        outbox.put(session, "mail", "never committed")
    with engine.begin() as connection:
        outbox.put(connection, "mail", "connection")
        with connection.begin_nested() as savepoint:
            outbox.put(connection, "mail", "to a savepoint")
            savepoint.rollback()
    scoped = scoped_session(sessionmaker(engine))
    outbox.put(scoped, "mail", "scoped")
    scoped.commit()
    scoped.remove()
    assert bodies(sqlite_file) == ["session", "connection", "scoped"]
    engine.dispose()


def test_sessions_of_asyncio(sqlite_file: Path) -> None:
    asyncio.run(put_async(sqlite_file))
    assert bodies(sqlite_file) == ["session", "connection"]


async def put_async(path: Path) -> None:
    engine = create_async_engine(f"sqlite+aiosqlite:///{path}")
    async with AsyncSession(engine) as session, session.begin():
        await outbox.put(session, "mail", "session")
    async with engine.begin() as connection:
        await outbox.put(connection, "mail", "connection")
    async with AsyncSession(engine) as session:
        await outbox.put(session, "mail", "never committed")
    await engine.dispose()


def test_the_tables_of_the_metadata_are_those_of_the_statements(tmp_path: Path) -> None:
    seen = []
    for number, by_metadata in enumerate((True, False)):
        engine = create_engine(f"sqlite:///{tmp_path / f'{number}.db'}")
        metadata = MetaData()
        tables = [*outbox.table(metadata), inbox.table(metadata)]
        if by_metadata:
            metadata.create_all(engine)
        else:
            with engine.begin() as connection:
                for statement in create_tables("sqlite"):
                    connection.exec_driver_sql(statement)
        found = inspect(engine)
        seen.append([
            (
                table.name, [(column["name"], str(column["type"]), column["nullable"] or column["primary_key"])
                             for column in found.get_columns(table.name)],
                found.get_pk_constraint(table.name)["constrained_columns"],
                sorted((index["name"], tuple(index["column_names"])) for index in found.get_indexes(table.name)),
            )
            for table in tables
        ])
        with engine.begin() as connection:
            outbox.put(connection, "mail", b"")
        engine.dispose()
    assert seen[0] == seen[1]


@pytest.mark.parametrize(
    ("given", "text"), [("mongodb://x", "a database at mongodb://"), (5, "not int")],
)
def test_databases_that_nobody_knows(given: object, text: str) -> None:
    with pytest.raises(UnknownDatabase, match=text):
        source_of(given)


def test_urls_and_engines(engine: Engine, sqlite_file: Path) -> None:
    assert isinstance(source_of(engine), EngineSource)
    for url in (f"sqlite:///{sqlite_file}", f"sqlite+aiosqlite:///{sqlite_file}"):
        opened = source_of(url).open(1.0)
        assert run(opened.database.execute("SELECT COUNT(*) FROM sockpq_outbox", {})) == [(0,)]
        opened.close()
    engine.dispose()


def test_a_url_reaches_the_driver_as_it_is_but_for_the_scheme(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[str] = []

    def connect(url: str, **options: object) -> None:
        given.append(url)
        raise ConnectionError

    monkeypatch.setattr("psycopg.connect", connect)
    for url in ("postgresql:///shop", "postgresql+psycopg://ann:a%40b@db1,db2:5432/shop?sslmode=require"):
        with pytest.raises(ConnectionError):
            source_of(url).open(15.0)
    assert given == ["postgresql:///shop", "postgresql://ann:a%40b@db1,db2:5432/shop?sslmode=require"]


def test_a_driver_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(UnknownDatabase, match=r"psycopg is needed for this database: pip install 'psycopg\[binary\]'"):
        source_of("postgresql://x/y").open(1.0)
