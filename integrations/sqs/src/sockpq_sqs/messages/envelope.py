"""A message as a job: its attributes as headers, as far as they fit, and its body.

An attribute of type String whose name and value a header may have is that header, so programs on the cluster's own
protocol see it, and their headers are attributes. The others are a JSON object before the body; the header `sqs.attrs`
has its length. Further headers: `sqs.group` and `sqs.dedup` for ids, `sqs.trace`, `sqs.sender`. An attribute whose name
begins with `sqs.` is not a header.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256

import msgspec

from sockpq_sqs.messages.checks import INVALID
from sockpq_sqs.model.shapes import AttributeValue
from sockpq_sqs.queues.names import QueueName

OWN = "sqs."
ATTRIBUTES, GROUP, DEDUPLICATION = "sqs.attrs", "sqs.group", "sqs.dedup"
TRACE, SENDER = "sqs.trace", "sqs.sender"
HEADER_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
HEADER_BYTES_MAX = 1024
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")       # the category Cc of Unicode
HEADERS_BYTES_MAX = 12_000      # of attributes; a job's headers have 16,384, which leaves room for the others
GROUP_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
GROUP_CHARACTERS_MAX = 64
OF_QUEUE = re.compile(r"[0-9a-f]{8}\.(.+)")

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(dict[str, AttributeValue])


def packed(body: bytes, attributes: Mapping[str, AttributeValue], headers: dict[str, str]) -> bytes:
    """Return the data of the job; adds the headers of attributes to `headers`."""
    if not attributes:
        return body
    others, room = {}, HEADERS_BYTES_MAX
    for name, value in attributes.items():
        text = value.string_value
        if text is None or not _fits(name, value.data_type, text):
            others[name] = value
            continue
        size = len(name) + len(text.encode()) + 3
        if size > room:
            others[name] = value
            continue
        room -= size
        headers[name] = text
    if not others:
        return body
    block = _encoder.encode(others)
    headers[ATTRIBUTES] = str(len(block))
    return block + body


def _fits(name: str, kind: str, text: str) -> bool:
    return (
        kind == "String" and HEADER_NAME.fullmatch(name) is not None and not name.startswith(OWN)
        and len(text) <= HEADER_BYTES_MAX and len(text.encode()) <= HEADER_BYTES_MAX
        and not CONTROL.search(text)
    )


def unpacked(data: bytes, headers: Mapping[str, str]) -> tuple[bytes, dict[str, AttributeValue]]:
    """Return the body and the attributes of a job. Data that cannot be an envelope of ours are all body."""
    found: dict[str, AttributeValue] = {}
    length = headers.get(ATTRIBUTES)
    if length is not None and length.isascii() and length.isdigit() and int(length) <= len(data):
        try:
            found = _decoder.decode(data[: int(length)])
        except msgspec.MsgspecError:
            pass
        else:
            data = data[int(length):]
    for name, text in headers.items():
        if not name.startswith(OWN) and text:
            found[name] = AttributeValue(data_type="String", string_value=text)
    return data, found


def readable(body: bytes) -> tuple[str, bytes]:
    """Return a body as text, and the bytes of that text, whose digest SDKs compare.

    A program that speaks the cluster's own protocol may have put bytes that are not text, or text that XML cannot
    contain.
    """
    text = body.decode(errors="replace")
    if "\ufffd" in text or INVALID.search(text):
        text = INVALID.sub("\ufffd", text)
        return text, text.encode()
    return text, body


def group_name(group: str, queue: QueueName) -> str:
    """Return the name in the cluster of a group of messages: itself, or a digest where it cannot be one.

    The cluster shares time among groups wherever they have jobs. Groups of a standard queue are tenants, for whom that
    is right; those of FIFO queues have nothing to do with each other, so their names begin with a digest of the queue.
    """
    prefix = _queue_digest(queue.server) + "." if queue.is_fifo else ""
    if GROUP_NAME.fullmatch(group) and len(prefix) + len(group) <= GROUP_CHARACTERS_MAX:
        return prefix + group
    digest = urlsafe_b64encode(sha256(group.encode()).digest()).decode().rstrip("=")
    return f"{prefix.removesuffix('.')}:{digest}"


def group_of(name: str | None, headers: Mapping[str, str]) -> str | None:
    """Return the group of a message by its name in the cluster, as its sender wrote it; None if it has none."""
    if GROUP in headers or name is None:
        return headers.get(GROUP)
    match = OF_QUEUE.fullmatch(name)
    return match[1] if match else name


@lru_cache(maxsize=10_000)
def _queue_digest(server: str) -> str:
    return sha256(server.encode()).hexdigest()[:8]


def deduplication_key(identifier: str, group: str | None) -> str:
    """Return the key by which the cluster remembers a deduplication id; `group`: if only its messages count."""
    return sha256(f"{group or ''}\0{identifier}".encode()).hexdigest()


def content_id(body: str) -> str:
    """Return the deduplication id that a body stands for."""
    return sha256(body.encode()).hexdigest()
