"""Handler of SCHED CONFIG, the settings of the FAIR policy (spec/fair 6)."""

from __future__ import annotations

from msgspec.structs import replace

from sockpqd.core.fair.levels import FairSettings, allowed
from sockpqd.core.handlers.cost import BASE_BYTES, ID_BYTES, JOB, Cost
from sockpqd.core.ops import replies
from sockpqd.core.ops.queues import ConfigureFair
from sockpqd.core.ops.replies import Reply
from sockpqd.core.state import State


def configure_fair(state: State, operation: ConfigureFair, seed: int) -> Reply:
    """Change the settings. Times are kept; the level of a group is recomputed at its next charge."""
    changes = {
        name: value for name in ("thresholds_s", "cap_ms", "multiplier", "keep_ms")
        if (value := getattr(operation, name)) is not None
    }
    settings = replace(FairSettings() if state.fair is None else state.fair.levels.settings, **changes)
    if not allowed(settings):
        return replies.BAD_SETTING
    state.use_fair().levels.settings = settings
    return replies.ACCEPTED


def configure_fair_cost(operation: ConfigureFair) -> Cost:
    """Return the bytes and work of a ConfigureFair."""
    return BASE_BYTES + ID_BYTES * len(operation.thresholds_s or ()), JOB
