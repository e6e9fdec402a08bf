"""The ledger: a job in the cluster whose body names the last batch that was put, held by the relay that is at work.

A batch is put by one transaction of the cluster that also writes its name into the ledger, so it is both put and noted,
or neither. The ledger has one holder at a time, whose hand-out ends with its lease; a transaction of a former holder is
aborted. What a new holder reads there is final, and tells it which rows of the database were put. Neither side depends
on a clock, a key or a session.
"""

from __future__ import annotations

from contextlib import suppress

from sockpq import Client, Job, JobNotFound, Key, SockpqError, Transaction

from sockpq_outbox.errors import OtherDatabase
from sockpq_outbox.jobs import Row

KEY = "ledger"
QUEUE = "sockpq.outbox."        # followed by the name of the outbox
LEDGER_COMMANDS = 2             # of each batch's transaction, before its rows


def queue_of(outbox: str, prefix: str = "") -> str:
    """Return the queue of the ledger of an outbox for names that begin with `prefix`."""
    return f"{prefix}{QUEUE}{outbox}"


class Ledger:
    """The ledger while this relay holds it."""

    def __init__(self, client: Client, job: Job) -> None:
        self._client = client
        self._job = job
        self._identity, _, self.last = job.text.partition(" ")

    def check(self, identity: str, adopt: bool) -> str:
        """Make sure that it is held, and belongs to the outbox of this identity; returns the last batch.

        Raises JobNotFound if it is no longer held, and OtherDatabase unless `adopt`.
        """
        if self._identity not in ("", identity) and not adopt:
            raise OtherDatabase(
                f"the ledger {self._job.queue} is of the outbox of another database: give each of them a --name of its "
                "own, or --adopt it if this database has taken the place of the other one")
        if self._identity == identity:
            self._job.touch()
        else:
            self._job.change(data=f"{identity} {self.last}")
            self._job.touch()
            self._identity = identity
        return self.last

    def put(self, batch: str, rows: list[Row]) -> None:
        """Put the jobs of a batch. Raises Aborted with the position among all commands, and other errors of a client.

        Raises RowRefused for a row that the client itself refuses.
        """
        with self._client.transaction() as transaction:
            transaction.change(self._job, data=f"{self._identity} {batch}")
            transaction.touch(self._job)
            for row in rows:
                _add(row, transaction)

    def touch(self) -> None:
        """Renew the lease. Raises JobNotFound when it has ended."""
        self._job.touch()

    def give_back(self) -> None:
        """Let another relay have it at once, if the cluster answers."""
        with suppress(SockpqError):
            self._job.later(first=True, yielded=True, timeout=5)


class RowRefused(Exception):
    """The client itself refuses a row. Internal."""

    def __init__(self, row: Row, reason: Exception) -> None:
        super().__init__(str(reason))
        self.row = row
        self.reason = reason


def take(client: Client, queue: str, lease: float, wait: float, *, make: bool) -> Ledger | None:
    """Take the ledger; returns None if another relay has it all this time. `make`: put it first if there is none."""
    if make:        # not after a look, for which a user would need another right
        client.put(queue, b"", key=KEY, on_duplicate="ignore")
    job = client.get(queue, expire=lease, wait=wait or None, meta=True)
    if job is not None and job.key != KEY:      # somebody else's job, which no relay understands
        job.bury("no_ledger")
        return None
    return None if job is None else Ledger(client, job)


def holder_of(client: Client, queue: str) -> tuple[bool, str] | None:
    """Return whether a relay has the ledger now, and the identity of its outbox; None if there is no ledger."""
    try:
        job = client.peek(Key(queue, KEY))
    except JobNotFound:
        return None
    return None if job is None else (job.state == "running", job.data.decode().partition(" ")[0])


def _add(row: Row, transaction: Transaction) -> None:
    try:
        row.add_to(transaction)
    except (ValueError, TypeError, SockpqError) as error:
        raise RowRefused(row, error) from error
