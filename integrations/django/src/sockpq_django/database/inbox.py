"""once(): a task whose effect in the database happens once, however often its job is delivered."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any, TypeVar, overload

from django.db import DEFAULT_DB_ALIAS, IntegrityError, transaction

from sockpq_django.work.current import CURRENT

LOG = logging.getLogger("sockpq_django")

F = TypeVar("F", bound=Callable[..., Any])


@overload
def once(function: F) -> F: ...
@overload
def once(*, using: str | None = None) -> Callable[[F], F]: ...


def once(function: Callable[..., Any] | None = None, *, using: str | None = None) -> Any:
    """Run the function of a task in a transaction together with a mark, so that what it writes is written once.

        @task
        @sockpq_django.once
        def charge(order_id): ..

    When the job is delivered again, because its worker died after the COMMIT, the mark is found: the function is not
    called, and the task has succeeded, with the value None. An exception rolls everything back, mark included. `using`:
    the alias of the database, by default that of OUTBOX, or "default". What the function does outside of this database
    may happen twice. Called directly, as in a test, it is the plain function. Needs "sockpq_django" in INSTALLED_APPS.

    Raises TypeError for an async function, because Django's transactions are not for these.
    """
    if function is None:
        return lambda decorated: once(decorated) if using is None else _marked(decorated, using)
    return _marked(function, using)


def _marked(function: Callable[..., Any], using: str | None) -> Callable[..., Any]:
    if iscoroutinefunction(function):
        raise TypeError(f"once() needs a function without async, as transactions of Django do: {function.__name__}")

    @wraps(function)
    def run_once(*args: Any, **kwargs: Any) -> Any:
        current = CURRENT.get()
        if current is None:
            return function(*args, **kwargs)
        alias = using or current.database or DEFAULT_DB_ALIAS
        with transaction.atomic(using=alias):
            if _is_marked(current.id, alias):
                LOG.info("Task id=%s was done before, and is not run again", current.id)
                return None
            return function(*args, **kwargs)

    return run_once


def _is_marked(task: str, alias: str) -> bool:
    """Mark the task in this transaction, or return True if it has a mark. Waits for a transaction that marks it now.

    The unique index decides whether a row was inserted: the row counts of drivers cannot be trusted for this.
    """
    from sockpq_django.models import InboxMark  # models are not to be imported before the apps are loaded

    try:
        with transaction.atomic(using=alias):
            InboxMark.objects.using(alias).create(job=task, created=time.time())
    except IntegrityError:
        return True
    return False
