"""Times: spans as seconds or ISO 8601 durations, moments as Unix seconds or ISO 8601 dates with a zone."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

UNIX_S_MAX = 253_402_300_799        # the end of the year 9999, beyond which there are no dates

_DURATION = re.compile(
    r"P(?:(\d{1,9})W)?(?:(\d{1,9})D)?(?:T(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9}(?:\.\d{1,9})?)S)?)?", re.ASCII
)
_UNITS_S = (604_800, 86_400, 3600, 60, 1)
_NUMBER = re.compile(r"\d{1,12}(?:\.\d{1,9})?", re.ASCII)


def span(value: Any) -> float:
    """Return seconds, from a number, its text, or an ISO 8601 duration of weeks, days and times. Raises ValueError."""
    seconds = _seconds(value)
    if not (math.isfinite(seconds) and seconds >= 0):
        raise ValueError("a span is a number of seconds from 0 on")
    return seconds


def moment(value: Any) -> float:
    """Return Unix time in seconds, from a number, its text, or an ISO 8601 date with a zone. Raises ValueError."""
    seconds = _unix(value)
    if not 0 <= seconds <= UNIX_S_MAX:      # also false for NaN
        raise ValueError("a time is between the years 1970 and 9999")
    return seconds


def shown(unix_s: float | None) -> str | None:
    """Return a moment as answers have it, "2026-11-30T05:58:00Z"; None for none."""
    if unix_s is None or unix_s > UNIX_S_MAX:
        return None
    return datetime.fromtimestamp(unix_s, UTC).isoformat().replace("+00:00", "Z")


def _seconds(value: Any) -> float:
    if isinstance(value, str):
        if _NUMBER.fullmatch(value):
            return float(value)
        match = _DURATION.fullmatch(value)
        if match is None or not any(match.groups()):
            raise ValueError("a span is a number of seconds, or an ISO 8601 duration such as PT5M")
        return float(sum(float(part) * unit for part, unit in zip(match.groups(), _UNITS_S, strict=True) if part))
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("a span is a number of seconds, or an ISO 8601 duration such as PT5M")
    return _as_float(value)


def _unix(value: Any) -> float:
    if isinstance(value, str):
        if _NUMBER.fullmatch(value):
            return float(value)
        try:
            date = datetime.fromisoformat(value)
        except ValueError:
            raise ValueError("a time is Unix seconds, or an ISO 8601 date such as 2030-01-31T12:00:00Z") from None
        if date.tzinfo is None:
            raise ValueError("a date needs its zone, such as Z or +01:00")
        try:
            return date.timestamp()
        except OverflowError:
            raise ValueError("a time is between the years 1970 and 9999") from None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("a time is Unix seconds, or an ISO 8601 date such as 2030-01-31T12:00:00Z")
    return _as_float(value)


def _as_float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        raise ValueError("the number is too large") from None


_NUMBER_SCHEMA = {"type": "number", "minimum": 0}

Span = Annotated[float, BeforeValidator(span), WithJsonSchema({
    "anyOf": [_NUMBER_SCHEMA, {"type": "string", "format": "duration"}],
    "description": "Seconds, or an ISO 8601 duration.",
})]
Moment = Annotated[float, BeforeValidator(moment), WithJsonSchema({
    "anyOf": [_NUMBER_SCHEMA, {"type": "string", "format": "date-time"}],
    "description": "Unix seconds, or an ISO 8601 date with its zone.",
})]
# As parameters they are text, which generators of clients understand better than two types.
SpanText = Annotated[float, BeforeValidator(span), WithJsonSchema({
    "type": "string", "description": "Seconds, or an ISO 8601 duration.",
})]
MomentText = Annotated[float, BeforeValidator(moment), WithJsonSchema({
    "type": "string", "description": "Unix seconds, or an ISO 8601 date with its zone.",
})]
Time = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]
