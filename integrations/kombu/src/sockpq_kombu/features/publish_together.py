"""Publishes the tasks of a chord's header, or of a group, in one transaction.

So a producer that dies has published all or none, and a thousand tasks take two or three round trips. Celery itself
sends them one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import Any

from sockpq_kombu.background.event_loop import must_not_block
from sockpq_kombu.batch import publish_batch


def publish_together(module: ModuleType) -> None:
    """Make `chord.run` and `group.apply_async` collect their messages. This has no effect with other brokers."""
    module._chord.run = _together(module._chord.run)
    module.group.apply_async = _together(module.group.apply_async)


def _together(publish: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(publish)
    def publish_all(self: Any, *args: Any, **kwargs: Any) -> Any:
        if must_not_block():
            return publish(self, *args, **kwargs)
        with publish_batch():
            return publish(self, *args, **kwargs)

    return publish_all
