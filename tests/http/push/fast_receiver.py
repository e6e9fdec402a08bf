"""A receiver for campaigns that costs little: `python -m tests.http.push.fast_receiver [SECONDS]`.

It answers after so many seconds, or at once. It prints its port. A body is a number; at SIGTERM it prints how many
requests came, and how many different numbers.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from typing import cast

import uvloop

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


class Receiver(asyncio.Protocol):
    """One connection to the receiver."""

    def __init__(self, seen: dict[bytes, int], delay_s: float) -> None:
        self._seen = seen
        self._delay_s = delay_s
        self._buffer = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Count whole requests, and answer each."""
        assert self._transport
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            at = self._buffer.lower().index(b"content-length: ") + 16
            length = int(self._buffer[at : self._buffer.index(b"\r\n", at)])
            if len(self._buffer) < end + 4 + length:
                return
            body = self._buffer[end + 4 : end + 4 + length]
            self._buffer = self._buffer[end + 4 + length :]
            self._seen[body] = self._seen.get(body, 0) + 1
            if self._delay_s:
                asyncio.get_running_loop().call_later(self._delay_s, self._transport.write, OK)
            else:
                self._transport.write(OK)


async def main(delay_s: float) -> None:
    """Answer requests after `delay_s` seconds until SIGTERM, then print what was seen."""
    seen: dict[bytes, int] = {}
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Receiver(seen, delay_s), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    ended = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    await ended.wait()
    print(sum(seen.values()), len(seen), flush=True)
    server.close()


if __name__ == "__main__":
    uvloop.run(main(float(sys.argv[1]) if len(sys.argv) > 1 else 0.0))
