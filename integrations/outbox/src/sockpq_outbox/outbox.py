"""Puts jobs by a transaction of a database: they arrive in the cluster once if it commits, and not at all if not.

    with Session(engine) as session, session.begin():
        session.add(order)
        outbox.put(session, "mail", json={"to": "ann"})
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, overload

from sockpq import Put
from sockpq.worker import Task, TaskCall

from sockpq_outbox.databases.base import Database, run
from sockpq_outbox.databases.found import database_of
from sockpq_outbox.jobs import columns_of
from sockpq_outbox.sql import PUT

if TYPE_CHECKING:
    from sqlalchemy import MetaData, Table

P = ParamSpec("P")


@overload
def put(
    session: Any,
    to: str,
    data: bytes | bytearray | memoryview | str | None = None,
    priority: int = 0,
    item: str | None = None,
    *,
    json: Any = ...,
    delay: float | None = None,
    at: float | None = None,
    ttl: float | None = None,
    every: float | None = None,
    after: str | Iterable[str] | None = None,
    when: Literal["done", "end", "failed"] | None = None,
    key: str | None = None,
    on_duplicate: Literal["fail", "ignore", "replace"] | None = None,
    tries: int | None = None,
    group: str | None = None,
    number: bool = False,
    lease: float | None = None,
    headers: Mapping[str, str] | None = None,
    dedup: tuple[str, float] | None = None,
) -> Any: ...


@overload
def put(session: Any, to: Task[P, Any] | TaskCall[P, Any], *args: P.args, **kwargs: P.kwargs) -> Any: ...


def put(session: Any, to: str | Task[..., Any] | TaskCall[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Put a job into a queue, or a call of a task of pqworker's with its arguments, when the transaction commits.

    `session`: a Session, AsyncSession, Connection or AsyncConnection of SQLAlchemy, a connection or cursor of psycopg,
    a connection of asyncpg, PyMySQL or sqlite3, or the alias of a database of Django. It returns None; with one of
    asyncio it returns an awaitable: `await outbox.put(..)`. `to`: the name of a queue, followed by what Client.put()
    takes, without `new_item`, `value`, `timeout` and `retry_unknown`; or a task, perhaps with options
    (`send.options(delay=60)`), followed by the arguments of the function. `delay` counts from now, `ttl` from when the
    job is in the cluster.

    Raises the errors of Client.put() for arguments that are never accepted, and UnknownDatabase; then nothing was
    written. What only the cluster can refuse is marked as failed in the table, with the reason.
    """
    if isinstance(to, Task | TaskCall):
        columns = columns_of(to.queue, to.as_put(*args, **kwargs))
    else:
        columns = columns_of(to, Put(*args, **kwargs))
    database = database_of(session)
    writing = _write(database, columns)
    return run(writing) if database.blocking else writing


def table(metadata: MetaData) -> tuple[Table, Table]:
    """Add the tables of the outbox to the metadata of SQLAlchemy, for Alembic or create_all(); returns them."""
    from sockpq_outbox.schema import outbox_tables

    return outbox_tables(metadata)


async def _write(database: Database, columns: Mapping[str, Any]) -> None:
    await database.execute(PUT[database.dialect], columns)
