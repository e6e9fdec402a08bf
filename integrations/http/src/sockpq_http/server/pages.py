"""Pages in addition to the API: health, readiness, metrics, the OpenAPI document and its viewer."""

from __future__ import annotations

import asyncio
import time
from importlib.resources import files

import sockpq
from fastapi import APIRouter, Request
from sockpq.aio import Client
from starlette.responses import HTMLResponse, JSONResponse, Response

from sockpq_http.problems.problem import Problem
from sockpq_http.server.openapi import TITLE

pages = APIRouter(include_in_schema=False)

READY_S = 1.0           # for which an answer about the cluster is good, however many ask
PATIENCE_S = 2.0
ASSETS = {
    "swagger-ui-bundle.js": "text/javascript", "swagger-ui.css": "text/css", "start.js": "text/javascript",
    "LICENSE": "text/plain", "NOTICE": "text/plain",
    "swagger-ui-bundle.js.LICENSE.txt": "text/plain",
}
# The viewer loads nothing from elsewhere; styles within elements are its own.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'"
)
HEADERS = {
    "content-security-policy": POLICY, "x-content-type-options": "nosniff", "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
}
PAGE = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{TITLE}</title>
<link rel="stylesheet" href="docs/swagger-ui.css"></head>
<body><div id="viewer"></div>
<script src="docs/swagger-ui-bundle.js"></script><script src="docs/start.js"></script></body></html>
"""


class Readiness:
    """The readiness for requests: the program does not stop, and the cluster has a leader that serves."""

    def __init__(self, client: Client, stopping: asyncio.Event) -> None:
        self._client = client
        self._stopping = stopping
        self._lock = asyncio.Lock()
        self._asked = float("-inf")
        self._why: str | None = None

    async def why_not(self) -> str | None:
        """Return why no requests should come, None if they should."""
        if self._stopping.is_set():
            return "this program stops"
        async with self._lock:
            if time.monotonic() - self._asked > READY_S:
                self._why = await self._ask()
                self._asked = time.monotonic()
        return self._why

    async def obeys_strangers(self) -> bool:
        """Return whether the cluster has no users, so that it does what anybody asks for."""
        try:
            await self._client.users(timeout=PATIENCE_S)
        except sockpq.SockpqError:
            return False
        return True

    async def _ask(self) -> str | None:
        try:
            await self._client.cluster_id(timeout=PATIENCE_S)
        except sockpq.AuthError:
            return None             # it answers, and each request has credentials of its own
        except sockpq.SockpqError as error:
            return f"the cluster does not answer: {error}"
        return None


@pages.get("/healthz")
async def healthz() -> Response:
    """Say that this program runs."""
    return JSONResponse({"status": "ok"})


@pages.get("/readyz")
async def readyz(request: Request) -> Response:
    """Say whether requests should come here."""
    why = await request.app.state.readiness.why_not()
    if why is not None:
        raise Problem(503, why, "not-ready", headers={"retry-after": "1"})
    return JSONResponse({"status": "ready"})


@pages.get("/metrics")
async def metrics(request: Request) -> Response:
    """Return the metrics of this instance."""
    return Response(request.app.state.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


@pages.get("/openapi.json")
async def openapi(request: Request) -> Response:
    """Return the OpenAPI document."""
    return Response(request.app.state.document, media_type="application/json")


@pages.get("/docs")
async def viewer() -> Response:
    """Return the viewer of the document, which works without the internet."""
    return HTMLResponse(PAGE, headers=HEADERS)


@pages.get("/docs/{name}")
async def asset(name: str) -> Response:
    """Return a file of the viewer."""
    kind = ASSETS.get(name)
    if kind is None:
        raise Problem(404, "there is no such page")
    data = files("sockpq_http").joinpath("server", "viewer", name).read_bytes()
    return Response(data, media_type=kind, headers={**HEADERS, "cache-control": "max-age=86400"})
