"""Databases of these tests. In `make test` most are SQLite; `make test-frameworks` has all of them (FRAMEWORKS=1)."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from sockpq_outbox import create_tables

from tests.outbox.servers import Maria, Postgres, has_maria, has_postgres

ALL = os.environ.get("FRAMEWORKS") == "1"
_numbers = count(1)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A server of PostgreSQL; without one the tests are skipped."""
    if not has_postgres():
        pytest.skip("there is no PostgreSQL: apt install postgresql")
    with Postgres() as server:
        yield server


@pytest.fixture(scope="session")
def maria() -> Iterator[Maria]:
    """A server of MariaDB, which takes seconds of processor time to start."""
    if not has_maria():
        pytest.skip("there is no MariaDB: apt install mariadb-server")
    if not ALL:
        pytest.skip("MariaDB: in `make test-frameworks`")
    with Maria() as server:
        yield server


@pytest.fixture
def sqlite_file(tmp_path: Path) -> Path:
    """A file of SQLite with the tables."""
    path = tmp_path / "shop.db"
    with sqlite3.connect(path) as connection:
        for statement in create_tables("sqlite"):
            connection.execute(statement)
        connection.execute("CREATE TABLE effects (text TEXT)")
    connection.close()
    return path


@pytest.fixture
def postgres_url(postgres: Postgres) -> str:
    """The URL of a database of PostgreSQL's with the tables."""
    return _made(postgres)


@pytest.fixture
def maria_url(maria: Maria) -> str:
    """The URL of a database of MariaDB's with the tables."""
    return _made(maria)


def _made(server: Postgres | Maria) -> str:
    from tests.outbox.crash.shops import Direct

    name = f"shop{next(_numbers)}"
    server.create(name)
    url = server.url(name)
    with Direct(url) as direct:
        for statement in (*create_tables(direct.dialect), "CREATE TABLE effects (text VARCHAR(100))"):
            direct.execute(statement)
    return url
