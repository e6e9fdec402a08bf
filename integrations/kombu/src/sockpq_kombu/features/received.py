"""Buries messages that Celery's workers cannot read: redelivered, they would crash one worker after another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from types import ModuleType, NoneType
from typing import Any

from kombu.exceptions import ContentDisallowed, DecodeError
from kombu.log import get_logger

from sockpq_kombu.features.neighbours import DATA_ERRORS
from sockpq_kombu.mapping.messages import (
    DEPTH_MAX,
    TEXT,
    BadMessage,
    Field,
    check_fields,
    is_too_deep,
    may_be_too_deep,
)

logger = get_logger("kombu.transport.sockpq")

TASK = (
    Field("task", *TEXT), Field("id", *TEXT, needed=True), Field("timelimit", (list, tuple), "a pair of numbers"),
    *(Field(name, *TEXT) for name in ("root_id", "parent_id", "group", "shadow", "argsrepr", "kwargsrepr")),
)
LIMITS = 2          # hard and soft
# Of arguments, keyword arguments, and what is to come next: first what nearly all are, as a Mapping takes long to tell.
BODY = (list, tuple), (dict, Mapping), (dict, NoneType, Mapping)


def received(module: ModuleType) -> None:
    """Guard the way a worker handles each message."""
    create = module.Consumer.create_task_handler

    @wraps(create)
    def create_task_handler(self: Any, *args: Any, **kwargs: Any) -> Callable[[Any], Any]:
        return guarded(create(self, *args, **kwargs))

    module.Consumer.create_task_handler = create_task_handler


def guarded(handle: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Call `handle` for messages that can be read; bury unreadable ones that come from sockpqd."""
    from sockpq_kombu.channels.channel import Channel

    def on_task_received(message: Any) -> Any:
        if not isinstance(message.channel, Channel):
            return handle(message)
        try:
            check_task(message)
            return handle(message)
        except (BadMessage, *DATA_ERRORS) as error:
            if message.acknowledged:
                raise
            logger.error(
                "job %s is no message that Celery can read, and is buried: %s: %s", message.delivery_tag,
                type(error).__name__, error, exc_info=not isinstance(error, BadMessage),
            )
            message.channel.bury(message)

    return on_task_received


def check_task(message: Any) -> None:
    """Raise BadMessage for errors that Celery finds only when it sends the task to a process, or never."""
    headers = message.headers
    if headers.get("task") is None:         # of another protocol, or none of a task: Celery says what it thinks of it
        return
    check_fields("the headers", headers, TASK)
    if not headers["id"] or not headers["id"].isprintable():
        raise BadMessage("id is not a name")
    limits = headers.get("timelimit") or ()
    if len(limits) not in (0, LIMITS) or not all(one is None or type(one) in (int, float) for one in limits):
        raise BadMessage("timelimit is not a pair of numbers")
    try:
        called = message.payload            # Celery keeps it, and would decode it next
    except (DecodeError, ContentDisallowed):        # it reports these
        return
    if isinstance(called, list | tuple) and [*map(isinstance, called, BODY)] != [True] * len(BODY):
        raise BadMessage("its body is not of arguments, keyword arguments and an object")
    body = message.body
    if isinstance(body, bytes) and may_be_too_deep(body) and is_too_deep(called):
        raise BadMessage(f"its body has more than {DEPTH_MAX} levels")
