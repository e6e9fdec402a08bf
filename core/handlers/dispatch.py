"""Handlers and costs by type of operation, as plain dicts for the hot paths.

table.py fills these from its rows. They stand here because Batch and Request contain other operations: their handlers,
which are themselves in the table, look up those of the operations inside.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from core.handlers.cost import Cost
from core.ops.entry import Operation
from core.ops.replies import Reply
from core.state import State

Execute = Callable[[State, Any, int], Reply]

EXECUTE: dict[type[Any], Execute] = {}
ATOMIC: dict[type[Any], Execute] = {}                       # those allowed in a Batch
REQUESTED: dict[type[Any], Execute] = {}                    # those allowed in a Request
COSTS: dict[type[Any], Callable[[Any], Cost]] = {}


def cost(operation: Operation) -> Cost:
    """Bytes and work of the operation: see cost.py."""
    return COSTS[type(operation)](operation)
