"""JSON with very many values is refused before it is decoded."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from sockpq_http.exchange.decoding import ERRORS_MAX
from sockpq_http.problems.errors import SHOWN_MAX
from sockpq_http.values.breadth import VALUES_MAX, is_too_wide

from tests.http.test_jobs import put, take

MISLEADING = ',[{"\\'


def list_of(count: int, value: Any = 1) -> list[Any]:
    """So many values, of which the list is one."""
    return [value] * (count - 1)


@pytest.mark.parametrize("value", [1, MISLEADING, "", [], {}], ids=repr)
def test_values_are_counted(value: Any) -> None:
    each = 2 if value in ([], {}) else 1            # a comma, and its own bracket
    fits = json.dumps([value] * ((VALUES_MAX - 1) // each)).encode()
    assert not is_too_wide(fits)
    assert is_too_wide(json.dumps([value] * (VALUES_MAX // each + 1)).encode())


def test_the_limit_is_exact() -> None:
    assert not is_too_wide(json.dumps(list_of(VALUES_MAX)).encode())
    assert is_too_wide(json.dumps(list_of(VALUES_MAX + 1)).encode())
    members = {str(number): MISLEADING for number in range(VALUES_MAX)}
    assert is_too_wide(json.dumps(members).encode())
    del members["0"]
    assert not is_too_wide(json.dumps(members).encode())


@pytest.mark.parametrize("text", [b"[" * 4_000_000, b'{"a":' * VALUES_MAX, b'["",' * VALUES_MAX + b'"'],
                         ids=("lists", "members", "strings"))
def test_text_that_ends_too_early_is_wide_as_well(text: bytes) -> None:
    assert is_too_wide(text)


@pytest.mark.parametrize("text", [
    b'"' + b'\\"' * 4_000_000, b'""' * 4_000_000, b" " * 8_000_000, b'"' + b"," * 8_000_000,
], ids=("quoted quotes", "strings", "spaces", "quoted commas"))
def test_what_is_long_is_not_always_wide(text: bytes) -> None:
    assert not is_too_wide(text)


@pytest.mark.parametrize(("path", "body"), [
    ("/v1/queues/wide/jobs", {"json": list_of(VALUES_MAX)}),
    ("/v1/queues/wide/jobs", {"jobs": [{"json": 1}] * VALUES_MAX}),
    ("/v1/transactions", {"operations": [{"op": "x"}] * VALUES_MAX}),
    ("/v1/jobs/done", {"ids": ["1"] * VALUES_MAX}),
    ("/v1/queues/wide/take", {str(number): 1 for number in range(VALUES_MAX)}),
], ids=("json", "jobs", "operations", "ids", "fields"))
def test_a_request_with_very_many_values_is_refused(web: httpx.Client, path: str, body: Any) -> None:
    answer = web.post(path, json=body)
    assert (answer.status_code, answer.json()["type"]) == (413, "urn:sockpq:problem:too-many-values")
    assert take(web, "wide") == []


@pytest.mark.parametrize(("path", "body"), [
    ("/v1/queues/wide/jobs", {str(number): 1 for number in range(ERRORS_MAX + 1)}),
    ("/v1/queues/wide/take", {str(number): 1 for number in range(ERRORS_MAX + 1)}),
    ("/v1/transactions", {"operations": [{"op": "put", "queue": "wide", "headers": {
        str(number): 1 for number in range(ERRORS_MAX + 1)}}]}),
], ids=("put", "take", "transaction"))
def test_very_many_wrong_values_are_not_described_each(web: httpx.Client, path: str, body: Any) -> None:
    answer = web.post(path, json=body)
    assert (answer.status_code, answer.json()["type"]) == (400, "urn:sockpq:problem:not-valid")
    assert answer.json()["detail"].endswith("too many to name them")
    assert "errors" not in answer.json()


def test_some_wrong_values_are_described(web: httpx.Client) -> None:
    answer = web.post("/v1/queues/wide/take", json={str(number): 1 for number in range(30)})
    assert [one["pointer"] for one in answer.json()["errors"]] == [f"#/{number}" for number in range(SHOWN_MAX)]


def test_json_that_is_not_in_utf_8_is_refused(web: httpx.Client) -> None:
    """A reader of bytes would take its characters for quotes."""
    for path in ("/v1/queues/wide/jobs", "/v1/jobs/done"):
        for encoding in ("utf-16", "utf-32"):
            answer = web.post(path, content='{"text": "\u2200"}'.encode(encoding),
                              headers={"content-type": "application/json"})
            assert (answer.status_code, answer.json()["type"]) == (400, "urn:sockpq:problem:not-valid")


def test_as_text_a_body_may_have_any_number_of_values(web: httpx.Client) -> None:
    text = json.dumps(list_of(2 * VALUES_MAX))
    put(web, "wide", text=text, content_type="application/json")
    (job,) = take(web, "wide")
    assert (job.get("json"), job["text"], job["headers"]) == (None, text, {"content-type": "application/json"})
    raw = web.post("/v1/queues/wide/jobs", content=text, headers={"content-type": "text/plain"})
    assert raw.status_code == 201
