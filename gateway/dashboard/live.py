"""Tells browsers of changes, by server-sent events: once a second what changes with the state, and how old that is.

A connection ends after a few seconds, as all of the HTTP port do, and the browser comes back by itself.
"""

from __future__ import annotations

import asyncio

from aiohttp import web

from sockpqd.cluster import Cluster
from sockpqd.gateway.auth.authorizer import Guard
from sockpqd.gateway.dashboard.pages.parts.view import age, state

EVERY_S = 1.0
LASTS_S = 8.0               # less than a connection may
COME_BACK_MS = 500


async def stream(
    cluster: Cluster, request: web.BaseRequest, headers: dict[str, str], guard: Guard,
) -> web.StreamResponse:
    """Answer with events until LASTS_S have passed or the visitor's user is deleted."""
    response = web.StreamResponse(headers={**headers, "Content-Type": "text/event-stream"})
    response.force_close()
    await response.prepare(request)
    await response.write(f"retry: {COME_BACK_MS}\n\n".encode())
    loop = asyncio.get_running_loop()
    until = loop.time() + LASTS_S
    while loop.time() < until and not guard.unauthenticated:
        await response.write(f"event: age\ndata: {age(cluster)}\n\ndata: {state(cluster)}\n\n".encode())
        await asyncio.sleep(EVERY_S)
    await response.write_eof()
    return response
