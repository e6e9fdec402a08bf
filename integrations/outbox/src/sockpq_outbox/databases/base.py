"""The interface to a database session, and how coroutines over it run where it blocks."""

from __future__ import annotations

import inspect
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol, TypeVar

from sockpq_outbox.sql import Dialect

T = TypeVar("T")
Row = Sequence[Any]


class Database(Protocol):
    """A session, connection or cursor of the caller. The methods of a blocking one never suspend."""

    dialect: Dialect
    blocking: bool

    async def execute(self, sql: str, parameters: Mapping[str, Any]) -> list[Row]:
        """Execute a statement in the current transaction and return its rows, if it has any."""
        ...

    async def begin(self) -> None:
        """Begin a transaction unless the library does so by itself, or one is in progress."""
        ...

    async def commit(self) -> None:
        """Commit the transaction."""
        ...

    async def rollback(self) -> None:
        """Roll the transaction back."""
        ...


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine over a database that blocks."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        value: T = end.value
        return value
    coroutine.close()
    raise TypeError("this is an asyncio session or job: await it, or use `async with`")


async def rolled_back(database: Database) -> None:
    """Roll back, and let the caller see the error: a connection that is lost is rolled back by its server."""
    with suppress(Exception):
        await database.rollback()


async def settled(value: Any) -> Any:
    """Return the value, awaited if it is awaitable."""
    return await value if inspect.isawaitable(value) else value
