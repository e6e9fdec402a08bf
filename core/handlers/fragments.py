"""Handlers of the fragments of a large operation, which the last fragment executes (ops/fragments.py)."""

from __future__ import annotations

from sockpqd.core import limits
from sockpqd.core.handlers.cost import BASE_BYTES, JOB, Cost
from sockpqd.core.handlers.dispatch import EXECUTE, OWNED
from sockpqd.core.ops import replies
from sockpqd.core.ops.entry import decode_operation
from sockpqd.core.ops.fragments import Fragment
from sockpqd.core.ops.replies import Reply
from sockpqd.core.state import Collected, State

_MISSING = replies.FragmentsMissing()


def fragment(state: State, operation: Fragment, seed: int) -> Reply:
    """Append bytes to the fragments collected so far; with the last ones execute the operation.

    Does nothing if a part of it is missing.
    """
    collected = _continued(state, operation)
    if collected is None:
        return _MISSING
    collected.data += operation.data
    if not operation.last:
        state.fragments = collected
        return replies.ACCEPTED
    whole = decode_operation(collected.data)
    return (EXECUTE if state.cluster_map is None else OWNED)[type(whole)](state, whole, seed)


def _continued(state: State, operation: Fragment) -> Collected | None:
    """Remove and return the bytes collected so far; a first fragment (offset 0) starts with none.

    Returns None if the fragment does not follow directly on those bytes.
    """
    collected, state.fragments = state.fragments, None
    if operation.offset == 0:
        return Collected(operation.number, bytearray())
    if collected is None or collected.number != operation.number or len(collected.data) != operation.offset:
        return None
    return collected


def fragment_cost(operation: Fragment) -> Cost:
    """Return the bytes and work of a Fragment: the work of the last one is unknown, so it gets its own entry."""
    return BASE_BYTES + len(operation.data), limits.OPERATION_WORK_MAX if operation.last else JOB
