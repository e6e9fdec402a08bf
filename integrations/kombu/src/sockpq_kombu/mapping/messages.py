"""Messages as the bodies of jobs: a line of JSON with all other properties, then the unchanged body."""

from __future__ import annotations

from datetime import datetime
from os import urandom
from typing import Any, NamedTuple

from kombu.utils.json import dumps, loads
from sockpq.names import escape_group

KEY = "sockpq_key"      # a property: what a message is called in its queue, however often it is published
GROUP = "MessageGroupId"        # a property: whose message it is; the word of kombu's transport for SQS

# The properties of AMQP. Others, which may be of any type, are dropped if they cannot be encoded, as AMQP does.
PROPERTIES = frozenset((
    "content_type", "content_encoding", "delivery_mode", "priority", "correlation_id", "reply_to", "expiration",
    "message_id", "timestamp", "type", "user_id", "app_id", "cluster_id", "body_encoding", "delivery_tag",
    "delivery_info", KEY, GROUP,
))

SHOWN = "task", "id"    # of a task, also headers of its job, by which operators and revoke() find it
HEADER_BYTES_MAX = 1024

DEPTH_MAX = 100         # of lists and objects in each other; what reads messages must not run out of stack
NESTED = (dict, list)

Raw = dict[str, Any]


class BadMessage(Exception):
    """A job that is not a valid message, and never will be."""


class Field(NamedTuple):
    """The types that a part of a message may have, if it is present."""

    name: str
    kinds: tuple[type, ...]
    shown: str
    needed: bool = False


TEXT, OBJECT = ((str,), "a string"), ((dict,), "an object")
HEAD = (
    Field("properties", *OBJECT, needed=True), Field("headers", *OBJECT), Field("content-type", *TEXT),
    Field("content-encoding", *TEXT),
)
PROPERTIES_READ = (Field("delivery_info", *OBJECT, needed=True),)
DELIVERY_INFO = (Field("exchange", *TEXT), Field("routing_key", *TEXT, needed=True))


def key_of(message: Raw) -> str:
    """Return the key of this message; it is the same when the message is published again after an unknown outcome."""
    key: str = message["properties"].setdefault(KEY, urandom(16).hex())       # a UUID takes seven times as long
    return key


def job_group(message: Raw) -> str | None:
    """Return the group of the job; None if the message names none. Raises ValueError."""
    group = message["properties"].get(GROUP)
    if group is None:
        return None
    if not isinstance(group, str) or not group:
        raise ValueError(f"{GROUP} is a string with at least one character, not {group!r}")
    return escape_group(group)


def job_headers(message: Raw) -> dict[str, str] | None:
    """Return the headers of the job, the name of the task and its id; None if the message is not a task."""
    headers = message.get("headers") or {}
    return {name: headers[name] for name in SHOWN if can_be_shown(headers.get(name))} or None


def can_be_shown(value: object) -> bool:
    """Return whether this is a valid value for a header of a job."""
    return isinstance(value, str) and value.isprintable() and 0 < len(value.encode()) <= HEADER_BYTES_MAX


def pack(message: Raw) -> bytes:
    """Return the body of a job for a message."""
    body = message["body"]
    head = {name: value for name, value in message.items() if name != "body"}
    try:
        text = dumps(head)
    except TypeError:
        known = {name: value for name, value in head["properties"].items() if name in PROPERTIES}
        text = dumps({**head, "properties": known})
    line: bytes = text.encode()
    return line + b"\n" + (body.encode() if isinstance(body, str) else body or b"")


def unpack(data: bytes, tag: str, redelivered: bool) -> Raw:
    """Return the message in a job's body, with this delivery's tag. Raises BadMessage, as any program may put jobs."""
    head, _, body = data.partition(b"\n")
    try:
        message: Raw = loads(head)
    except Exception as error:      # of JSON, of the encoding, of the types that kombu writes in it, of the stack
        raise BadMessage(f"its first line is not JSON: {type(error).__name__}") from error
    check_fields("the first line", message, HEAD)
    properties = message["properties"]
    check_fields("properties", properties, PROPERTIES_READ)
    check_fields("delivery_info", properties["delivery_info"], DELIVERY_INFO)
    if may_be_too_deep(head) and is_too_deep(message):
        raise BadMessage(f"its first line has more than {DEPTH_MAX} levels")
    message["body"] = body
    properties["delivery_tag"] = tag
    properties["delivery_info"]["redelivered"] = redelivered
    return message


def may_be_too_deep(text: bytes) -> bool:
    """Return whether this JSON has so many lists and objects that they may be nested too deep: hardly any has."""
    return text.count(b"[") + text.count(b"{") > DEPTH_MAX


def is_too_deep(value: Any) -> bool:
    """Return whether lists and objects are nested on more levels than anything needs."""
    level = [value]
    for _ in range(DEPTH_MAX):
        level = [
            inner for outer in level for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, NESTED)
        ]
        if not level:
            return False
    return True


def check_fields(where: str, found: Any, fields: tuple[Field, ...]) -> None:
    """Raise BadMessage unless this is an object with such fields; others are ignored."""
    if not isinstance(found, dict):
        raise BadMessage(f"{where} is not an object")
    for name, kinds, shown, needed in fields:
        value = found.get(name)
        if value is None:
            if needed:
                raise BadMessage(f"{where} has no {name}")
        elif not isinstance(value, kinds):
            raise BadMessage(f"{name} is not {shown}")


def eta_of(message: Raw) -> float | None:
    """Return the Unix time of the task's ETA, if it has one with a time zone."""
    eta = (message.get("headers") or {}).get("eta")
    if not isinstance(eta, str):
        return None
    try:
        when = datetime.fromisoformat(eta)
    except ValueError:
        return None
    return when.timestamp() if when.tzinfo else None


def expiration_of(message: Raw) -> float | None:
    """Return the number of seconds after which the message is no longer delivered; None: never."""
    expiration = message["properties"].get("expiration")
    return None if expiration is None else max(int(expiration) / 1000, 0.001)
