"""JSON of requests, judged before it is decoded."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import TypeAdapter, ValidationError
from starlette.responses import Response

from sockpq_http.problems.problem import Problem
from sockpq_http.values.breadth import VALUES_MAX, is_too_wide

ERRORS_MAX = 4096           # values that are wrong in one request: each takes a kilobyte and 10 us when it is described


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


def not_valid(error: ValidationError, part: str) -> RequestValidationError:
    """Return the error of FastAPI for this part of a request. Raises Problem when very many values are wrong."""
    refuse_many(error)
    found = error.errors(include_url=False, include_input=False)
    return RequestValidationError([{**one, "loc": (part, *one["loc"])} for one in found])


def refuse_many(error: ValidationError) -> None:
    """Raise Problem for more wrong values than can be described quickly."""
    count = error.error_count()
    if count > ERRORS_MAX:
        raise Problem(400, f"{count} values are not valid: too many to name them", "not-valid")


class DecodingRoute(APIRoute):
    """A route whose body is decoded by the framework, which makes a description of each wrong value."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the function that answers a request; it raises Problem as `decodable` and `refuse_many` do."""
        answer = super().get_route_handler()
        if self.body_field is None:
            return answer
        model: Any = self.body_field.field_info.annotation
        wanted: TypeAdapter[Any] = TypeAdapter(model)

        async def judged(request: Request) -> Response:
            body = decodable(await request.body())
            if len(body) > ERRORS_MAX:
                try:
                    wanted.validate_json(body)
                except ValidationError as error:
                    refuse_many(error)
            return await answer(request)

        return judged
