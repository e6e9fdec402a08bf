"""SCHED CONFIG: how FAIR charges and chooses (spec/fair 6)."""

from __future__ import annotations

from itertools import pairwise

from msgspec.structs import replace

from core import limits
from core.handlers.cost import BASE_BYTES, ID_BYTES, JOB, Cost
from core.ops import replies
from core.ops.queues import ConfigureFair
from core.ops.replies import Reply
from core.state import State


def configure_fair(state: State, operation: ConfigureFair, seed: int) -> Reply:
    """Change the settings. Times stay; the level of a group is computed anew at its next charge."""
    thresholds_s = operation.thresholds_s
    if thresholds_s is not None and not _levels(thresholds_s):
        return replies.BAD_SETTING
    for value, least, most in (
        (operation.cap_ms, 1000, limits.CAP_MS_MAX),
        (operation.multiplier, 1, limits.MULTIPLIER_MAX),
        (operation.keep_ms, 0, limits.GROUP_KEEP_MS_MAX),
    ):
        if value is not None and not least <= value <= most:
            return replies.BAD_SETTING
    levels = state.use_fair().levels
    changes = {
        name: value for name in ("thresholds_s", "cap_ms", "multiplier", "keep_ms")
        if (value := getattr(operation, name)) is not None
    }
    levels.settings = replace(levels.settings, **changes)
    return replies.ACCEPTED


def _levels(thresholds_s: tuple[int, ...]) -> bool:
    """Whether these are thresholds: 2 to 16 whole seconds that rise from 0."""
    rising = all(before < after for before, after in pairwise(thresholds_s))
    known = 2 <= len(thresholds_s) <= limits.LEVELS_MAX and thresholds_s[0] == 0
    return known and rising and thresholds_s[-1] <= limits.LEVEL_S_MAX


def configure_fair_cost(operation: ConfigureFair) -> Cost:
    """Bytes and work of a ConfigureFair."""
    return BASE_BYTES + ID_BYTES * len(operation.thresholds_s or ()), JOB
