"""The state of a job as a coloured word."""

from __future__ import annotations

from sockpqd.gateway.dashboard.markup import Markup, tag


def badge(state: str) -> Markup:
    """Return the state, as the protocol calls it."""
    return tag("span", state.lower(), class_=f"badge {state.lower()}")
