"""Connections of sqlite3, from the standard library."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any

from sockpq_outbox.databases.base import Row
from sockpq_outbox.sql import Dialect


class SqliteDatabase:
    """A connection of the module sqlite3."""

    dialect: Dialect = "sqlite"
    blocking = True

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    async def execute(self, sql: str, parameters: Mapping[str, Any]) -> list[Row]:
        cursor = self._connection.cursor()
        cursor.row_factory = None
        try:
            return cursor.execute(sql, dict(parameters)).fetchall()
        finally:
            cursor.close()

    async def begin(self) -> None:
        if not self._connection.in_transaction:     # at once: one that only reads first may find that it cannot write
            self._connection.execute("BEGIN IMMEDIATE")

    async def commit(self) -> None:
        self._connection.commit()

    async def rollback(self) -> None:
        self._connection.rollback()
