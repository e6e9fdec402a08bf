"""A problem: its model, and the answer that has it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from pydantic import Field
from starlette.responses import Response

from sockpq_http.values.model import View

MEDIA_TYPE = "application/problem+json"


class ProblemView(View):
    """Problem details as RFC 9457 has them, with the code and the reason of the protocol."""

    type: str = Field(description="What kind of problem it is, as a URN that does not change.")
    title: str
    status: int
    detail: str = Field(description="What is wrong with this request, for people.")
    code: int | None = Field(default=None, description="The code of the protocol, such as 404.")
    reason: str | None = Field(default=None, description="The reason of the protocol, such as Job Not Found.")
    errors: list[dict[str, Any]] | None = Field(
        default=None, description="Each wrong value: its `pointer` and a `detail`."
    )
    operation: int | None = Field(
        default=None, description="Of a transaction: which operation would be refused, from 0 on."
    )
    item: str | None = Field(
        default=None, description="Of a call without its answer in time: the item that has it later."
    )


class Problem(Exception):
    """Ends a request with this status and these details."""

    def __init__(
        self, status: int, detail: str, kind: str | None = None, *, code: int | None = None,
        reason: str | None = None, headers: Mapping[str, str] | None = None, **more: Any,
    ) -> None:
        """`kind`: the end of the type's URN, by default of the status; `more`: further fields of ProblemView."""
        super().__init__(detail)
        self.status = status
        self.title = HTTPStatus(status).phrase
        self.kind = kind or self.title.lower().replace(" ", "-")
        self.detail = detail
        self.headers = dict(headers or {})
        self.more = {name: value for name, value in {"code": code, "reason": reason, **more}.items()
                     if value is not None}

    def fields(self) -> dict[str, Any]:
        """Return the fields of its ProblemView."""
        return {
            "type": f"urn:sockpq:problem:{self.kind}", "title": self.title, "status": self.status,
            "detail": self.detail, **self.more,
        }

    def answer(self) -> Response:
        """Return the HTTP response: problem details in JSON (RFC 9457), with its status and headers."""
        return Response(json.dumps(self.fields(), separators=(",", ":")), self.status, self.headers, MEDIA_TYPE)
