"""The labels of a task that say how its job is put."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from sockpq import BadArguments
from sockpq.names import escape_group, escape_key

RETRIES = "_retries"        # in a message that Taskiq's middleware for retries sends again
ABSENT = (None, "None", "")     # the label None arrives as text
ON_DUPLICATE = ("fail", "ignore", "replace")


class PutOptions(NamedTuple):
    """The options with which the job of a task is put. `at` comes from a schedule, the others from labels."""

    queue_name: str | None
    priority: int
    delay: float | None
    at: float | None
    ttl: float | None
    key: str | None
    on_duplicate: Any
    group: str | None


def put_options(labels: Mapping[str, Any], *, retried: bool) -> PutOptions:
    """Read the labels. Raises BadArguments for one that cannot be read.

    `retried`: the task is one that Taskiq's SmartRetryMiddleware retries: then `delay` is the pause between two
    attempts and does not delay the first one. `x_delay` always does.
    """
    first = retried and RETRIES not in labels
    delay = _number(labels, "x_delay") if RETRIES not in labels else None
    if delay is None and not first:
        delay = _number(labels, "delay")
    on_duplicate = _text(labels, "on_duplicate")
    if on_duplicate not in (None, *ON_DUPLICATE):
        raise BadArguments(f"the label on_duplicate is one of {', '.join(ON_DUPLICATE)}, not {on_duplicate!r}")
    key, group = _text(labels, "key"), _text(labels, "group")
    return PutOptions(
        _text(labels, "queue_name"), int(_number(labels, "priority") or 0),
        None if delay is None else max(delay, 0.0), None, _number(labels, "ttl"),
        None if key is None else escape_key(key), on_duplicate if key is not None else None,
        None if group is None else escape_group(group),
    )


def label_number(labels: Mapping[str, Any], name: str) -> int | None:
    """Return a label that is a whole number, or None without it. Raises BadArguments."""
    number = _number(labels, name)
    return None if number is None else int(number)


def is_true(value: object) -> bool:
    """Return whether a label that is a switch is on."""
    return str(value).lower() == "true"


def _number(labels: Mapping[str, Any], name: str) -> float | None:
    value = labels.get(name)
    if value in ABSENT:
        return None
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise BadArguments(f"the label {name} must be a number, not {value!r}") from error


def _text(labels: Mapping[str, Any], name: str) -> str | None:
    value = labels.get(name)
    return None if value in ABSENT else str(value)
