"""Metrics of one instance, and the middleware that counts requests."""

from __future__ import annotations

import time
from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
OTHER = "other"         # every path that there is not, so that strangers cannot make labels
METHODS = frozenset({"GET", "POST", "PATCH", "PUT", "DELETE", "HEAD", "OPTIONS"})


class Metrics:
    """The figures of one instance. No label has a name from the cluster: there may be any number of those."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "sockpq_http_requests", "Requests that were answered.", ("method", "route", "status"),
            registry=self.registry,
        )
        self.seconds = Histogram(
            "sockpq_http_request_seconds", "The time from a request to the end of its answer.", ("route",),
            buckets=SECONDS, registry=self.registry,
        )
        self.in_progress = Gauge(
            "sockpq_http_requests_in_progress", "Requests that are not answered yet.", registry=self.registry
        )
        self.cut = Counter(
            "sockpq_http_connections_cut", "Connections that were refused or cut, by the limit that they met.",
            ("limit",), registry=self.registry,
        )
        self.body_bytes = Gauge(
            "sockpq_http_body_bytes", "Bytes of bodies of requests in progress.", registry=self.registry
        )
        self.answer_bytes = Gauge(
            "sockpq_http_answer_bytes", "Bytes of large answers that their clients have not read yet.",
            registry=self.registry,
        )

    def of_connections(self, count: Callable[[], int]) -> None:
        """Add the number of connections."""
        gauge = Gauge("sockpq_http_connections", "Open connections.", registry=self.registry)
        gauge.set_function(count)

    def of_users(self, count: Callable[[], int]) -> None:
        """Add the number of users with a client."""
        gauge = Gauge("sockpq_http_users", "Users with connections to the cluster.", registry=self.registry)
        gauge.set_function(count)

    def text(self) -> bytes:
        """Return all of them in the text format of Prometheus."""
        return generate_latest(self.registry)


class Counting:
    """An ASGI application around another one that counts its requests and measures their times."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and record how it ends."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = time.perf_counter()
        status = "none"

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = str(message["status"])
            await send(message)

        self._metrics.in_progress.inc()
        try:
            await self._app(scope, receive, noting)
        finally:
            self._metrics.in_progress.dec()
            route = getattr(scope.get("route"), "path", OTHER)
            method = scope["method"] if scope["method"] in METHODS else OTHER
            self._metrics.requests.labels(method, route, status).inc()
            self._metrics.seconds.labels(route).observe(time.perf_counter() - begun)
