"""Running an instance, and its end: not ready first, then no new connections, then the requests in progress."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from contextlib import suppress
from types import FrameType
from typing import Any, cast

import uvicorn

from sockpq_http.server.accepting import open_sockets
from sockpq_http.server.app import Service
from sockpq_http.server.certificate import Certificate
from sockpq_http.server.connection import GuardedConnection
from sockpq_http.server.listener import Listener
from sockpq_http.server.places import Places

log = logging.getLogger("sockpq-http")

BACKLOG = 1024          # connections that the kernel keeps until they are accepted
TICKS_PER_S = 10        # of uvicorn's server
FORCED_S = 10.0         # for the end of the application after a second signal
CANNOT_BEGIN = 3        # the status of a program that cannot begin, as uvicorn has it


class CannotListen(Exception):
    """This address cannot be used for listening; the text says why."""

    def __init__(self, host: str, port: int, error: OSError) -> None:
        why = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
        super().__init__(f"cannot listen on {host}:{port}: {why}; --listen names another address")


class Instance(uvicorn.Server):
    """uvicorn's server, which goes on for a while after a signal, so that balancers notice that it is not ready."""

    def __init__(self, config: uvicorn.Config, service: Service, certificate: Certificate | None) -> None:
        super().__init__(config)
        self._service = service
        self._certificate = certificate
        limits = service.settings.connections
        self._places = Places(limits.connections_max, limits.per_address_max)
        service.metrics.of_connections(lambda: len(self._places))
        self._loop: asyncio.AbstractEventLoop | None = None
        self._signalled = False         # to stop, perhaps a moment ago

    @property
    def port(self) -> int:
        """The port on which it listens."""
        port: int = self.servers[0].sockets[0].getsockname()[1]
        return port

    async def startup(self, sockets: Any = None) -> None:
        """Begin to listen. Raises CannotListen."""
        self._loop = asyncio.get_running_loop()
        await self.lifespan.startup()
        if self.lifespan.should_exit:
            raise SystemExit(CANNOT_BEGIN)
        try:
            opened = await open_sockets(self.config.host, self.config.port, BACKLOG)
        except OSError as error:
            await self.lifespan.shutdown()
            raise CannotListen(self.config.host, self.config.port, error) from error
        tls = self._certificate.context if self._certificate is not None else None
        listener = Listener(
            opened, self._places, self._service.metrics, self._connection, tls,
            self._service.settings.connections.handshake_timeout_s,
        )
        self.servers = [cast(asyncio.base_events.Server, listener)]         # that are closed by uvicorn
        self.started = True
        log.info("listening on %s:%d", self.config.host, self.port)

    async def on_tick(self, counter: int) -> bool:
        """Check once a second whether the certificate has changed."""
        if self._certificate is not None and counter % TICKS_PER_S == 0:
            self._certificate.refresh()
        return await super().on_tick(counter)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to stop; a second signal ends it at once."""
        if self._signalled:
            self.should_exit = self.force_exit = True
        elif self._loop is not None:
            self._signalled = True
            self._loop.call_soon_threadsafe(self._begin_to_stop)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop as uvicorn does; after a second signal stop the application too, which would end with a traceback."""
        await super().shutdown(sockets)
        if self.force_exit:
            with suppress(TimeoutError):
                async with asyncio.timeout(FORCED_S):
                    await self.lifespan.shutdown()

    def _begin_to_stop(self) -> None:
        log.info("stopping: not ready from now on")
        self._service.stopping.set()
        asyncio.get_running_loop().call_later(self._service.settings.drain_s, self._stop)

    def _stop(self) -> None:
        self.should_exit = True

    def _connection(self, accepted: socket.socket, host: str) -> GuardedConnection:
        service = self._service
        return GuardedConnection(
            accepted, host, self._places, service.settings.connections, service.metrics, self.config,
            self.server_state, self.lifespan.state,
        )


def instance(
    service: Service, host: str, port: int, certificate: str | None = None, key: str | None = None
) -> Instance:
    """Return an instance that listens there, with TLS if there is a certificate. Raises CertificateError."""
    settings = service.settings
    tls = Certificate(certificate, key) if certificate is not None and key is not None else None
    config = uvicorn.Config(
        service.asgi, host=host, port=port, http="h11", ws="none",
        lifespan="on", log_config=None, access_log=False, proxy_headers=False, server_header=False,
        timeout_keep_alive=settings.connections.idle_timeout_s, timeout_graceful_shutdown=int(settings.end_s),
        h11_max_incomplete_event_size=settings.connections.head_bytes_max,
    )
    return Instance(config, service, tls)
