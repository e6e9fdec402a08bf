"""Bodies of jobs in JSON: three ways in, three ways out, and the content type."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError
from sockpq import BadArguments
from sockpq_http.values.bodies import Body, shown
from sockpq_http.values.breadth import VALUES_MAX

WIDE = json.dumps([1] * VALUES_MAX).encode()        # and the list itself


def body(**fields: object) -> Body:
    return Body.model_validate(fields)


def test_a_body_is_json_text_or_base64() -> None:
    assert body(json={"to": "ann", "n": [1, None]}).data() == b'{"to":"ann","n":[1,null]}'
    assert body(json=None).data() == b"null"
    assert body(text="grün").data() == "grün".encode()
    assert body(base64="AP8=").data() == b"\x00\xff"
    assert body().data() is None


def test_a_body_is_given_once() -> None:
    with pytest.raises(ValidationError, match="choose one"):
        body(json=1, text="1")


@pytest.mark.parametrize("fields", [{"base64": "%"}, {"base64": "AP8"}, {"text": "\ud800"}, {"json": "\udfff"},
                                    {"json": float("inf")}, {"json": float("nan")}])
def test_what_has_no_bytes_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(BadArguments):
        body(**fields).data()


def test_the_content_type_is_a_header() -> None:
    assert body(json=1).header_fields() == {"content-type": "application/json"}
    assert body(text="x").header_fields() is None
    assert body(text="x", content_type="text/csv").header_fields() == {"content-type": "text/csv"}
    assert body(json=1, headers={"Content-Type": "a/b", "Tenant": "x"}).header_fields() == {
        "content-type": "a/b", "tenant": "x",
    }
    with pytest.raises(BadArguments, match="twice"):
        body(headers={"a": "1", "A": "2"}).header_fields()


def test_a_body_is_shown_as_what_it_is() -> None:
    kind = {"content-type": "application/json; charset=utf-8"}
    assert shown(b'{"a":1}', kind) == {"json": {"a": 1}}
    assert shown(b'{"a":1}', None) == {"text": '{"a":1}'}
    assert shown(b"\xff\x00", kind) == {"base64": "/wA="}
    assert shown(b"", None) == {"text": ""}


@pytest.mark.parametrize("data", [b"NaN", b"{", b"[" * 1000, WIDE])
def test_what_only_claims_to_be_json_is_text(data: bytes) -> None:
    assert shown(data, {"content-type": "application/json"}) == {"text": data.decode()}
