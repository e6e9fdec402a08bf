"""Asks clusters whether they serve, for health checks and for `manage.py check --deploy`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.core import checks
from sockpq import SockpqError

from sockpq_django.backend import SockpqBackend
from sockpq_django.backends import own_backends

TIMEOUT_S = 3.0


def fault_of(backend: SockpqBackend) -> str | None:
    """Return why the cluster of this backend does not serve; None if it does."""
    try:
        backend.client.total(timeout=TIMEOUT_S)
    except SockpqError as error:
        return f"{type(error).__name__}: {error}"
    return None


def unreachable(app_configs: Any = None, **kwargs: Any) -> Iterator[checks.CheckMessage]:
    """Yield a warning for each backend whose cluster does not serve."""
    for backend in own_backends():
        fault = fault_of(backend)
        if fault:
            yield checks.Warning(
                f'TASKS["{backend.alias}"]: no server answers: {fault}',
                hint="Check SERVERS, and the cluster with `pqctl doctor`.", id="sockpq_django.W001",
            )


def register() -> None:
    """Let `manage.py check --deploy` ask the servers; other commands do not."""
    checks.register(unreachable, "sockpq", deploy=True)
