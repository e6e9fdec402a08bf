"""Connections and cursors of psycopg 3, with and without asyncio."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from sockpq_outbox.databases.base import Row, settled
from sockpq_outbox.sql import Dialect, rendered


class PsycopgDatabase:
    """A Connection or AsyncConnection, or the one behind a cursor, whose own results stay as they are."""

    dialect: Dialect = "postgresql"

    def __init__(self, connection: Any, *, blocking: bool) -> None:
        self.blocking = blocking
        self._connection = getattr(connection, "connection", connection)

    async def execute(self, sql: str, parameters: Mapping[str, Any]) -> list[Row]:
        cursor = self._connection.cursor(row_factory=tuple_row)
        try:
            await settled(cursor.execute(rendered(sql, "pyformat")[0], parameters))
            return await settled(cursor.fetchall()) if cursor.description else []
        finally:
            await settled(cursor.close())

    async def begin(self) -> None:
        if self._connection.autocommit and self._connection.info.transaction_status == TransactionStatus.IDLE:
            await self.execute("BEGIN", {})

    async def commit(self) -> None:
        await settled(self._connection.commit())

    async def rollback(self) -> None:
        await settled(self._connection.rollback())
