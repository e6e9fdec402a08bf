"""Connections of asyncpg."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sockpq_outbox.databases.base import Row
from sockpq_outbox.errors import OutboxError
from sockpq_outbox.sql import Dialect, in_order


class AsyncpgDatabase:
    """A Connection, perhaps of a pool."""

    dialect: Dialect = "postgresql"
    blocking = False

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._transaction: Any = None

    async def execute(self, sql: str, parameters: Mapping[str, Any]) -> list[Row]:
        text, values = in_order(sql, parameters)
        return [tuple(row) for row in await self._connection.fetch(text, *values)]

    async def begin(self) -> None:
        if self._connection.is_in_transaction():
            raise OutboxError("the connection is in a transaction, which must be begun and committed here")
        self._transaction = self._connection.transaction()
        await self._transaction.start()

    async def commit(self) -> None:
        await self._transaction.commit()

    async def rollback(self) -> None:
        await self._transaction.rollback()
