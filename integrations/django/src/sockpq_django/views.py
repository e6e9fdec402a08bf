"""A view for health checks: `path("health/tasks/", sockpq_django.views.health)`."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, JsonResponse

from sockpq_django.backends import own_backends
from sockpq_django.database.rows import lag_of
from sockpq_django.operations.reachability import fault_of


def health(request: HttpRequest) -> JsonResponse:
    """Answer 200 when the clusters of all backends serve, else 503.

    The body says which do, and for how many seconds the oldest row has been waiting in the outbox of each backend that
    has one: that grows while no relay runs, and does not make the answer 503. It names no servers and no errors, so it
    may be public.
    """
    backends = own_backends()
    serving = {backend.alias: fault_of(backend) is None for backend in backends}
    lags: dict[str, Any] = {
        backend.alias: round(lag_of(backend.settings.outbox), 1) for backend in backends if backend.settings.outbox
    }
    return JsonResponse({"serving": serving, "outbox_lag_s": lags}, status=200 if all(serving.values()) else 503)
