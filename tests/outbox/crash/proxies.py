"""A process of TCP proxies before database and nodes; each chunk of bytes that passes is a point of the trap."""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import suppress

from tests.outbox.crash.trap import Trap

CHUNK_BYTES = 65_536
PARENT_S = 0.5


class Proxies:
    """Listens before targets, each "host:port", in a process that start() forks."""

    def __init__(self, trap: Trap) -> None:
        self._trap = trap
        self._listeners: dict[str, tuple[socket.socket, str]] = {}
        self._process = 0

    def before(self, target: str, kind: str) -> str:
        """Return the address of a proxy before this target; `kind`: its name in reports."""
        if target not in self._listeners:
            self._listeners[target] = socket.create_server(("127.0.0.1", 0)), kind
        return f"127.0.0.1:{self._listeners[target][0].getsockname()[1]}"

    def start(self) -> None:
        """Pass on, in a process of its own."""
        self._process = os.fork()
        if not self._process:
            with suppress(KeyboardInterrupt):
                asyncio.run(self._serve())
            os._exit(0)

    def stop(self) -> None:
        """Kill the process of the proxies, and stop listening."""
        if self._process:
            with suppress(ProcessLookupError):
                os.kill(self._process, 9)
            os.waitpid(self._process, 0)
            self._process = 0
        for listener, _ in self._listeners.values():
            listener.close()

    async def _serve(self) -> None:
        servers = [
            await asyncio.start_server(_Passing(self._trap, target, kind).connected, sock=listener)
            for target, (listener, kind) in self._listeners.items()
        ]
        parent = os.getppid()
        while os.getppid() == parent:       # otherwise that was killed
            await asyncio.sleep(PARENT_S)
        for server in servers:
            server.close()


class _Passing:
    def __init__(self, trap: Trap, target: str, kind: str) -> None:
        self._trap = trap
        self._target = target
        self._kind = kind

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, _, port = self._target.rpartition(":")
        try:
            there, back = await asyncio.open_connection(host, int(port))
        except OSError:
            writer.transport.abort()
            return
        passing = {
            asyncio.ensure_future(self._pass(reader, back, f"> {self._kind}")),
            asyncio.ensure_future(self._pass(there, writer, f"< {self._kind}")),
        }
        _, left = await asyncio.wait(passing, return_when=asyncio.FIRST_COMPLETED)
        for task in left:
            task.cancel()
        for one in (writer, back):
            one.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, kind: str) -> None:
        with suppress(OSError, asyncio.CancelledError):
            while chunk := await reader.read(CHUNK_BYTES):
                if not self._trap.before(kind):
                    return
                writer.write(chunk)
                await writer.drain()
                self._trap.after(kind)


