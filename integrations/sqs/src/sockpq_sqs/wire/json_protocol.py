"""The JSON protocol of SQS (AWS JSON 1.0): the action in a header, Structs as JSON objects."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from sockpq_sqs.model import ACTIONS, Action
from sockpq_sqs.model.errors import SqsError
from sockpq_sqs.wire.faults import malformed, refused_by_msgspec, unknown_action
from sockpq_sqs.wire.limits import ELEMENTS_MAX
from sockpq_sqs.wire.shapes import ListShape, Member, StructShape, shape_of

CONTENT_TYPE = "application/x-amz-json-1.0"
SERVICE = "AmazonSQS"

_decoders = {name: msgspec.json.Decoder(action.request) for name, action in ACTIONS.items()}
_encoder = msgspec.json.Encoder()


def action_of(target: str) -> Action:
    """Return the action that X-Amz-Target names ("AmazonSQS.SendMessage"). Raises SqsError."""
    service, _, name = target.partition(".")
    if service != SERVICE or name not in ACTIONS:
        raise unknown_action(name or target)
    return ACTIONS[name]


def decode(action: Action, body: bytes) -> Struct:
    """Decode the body of a request; no body is an object without members. Raises SqsError."""
    try:
        request: Struct = _decoders[action.name].decode(body or b"{}")
    except (msgspec.MsgspecError, RecursionError) as error:
        raise refused_by_msgspec(error) from None
    _check_sizes(shape_of(action.request), request)
    return request


def _check_sizes(shape: StructShape, request: Struct) -> None:
    """Refuse lists and maps of very many elements; raises SqsError."""
    for member in shape.collections:
        found = getattr(request, member.attribute)
        if found:
            if len(found) > ELEMENTS_MAX:
                raise _too_many(member)
            if isinstance(member.shape, ListShape) and isinstance(member.shape.element, StructShape):
                for one in found:
                    _check_sizes(member.shape.element, one)


def _too_many(member: Member) -> SqsError:
    return malformed(f"{member.name}: more than {ELEMENTS_MAX} elements.")


def encode(answer: Struct) -> bytes:
    """Encode an answer; empty lists and absent members are left out, as the Structs define it."""
    return _encoder.encode(answer)


def encode_error(error: SqsError) -> bytes:
    """Encode the document of an error; the header x-amzn-query-error has its code for the Query protocol as well."""
    return _encoder.encode({"__type": error.type, "message": error.message})
