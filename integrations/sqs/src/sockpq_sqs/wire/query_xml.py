"""Answers in the Query protocol: XML in the namespace of SQS."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from sockpq_sqs.model import Action
from sockpq_sqs.model.errors import SqsError
from sockpq_sqs.wire.shapes import ListShape, MapShape, Member, Shape, StructShape, shape_of

CONTENT_TYPE = "text/xml"
NAMESPACE = "http://queue.amazonaws.com/doc/2012-11-05/"
DECLARATION = '<?xml version="1.0"?>'
UNKNOWN_OPERATION = b"<UnknownOperationException/>"     # the answer to a request without an action

# XML reads a carriage return as a line feed unless it is written as a reference.
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\r": "&#xD;"})


def encode(action: Action, answer: Struct, request_id: str) -> bytes:
    """Encode the answer to this action; one whose answers have no members has no result."""
    shape = shape_of(type(answer))
    result = f"<{action.name}Result>{''.join(_members(shape, answer))}</{action.name}Result>" if shape.members else ""
    return (
        f'{DECLARATION}<{action.name}Response xmlns="{NAMESPACE}">{result}'
        f"<ResponseMetadata><RequestId>{request_id}</RequestId></ResponseMetadata></{action.name}Response>"
    ).encode()


def encode_error(error: SqsError, request_id: str) -> bytes:
    """Encode the document of an error."""
    return (
        f'{DECLARATION}<ErrorResponse xmlns="{NAMESPACE}"><Error><Type>{"Sender" if error.sender_fault else "Receiver"}'
        f"</Type><Code>{_escaped(error.query_code)}</Code><Message>{_escaped(error.query_message)}</Message><Detail/>"
        f"</Error><RequestId>{request_id}</RequestId></ErrorResponse>"
    ).encode()


def _members(shape: StructShape, value: Struct) -> Iterator[str]:
    for member in shape.members:
        found = getattr(value, member.attribute)
        if found is not None:
            yield from _elements(member, member.shape, found)


def _elements(member: Member, shape: Shape, value: Any) -> Iterator[str]:
    name = member.query_name
    if isinstance(shape, ListShape):
        for one in value:
            yield f"<{name}>{_content(shape.element, one)}</{name}>"
    elif isinstance(shape, MapShape):
        for key, one in value.items():
            yield (f"<{name}><{shape.key}>{_escaped(key)}</{shape.key}>"
                   f"<{shape.value}>{_content(shape.element, one)}</{shape.value}></{name}>")
    else:
        yield f"<{name}>{_content(shape, value)}</{name}>"


def _content(shape: Shape, value: Any) -> str:
    if isinstance(shape, StructShape):
        return "".join(_members(shape, value))
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return b64encode(value).decode()
    return _escaped(str(value))


def _escaped(text: str) -> str:
    return text.translate(_ESCAPES)
