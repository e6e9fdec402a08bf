"""Requests in the Query protocol: a form, or the query of a URL, becomes the Struct of an action."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote_to_bytes

import msgspec
from msgspec import Struct

from sockpq_sqs.model import Action
from sockpq_sqs.wire.faults import malformed, refused_by_msgspec
from sockpq_sqs.wire.limits import INDEX_DIGITS_MAX, NAME_PARTS_MAX, PARAMETERS_MAX
from sockpq_sqs.wire.shapes import ListShape, MapShape, Member, Scalar, Shape, StructShape, shape_of

QUEUE_URL = "QueueUrl"

Tree = dict[str, Any]           # the parts of a parameter's name -> a string, or another Tree


def parameters(text: str) -> dict[str, str]:
    """Parse a form; of two parameters with the same name the first one counts. Raises SqsError."""
    if text.count("&") >= PARAMETERS_MAX:
        raise malformed(f"The request has more than {PARAMETERS_MAX} parameters.")
    found: dict[str, str] = {}
    for pair in text.split("&"):
        if pair:
            name, _, value = pair.partition("=")
            found.setdefault(_text(name), _text(value))
    return found


def is_of_queue(action: Action) -> bool:
    """Return whether the requests of this action are about one queue, by its URL."""
    return any(member.name == QUEUE_URL for member in shape_of(action.request).members)


def decode(action: Action, given: dict[str, str], queue_url: str | None) -> Struct:
    """Convert the parameters into the request of this action. Raises SqsError.

    `queue_url`: the URL of the queue to which the request was sent, for a request that names none.
    """
    shape = shape_of(action.request)
    members = _members(shape, _tree(given))
    if queue_url is not None and is_of_queue(action):
        members.setdefault(QUEUE_URL, queue_url)
    try:
        request: Struct = msgspec.convert(members, action.request, strict=False)
    except msgspec.ValidationError as error:
        raise refused_by_msgspec(error) from None
    return request


def _text(quoted: str) -> str:
    quoted = quoted.replace("+", " ")
    if "%" not in quoted:
        return quoted
    try:
        return unquote_to_bytes(quoted).decode()
    except UnicodeDecodeError:
        raise malformed("A parameter is not in UTF-8.") from None


def _tree(given: dict[str, str]) -> Tree:
    """Sort the parameters by the parts of their names."""
    root: Tree = {}
    for name, value in given.items():
        parts = name.split(".", NAME_PARTS_MAX)
        if len(parts) > NAME_PARTS_MAX:
            raise malformed(f"The name of a parameter has more than {NAME_PARTS_MAX} parts.")
        branch = root
        for part in parts[:-1]:
            branch = branch.setdefault(part, {})
            if not isinstance(branch, dict):
                raise malformed(f"The parameter {name} contradicts another one.")
        if isinstance(branch.setdefault(parts[-1], value), dict):
            raise malformed(f"The parameter {name} contradicts another one.")
    return root


def _members(shape: StructShape, tree: Tree) -> dict[str, Any]:
    found = {}
    for member in shape.members:
        if member.query_name in tree:
            found[member.name] = _value(member.shape, tree[member.query_name], member)
        elif member.required and isinstance(member.shape, ListShape | MapShape):
            found[member.name] = [] if isinstance(member.shape, ListShape) else {}      # an empty one has no parameter
    return found


def _value(shape: Shape, node: str | Tree, member: Member) -> Any:
    if isinstance(shape, Scalar):
        if isinstance(node, dict):
            raise malformed(f"The parameter {member.query_name} has no parts.")
        return node
    if isinstance(shape, ListShape) and isinstance(node, str):
        return [node]                           # AttributeName=All, without a number
    if not isinstance(node, dict):
        raise malformed(f"The parameter {member.query_name} needs the names of its parts.")
    if isinstance(shape, StructShape):
        return _members(shape, node)
    if isinstance(shape, ListShape):
        return [_value(shape.element, one, member) for one in _numbered(node, member)]
    entries = [node] if shape.key in node else _numbered(node, member)
    return dict(_entry(shape, one, member) for one in entries)


def _numbered(node: Tree, member: Member) -> list[str | Tree]:
    """Return the entries of a list or a map in the order of their numbers."""
    if not all(number.isascii() and number.isdecimal() and len(number) <= INDEX_DIGITS_MAX for number in node):
        raise malformed(f"The parameter {member.query_name} needs a number for each entry, from 1 on.")
    return [node[number] for number in sorted(node, key=int)]


def _entry(shape: MapShape, node: str | Tree, member: Member) -> tuple[str, Any]:
    if not isinstance(node, dict) or not isinstance(node.get(shape.key), str):
        raise malformed(f"An entry of the parameter {member.query_name} has no {shape.key}.")
    if shape.value in node:
        return node[shape.key], _value(shape.element, node[shape.value], member)
    if isinstance(shape.element, StructShape):
        return node[shape.key], _members(shape.element, node)
    return node[shape.key], ""
