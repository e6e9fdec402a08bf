"""Recognizes tasks that fail because a database cannot be reached."""

from __future__ import annotations

from django.db import InterfaceError, OperationalError, connections
from django.db.backends.base.base import BaseDatabaseWrapper


def is_outage(error: BaseException) -> bool:
    """Return whether a task has raised this because a database that this thread has used cannot be reached.

    Each database is asked again, with a new connection. If all answer, the error was the task's, or its connection was
    lost: such an attempt counts, because the task itself may be what ends connections.
    """
    if not isinstance(error, InterfaceError | OperationalError):
        return False
    return not all(map(_answers, connections.all(initialized_only=True)))


def _answers(connection: BaseDatabaseWrapper) -> bool:
    if connection.in_atomic_block:          # the transaction of a test, which is not ours to end
        return True
    try:
        connection.close()
        connection.ensure_connection()
        return bool(connection.is_usable())
    except (InterfaceError, OperationalError):
        return False
