"""Handlers and costs by type of operation, as plain dicts for the hot paths.

table.py fills these from its rows. They are in a module of their own because Batch and Request contain other
operations: their handlers, which are in the table themselves, look up the handlers of the operations inside.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from sockpqd.core.handlers.cost import Cost
from sockpqd.core.levels import FIELD_LEVELS, FIRST_LEVEL
from sockpqd.core.ops.entry import Operation
from sockpqd.core.ops.replies import Reply
from sockpqd.core.state import State

Execute = Callable[[State, Any, int], Reply]

EXECUTE: dict[type[Any], Execute] = {}
ATOMIC: dict[type[Any], Execute] = {}                       # those allowed in a Batch
REQUESTED: dict[type[Any], Execute] = {}                    # those allowed in a Request
OWNED: dict[type[Any], Execute] = {}                        # all, once there is a map of clusters: see elsewhere.py
COSTS: dict[type[Any], Callable[[Any], Cost]] = {}
LEVELS: dict[type[Any], int] = {}                           # of operations above the first level


def cost(operation: Operation) -> Cost:
    """Return the bytes and work of the operation: see cost.py."""
    return COSTS[type(operation)](operation)


def level_of(operation: object) -> int:
    """Return the least feature level at which a cluster may log the operation, including everything it contains.

    It inspects all fields, so it is called only while the level of the cluster is below the level of this program.
    """
    level = LEVELS.get(type(operation), FIRST_LEVEL)
    if isinstance(operation, Struct):
        level = max(level, _level_of_fields(operation))
        inside = [getattr(operation, field) for field in operation.__struct_fields__]
    elif isinstance(operation, tuple):
        inside = list(operation)
    else:
        return level
    return max(level, *map(level_of, inside), FIRST_LEVEL)


def _level_of_fields(operation: Struct) -> int:
    """Return the highest level among the fields that differ from their defaults."""
    kind = type(operation)
    defaults = kind.__struct_defaults__
    options = zip(kind.__struct_fields__[len(kind.__struct_fields__) - len(defaults):], defaults, strict=True)
    return max([
        FIELD_LEVELS.get((kind.__name__, name), FIRST_LEVEL)
        for name, default in options if getattr(operation, name) != default
    ], default=FIRST_LEVEL)
