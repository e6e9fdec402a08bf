"""Running an instance, and its end: not ready first, then no new connections, then the requests in progress."""

from __future__ import annotations

import asyncio
import logging
from types import FrameType
from typing import Any

import uvicorn

from sockpq_http.server.app import Service
from sockpq_http.server.connections import guarded

log = logging.getLogger("sockpq-http")


class Instance(uvicorn.Server):
    """uvicorn's server, which goes on for a while after a signal, so that balancers notice that it is not ready."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def port(self) -> int:
        """The port on which it listens."""
        port: int = self.servers[0].sockets[0].getsockname()[1]
        return port

    async def startup(self, sockets: Any = None) -> None:
        """Begin to listen."""
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)
        if self.started:
            log.info("listening on %s:%d", self.config.host, self.port)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to stop; a second signal ends it at once."""
        if self._service.stopping.is_set():
            self.should_exit = self.force_exit = True
        elif self._loop is not None:
            self._loop.call_soon_threadsafe(self._begin_to_stop)

    def _begin_to_stop(self) -> None:
        if self._service.stopping.is_set():
            return
        log.info("stopping: not ready from now on")
        self._service.stopping.set()
        asyncio.get_running_loop().call_later(self._service.settings.drain_s, self._stop)

    def _stop(self) -> None:
        self.should_exit = True


def instance(
    service: Service, host: str, port: int, certificate: str | None = None, key: str | None = None
) -> Instance:
    """Return an instance that listens there, with TLS if there is a certificate."""
    settings = service.settings
    config = uvicorn.Config(
        service.asgi, host=host, port=port, http=guarded(settings.connections, service.metrics), ws="none",
        lifespan="on", log_config=None, access_log=False, proxy_headers=False, server_header=False,
        timeout_keep_alive=settings.connections.idle_timeout_s, timeout_graceful_shutdown=int(settings.end_s),
        h11_max_incomplete_event_size=settings.connections.head_bytes_max, ssl_certfile=certificate, ssl_keyfile=key,
    )
    return Instance(config, service)
