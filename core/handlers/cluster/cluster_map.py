"""Handler of SetMap, which replaces the map of clusters (spec/state-machine 13)."""

from __future__ import annotations

from sockpqd.core import limits
from sockpqd.core.clusters.map_text import MapError, read_map
from sockpqd.core.handlers.cost import BASE_BYTES, Cost
from sockpqd.core.ops.cluster import SetMap
from sockpqd.core.ops.replies import ACCEPTED, BAD_SETTING, MapChanged, Reply
from sockpqd.core.state import State


def set_map(state: State, operation: SetMap, seed: int) -> Reply:
    """Replace the map if this one has a greater version; operations that follow belong to another entry.

    Handlers differ when there is a map, and Machine.apply checks for one only once per entry.
    """
    known = state.cluster_map
    version, text = (0, b"") if known is None else (known.version, known.text)
    if (operation.version, operation.text) == (version, text):
        return ACCEPTED
    if operation.version <= version:
        return MapChanged(version)
    try:
        state.cluster_map = read_map(min(operation.version, limits.MAP_VERSION_MAX), operation.text, state.cluster_id)
    except MapError:            # the gateway refuses it
        return BAD_SETTING
    state.spent += limits.SPENT_MAX
    return ACCEPTED


def set_map_cost(operation: SetMap) -> Cost:
    """Return the bytes and work of a SetMap: it gets its own entry."""
    return BASE_BYTES + len(operation.text), limits.OPERATION_WORK_MAX
