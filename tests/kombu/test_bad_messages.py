"""Jobs that are no messages: each is buried with a reason, and ends no program."""

from __future__ import annotations

import copy
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kombu
import pytest
from celery import Celery
from sockpq import Client
from sockpq.testing import Server
from sockpq_kombu.mapping.messages import DEPTH_MAX, BadMessage, is_too_deep, unpack

from tests.kombu.workers import worker
from tests.waiting import PATIENCE_S, until

REASON = "BadMessage"
ADD = "tests.kombu.celery_project.add"
HEAD = {
    "headers": {"task": ADD, "id": "one", "timelimit": [None, None]},
    "content-type": "application/json", "content-encoding": "utf-8",
    "properties": {"delivery_info": {"exchange": "", "routing_key": "celery"}},
}
BODY = b"[[1,2],{},{}]"
WRONG = 1, True, [], {}, "x", [[]], None
NO_MESSAGES = (
    b"", b"garbage", b"[]", b"{}", b"null", b"1", b"\n", b"\xff\xfe", b"NaN", b"[" * 100_000,
    b'{"properties":' + b"[" * 500 + b"]" * 500 + b"}", b'{"properties":{}}', b'{"properties":{"delivery_info":{}}}',
    b'{"__type__":"datetime","__value__":"x"}', b'{"__type__":["a"],"__value__":"x"}',
)


def changed(*path: str, value: Any) -> bytes:
    """The body of a job that is a task, with another value of one field."""
    head = copy.deepcopy(HEAD)
    where: Any = head
    for name in path[:-1]:
        where = where[name]
    where[path[-1]] = value
    return json.dumps(head).encode() + b"\n" + BODY


def head_with_deep_header(levels: int) -> bytes:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return changed("headers", "deep", value=value)


WRONG_ENVELOPES = (
    *(changed("properties", value=value) for value in WRONG),
    *(changed("properties", "delivery_info", value=value) for value in WRONG),
    *(changed("properties", "delivery_info", "routing_key", value=value) for value in WRONG if value != "x"),
    *(changed("headers", value=value) for value in WRONG if value not in ({}, None)),
    *(changed("content-type", value=value) for value in WRONG if not isinstance(value, str | None)),
    head_with_deep_header(DEPTH_MAX + 1),
)
HEAD_LINE = json.dumps(HEAD).encode() + b"\n"
WRONG_TASKS = (
    *(changed("headers", "id", value=value) for value in WRONG if value != "x"),
    changed("headers", "id", value="\ud800"),
    *(changed("headers", "task", value=value) for value in (1, [1], {"a": 1})),
    *(changed("headers", "shadow", value=value) for value in (1, [1], {"a": 1})),
    *(changed("headers", "timelimit", value=value) for value in (1, "x", [1], ["a", "b"], {"a": 1})),
    *(HEAD_LINE + body for body in (b"", b"[]", b"{}", b"null", b"[1,2,3]", b"[[],{},1]")),
    HEAD_LINE + b"[" + b"[" * 300 + b"]" * 300 + b",{},{}]",
)


@pytest.mark.parametrize("data", [*NO_MESSAGES, *WRONG_ENVELOPES], ids=lambda data: repr(data[:60]))
def test_what_is_no_message_is_called_so(data: bytes) -> None:
    with pytest.raises(BadMessage):
        unpack(data, "1", False)


def test_a_message_may_be_as_deep_as_any_needs_to_be() -> None:
    assert unpack(head_with_deep_header(DEPTH_MAX - 3), "1", False)["headers"]["id"] == "one"
    assert not is_too_deep({"a": [1, "text", None]})


@pytest.fixture
def connection(own_server: Server) -> Iterator[kombu.Connection]:
    with kombu.Connection(f"sockpq://{own_server.address}/") as made:
        yield made


def reasons(client: Client, queue: str) -> list[str | None]:
    return [job.reason for job in client.peek_queue(queue, "dead", 1000)]


def test_a_consumer_goes_on_behind_them(
    connection: kombu.Connection, own_client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    found: list[Any] = []
    queue = kombu.Queue("q", routing_key="q")
    bad = [*NO_MESSAGES, *WRONG_ENVELOPES, changed("properties", "body_encoding", value="unknown")]
    for data in bad:
        own_client.put("q", data)
    connection.Producer().publish("good", routing_key="q", declare=[queue])
    consumer = connection.Consumer([queue], on_message=lambda message: (found.append(message), message.ack()))
    consumer.qos(prefetch_count=2)
    with caplog.at_level(logging.ERROR), consumer:
        while not found:
            connection.drain_events(timeout=PATIENCE_S)
        until(lambda: own_client.queue_stat("q")["running"] == 0)
    assert [message.decode() for message in found] == ["good"]
    assert reasons(own_client, "q") == [REASON] * len(bad)
    numbers = [record.args[0] for record in caplog.records if "is no message" in record.msg]    # type: ignore[index]
    assert len(set(numbers)) == len(bad)


def test_one_that_is_asked_for_is_passed_over(connection: kombu.Connection, own_client: Client) -> None:
    for data in NO_MESSAGES:
        own_client.put("asked", data)
    channel = connection.channel()
    assert channel.basic_get("asked") is None
    connection.Producer().publish("good", routing_key="asked")
    assert channel.basic_get("asked").decode() == "good"
    assert reasons(own_client, "asked") == [REASON] * len(NO_MESSAGES)


def test_a_subscription_goes_on_behind_them(connection: kombu.Connection, own_client: Client) -> None:
    exchange = kombu.Exchange("celeryev", type="topic")
    queue = kombu.Queue("events", exchange, routing_key="#")
    found: list[Any] = []
    with connection.Consumer([queue], on_message=found.append, no_ack=True):
        for data in [*NO_MESSAGES, changed("properties", "body_encoding", value="unknown")]:
            own_client.notify("celeryev.x", data)
        with kombu.Connection(connection.as_uri()) as other:
            other.Producer().publish("good", exchange=exchange, routing_key="x")
        while not found:
            connection.drain_events(timeout=PATIENCE_S)
    assert [message.decode() for message in found] == ["good"]


@pytest.mark.parametrize("pool", ["prefork", "threads", "solo"])
def test_a_worker_of_celery_goes_on_behind_them(
    own_server: Server, own_client: Client, tmp_path: Path, pool: str
) -> None:
    url, queue = f"sockpq://{own_server.address}/{pool}", f"{pool}.celery"
    bad = [*NO_MESSAGES, *WRONG_ENVELOPES, *WRONG_TASKS]
    for data in bad:
        own_client.put(queue, data)
    with Celery(broker=url, backend=url) as app, worker(app, tmp_path / "w.log", "-P", pool, "-c", "2") as running:
        assert app.send_task(ADD, (1, 2)).get(timeout=PATIENCE_S) == 3
        until(lambda: own_client.queue_stat(queue)["running"] == 0)
        where = {"exchange": "celeryev", "routing_key": "worker.online"}
        event = changed("properties", "delivery_info", value=where).replace(BODY, b"[]")
        assert own_client.notify(f"{pool}.celeryev.worker.online", event) == 1
        assert app.send_task(ADD, (3, 4)).get(timeout=PATIENCE_S) == 7
        assert running.poll() is None
    assert reasons(own_client, queue) == [REASON] * len(bad)
