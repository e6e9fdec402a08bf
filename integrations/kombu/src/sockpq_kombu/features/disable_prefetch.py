"""`worker_disable_prefetch`: a worker takes a task only when one of its processes is free, as with Redis."""

from __future__ import annotations

from functools import wraps
from types import ModuleType
from typing import Any

from sockpq_kombu.features.neighbours import DRIVER

LOOK_S = 0.05       # how soon the end of a task is noticed, of which the channel hears nothing


def disable_prefetch(module: ModuleType) -> None:
    """Disable prefetching, instead of Celery's warning that it supports this only for Redis."""
    start = module.Tasks.start

    @wraps(start)
    def start_limited(self: Any, c: Any) -> None:
        conf = c.app.conf
        if not conf.worker_disable_prefetch or c.connection.transport.driver_type != DRIVER:
            start(self, c)
            return
        conf.worker_disable_prefetch = False        # it would warn
        try:
            start(self, c)
        finally:
            conf.worker_disable_prefetch = True
        _limit(self, c)

    module.Tasks.start = start_limited


def _limit(step: Any, c: Any) -> None:
    from celery.worker import state

    channel = c.task_consumer.channel

    def free() -> int:
        processes = getattr(c.controller, "max_concurrency", None) or c.pool.num_processes
        return int(processes) - len(state.reserved_requests)

    channel.limit_to(free)
    if earlier := getattr(step, "_sockpq_looking", None):
        earlier.cancel()
    step._sockpq_looking = c.timer.call_repeatedly(LOOK_S, channel.poll)
