"""The door as a whole: it opens, watches over its connections and files, and ends without losing an answer."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable
from contextlib import suppress

from aiohttp import web
from sockpq.aio import Client

from sockpq_sqs.auth import Gate
from sockpq_sqs.door.accepting import open_sockets
from sockpq_sqs.door.certificate import Certificate, CertificateError
from sockpq_sqs.door.connection import Connection
from sockpq_sqs.door.connections import Connections
from sockpq_sqs.door.figures import Figures
from sockpq_sqs.door.handler import Handle, Handler
from sockpq_sqs.door.limits import BACKLOG, SWEEP_S
from sockpq_sqs.door.listener import Listener
from sockpq_sqs.door.pages import Pages
from sockpq_sqs.door.refusals_log import RefusalsLog
from sockpq_sqs.door.urls import Urls
from sockpq_sqs.settings import Settings, SettingsError, address

log = logging.getLogger("sockpq-sqs")

QUICK_S = 3.0                   # for which requests in progress may end by themselves; long polls take longer
CANCELLED_S = 5.0               # for which those that were cancelled may give back what they had taken


class Door:
    """The HTTP server. `client` is asked whether the cluster answers, `refresh` is called once a second."""

    def __init__(
        self, settings: Settings, gate: Gate, handle: Handle, client: Client,
        refresh: Callable[[], None] = lambda: None,
    ) -> None:
        """Raises SettingsError for an invalid certificate."""
        self.figures = Figures()
        self.port = 0                           # that is listened on
        self._settings = settings
        self._gate = gate
        self._handle = handle
        self._pages = Pages(client, self.figures, settings.http.metrics_from)
        self._connections = Connections(settings.limits, self.figures)
        self._refusals = RefusalsLog()
        self._refresh = refresh
        self._certificate = _certificate(settings)

    @staticmethod
    def check(settings: Settings) -> None:
        """Read the files that the settings name; raises SettingsError."""
        _certificate(settings)

    async def open(self) -> None:
        """Begin to listen. Raises OSError."""
        http = self._settings.http
        host, port = address(http.listen)
        try:
            sockets = await open_sockets(host, port, BACKLOG, reuse_port=http.reuse_port)
        except OSError as error:
            why = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
            raise OSError(f"cannot listen on {http.listen}: {why}; http.listen or --listen names another address"
                          ) from error
        self.port = int(sockets[0].getsockname()[1])
        urls = Urls(http, f"{http.listen.rpartition(':')[0] or 'localhost'}:{self.port}")
        self._handler = Handler(
            self._handle, self._gate, urls, self._connections, self._pages, self.figures, self._refusals,
            check_hosts=self._settings.users.file is None and not http.insecure)
        self._server = web.Server(self._handler.answer, handler_cancellation=True)
        tls = self._certificate.context if self._certificate is not None else None
        self._listener = Listener(sockets, self._connections, self._connection, tls)
        self._sweeping = asyncio.get_running_loop().create_task(self._sweep())
        log.info("listening on %s:%d", host or "all addresses", self.port)

    async def close(self) -> None:
        """Stop listening; let requests in progress end, cancel those that last, and close all connections.

        A request that is cancelled is answered 503, so that its SDK repeats it at another front end.
        """
        self._pages.ending = self._handler.ending = True
        self._listener.close()
        self._sweeping.cancel()
        with suppress(asyncio.CancelledError):
            await self._sweeping
        await self._listener.wait_closed()
        self._connections.close_idle()
        if working := self._connections.working():
            _, lasting = await asyncio.wait(working, timeout=QUICK_S)
            for task in lasting:
                task.cancel()
            if lasting:
                await asyncio.wait(lasting, timeout=CANCELLED_S)
        await self._server.shutdown(CANCELLED_S)

    def _connection(self, accepted: socket.socket, address: str | None) -> Connection:
        return Connection(self._server, self._connections, accepted, address)

    async def _sweep(self) -> None:
        """Check connections and files once a second."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(SWEEP_S)
            try:
                await self._connections.check()
                self._refusals.write(loop.time())
                if self._certificate is not None:
                    self._certificate.refresh()
                self._refresh()
            except Exception:
                log.exception("the connections could not be checked; they are checked again in a second")


def _certificate(settings: Settings) -> Certificate | None:
    """Return the certificate that the settings name; raises SettingsError."""
    tls = settings.tls
    if tls.cert is None or tls.key is None:
        return None
    try:
        return Certificate(tls.cert, tls.key)
    except CertificateError as error:
        raise SettingsError(f"tls.cert, tls.key: {error}") from None
