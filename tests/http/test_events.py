"""The stream of events: new events, those missed, messages, and the end of the stream."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
from sockpq.testing import Server

from tests.http.door import Door
from tests.http.test_jobs import put, take
from tests.waiting import until


def events_of(stream: httpx.Response) -> Iterator[dict[str, Any]]:
    """The events as they come: their fields, with data read as JSON."""
    fields: dict[str, Any] = {}
    for line in stream.iter_lines():
        name, _, value = line.partition(": ")
        if not line and "data" in fields:
            yield fields
        if not line:
            fields = {}
        elif name:
            fields[name] = json.loads(value) if name == "data" else value


def test_events_come_as_they_happen_and_go_on_where_they_were_cut(web: httpx.Client) -> None:
    with web.stream("GET", "/v1/events", params={"type": ["PUT", "DONE"], "name": "mail*"}) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        heard = events_of(stream)
        put(web, "other", text="x")
        put(web, "mail_1", text="x")
        first = next(heard)
    assert (first["event"], first["data"]["name"], first["data"]["type"]) == ("PUT", "mail_1", "PUT")
    (job,) = take(web, "mail_1")
    web.post(f"/v1/jobs/{job['id']}/done")
    again = {"Last-Event-ID": first["id"]}
    with web.stream("GET", "/v1/events", params={"type": ["PUT", "DONE"], "name": "mail*"}, headers=again) as stream:
        second = next(events_of(stream))
    assert (second["event"], second["data"]["id"]) == ("DONE", job["id"])
    assert int(second["id"]) > int(first["id"])


def test_a_message_reaches_those_who_listen(web: httpx.Client) -> None:
    with web.stream("GET", "/v1/events", params={"type": "MSG", "name": "news"}) as stream:
        heard = events_of(stream)
        until(lambda: web.post("/v1/channels/news/messages", json={"text": "hello"}).json()["listeners"] == 1)
        message = next(heard)["data"]
    assert (message["name"], message["text"]) == ("news", "hello")


def test_what_cannot_be_listened_to_is_a_problem(web: httpx.Client) -> None:
    for params in ({}, {"type": "NOTHING"}, {"type": "PUT", "after": "soon"}, {"type": "PUT", "name": "a b"}):
        answer = web.get("/v1/events", params=params)
        assert (answer.status_code, answer.headers["content-type"]) == (400, "application/problem+json"), params


def test_a_stream_ends_when_the_program_stops(http_node: Server) -> None:
    with Door(http_node.address) as door, door.client() as web:
        with web.stream("GET", "/v1/events", params={"type": "LEADER"}) as stream:
            lines = stream.iter_lines()
            assert next(lines) == "retry: 1000"
            door.begin_to_stop()
            assert [*lines] == [""]
        until(door.ended, "it ends")
