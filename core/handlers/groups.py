"""Handlers of GROUP: the settings of groups, their pauses among them (spec/fair 7)."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from sockpqd.core import limits
from sockpqd.core.fair.group_settings import GroupSettings
from sockpqd.core.fair.rates import ANY_QUEUE
from sockpqd.core.handlers.cost import BASE_BYTES, JOB_WITH_EXTRAS, RELISTED, Cost, of_names
from sockpqd.core.ops import replies
from sockpqd.core.ops.queues import ConfigureGroup, DeleteGroup
from sockpqd.core.ops.replies import Reply
from sockpqd.core.state import State


def configure_group(state: State, operation: ConfigureGroup, seed: int) -> Reply:
    """Change settings of a group, pause or resume it; a value out of range is replaced by the nearest in range."""
    if operation.paused is False:
        return _resume(state, operation.group)
    settings = state.groups.of(operation.group)
    if operation.limit is not None:
        settings = replace(settings, limit=min(max(operation.limit, 0), limits.NUMBER_MAX))
    if operation.rate is not None:
        settings = replace(settings, **rate_of(operation.rate, operation.per_ms))
    if operation.weight is not None:
        settings = replace(settings, weight=min(max(operation.weight, 1), limits.GROUP_WEIGHT_MAX))
    if operation.paused:
        settings = replace(settings, paused=True, pause_ends_ms=_end_of_pause(state, operation.pause_ms))
    if state.groups.full(operation.group):
        return replies.TOO_MANY_GROUPS
    _use(state, operation.group, settings)
    return replies.ACCEPTED


def rate_of(rate: int, per_ms: int | None) -> dict[str, int]:
    """Return the settings' fields for a rate of `rate` per `per_ms`; 0: no rate."""
    rate = min(max(rate, 0), limits.GROUP_RATE_MAX)
    per_ms = min(max(per_ms or 0, limits.GROUP_PER_MS_MIN), limits.GROUP_PER_MS_MAX)
    return {"rate": rate, "per_ms": per_ms if rate else 0}


def _end_of_pause(state: State, pause_ms: int | None) -> int:
    """Return when a pause of this length ends; 0: when it is ended."""
    return 0 if pause_ms is None else state.clock_ms + min(max(pause_ms, 1), limits.DURATION_MS_MAX)


def _use(state: State, group: str, settings: GroupSettings) -> None:
    """Apply the settings to the group, and open or close it accordingly."""
    state.groups.set(group, settings)
    state.spent += limits.STEP * RELISTED * ranked_in(state, group)
    if state.fair is not None:
        state.fair.open.look_at(ANY_QUEUE, group, state.clock_ms)


def _resume(state: State, group: str) -> Reply:
    """End the pause of a group, and its SLEEP in up to PORTION_MAX queues."""
    settings, woken = state.groups.of(group), 0
    if state.fair is not None:
        woken = state.fair.open.wake(group, state.clock_ms, limits.PORTION_MAX)
        state.spent += limits.STEP // 8 * woken
    if settings.paused:
        _use(state, group, replace(settings, paused=False, pause_ends_ms=0))
    return replies.ACCEPTED if settings.paused or woken else replies.GROUP_NOT_FOUND


def delete_group(state: State, operation: DeleteGroup, seed: int) -> Reply:
    """Remove the settings of a group, and its pause."""
    if operation.group not in state.groups.by_name:
        return replies.GROUP_NOT_FOUND
    _use(state, operation.group, GroupSettings())
    return replies.ACCEPTED


def group_cost(operation: Any) -> Cost:
    """Return the bytes and work of an operation on the settings of a group; see also `ranked_in`."""
    return BASE_BYTES + of_names(operation.group), JOB_WITH_EXTRAS


def ranked_in(state: State, group: str) -> int:
    """Return in how many queues with many groups the group is ranked: it opens and closes in each of them."""
    account = None if state.fair is None else state.fair.accounts.get(group)
    return 0 if account is None else account.moves
