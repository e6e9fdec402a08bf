"""Converts errors of the client library, of validation and of the framework to problems."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

import sockpq
from starlette.exceptions import HTTPException

from sockpq_http.limits import RETRY_S
from sockpq_http.problems.problem import Problem
from sockpq_http.values.patterns import WORDS

SHOWN_MAX = 20          # wrong values that a problem has
AGAIN = {"retry-after": str(RETRY_S)}
CHALLENGE = {"www-authenticate": 'Basic realm="sockpqd", charset="UTF-8", Bearer realm="sockpqd"'}

# The first class that an error is an instance of decides.
_STATUSES: tuple[tuple[type[sockpq.SockpqError], int], ...] = (
    (sockpq.BadArguments, 400),
    (sockpq.DataTooLarge, 413),
    (sockpq.NotSupported, 501),
    (sockpq.AuthError, 401),
    (sockpq.ForbiddenError, 403),
    (sockpq.JobNotFound, 404),
    (sockpq.Aborted, 409),
    (sockpq.CrossCluster, 409),
    (sockpq.QueueFull, 503),
    (sockpq.QueuePaused, 503),
    (sockpq.TooManyBindings, 503),
    (sockpq.TooManyPulses, 503),
    (sockpq.Busy, 503),
    (sockpq.Unavailable, 503),
    (sockpq.NotServing, 503),
    (sockpq.ClientClosed, 503),
    (sockpq.ForeignCluster, 502),
    (sockpq.ProtocolError, 502),
    (sockpq.OutcomeUnknown, 504),
)
_LINE = re.compile(r"([1-5]\d\d) (\S.*)")
_PLAIN = {400, 401, 403, 404, 408, 409, 413, 429, 501, 503, 504}        # that a refusal of the protocol keeps
_CAMEL = re.compile(r"(?<!^)(?=[A-Z])")


def problem_of(error: sockpq.SockpqError) -> Problem:
    """Return the problem for an error of the client library."""
    text = str(error)
    line = _LINE.fullmatch(str(error.args[0]) if isinstance(error, sockpq.ForbiddenError) else text)
    code, reason = (int(line[1]), line[2]) if line else (None, None)
    status = next((status for kind, status in _STATUSES if isinstance(error, kind)), None)
    if status is None:
        status = code if code in _PLAIN else 409
    more: dict[str, Any] = {}
    if isinstance(error, sockpq.Aborted):
        refused = problem_of(error.reason)
        code, reason = refused.more.get("code"), refused.more.get("reason")
        more = {"operation": error.position - 1}
        text = f"operation {error.position - 1} would be refused, so none was executed: {refused.detail}"
    if isinstance(error, sockpq.NoOutput):
        more = {"item": error.item}
    return Problem(
        status, text or type(error).__name__, _CAMEL.sub("-", type(error).__name__).lower(), code=code, reason=reason,
        headers=headers_of(status), **more,
    )


def headers_of(status: int) -> Mapping[str, str]:
    """Return the headers that an answer with this status has."""
    return AGAIN if status in (429, 503) else CHALLENGE if status == 401 else {}


def problem_of_values(errors: Iterable[Mapping[str, Any]]) -> Problem:
    """Return the problem of values that are not valid, from the errors of pydantic."""
    found = [{"pointer": _pointer(error.get("loc", ())), "detail": _detail(error)}
             for error in islice(errors, SHOWN_MAX)]
    first = found[0] if found else {"pointer": "", "detail": "the request is not valid"}
    where = f"{first['pointer']}: " if first["pointer"] else ""
    return Problem(400, f"{where}{first['detail']}"[:1000], "not-valid", errors=found)


def problem_of_http(error: HTTPException) -> Problem:
    """Return the problem for an error of the framework, such as an unknown path or a body that is not JSON."""
    detail = "there is no such path: /docs shows all requests" if error.status_code == 404 else str(error.detail)
    return Problem(error.status_code, detail, headers=error.headers)


def no_such_method(method: str, allowed: Iterable[str], below: Iterable[str]) -> Problem:
    """Return the problem of a path without this method; `below`: the paths one level deeper that have it."""
    others, deeper = ", ".join(sorted(allowed)), ", ".join(sorted(below))
    detail = f"there is no {method} here, only {others}" + (f"; but there is {method} of {deeper}" if deeper else "")
    return Problem(405, detail, headers={"allow": others})


def _detail(error: Mapping[str, Any]) -> str:
    """Describe what is wrong with a value; the form of a text is described in words, not by its pattern."""
    if error.get("type") == "extra_forbidden":
        return "there is no such field or parameter"
    pattern = str((error.get("ctx") or {}).get("pattern"))
    return (WORDS.get(pattern) or str(error.get("msg", "not valid")))[:500]


def _pointer(place: Iterable[Any]) -> str:
    """Return the place of a wrong value as a JSON pointer into the body, or the name of a parameter."""
    words = [str(word) for word in place]
    if words[:1] == ["body"]:
        return "#/" + "/".join(words[1:]) if words[1:] else "#"
    return ".".join(words)
