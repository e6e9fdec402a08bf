"""Finds the backends of a project that belong to this distribution."""

from __future__ import annotations

from django.core.exceptions import ImproperlyConfigured

from sockpq_django.api import task_backends
from sockpq_django.backend import SockpqBackend

DEFAULT = "default"


def own_backends() -> list[SockpqBackend]:
    """Return all backends in the setting TASKS that belong to this distribution, by their aliases."""
    return [one for one in (task_backends[alias] for alias in task_backends) if isinstance(one, SockpqBackend)]


def own_backend(alias: str | None = None) -> SockpqBackend:
    """Return the backend with this alias; without an alias, "default" if it is of this distribution, else the only one.

    Raises ImproperlyConfigured.
    """
    found = {one.alias: one for one in own_backends()}
    if alias is None:
        alias = DEFAULT if DEFAULT in found or len(found) != 1 else next(iter(found))
    if alias not in found:
        raise ImproperlyConfigured(
            f'TASKS["{alias}"] is no sockpq_django.SockpqBackend; of these there are: {", ".join(found) or "none"}'
        )
    return found[alias]


def cancel(result_id: str, *, backend: str | None = None) -> bool:
    """Cancel a task by the id of its result: it is removed, or interrupted if it runs. Returns whether there was one.

    A task that waits in an outbox is removed by the current transaction. `backend`: the alias in TASKS. The result of a
    cancelled task is FAILED, with the error TaskCancelled.
    """
    return own_backend(backend).cancel(result_id)
