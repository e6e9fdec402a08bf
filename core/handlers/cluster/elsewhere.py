"""Refuses operations that add to a name that another cluster of the map owns (spec/state-machine 13)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from sockpqd.core.handlers.dispatch import Execute
from sockpqd.core.ops.replies import Elsewhere, Reply
from sockpqd.core.state import State

Brings = Callable[[State, Any], Iterable[str]]      # the names to which an operation brings something


def elsewhere(state: State, names: Iterable[str]) -> Elsewhere | None:
    """Return the refusal for the first of these names that this cluster does not accept; None if it accepts all."""
    known = state.cluster_map
    if known is not None:
        for name in names:
            if not known.accepts(name):
                return Elsewhere(known.owner(name))
    return None


def guarded(execute: Execute, brings: Brings) -> Execute:
    """Wrap the handler so that it first refuses names of other clusters. For clusters that have a map."""
    def check(state: State, operation: Any, seed: int) -> Reply:
        known = state.cluster_map
        assert known is not None
        for name in brings(state, operation):
            if not known.accepts(name):
                state.put_item = None           # so that the hand-out after a Put finds nothing
                return Elsewhere(known.owner(name))
        return execute(state, operation, seed)
    return check
