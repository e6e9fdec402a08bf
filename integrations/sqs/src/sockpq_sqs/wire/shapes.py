"""The shapes of the model's Structs, compiled once for the Query protocol.

The Query protocol flattens lists and maps: the member `AttributeNames` is `AttributeName.1`, `Attributes` is
`Attribute.1.Name` and `Attribute.1.Value`. The model defines these names (model/shapes.py).
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeAlias

from msgspec import Struct, inspect


class Scalar(Struct, frozen=True):
    """A string, a number, a truth value or bytes."""


class ListShape(Struct, frozen=True):
    """A list of scalars or Structs."""

    element: Shape


class MapShape(Struct, frozen=True):
    """A map from strings, with the names of an entry's key and value."""

    key: str
    value: str
    element: Shape


class StructShape(Struct, frozen=True):
    """A Struct. `collections`: the members that are lists or maps."""

    members: tuple[Member, ...]
    collections: tuple[Member, ...]


class Member(Struct, frozen=True):
    """A member of a Struct: its attribute in Python, its names in JSON and in the Query protocol, and its shape."""

    attribute: str
    name: str
    query_name: str
    required: bool
    shape: Shape


Shape: TypeAlias = Scalar | ListShape | MapShape | StructShape


@cache
def shape_of(struct: type[Struct]) -> StructShape:
    """Return the shape of this Struct."""
    found = inspect.type_info(struct)
    assert isinstance(found, inspect.StructType)
    return _struct(found)


def _struct(found: inspect.StructType) -> StructShape:
    members = []
    for field in found.fields:
        kind, names = _plain(field.type)
        query_name = names.get("member", field.encode_name)
        members.append(Member(field.name, field.encode_name, query_name, field.required, _shape(kind, names)))
    collections = (member for member in members if isinstance(member.shape, ListShape | MapShape))
    return StructShape(tuple(members), tuple(collections))


def _shape(kind: inspect.Type, names: dict[str, Any]) -> Shape:
    match kind:
        case inspect.StructType():
            return _struct(kind)
        case inspect.ListType():
            return ListShape(_shape(*_plain(kind.item_type)))
        case inspect.DictType():
            return MapShape(names["key"], names["value"], _shape(*_plain(kind.value_type)))
    return Scalar()


def _plain(kind: inspect.Type) -> tuple[inspect.Type, dict[str, Any]]:
    """Return the type without None beside it, and the names that the model gives its elements."""
    if isinstance(kind, inspect.UnionType):
        kind, = (one for one in kind.types if not isinstance(one, inspect.NoneType))
    if isinstance(kind, inspect.Metadata):
        return kind.type, kind.extra or {}
    return kind, {}
