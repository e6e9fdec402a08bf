"""Messages as the bodies of jobs: a line of JSON with all but the body, then the body as it is."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import uuid4

from kombu.utils.json import dumps, loads

KEY = "sockpq_key"      # a property: what a message is called in its queue, however often it is published

# What AMQP knows. Others, which may be anything, are dropped when they cannot be written, as AMQP does.
PROPERTIES = frozenset((
    "content_type", "content_encoding", "delivery_mode", "priority", "correlation_id", "reply_to", "expiration",
    "message_id", "timestamp", "type", "user_id", "app_id", "cluster_id", "body_encoding", "delivery_tag",
    "delivery_info", KEY,
))

Raw = dict[str, Any]


def key_of(message: Raw) -> str:
    """The name of this message; one that is published again, because nobody knows whether it was, has it already."""
    key: str = message["properties"].setdefault(KEY, uuid4().hex)
    return key


def pack(message: Raw) -> bytes:
    """A job's body."""
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
    """The message in a job's body, with the tag of this delivery."""
    head, _, body = data.partition(b"\n")
    message: Raw = loads(head)
    message["body"] = body
    properties = message["properties"]
    properties["delivery_tag"] = tag
    properties["delivery_info"]["redelivered"] = redelivered
    return message


def eta_of(message: Raw) -> float | None:
    """The Unix time at which Celery wants this task, if it says so with a time zone."""
    eta = (message.get("headers") or {}).get("eta")
    if not isinstance(eta, str):
        return None
    try:
        when = datetime.fromisoformat(eta)
    except ValueError:
        return None
    return when.timestamp() if when.tzinfo else None


def expiration_of(message: Raw) -> float | None:
    """For how many seconds the message is worth being delivered."""
    expiration = message["properties"].get("expiration")
    return None if expiration is None else max(int(expiration) / 1000, 0.001)
