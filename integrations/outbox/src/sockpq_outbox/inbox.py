"""Works on a job in a transaction of a database whose effect happens once, however often the job is delivered.

    with Session(engine) as session, inbox.once(session, job) as first:
        if first:
            session.add(Sent(to=job.text))
"""

from __future__ import annotations

import asyncio
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any

from sockpq import (
    BadArguments,
    Busy,
    JobNotFound,
    NotServing,
    OutcomeUnknown,
    Unavailable,
)
from sockpq.worker import current_job

from sockpq_outbox.databases.base import Database, rolled_back, run, settled
from sockpq_outbox.databases.found import database_of
from sockpq_outbox.errors import NoIdentity
from sockpq_outbox.sql import IDENTITY_MAX, MARK, UNMARK

if TYPE_CHECKING:
    from sqlalchemy import MetaData, Table

UNSURE = OutcomeUnknown, Unavailable, Busy, NotServing
DONE_S = 120.0          # DONE is repeated for this long; after that the job comes again, and finds its mark
PAUSE_S = 0.5


class once:     # noqa: N801  (it reads like a function: `with inbox.once(session, job) as first`)
    """A block, with or without asyncio, whose value says whether the job's work is to be done now.

    It marks the job in a transaction of the session, and commits at the end; an exception rolls back all work since
    then, and leaves the job to the program. After the commit the job is DONE: that is repeated until it is certain. A
    task of pqworker's leaves this to its worker, which repeats it as well.

    `exact`: the mark is removed when DONE is answered. For that the job is touched before the work begins, which costs
    a round trip; JobNotFound says that another worker has it. Without it marks stay for seven days, longer than any
    worker may sleep, and the relay removes them. `identity`: recognizes the job when it is delivered again, by default
    its number, or else its queue and its header `id`, which jobs from an outbox and tasks have. Jobs with EVERY come
    many times under one identity, so they need an `identity` of each run.

    Raises NoIdentity if the job has none. A session must not be in a transaction that others commit.
    """

    def __init__(self, session: Any, job: Any, *, exact: bool = False, identity: str | None = None) -> None:
        if identity is not None and not 0 < len(identity) <= IDENTITY_MAX:
            raise BadArguments(f"the identity of a job has 1 to {IDENTITY_MAX} characters")
        self._database = database_of(session)
        self._job = job
        self._exact = exact
        self._identity = identity
        self._first = False

    def __enter__(self) -> bool:
        if not self._database.blocking:
            raise TypeError("this is a session of asyncio: use `async with`")
        return run(self._begin())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        run(self._end(error))

    async def __aenter__(self) -> bool:
        return await self._begin()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._end(error)

    async def _begin(self) -> bool:
        if self._identity is None:
            self._identity = await identity_of(self._job)
        await self._database.begin()
        try:
            self._first = await mark(self._database, self._identity)
            if self._first and self._exact:
                await settled(self._job.touch())
        except BaseException:
            await rolled_back(self._database)
            raise
        return self._first

    async def _end(self, error: BaseException | None) -> None:
        if error is not None:
            await rolled_back(self._database)
            return
        await self._database.commit()
        if self._exact:
            if await self._done():
                await self._unmark()
        elif not _is_current(self._job):
            await self._done()

    async def _done(self) -> bool:
        """Send DONE until its outcome is certain. Returns False if the job no longer belonged to this worker."""
        until = time.monotonic() + DONE_S
        while True:
            try:
                await settled(self._job.done())
                return True
            except JobNotFound:
                return False
            except UNSURE as error:
                if time.monotonic() > until:
                    error.add_note("the work is committed: when the job comes again it finds its mark")
                    raise
            await self._pause()

    async def _pause(self) -> None:
        if self._database.blocking:
            time.sleep(PAUSE_S)
        else:
            await asyncio.sleep(PAUSE_S)

    async def _unmark(self) -> None:
        assert self._identity is not None
        await self._database.begin()
        await self._database.execute(UNMARK, {"job": self._identity})
        await self._database.commit()


async def mark(database: Database, identity: str) -> bool:
    """Mark a job in the current transaction; returns False if it has a mark. Waits for an uncommitted mark."""
    rows = []
    for statement in MARK[database.dialect]:
        rows = await database.execute(statement, {"job": identity, "created": time.time()})
    return bool(rows)


async def identity_of(job: Any) -> str:
    """Return the words by which a job is recognized when it is delivered again. Raises NoIdentity.

    A blocking client asks the server if the job was taken without `meta=True` and `headers=True`.
    """
    number = job.number
    if number is not None:
        return str(number)
    name = job.headers.get("id")
    if name is None:
        raise NoIdentity(
            f"{job!r} has nothing by which it is recognized when it is delivered again: put it by an outbox or a task, "
            'with number=True, into a queue with numbered=True, or with headers={"id": ..}; or give once() an identity'
        )
    identity = f"{job.queue}/{name}"
    if len(identity) > IDENTITY_MAX:
        raise NoIdentity(f"the header id of {job!r} is too long: with its queue it has {len(identity)} characters")
    return identity


def table(metadata: MetaData) -> Table:
    """Add the table of the inbox to the metadata of SQLAlchemy, for Alembic or create_all(); returns it."""
    from sockpq_outbox.schema import inbox_table

    return inbox_table(metadata)


def _is_current(job: Any) -> bool:
    try:
        return current_job() is job
    except LookupError:
        return False
