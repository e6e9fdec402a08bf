"""Translates kombu's order of queues into the server's policy."""

from __future__ import annotations

from typing import Any, Literal

QueuePolicy = Literal["rr", "order", "sorted", "fair"]

POLICIES: dict[str, QueuePolicy] = {
    "round_robin": "rr",        # in turn
    "priority": "order",        # as long as the first one has messages, no other one
    "sorted": "sorted",         # the same by name
    "fair": "fair",             # by the time that groups, or else queues, have used
}


def policy_of(strategy: Any) -> QueuePolicy | None:
    """Return the server's policy for `queue_order_strategy`, None for the cluster's own. Raises ValueError."""
    if strategy is None:
        return None
    if not isinstance(strategy, str) or strategy not in POLICIES:
        raise ValueError(f"queue_order_strategy is one of {', '.join(POLICIES)}, not {strategy!r}")
    return POLICIES[strategy]
