"""Warnings, while DEBUG is on, about tasks that are enqueued in a transaction of which they are not part."""

from __future__ import annotations

import warnings

from django.conf import settings
from django.db import connections


class TransactionWarning(UserWarning):
    """A task is enqueued in a transaction that it does not depend on."""


def warn_of_transactions(outbox: str | None) -> None:
    """Warn, with DEBUG, if this thread is in a transaction of a database, but not in one of the outbox."""
    if not settings.DEBUG:
        return
    begun = [one.alias for one in connections.all(initialized_only=True) if one.in_atomic_block]
    if not begun or outbox in begun:
        return
    named = ", ".join(repr(alias) for alias in begun)
    if outbox is None:
        message = (
            f"a task is enqueued in a transaction of the database {named}: it may run before the COMMIT, and runs also "
            "if that never comes. Set OUTBOX in the OPTIONS of TASKS, or use transaction.on_commit()."
        )
    else:
        message = (
            f"a task is enqueued in a transaction of the database {named}, but the outbox is in {outbox!r}: the task "
            "runs also if that transaction is rolled back."
        )
    warnings.warn(message, TransactionWarning, stacklevel=4)        # the caller of task.enqueue()
