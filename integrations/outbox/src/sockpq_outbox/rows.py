"""The rows of an outbox as its relay sees them; each function is called within a transaction of the database."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple
from uuid import uuid4

from sockpq_outbox.databases.base import Database, rolled_back, run
from sockpq_outbox.errors import Superseded
from sockpq_outbox.jobs import Row
from sockpq_outbox.sql import ADD_LEDGER, FAILED, FENCE, LEDGER, LOCKED, PRUNE_INBOX

PRUNED_ROWS_MAX = 5_000     # of the inbox in one transaction


class Namespace(NamedTuple):
    """Names that have a ledger of their own: those that begin with `prefix`, but with none of `others`."""

    prefix: str = ""
    others: tuple[str, ...] = ()


class Counts(NamedTuple):
    """The numbers of rows that wait, are in a batch, or have failed; `oldest`: when the first waiting row was put."""

    waiting: int
    claimed: int
    failed: int
    oldest: float | None


class Failed(NamedTuple):
    """A row that the cluster has refused for good."""

    id: int
    queue: str
    failed: float
    error: str


class Rows:
    """The tables in a database whose calls block."""

    def __init__(self, database: Database) -> None:
        self._database = database

    # for the relay

    def add_ledger(self, ledger: str) -> None:
        """Give a ledger a row, with a new identity, unless it has one. Commit it before fence() shows the identity."""
        self._execute(ADD_LEDGER[self._database.dialect], name=ledger, identity=uuid4().hex)

    def fence(self, ledger: str, holder: str, sure: Callable[[str], str]) -> None:
        """Become the holder of a ledger that has a row, after which its former holder can change nothing.

        `sure`: called with the identity of this outbox while the row is locked; returns the last batch that was put, or
        raises if the ledger in the cluster is no longer held. The rows of that batch are removed, those of other
        batches wait again.
        """
        former, identity = self._ledger(ledger)
        self._execute(FENCE, name=ledger, holder=holder)
        last = sure(identity)
        self.forget(last)
        if former:
            self._execute(
                "UPDATE sockpq_outbox SET batch = NULL WHERE batch LIKE :batches", batches=f"{former}.%")

    def hold(self, ledger: str, holder: str) -> None:
        """Lock the row of a ledger. Raises Superseded if it has another holder."""
        found, _ = self._ledger(ledger)
        if found != holder:
            raise Superseded(f"another relay has taken {ledger} over")

    def forget(self, batch: str) -> None:
        """Remove the rows of a batch that was put."""
        self._execute("DELETE FROM sockpq_outbox WHERE batch = :batch", batch=batch)

    def claim(
        self, batch: str, rows_max: int, bytes_max: int, namespace: Namespace | None = None,
        without: Sequence[str] = (),
    ) -> list[Row]:
        """Give the first rows that wait to a batch and return them, in their order.

        At most `rows_max`, and `bytes_max` of their bodies and options together, but at least one; only those in
        queues of the `namespace`, and none in the queues `without`.
        """
        condition, parameters = _condition(namespace or Namespace(), without)
        found = self._execute(
            "SELECT id, LENGTH(body) + LENGTH(options) FROM sockpq_outbox "
            f"WHERE batch IS NULL{condition} ORDER BY id LIMIT :most", **parameters, most=rows_max,
        )
        ids: list[int] = []
        size = 0
        for id_, length in found:
            size += length
            if ids and size > bytes_max:
                break
            ids.append(id_)
        if not ids:
            return []
        self._execute(f"UPDATE sockpq_outbox SET batch = :batch WHERE batch IS NULL AND {_among(ids)}", batch=batch)
        claimed = self._execute(
            "SELECT id, queue, body, options FROM sockpq_outbox WHERE batch = :batch ORDER BY id", batch=batch)
        return [Row(id_, queue, bytes(body), options) for id_, queue, body, options in claimed]

    def release(self, ids: Iterable[int]) -> None:
        """Let these rows wait again."""
        self._execute(f"UPDATE sockpq_outbox SET batch = NULL WHERE {_among(ids)}")

    def fail(self, ids: Iterable[int], error: str) -> None:
        """Mark these rows as refused for good."""
        self._execute(
            f"UPDATE sockpq_outbox SET batch = :failed, error = :error, failed = :now WHERE {_among(ids)}",
            failed=FAILED, error=error, now=time.time(),
        )

    def waits(self, namespace: Namespace | None = None, without: Sequence[str] = ()) -> bool:
        """Return whether any row waits, as for claim()."""
        condition, parameters = _condition(namespace or Namespace(), without)
        return bool(self._execute(f"SELECT 1 FROM sockpq_outbox WHERE batch IS NULL{condition} LIMIT 1", **parameters))

    def claimed_by(self, ledger: str) -> bool:
        """Return whether any row is in a batch of this ledger's holder."""
        found = self._execute(LEDGER, name=ledger)
        return bool(found) and bool(self._execute(
            "SELECT 1 FROM sockpq_outbox WHERE batch LIKE :batches LIMIT 1", batches=f"{found[0][0]}.%"))

    # for operators

    def counts(self) -> Counts:
        """Return how many rows there are of each kind."""
        found: dict[int, int] = dict(map(tuple, self._execute(
            "SELECT CASE WHEN batch IS NULL THEN 0 WHEN batch = :failed THEN 2 ELSE 1 END AS kind, COUNT(*) "
            "FROM sockpq_outbox GROUP BY 1", failed=FAILED,
        )))
        oldest = self._execute("SELECT created FROM sockpq_outbox WHERE batch IS NULL ORDER BY id LIMIT 1")
        return Counts(found.get(0, 0), found.get(1, 0), found.get(2, 0), oldest[0][0] if oldest else None)

    def queues(self, most: int) -> list[tuple[str, int]]:
        """Return the queues for which most rows wait, with their number."""
        return [(queue, number) for queue, number in self._execute(
            "SELECT queue, COUNT(*) FROM sockpq_outbox WHERE batch IS NULL GROUP BY queue ORDER BY 2 DESC, 1 "
            "LIMIT :most", most=most,
        )]

    def failures(self, most: int) -> list[Failed]:
        """Return the oldest rows that were refused for good."""
        return [Failed(*row) for row in self._execute(
            "SELECT id, queue, failed, error FROM sockpq_outbox WHERE batch = :failed ORDER BY id LIMIT :most",
            failed=FAILED, most=most,
        )]

    def retry_failed(self, queue: str | None = None) -> int:
        """Let rows that were refused wait again, all or only one queue's; returns their number."""
        condition, parameters = ("", {}) if queue is None else (" AND queue = :queue", {"queue": queue})
        found = self._execute(
            f"SELECT COUNT(*) FROM sockpq_outbox WHERE batch = :failed{condition}", failed=FAILED, **parameters)
        self._execute(
            f"UPDATE sockpq_outbox SET batch = NULL, error = NULL, failed = NULL WHERE batch = :failed{condition}",
            failed=FAILED, **parameters,
        )
        return int(found[0][0])

    def forget_before(self, time_s: float) -> int:
        """Remove all rows that were written before this time, in whatever state they are; returns their number."""
        found = self._execute("SELECT COUNT(*) FROM sockpq_outbox WHERE created < :before", before=time_s)
        self._execute("DELETE FROM sockpq_outbox WHERE created < :before", before=time_s)
        return int(found[0][0])

    def ledgers(self) -> list[tuple[str, str, str]]:
        """Return the name, the holder and the identity of each ledger."""
        return [(name, holder, identity) for name, holder, identity in self._execute(
            "SELECT name, holder, identity FROM sockpq_outbox_relay ORDER BY name")]

    # retention

    def prune_failed(self, before: float) -> None:
        """Remove rows that were refused before this time."""
        self._execute(
            "DELETE FROM sockpq_outbox WHERE batch = :failed AND failed < :before", failed=FAILED, before=before)

    def prune_inbox(self, before: float) -> bool:
        """Remove marks of the inbox made before this time; returns whether there may be more."""
        self._execute(PRUNE_INBOX[self._database.dialect], before=before, most=PRUNED_ROWS_MAX)
        return bool(self._execute("SELECT 1 FROM sockpq_inbox WHERE created < :before LIMIT 1", before=before))

    def _ledger(self, name: str) -> tuple[str, str]:
        """Lock the row of a ledger and return its holder and its identity."""
        if self._database.dialect == "sqlite":          # which locks by writing
            self._execute("UPDATE sockpq_outbox_relay SET holder = holder WHERE name = :name", name=name)
        found = self._execute(LEDGER + LOCKED[self._database.dialect], name=name)
        return (found[0][0], found[0][1]) if found else ("", "")

    def _execute(self, sql: str, **parameters: Any) -> list[Sequence[Any]]:
        return run(self._database.execute(sql, parameters))


@contextmanager
def transaction(database: Database) -> Iterator[Rows]:
    """Yield the rows within a transaction, which is committed at the end, or rolled back by an exception."""
    run(database.begin())
    try:
        yield Rows(database)
    except BaseException:
        run(rolled_back(database))
        raise
    run(database.commit())


def _condition(namespace: Namespace, without: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """Return the condition for the queues, which begins with AND, and its parameters."""
    condition, parameters = "", {}
    # Not LIKE: that compares without case in some databases, and names may have its special characters.
    for number, prefix in enumerate((namespace.prefix, *namespace.others)):
        if prefix:
            name = f"prefix_{_letters(number)}"
            condition += f" AND SUBSTR(queue, 1, {len(prefix)}) {'=' if number == 0 else '<>'} :{name}"
            parameters[name] = prefix
    if without:
        names = [f"queue_{_letters(number)}" for number in range(len(without))]
        condition += f" AND queue NOT IN ({', '.join(f':{name}' for name in names)})"
        parameters |= dict(zip(names, without, strict=True))
    return condition, parameters


def _letters(number: int) -> str:
    """Return the number in letters, as names of parameters have no digits."""
    return "".join(chr(ord("a") + int(digit)) for digit in str(number))


def _among(ids: Iterable[int]) -> str:
    return f"id IN ({', '.join(str(int(id_)) for id_ in ids)})"
