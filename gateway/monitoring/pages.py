"""The pages served over HTTP: /healthz, /readyz, /metrics and /events, and the dashboard."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from aiohttp import web

from sockpqd.gateway.auth.authorizer import Guard, Someone
from sockpqd.gateway.auth.permissions import may_subscribe
from sockpqd.gateway.monitoring import metrics
from sockpqd.gateway.monitoring.basic_auth import ALL_QUEUES, HttpAccess, authenticated
from sockpqd.gateway.monitoring.event_stream import asked, tell
from sockpqd.gateway.monitoring.group_figures import fullest_groups
from sockpqd.gateway.monitoring.hosts import STRANGER, OwnHosts
from sockpqd.gateway.monitoring.metrics import Sources
from sockpqd.gateway.monitoring.queue_depths import depths
from sockpqd.gateway.monitoring.readiness import why_not_ready
from sockpqd.gateway.monitoring.stream_thread import StreamThread
from sockpqd.gateway.protocol.arguments import ArgumentError

log = logging.getLogger("sockpqd.http")

Response = TypeVar("Response", bound=web.StreamResponse)

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
QUICK = ("/healthz", "/readyz")
CHALLENGE = {"WWW-Authenticate": 'Basic realm="sockpqd"'}


class Site(Protocol):
    """Pages that the HTTP port has besides its own, such as the dashboard's."""

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse | None:
        """Answer a request, None if it has no such page."""


class HttpPages:
    """Answers requests. `access`: who may read /metrics; None: no authentication. `site`: has further pages.

    `hosts`: the host names that requests may use.
    """

    def __init__(
        self, sources: Sources, access: HttpAccess | None = None, site: Site | None = None,
        hosts: OwnHosts = OwnHosts(),  # noqa: B008
    ) -> None:
        self._sources = sources
        self._site = site
        self._hosts = hosts
        self._access = access
        self._streams = StreamThread(sources.hub.subscriptions)
        self._one_at_a_time = asyncio.Lock()        # concurrent readers cost no more than one
        self._pages: dict[str, Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]] = {
            "/healthz": self._healthz, "/readyz": self._readyz, "/metrics": self._metrics, "/events": self._events,
        }

    def is_quick(self, request: web.BaseRequest) -> bool:
        """Return whether the request is answered at once, whatever the node is doing."""
        return request.path in QUICK

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request; the connection is closed afterwards."""
        if not self._hosts.asked_by(request):
            return _line(421, STRANGER)
        page = self._pages.get(request.path)
        response: web.StreamResponse | None
        try:
            if page is None:
                response = None if self._site is None else await self._site.answer(request)
                response = _line(404, "not found") if response is None else closing(response)
            elif request.method not in ("GET", "HEAD"):
                response = _line(405, "only GET", {"Allow": "GET, HEAD"})
            else:
                return await page(request)
        except Exception:
            log.exception("a page failed: report it, with this line")
            response = _line(500, "internal error")
        return response

    def close(self) -> None:
        """End the background work of the pages."""
        self._streams.stop()

    async def _healthz(self, request: web.BaseRequest) -> web.Response:
        return _line(200, "ok")

    async def _readyz(self, request: web.BaseRequest) -> web.Response:
        reason = why_not_ready(self._sources.hub.cluster)
        return _line(200, "ready") if reason is None else _line(503, reason)

    async def _metrics(self, request: web.BaseRequest) -> web.Response:
        peer, known = f"{request.remote}:HTTP", None
        if self._access is not None:
            known = await authenticated(self._access, request.headers.get("Authorization"), peer)
            if known is None:
                return _line(401, "user and secret required", CHALLENGE)
        hub, named = self._sources.hub, ALL_QUEUES if known is None else known[1].seen
        of_groups = ALL_QUEUES if known is None else known[1].group
        async with self._one_at_a_time:
            pieces, counted = [], await depths(hub.cluster, named)
            for piece in metrics.text(self._sources, counted, named, await fullest_groups(hub.cluster, of_groups)):
                pieces.append(piece)
                await asyncio.sleep(0)
        if known is not None and Guard(hub.access, hub.cluster, Someone(peer, known[0])).rights != known[1]:
            return _line(401, "the rights of the user have changed meanwhile", CHALLENGE)
        return closing(web.Response(body=b"".join(pieces), headers={"Content-Type": METRICS_TYPE}))

    async def _events(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.method != "GET":
            return _line(405, "only GET", {"Allow": "GET"})
        hub, known = self._sources.hub, None
        if self._access is not None:
            known = await authenticated(self._access, request.headers.get("Authorization"), f"{request.remote}:HTTP")
            if known is None:
                return _line(401, "user and secret required", CHALLENGE)
        try:
            wish, after = asked(request)
        except ArgumentError:
            return _line(400, "bad arguments")
        if known is not None and not may_subscribe(known[1], wish):
            return _line(403, "forbidden")
        subscriptions = hub.subscriptions
        if after is not None and not subscriptions.may_begin(wish, after):
            return _line(409, "too old")
        guard = Guard(hub.access, hub.cluster, Someone(f"{request.remote}:HTTP", known and known[0]))
        stay: Callable[[], bool] = getattr(request.protocol, "stay", bool)
        if not stay():
            return _line(503, "too many streams of events", {"Retry-After": "10"})
        return await tell(request, self._streams, wish, after, guard)


def _line(status: int, text: str, headers: dict[str, str] | None = None) -> web.Response:
    return closing(web.Response(status=status, text=text + "\n", headers=headers))


def busy() -> web.Response:
    """Return the answer if too many clients already wait for pages."""
    return _line(503, "too many requests at a time", {"Retry-After": "1"})


def closing(response: Response) -> Response:
    """Make the response close its connection and not disclose which libraries we use."""
    if not response.prepared:
        response.headers["Server"] = "sockpqd"
        response.force_close()
    return response
