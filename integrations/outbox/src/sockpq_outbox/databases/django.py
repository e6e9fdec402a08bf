"""Databases of Django's settings, by their aliases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import connections, transaction

from sockpq_outbox.databases.base import Row
from sockpq_outbox.errors import UnknownDatabase
from sockpq_outbox.sql import Dialect, rendered

DIALECTS: dict[str, Dialect] = {"postgresql": "postgresql", "mysql": "mysql", "sqlite": "sqlite"}


class DjangoDatabase:
    """The connection that this thread has of an alias; a transaction is `atomic()`, nested as usual."""

    blocking = True

    def __init__(self, alias: str) -> None:
        self._connection = connections[alias]
        if self._connection.vendor not in DIALECTS:
            raise UnknownDatabase(
                f"an outbox in {self._connection.vendor}: PostgreSQL, MariaDB and SQLite are supported")
        self.dialect = DIALECTS[self._connection.vendor]
        self._alias = alias
        self._atomic: Any = None

    async def execute(self, sql: str, parameters: Mapping[str, Any]) -> list[Row]:
        text = rendered(sql, "pyformat")[0]
        with self._connection.cursor() as cursor:
            cursor.execute(text, dict(parameters) or None)
            return list(cursor.fetchall()) if cursor.description else []

    async def begin(self) -> None:
        self._atomic = transaction.atomic(using=self._alias)
        self._atomic.__enter__()

    async def commit(self) -> None:
        self._atomic.__exit__(None, None, None)

    async def rollback(self) -> None:
        transaction.set_rollback(True, using=self._alias)
        self._atomic.__exit__(None, None, None)
