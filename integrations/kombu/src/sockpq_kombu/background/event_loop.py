"""Recognises threads that must not block, because an event loop of kombu runs in them."""

from __future__ import annotations

import os
import sys
import threading


class _Loop:
    """The event loop of the process; a forked child has none."""

    thread: tuple[int, int] | None = None


def enter_event_loop() -> None:
    """Record that this thread runs the event loop."""
    _Loop.thread = threading.get_ident(), os.getpid()


def leave_event_loop() -> None:
    """Record that no thread runs the event loop any longer."""
    _Loop.thread = None


def in_event_loop() -> bool:
    """Return whether this is the thread of the event loop."""
    return _Loop.thread == (threading.get_ident(), os.getpid())


def must_not_block() -> bool:
    """Return whether this thread runs the event loop itself rather than a task (the solo pool runs tasks in it)."""
    return in_event_loop() and not _in_task()


def _in_task() -> bool:
    celery = sys.modules.get("celery._state")       # a program of kombu's alone has no tasks
    return celery is not None and celery.get_current_task() is not None
