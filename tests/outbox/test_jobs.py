"""Rows of jobs: what is written, and what is refused before anything is."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator
from typing import Any

import pytest
from sockpq import BadArguments, DataTooLarge
from sockpq.worker import App
from sockpq_outbox import UnknownDatabase, create_tables, outbox
from sockpq_outbox.jobs import Row, options_of


@pytest.fixture
def shop() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:")
    for statement in create_tables("sqlite"):
        connection.execute(statement)
    connection.commit()
    yield connection
    connection.close()


def written(shop: sqlite3.Connection) -> list[tuple[str, bytes, dict[str, Any]]]:
    found = shop.execute("SELECT queue, body, options FROM sockpq_outbox ORDER BY id").fetchall()
    return [(queue, body, json.loads(options)) for queue, body, options in found]


def test_a_row_has_queue_body_and_options(shop: sqlite3.Connection) -> None:
    outbox.put(shop, "mail", json={"to": "Grün"}, priority=5, key="a1", headers={"id": "7"}, after=("x", "y"),
               dedup=("k", 60))
    outbox.put(shop, "mail", "text", 3, "item_1", headers={"id": "8"})
    assert written(shop) == [
        ("mail", '{"to":"Grün"}'.encode(),
         {"priority": 5, "key": "a1", "headers": {"id": "7"}, "after": ["x", "y"], "dedup": ["k", 60]}),
        ("mail", b"text", {"priority": 3, "item": "item_1", "headers": {"id": "8"}}),
    ]


def test_a_job_that_is_done_once_gets_an_id(shop: sqlite3.Connection) -> None:
    for _ in range(2):
        outbox.put(shop, "mail", b"", headers={"tenant": "t1"})
    outbox.put(shop, "mail", b"", every=60)
    first, second, periodic = (options.get("headers", {}) for _, _, options in written(shop))
    assert first["tenant"] == "t1"
    assert len({first["id"], second["id"]}) == 2
    assert periodic == {}


def test_delay_counts_from_the_put(shop: sqlite3.Connection) -> None:
    before = time.time()
    outbox.put(shop, "mail", b"", delay=60)
    outbox.put(shop, "mail", b"", delay=0)
    (_, _, options), (_, _, none) = written(shop)
    assert before + 60 <= options["at"] <= time.time() + 60
    assert "at" not in none


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"to": "no such name!", "data": b""}, BadArguments),
        ({"to": "mail"}, TypeError),
        ({"to": "mail", "data": 5}, TypeError),
        ({"to": "mail", "data": b"", "json": 5}, BadArguments),
        ({"to": "mail", "data": b"", "delay": 5, "at": 5}, BadArguments),
        ({"to": "mail", "data": b"", "delay": -5}, BadArguments),
        ({"to": "mail", "data": b"", "delay": "soon"}, TypeError),
        ({"to": "mail", "data": b"", "delay": float("nan")}, BadArguments),
        ({"to": "mail", "data": b"", "key": "no key!"}, BadArguments),
        ({"to": "mail", "data": b"", "tries": 0}, BadArguments),
        ({"to": "mail", "data": b"", "value": 5}, BadArguments),
        ({"to": "mail", "data": b"", "new_item": True}, BadArguments),
        ({"to": "mail", "data": b"", "timeout": 5}, TypeError),
        ({"to": "mail", "data": b"", "headers": {"bad name": "x"}}, BadArguments),
        ({"to": "mail", "data": b"", "number": True, "every": 5}, BadArguments),
        ({"to": "mail", "json": object()}, TypeError),
    ],
)
def test_what_is_never_accepted_is_refused_and_changes_nothing(
    shop: sqlite3.Connection, arguments: dict[str, Any], error: type[Exception],
) -> None:
    with pytest.raises(error):
        outbox.put(shop, arguments.pop("to"), **arguments)
    assert written(shop) == []


def test_what_is_no_session_is_refused() -> None:
    with pytest.raises(UnknownDatabase, match="alias of a database of Django, not int"):
        outbox.put(5, "mail", b"")


def test_a_task_is_put_with_its_arguments(shop: sqlite3.Connection) -> None:
    app = App()

    @app.task("mail", name="send", result=True)
    def send(to: str, subject: str = "hi") -> None: ...

    outbox.put(shop, send, "ann", subject="x")
    outbox.put(shop, send.options(priority=4, key="k1", timeout=3), "bob")
    (queue, body, first), (_, _, second) = written(shop)
    assert (queue, json.loads(body)) == ("mail", {"task": "send", "args": ["ann"], "kwargs": {"subject": "x"}})
    assert (first["headers"]["task"], first["number"]) == ("send", True)
    assert (second["priority"], second["key"], "timeout" in second) == (4, "k1", False)
    with pytest.raises(TypeError, match="missing a required argument"):
        outbox.put(shop, send)


def test_options_that_somebody_has_written_by_hand_are_checked() -> None:
    with pytest.raises(ValueError, match="no JSON object"):
        options_of("[]")
    with pytest.raises(ValueError, match="Expecting value"):
        options_of("no JSON")


def test_a_row_that_only_a_server_can_refuse_is_written(shop: sqlite3.Connection) -> None:
    outbox.put(shop, "mail", bytes(9 << 20))
    with pytest.raises(DataTooLarge):
        raise_for(Row(1, "mail", bytes(257 << 20), "{}"))


def raise_for(row: Row) -> None:
    from sockpq_outbox.jobs import check

    check(row)
