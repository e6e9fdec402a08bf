"""Names, routing keys, messages and settings as the server allows them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from sockpq_kombu.mapping.messages import eta_of, expiration_of, key_of, pack, unpack
from sockpq_kombu.mapping.names import name_of, pattern_of, prefix_of, route_of
from sockpq_kombu.mapping.queue_settings import settings_of
from sockpq_kombu.transient.local_queues import matcher


def test_a_name_is_escaped_behind_its_prefix() -> None:
    assert name_of("v.", "a b/\u00fc") == "v.a:20b:2F:C3:BC"
    assert name_of("", "-a") == "+-a"


def test_a_virtual_host_is_a_prefix() -> None:
    assert prefix_of("/") == prefix_of("") == prefix_of(None) == ""
    assert prefix_of("/prod a", "p_") == "p_prod:20a."


def test_only_bindings_of_topics_have_wildcards() -> None:
    assert pattern_of("a.*.#") == "a.*.#"
    assert pattern_of("a*.b") == "a:2A.b"
    assert route_of("a.*.#") == "a.:2A.:23"
    assert route_of("") == pattern_of("") == ":"


@pytest.mark.parametrize(("kind", "pattern", "key", "found"), [
    ("direct", "a", "a", True), ("direct", "a", "b", False), ("fanout", "a", "b", True),
    ("topic", "task.#", "task.sent", True), ("topic", "task.#", "task", True), ("topic", "task.#", "tasks", False),
    ("topic", "*.b", "a.b", True), ("topic", "*.b", "a.c.b", False), ("topic", "#", "", True),
    ("topic", "#.b", "b", True),
    ("topic", "a.b", "a-b", False),
])
def test_local_bindings_match_as_those_of_the_server(kind: str, pattern: str, key: str, found: bool) -> None:
    assert matcher(kind, pattern)(key) is found


def test_a_message_comes_back_as_it_was() -> None:
    message = {
        "body": b"\x00\nbody", "headers": {"a": 1}, "content-type": "x",
        "properties": {"delivery_info": {"exchange": "", "routing_key": "q"}, "priority": 3},
    }
    found = unpack(pack(message), "17", True)
    assert found["body"] == b"\x00\nbody"
    assert found["headers"] == {"a": 1}
    assert found["properties"]["delivery_tag"] == "17"
    assert found["properties"]["delivery_info"]["redelivered"] is True


def test_properties_that_cannot_be_written_are_dropped() -> None:
    properties = {"delivery_info": {"exchange": "", "routing_key": "q"}, "priority": 3, "signal": object()}
    message = {"body": "", "headers": {}, "properties": properties}
    assert unpack(pack(message), "1", False)["properties"]["priority"] == 3


def test_a_message_keeps_its_key_when_it_is_published_again() -> None:
    message = {"properties": {}}
    assert key_of(message) == key_of(message)


def test_times() -> None:
    when = datetime(2030, 1, 1, tzinfo=UTC)
    assert eta_of({"headers": {"eta": when.isoformat()}}) == when.timestamp()
    assert eta_of({"headers": {"eta": "2030-01-01T00:00:00"}}) is None      # of no known time zone
    assert eta_of({"headers": {"eta": "soon"}}) is None
    assert eta_of({"headers": None}) is None
    assert expiration_of({"properties": {"expiration": "1500"}}) == 1.5
    assert expiration_of({"properties": {}}) is None


def test_settings() -> None:
    assert settings_of({}, False) == {}
    assert settings_of({"x-message-ttl": 1500, "x-expires": 60_000, "x-max-length": 5}, True) == {
        "ttl": 1.5, "idle": 60.0, "capacity": 5, "overflow": "drop_oldest",
    }
    assert settings_of({"x-max-length": 5, "x-overflow": "reject-publish"}, False) == {
        "capacity": 5, "overflow": "refuse",
    }
    assert settings_of({}, True) == {"idle": 3600.0}
