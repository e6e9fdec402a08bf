"""Connections of PyMySQL, to MariaDB."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pymysql.cursors import Cursor

from sockpq_outbox.databases.base import Row
from sockpq_outbox.sql import Dialect, rendered


class PymysqlDatabase:
    """A Connection, whatever class its cursors have."""

    dialect: Dialect = "mysql"
    blocking = True

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def execute(self, sql: str, parameters: Mapping[str, Any]) -> list[Row]:
        with self._connection.cursor(Cursor) as cursor:
            cursor.execute(rendered(sql, "pyformat")[0], dict(parameters))
            return list(cursor.fetchall()) if cursor.description else []

    async def begin(self) -> None:
        if self._connection.get_autocommit():       # otherwise the server begins one with the first statement
            self._connection.begin()

    async def commit(self) -> None:
        self._connection.commit()

    async def rollback(self) -> None:
        self._connection.rollback()
