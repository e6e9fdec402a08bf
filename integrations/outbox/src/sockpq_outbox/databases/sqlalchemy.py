"""Sessions and connections of SQLAlchemy 2, with and without asyncio."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import text

from sockpq_outbox.databases.base import Row, settled
from sockpq_outbox.errors import UnknownDatabase
from sockpq_outbox.sql import Dialect

DIALECTS: dict[str, Dialect] = {
    "postgresql": "postgresql", "mysql": "mysql", "mariadb": "mysql", "sqlite": "sqlite",
}


class SqlalchemyDatabase:
    """A Session, AsyncSession, Connection or AsyncConnection. It begins transactions by itself."""

    def __init__(self, session: Any, *, blocking: bool) -> None:
        bind = session.get_bind() if hasattr(session, "get_bind") else session
        name = bind.dialect.name
        if name not in DIALECTS:
            raise UnknownDatabase(f"an outbox in {name}: PostgreSQL, MariaDB and SQLite are supported")
        self.dialect = DIALECTS[name]
        self.blocking = blocking
        self._session = session

    async def execute(self, sql: str, parameters: Mapping[str, Any]) -> list[Row]:
        result = await settled(self._session.execute(text(sql), dict(parameters)))
        return list(result) if result.returns_rows else []

    async def begin(self) -> None:
        return None

    async def commit(self) -> None:
        await settled(self._session.commit())

    async def rollback(self) -> None:
        await settled(self._session.rollback())
