"""Handlers of GROUP: the settings of groups, and their pauses (spec/fair 7)."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from sockpqd.core import limits
from sockpqd.core.fair.group_settings import GroupSettings
from sockpqd.core.fair.rates import ANY_QUEUE
from sockpqd.core.handlers.cost import BASE_BYTES, JOB_WITH_EXTRAS, RELISTED, Cost, of_names
from sockpqd.core.ops import replies
from sockpqd.core.ops.queues import ConfigureGroup, DeleteGroup, PauseGroup, ResumeGroup
from sockpqd.core.ops.replies import Reply
from sockpqd.core.state import State


def configure_group(state: State, operation: ConfigureGroup, seed: int) -> Reply:
    """Change settings of a group; a value out of range is replaced by the nearest in range."""
    settings = state.groups.of(operation.group)
    if operation.limit is not None:
        settings = replace(settings, limit=min(max(operation.limit, 0), limits.NUMBER_MAX))
    if operation.rate is not None:
        settings = replace(settings, **rate_of(operation.rate, operation.per_ms))
    if operation.weight is not None:
        settings = replace(settings, weight=min(max(operation.weight, 1), limits.GROUP_WEIGHT_MAX))
    return _set(state, operation.group, settings)


def rate_of(rate: int, per_ms: int | None) -> dict[str, int]:
    """Return the settings' fields for a rate of `rate` per `per_ms`; 0: no rate."""
    rate = min(max(rate, 0), limits.GROUP_RATE_MAX)
    per_ms = min(max(per_ms or 0, limits.GROUP_PER_MS_MIN), limits.GROUP_PER_MS_MAX)
    return {"rate": rate, "per_ms": per_ms if rate else 0}


def pause_group(state: State, operation: PauseGroup, seed: int) -> Reply:
    """Pause a group for some time, or until it is resumed."""
    ends_ms = 0
    if operation.pause_ms is not None:
        ends_ms = state.clock_ms + min(max(operation.pause_ms, 1), limits.DURATION_MS_MAX)
    settings = replace(state.groups.of(operation.group), paused=True, pause_ends_ms=ends_ms)
    return _set(state, operation.group, settings)


def _set(state: State, group: str, settings: GroupSettings) -> Reply:
    if state.groups.full(group):
        return replies.TOO_MANY_GROUPS
    _use(state, group, settings)
    return replies.ACCEPTED


def _use(state: State, group: str, settings: GroupSettings) -> None:
    """Apply the settings to the group, and open or close it accordingly."""
    state.groups.set(group, settings)
    state.spent += limits.STEP * RELISTED * ranked_in(state, group)
    if state.fair is not None:
        state.fair.open.look_at(ANY_QUEUE, group, state.clock_ms)


def resume_group(state: State, operation: ResumeGroup, seed: int) -> Reply:
    """End the pause of a group, and its SLEEP in up to PORTION_MAX queues."""
    settings, woken = state.groups.of(operation.group), 0
    if state.fair is not None:
        woken = state.fair.open.wake(operation.group, state.clock_ms, limits.PORTION_MAX)
        state.spent += limits.STEP // 8 * woken
    if settings.paused:
        _use(state, operation.group, replace(settings, paused=False, pause_ends_ms=0))
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
