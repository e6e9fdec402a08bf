"""The time that a job waits after an attempt that failed (QUEUE CONFIG .. BACKOFF, spec/state-machine 8.6)."""

from __future__ import annotations

from sockpqd.core.ops.settings import QueueSettings
from sockpqd.core.store.policies.choice import draw

DOUBLINGS_MAX = 62
SPREAD = 10             # up to a tenth is taken off, so that jobs that failed together do not come back together


def backoff_ms(settings: QueueSettings, attempts: int, bits: int) -> int:
    """Return the delay after this many attempts; `bits`: random bits."""
    longest_ms = min(settings.backoff_max_ms, settings.backoff_ms << min(attempts - 1, DOUBLINGS_MAX))
    return longest_ms - draw(longest_ms // SPREAD + 1, bits)
