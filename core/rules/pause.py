"""Ends pauses of queues: at their time, or when they are resumed (spec/state-machine 10)."""

from __future__ import annotations

from msgspec.structs import replace

from sockpqd.core.state import State
from sockpqd.core.store.queues import Queue


def end_pause(state: State, queue: Queue) -> None:
    """Let the queue hand out jobs again, and remove settings that exist only for the pause. It must have settings."""
    settings = queue.settings
    assert settings is not None
    if settings.passing:
        state.queues.unset(queue)
    else:
        state.queues.configure(queue.name, replace(settings, paused_out=False, pause_ms=0, pause_ends_ms=0))
    if queue.ready.size and not queue.closed:
        state.effects.reopened[queue.name] = None
    if settings.paused_out and state.fair is not None and queue.name in state.queues.by_name:
        state.fair.offers.resumed(queue)
