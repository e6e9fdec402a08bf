"""JSON of requests, judged before it is decoded."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request
from fastapi.routing import APIRoute
from starlette.responses import Response

from sockpq_http.problems.problem import Problem
from sockpq_http.values.breadth import VALUES_MAX, is_too_wide


def decodable(body: bytes) -> bytes:
    """Return a body that may be decoded. Raises Problem for one that is not UTF-8 or has very many values."""
    if b"\0" in body:           # of UTF-16 or UTF-32, which would be decoded, too; their breadth is not judged
        raise Problem(400, "JSON is in UTF-8, and has no NUL", "not-valid")
    if is_too_wide(body):
        raise Problem(
            413, f"the JSON has more than {VALUES_MAX} values: put fewer jobs, or give the body of a job as text, "
            "with its content_type", "too-many-values",
        )
    return body


class DecodingRoute(APIRoute):
    """A route whose body is decoded by the framework."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request; raises Problem as `decodable` does."""
        answer = super().get_route_handler()
        if self.body_field is None:
            return answer

        async def judged(request: Request) -> Response:
            decodable(await request.body())
            return await answer(request)

        return judged
