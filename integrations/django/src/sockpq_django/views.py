"""A view for health checks: `path("health/tasks/", sockpq_django.views.health)`."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, JsonResponse

from sockpq_django.backends import own_backends
from sockpq_django.reachability import fault_of


def health(request: HttpRequest) -> JsonResponse:
    """Answer 200 when the clusters of all backends serve, else 503; the body says which do.

    It names no servers and no errors, so it may be public.
    """
    serving: dict[str, Any] = {backend.alias: fault_of(backend) is None for backend in own_backends()}
    return JsonResponse({"serving": serving}, status=200 if all(serving.values()) else 503)
