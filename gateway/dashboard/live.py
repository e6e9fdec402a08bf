"""Notifies browsers by server-sent events: twice a second, a value that changes with the state, and the state's age.

A connection ends after a few seconds, as all of the HTTP port do, and the browser comes back by itself.
"""

from __future__ import annotations

import asyncio
import json
from math import isinf

from aiohttp import web

from sockpqd.cluster import Cluster
from sockpqd.gateway.auth.authorizer import Guard
from sockpqd.gateway.dashboard.pages.parts.view import age, state

EVERY_S = 0.5
LASTS_S = 8.0               # less than a connection may
COME_BACK_MS = 200
STALE_S = 1.3               # with EVERY_S a browser knows within two seconds; a follower hears its leader each 50 ms


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
        known = json.dumps({"age": age(cluster), "stale": why_stale(cluster)})
        await response.write(f"event: age\ndata: {known}\n\ndata: {state(cluster)}\n\n".encode())
        await asyncio.sleep(EVERY_S)
    await response.write_eof()
    return response


def why_stale(cluster: Cluster) -> str | None:
    """Return why this node's data are older than they should be; None if they are not."""
    age_s = cluster.age_s()
    if age_s <= STALE_S:
        return None
    leader = cluster.leader()
    if isinf(age_s):
        return f"{cluster.name} has heard no leader since it was started"
    reason = "knows no leader" if leader in (None, cluster.name) else f"is behind {leader}"
    return f"{cluster.name} {reason}: this is {age_s:.0f} s old"
