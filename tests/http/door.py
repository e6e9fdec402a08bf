"""An instance of sockpq-http in a thread of this process, for tests."""

from __future__ import annotations

import asyncio
import threading
from types import TracebackType

import httpx
import uvicorn
from sockpq_http.server.app import Service
from sockpq_http.server.running import instance
from sockpq_http.server.settings import Settings

from tests.waiting import PATIENCE_S, until

PATIENT = httpx.Timeout(PATIENCE_S)


class Door:
    """Serves at `url` until the end of the block."""

    def __init__(
        self, servers: str, certificate: str | None = None, key: str | None = None, **settings: object
    ) -> None:
        """`certificate` and `key`: the files for TLS; `settings`: as of Settings."""
        self._tls = (certificate, key)
        self.settings = Settings(**{"servers": servers, "drain_s": 0.0, **settings})    # type: ignore[arg-type]
        self.url = ""
        self.port = 0
        self._thread = threading.Thread(target=self._run, name="door")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._service: Service | None = None
        self._instance: uvicorn.Server | None = None
        self._failure: BaseException | None = None

    @property
    def service(self) -> Service:
        """The service behind the door, once it has started."""
        assert self._service
        return self._service

    def client(self, **options: object) -> httpx.Client:
        """Return an HTTP client of it that does not lose patience on a busy machine."""
        return httpx.Client(base_url=self.url, timeout=PATIENT, trust_env=False, **options)     # type: ignore[arg-type]

    def begin_to_stop(self) -> None:
        """Do what a signal does."""
        assert self._loop
        assert self._instance
        self._loop.call_soon_threadsafe(self._instance._begin_to_stop)      # type: ignore[attr-defined]

    def ended(self) -> bool:
        """Return whether it has ended."""
        return not self._thread.is_alive()

    def __enter__(self) -> Door:
        self._thread.start()
        until(lambda: self._failure or (self._instance is not None and self._instance.started), "it starts")
        assert self._failure is None, self._failure
        assert self._instance
        self.port = self._instance.port         # type: ignore[attr-defined]
        self.url = f"http{'s' if self._tls[0] else ''}://127.0.0.1:{self.port}"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not self.ended():
            self.begin_to_stop()
        self._thread.join(PATIENCE_S)
        assert self.ended(), "it does not end"

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as failure:
            self._failure = failure

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._service = Service(self.settings)
        self._instance = instance(self._service, "127.0.0.1", 0, *self._tls)
        await self._instance.serve()
