"""Bodies of jobs in JSON: as JSON, as text, or as base64 of any bytes; their content type is a header of the job."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from binascii import Error
from collections.abc import Mapping
from typing import Any

from pydantic import Field, model_validator
from sockpq import BadArguments

from sockpq_http.values.breadth import is_too_wide
from sockpq_http.values.model import Model, View

CONTENT_TYPE = "content-type"
JSON = "application/json"
WAYS = ("json", "text", "base64")


class Body(Model):
    """The body of a job, in one of three ways; without any of them it is empty."""

    json_: Any = Field(default=None, alias="json", description="Any JSON value: it is kept as JSON.")
    text: str | None = Field(default=None, description="Text: it is kept as UTF-8.")
    base64: str | None = Field(default=None, description="Any bytes, in base64.")
    content_type: str | None = Field(
        default=None, max_length=1024, description="Kept as the header `content-type`; with `json` application/json."
    )
    headers: dict[str, str] | None = Field(
        default=None, max_length=64, description="Headers of the job; their names are kept in lower case."
    )

    @model_validator(mode="after")
    def _one_way(self) -> Body:
        if len(self.ways) > 1:
            raise ValueError("json, text and base64 are three ways to give the body: choose one")
        return self

    @property
    def ways(self) -> list[str]:
        """The ways in which the body is given: none or one."""
        given = self.model_fields_set
        return [way for way in WAYS if (f"{way}_" if way == "json" else way) in given
                and (way == "json" or getattr(self, way) is not None)]

    def data(self) -> bytes | None:
        """Return the bytes of the body, None if there is none. Raises BadArguments."""
        match self.ways:
            case ["json"]:
                return _utf8(_json(self.json_))
            case ["text"]:
                return _utf8(self.text or "")
            case ["base64"]:
                return _decoded(self.base64 or "")
        return None

    def header_fields(self) -> dict[str, str] | None:
        """Return the headers with the content type, None if neither is given. Raises BadArguments."""
        named = lower(self.headers or {})
        kind = self.content_type or (JSON if self.ways == ["json"] else None)
        if kind is not None:
            named.setdefault(CONTENT_TYPE, kind)
        return named if named or self.headers is not None else None


class BodyView(View):
    """The body of a job: as `json` if its content type says so and it is, without very many values, else as `text` if
    it is UTF-8, else `base64`.
    """

    json_: Any = Field(default=None, alias="json")
    text: str | None = None
    base64: str | None = None


def lower(headers: Mapping[str, str]) -> dict[str, str]:
    """Return headers with names in lower case. Raises BadArguments for two that differ in case only."""
    found: dict[str, str] = {}
    for name, value in headers.items():
        if name.lower() in found:
            raise BadArguments(f"the header {name.lower()} is given twice")
        found[name.lower()] = value
    return found


def shown(data: bytes, headers: Mapping[str, str] | None) -> dict[str, Any]:
    """Return a body as the field of a BodyView."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return {"base64": b64encode(data).decode()}
    kind = (headers or {}).get(CONTENT_TYPE, "").partition(";")[0].strip().lower()
    if kind == JSON and not is_too_wide(data):
        try:
            return {"json": json.loads(text, parse_constant=_no_constant)}
        except (ValueError, RecursionError):
            pass                    # its writer promised too much: as text it can still be read
    return {"text": text}


def _json(value: Any) -> str:
    """Return a value as JSON; what was read may still not be JSON, like the number 1e999."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (ValueError, RecursionError):
        raise BadArguments("json has a number that is too large, or is nested too deeply") from None


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise BadArguments("the body has half of a character, which UTF-8 cannot encode") from None


def _decoded(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except (Error, ValueError):
        raise BadArguments("base64 is not base64") from None


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
