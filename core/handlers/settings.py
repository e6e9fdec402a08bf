"""Handler of CONFIG and SCHED CONFIG: the settings of the cluster, and of fair shares (spec/fair 6)."""

from __future__ import annotations

from msgspec.structs import asdict, replace

from sockpqd.core import limits
from sockpqd.core.fair.levels import FairSettings, allowed
from sockpqd.core.handlers.cost import BASE_BYTES, ID_BYTES, JOB, Cost
from sockpqd.core.ops import replies
from sockpqd.core.ops.jobs import Policy, Then
from sockpqd.core.ops.queues import Configure, FairChange
from sockpqd.core.ops.replies import Reply
from sockpqd.core.state import State


def configure(state: State, operation: Configure, seed: int) -> Reply:
    """Change settings of the cluster, and of fair shares; if the latter contradict each other, change nothing."""
    if operation.fair is not None and not _configure_fair(state, operation.fair):
        return replies.BAD_SETTING
    values: dict[str, object] = {
        name: value
        for name in ("autocreate", "fast_empty")
        if (value := getattr(operation, name)) is not None
    }
    for name in ("grace_ms", "session_ttl_ms"):
        length_ms = getattr(operation, name)
        if length_ms is not None:
            values[name] = min(max(length_ms, 0), limits.DURATION_MS_MAX)
    if operation.expire_default is not None:
        values["expire_default"] = Then.DONE if operation.expire_default is Then.DONE else Then.LATER
    if operation.retained_bytes is not None:
        values["retained_bytes"] = min(max(operation.retained_bytes, 0), limits.COUNTER_MAX)
    if operation.policy is not None:
        values["policy"] = Policy(operation.policy)
        if operation.policy is Policy.FAIR:
            state.use_fair()
    state.settings = replace(state.settings, **values)
    state.records.limit(state.settings.retained_bytes)
    return replies.ACCEPTED


def _configure_fair(state: State, change: FairChange) -> bool:
    """Change settings of fair shares, and return True, if they do not contradict each other.

    Times are kept; the level of a group is recomputed at its next charge.
    """
    changes = {name: value for name, value in asdict(change).items() if value is not None}
    settings = replace(FairSettings() if state.fair is None else state.fair.levels.settings, **changes)
    if not allowed(settings):
        return False
    state.use_fair().levels.settings = settings
    return True


def configure_cost(operation: Configure) -> Cost:
    """Return the bytes and work of a Configure."""
    thresholds = None if operation.fair is None else operation.fair.thresholds_s
    return BASE_BYTES + ID_BYTES * len(thresholds or ()), JOB
