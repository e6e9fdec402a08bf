"""The five functions of the relay's rows, over SQLite in memory."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import pytest
from sockpq_outbox import Database, Rows, create_tables, database_of, outbox, transaction
from sockpq_outbox.databases.base import run
from sockpq_outbox.errors import Superseded
from sockpq_outbox.rows import Namespace


@pytest.fixture
def shop() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:")
    for statement in create_tables("sqlite"):
        connection.execute(statement)
    connection.commit()
    yield connection
    connection.close()


@pytest.fixture
def database(shop: sqlite3.Connection) -> Database:
    return database_of(shop)


def put(shop: sqlite3.Connection, *queues: str, size: int = 0) -> None:
    for queue in queues:
        outbox.put(shop, queue, bytes(size))
    shop.commit()


def fence(rows: Rows, holder: str, last: str = "") -> str:
    seen = []
    rows.add_ledger("ledger")

    def sure(identity: str) -> str:
        seen.append(identity)
        return last

    rows.fence("ledger", holder, sure)
    return seen[0]


def test_a_batch_is_claimed_in_order_and_forgotten(shop: sqlite3.Connection, database: Database) -> None:
    put(shop, "b", "a", "b")
    with transaction(database) as rows:
        fence(rows, "h")
        assert [(row.id, row.queue) for row in rows.claim("h.1", 2, 1000)] == [(1, "b"), (2, "a")]
        assert rows.waits()
        assert [row.id for row in rows.claim("h.2", 2, 1000)] == [3]
        assert not rows.waits()
        assert rows.claim("h.3", 2, 1000) == []
        rows.forget("h.1")
        assert rows.counts()[:3] == (0, 1, 0)


def test_a_new_holder_removes_what_was_put_and_lets_the_rest_wait(
    shop: sqlite3.Connection, database: Database,
) -> None:
    put(shop, "a", "b", "c", "d")
    with transaction(database) as rows:
        identity = fence(rows, "h")
        rows.claim("h.1", 1, 1000)
        rows.claim("h.2", 1, 1000)
        rows.claim("other.1", 1, 1000)          # of another ledger
        assert fence(rows, "h2", "h.1") == identity
        assert [row.queue for row in rows.claim("h2.1", 9, 1000)] == ["b", "d"]
        assert rows.counts()[:3] == (0, 3, 0)


def test_a_former_holder_changes_nothing(shop: sqlite3.Connection, database: Database) -> None:
    put(shop, "a")
    with transaction(database) as rows:
        fence(rows, "h")
        fence(rows, "h2")
        rows.hold("ledger", "h2")
        with pytest.raises(Superseded):
            rows.hold("ledger", "h")
        with pytest.raises(Superseded):
            rows.hold("no such ledger", "h")


def test_a_takeover_that_is_not_sure_leaves_everything(shop: sqlite3.Connection, database: Database) -> None:
    put(shop, "a")
    with transaction(database) as rows:
        fence(rows, "h")
        rows.claim("h.1", 1, 1000)

    def not_sure(identity: str) -> str:
        raise LookupError

    with pytest.raises(LookupError), transaction(database) as rows:
        rows.fence("ledger", "h2", not_sure)
    with transaction(database) as rows:
        rows.hold("ledger", "h")
        assert rows.counts()[:3] == (0, 1, 0)


def test_a_batch_ends_at_its_bytes_but_has_one_row(shop: sqlite3.Connection, database: Database) -> None:
    put(shop, "a", "a", "a", size=1000)
    with transaction(database) as rows:
        assert len(rows.claim("h.1", 9, 2500)) == 2
        assert len(rows.claim("h.2", 9, 10)) == 1


def test_names_of_a_namespace_are_told_apart_exactly(shop: sqlite3.Connection, database: Database) -> None:
    put(shop, "shop.a", "Shop.a", "shopxa", "shop_a", "shop.new.a", "other")
    with transaction(database) as rows:
        of_shop = Namespace("shop.", ("shop.new.",))
        assert rows.waits(of_shop)
        assert [row.queue for row in rows.claim("h.1", 9, 1000, of_shop)] == ["shop.a"]
        assert not rows.waits(of_shop)
        rest = Namespace("", ("shop.", "shop.new."))
        assert [row.queue for row in rows.claim("h.2", 9, 1000, rest, ("other", "x"))] == ["Shop.a", "shopxa", "shop_a"]
        assert [row.queue for row in rows.claim("h.3", 9, 1000, rest)] == ["other"]


def test_rows_wait_again_or_have_failed(shop: sqlite3.Connection, database: Database) -> None:
    put(shop, "a", "b", "c")
    with transaction(database) as rows:
        rows.claim("h.1", 9, 1000)
        rows.release([2])
        rows.fail([1], "JobExists: 409")
        assert rows.counts()[:3] == (1, 1, 1)
        (failure,) = rows.failures(9)
        assert (failure.id, failure.queue, failure.error) == (1, "a", "JobExists: 409")
        assert rows.queues(9) == [("b", 1)]
        assert rows.retry_failed("b") == 0
        assert rows.retry_failed() == 1
        assert rows.queues(9) == [("a", 1), ("b", 1)]
        assert rows.failures(9) == []


def test_what_is_old_is_removed(shop: sqlite3.Connection, database: Database) -> None:
    put(shop, "a", "b")
    run(database.execute("INSERT INTO sockpq_inbox (job, created) VALUES ('1', 5), ('2', 50)", {}))
    with transaction(database) as rows:
        rows.fail([1], "bad")
        rows.prune_failed(5.0)
        assert rows.counts().failed == 1
        rows.prune_failed(5e9)
        assert rows.counts()[:3] == (1, 0, 0)
        assert rows.prune_inbox(10.0) is False
        assert run(database.execute("SELECT job FROM sockpq_inbox", {})) == [("2",)]
        assert rows.forget_before(5.0) == 0
        assert rows.forget_before(5e9) == 1
        assert rows.counts()[:3] == (0, 0, 0)


def test_marks_are_removed_in_portions(
    shop: sqlite3.Connection, database: Database, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sockpq_outbox.rows.PRUNED_ROWS_MAX", 2)
    run(database.execute("INSERT INTO sockpq_inbox (job, created) VALUES ('1', 1), ('2', 2), ('3', 3)", {}))
    with transaction(database) as rows:
        assert rows.prune_inbox(10.0) is True
        assert run(database.execute("SELECT job FROM sockpq_inbox", {})) == [("3",)]
        assert rows.prune_inbox(10.0) is False
