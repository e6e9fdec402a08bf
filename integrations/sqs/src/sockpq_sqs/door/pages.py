"""Pages for operators: /healthz, /readyz and /metrics."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Iterable

from aiohttp import web
from sockpq import SockpqError
from sockpq.aio import Client

from sockpq_sqs.door.connection import Connection
from sockpq_sqs.door.figures import Figures

READY_S = 2.0                   # for which the cluster is waited for
METRICS = "/metrics"
REMEMBERED_S = 1.0              # for which an answer of the cluster is good


class Pages:
    """Answers the pages.

    /healthz is 200 as long as the program runs, /readyz as long as the cluster answers and the program does not end;
    /metrics is for this machine and for the networks of `metrics_from`.
    """

    def __init__(self, client: Client, figures: Figures, metrics_from: Iterable[str]) -> None:
        self.ending = False
        self._client = client
        self._figures = figures
        self._networks = [ipaddress.ip_network(network) for network in metrics_from]
        self._pages = {"/healthz": self._healthz, "/readyz": self._readyz, METRICS: self._metrics}
        self._ready = "not asked yet"           # "" if the cluster answers, else why not
        self._asked = -REMEMBERED_S
        self._asking: asyncio.Task[str] | None = None

    async def answer(self, request: web.BaseRequest, path: str) -> web.Response | None:
        """Return the page at this path, None if there is none."""
        page = self._pages.get(path)
        return None if page is None else await page(request)

    async def _healthz(self, request: web.BaseRequest) -> web.Response:
        return web.Response(text="ok\n")

    async def _readyz(self, request: web.BaseRequest) -> web.Response:
        if self.ending:
            return web.Response(status=503, text="ending\n")
        why = await self._why_not()
        return web.Response(status=503, text=f"{why}\n") if why else web.Response(text="ok\n")

    async def _metrics(self, request: web.BaseRequest) -> web.Response:
        connection = request.protocol
        assert isinstance(connection, Connection)
        if connection.address is not None and not self._may_see(request.remote or ""):
            return web.Response(status=403, text="http.metrics_from in the settings names who may read this\n")
        return web.Response(body=self._figures.page(), headers={"Content-Type": "text/plain; version=0.0.4"})

    async def _why_not(self) -> str:
        """Ask the cluster, once for all who ask at the same time."""
        loop = asyncio.get_running_loop()
        if self._asking is None and loop.time() - self._asked >= REMEMBERED_S:
            self._asking = loop.create_task(self._ask())
        if self._asking is not None:
            await asyncio.shield(self._asking)
        return self._ready

    async def _ask(self) -> str:
        try:
            await self._client.cluster_id(timeout=READY_S)
            self._ready = ""
        except SockpqError as error:
            self._ready = f"the cluster does not answer ({type(error).__name__})"
        self._asked = asyncio.get_running_loop().time()
        self._asking = None
        return self._ready

    def _may_see(self, host: str) -> bool:
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return False
        mapped = getattr(address, "ipv4_mapped", None)
        return any((mapped or address) in network for network in self._networks)
