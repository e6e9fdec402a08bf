"""Mistakes that the crash test has to find: a relay without a ledger, and an inbox that asks for the row count."""

from __future__ import annotations

from typing import Any

from sockpq import Client, Job
from sockpq_outbox import Rows, inbox
from sockpq_outbox.databases.base import run
from sockpq_outbox.databases.sources import source_of
from sockpq_outbox.inbox import identity_of
from sockpq_outbox.rows import transaction

from tests.outbox.crash.roles import ROWS_MAX, World
from tests.outbox.crash.shops import EFFECT, Shop, engine_url


def relay(world: World) -> None:
    """Put the rows, then remove them."""
    opened = source_of(world.database).open(5.0)
    with Client(world.servers) as client:
        while True:
            with transaction(opened.database) as rows:
                found = rows.claim("naive", ROWS_MAX, 1 << 20) or _left(opened.database)
            if not found:
                return
            with client.transaction() as together:
                for row in found:
                    row.add_to(together)
            with transaction(opened.database) as rows:
                rows.forget("naive")


def _left(database: Any) -> list[Any]:
    """Return what an earlier one has left claimed."""
    run(database.execute("UPDATE sockpq_outbox SET batch = NULL WHERE batch = 'naive'", {}))
    return Rows(database).claim("naive", ROWS_MAX, 1 << 20)


def by_rowcount(world: World, shop: Shop, job: Job) -> None:
    """Work on a job if the insertion changed a row, by the count of SQLAlchemy's Session, which is always -1."""
    from sqlalchemy import MetaData, create_engine, text
    from sqlalchemy.dialects.postgresql import insert
    from sqlalchemy.orm import Session

    mark = insert(inbox.table(MetaData())).values(job=run(identity_of(job)), created=0.0).on_conflict_do_nothing()
    with Session(create_engine(engine_url(world.database))) as session:
        marked = session.execute(mark)
        if marked.rowcount:         # type: ignore[attr-defined]
            session.execute(text(EFFECT.format(job.text)))
        session.commit()
    job.done()


class _Untouched:
    """A job whose touch() does nothing."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def touch(self) -> None:
        """Do nothing."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._job, name)


def without_touch(world: World, shop: Shop, job: Job) -> None:
    """Remove the mark with the DONE, without having touched the job."""
    shop.work(_Untouched(job), exact=True)      # type: ignore[arg-type]


RELAYS = {"relay": relay}
WORKERS = {"rowcount": by_rowcount, "untouched": without_touch}
