"""PostgreSQL and MariaDB: each library puts, works once, and the relay relays."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import asyncpg
import psycopg
import pytest
from psycopg.rows import dict_row
from sockpq import Client, Job
from sockpq.testing import Server
from sockpq_outbox import Relay, inbox, outbox
from sockpq_outbox.databases.sources import source_of
from sqlalchemy import create_engine, inspect, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

from tests.outbox.crash.shops import SHOPS, Direct, engine_url
from tests.waiting import until


@pytest.fixture
def client(own_server: Server) -> Iterator[Client]:
    own_server.empty()
    with Client(own_server.address) as client:
        yield client


@pytest.fixture(params=["postgresql", "mariadb"])
def url(request: pytest.FixtureRequest) -> str:
    """The URL of an empty database on each of the servers."""
    made: str = request.getfixturevalue({"postgresql": "postgres_url", "mariadb": "maria_url"}[request.param])
    with Direct(made) as direct:
        direct.execute("CREATE TABLE orders (name VARCHAR(40))")
        direct.execute("ALTER TABLE effects RENAME COLUMN text TO name")
    return made


def rows(url: str, table: str) -> list[Any]:
    with Direct(url) as direct:
        return [tuple(row) for row in direct.execute(f"SELECT * FROM {table}")]


def libraries(url: str) -> tuple[str, ...]:
    return ("psycopg", "sqlalchemy", "asyncpg") if url.startswith("postgresql") else ("pymysql", "sqlalchemy")


def test_each_library_puts_and_works_once(client: Client, own_server: Server, url: str) -> None:
    for library in libraries(url):
        with closing(SHOPS[library](url)) as shop:
            shop.order(f"{library} yes", rolls_back=False)
            shop.order(f"{library} no", rolls_back=True)
    expected = [(f"{library} yes",) for library in libraries(url)]
    with Relay(url, own_server.address, poll=0.02):
        until(lambda: client.total("orders").jobs == len(expected))
    jobs = [taken(client) for _ in expected]
    for library, job in zip(libraries(url), jobs, strict=True):
        with closing(SHOPS[library](url)) as worker:
            worker.work(Unended(job), exact=False)
            worker.work(job, exact=False)               # it was delivered again
        assert client.total("orders").running == len(jobs) - jobs.index(job) - 1
    assert sorted(rows(url, "effects")) == sorted(expected)
    assert sorted(rows(url, "orders")) == sorted(expected)
    assert rows(url, "sockpq_outbox") == []
    assert len(rows(url, "sockpq_inbox")) == len(expected)


class Unended:
    """A job whose DONE is lost."""

    def __init__(self, job: Job) -> None:
        self.number, self.headers, self.queue, self.text = job.number, job.headers, job.queue, job.text

    def done(self) -> None:
        """Do nothing."""


def taken(client: Client) -> Job:
    job = client.get("orders", expire=60, meta=True, headers=True)
    assert job is not None
    return job


def test_the_mark_goes_with_the_done(client: Client, url: str) -> None:
    for library in libraries(url):
        client.put("orders", library, headers={"id": library})
        with closing(SHOPS[library](url)) as shop:
            shop.work(taken(client), exact=True)
    assert [name for (name,) in rows(url, "effects")] == list(libraries(url))
    assert rows(url, "sockpq_inbox") == []


def test_the_relay_uses_an_engine(client: Client, own_server: Server, url: str) -> None:
    with closing(SHOPS["sqlalchemy"](url)) as shop:
        shop.order("1", rolls_back=False)
    engine = create_engine(engine_url(url))
    with Relay(engine, own_server.address, poll=0.02):
        until(lambda: client.total("orders").jobs == 1)
    engine.dispose()


def test_the_tables_are_those_of_the_metadata(url: str) -> None:
    from sqlalchemy import MetaData

    engine = create_engine(engine_url(url))
    metadata = MetaData()
    tables = [*outbox.table(metadata), inbox.table(metadata)]

    def seen() -> dict[str, Any]:
        found = inspect(engine)
        return {
            table.name: (
                [(column["name"], str(column["type"]), column["nullable"])
                 for column in found.get_columns(table.name)],
                found.get_pk_constraint(table.name)["constrained_columns"],
                sorted((index["name"], tuple(index["column_names"])) for index in found.get_indexes(table.name)),
            )
            for table in tables
        }

    ours = seen()
    metadata.drop_all(engine)
    metadata.create_all(engine)
    assert seen() == ours
    engine.dispose()


# PostgreSQL alone

def test_the_relay_is_notified(client: Client, own_server: Server, postgres_url: str) -> None:
    with Relay(postgres_url, own_server.address, poll=3600, lease=86_400) as relay, \
            psycopg.connect(postgres_url) as connection:
        until(lambda: relay.statistics.holds)
        for number in range(3):
            outbox.put(connection, "mail", f"{number}")
            connection.commit()
            until(lambda: client.total("mail").jobs == number + 1)      # noqa: B023


def test_psycopg_in_all_its_modes(postgres_url: str) -> None:
    with psycopg.connect(postgres_url, row_factory=dict_row) as connection:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 AS one")
            outbox.put(cursor, "mail", b"1")
            assert cursor.fetchall() == [{"one": 1}]
        connection.commit()
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        with pytest.raises(psycopg.errors.DivisionByZero), inbox.once(connection, Named(), identity="a"):
            connection.execute("INSERT INTO effects VALUES ((1 / 0)::text)")
        with inbox.once(connection, Named(), identity="a") as first:
            assert first
            connection.execute("INSERT INTO effects VALUES ('b')")
    with psycopg.connect(postgres_url) as connection, connection.transaction(), \
            pytest.raises(psycopg.ProgrammingError), inbox.once(connection, Named(), identity="b"):
        pass
    assert rows(postgres_url, "effects") == [("b",)]


class Named:
    """A job with nothing behind it."""

    def done(self) -> None:
        """Do nothing."""


def test_asyncio(postgres_url: str) -> None:
    asyncio.run(put_by_all(postgres_url))
    with Direct(postgres_url) as direct:
        assert [bytes(body) for (body,) in direct.execute("SELECT body FROM sockpq_outbox ORDER BY id")] == [
            b"psycopg", b"asyncpg", b"session", b"connection"]


async def put_by_all(url: str) -> None:
    async with await psycopg.AsyncConnection.connect(url) as connection:
        await outbox.put(connection, "mail", "psycopg")
        async with inbox.once(connection, Named(), identity="p") as first:
            assert first
    pool = await asyncpg.create_pool(url, min_size=1)
    async with pool.acquire() as connection:
        async with connection.transaction():
            await outbox.put(connection, "mail", "asyncpg")
        async with inbox.once(connection, Named(), identity="p") as first:
            assert not first
        async with connection.transaction():
            with pytest.raises(Exception, match="is in a transaction"):
                await inbox.once(connection, Named(), identity="q").__aenter__()
    await pool.close()
    engine = create_async_engine(url.replace("postgresql://", "postgresql+asyncpg://"))
    async with AsyncSession(engine) as session, session.begin():
        await outbox.put(session, "mail", "session")
    async with engine.begin() as connection:
        await outbox.put(connection, "mail", "connection")
        assert (await connection.execute(text("SELECT 1"))).scalar_one() == 1
    await engine.dispose()


def test_urls_name_what_is_missing() -> None:
    with pytest.raises(Exception, match="mongodb"):
        source_of("mongodb://x")
    with pytest.raises(Exception, match="not int"):
        source_of(5)
