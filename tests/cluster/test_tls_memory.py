"""TLS keeps little for a connection: a MemoryBIO never gives back the most that was in it at once.

The memory account of clients counts what was written and not sent, not what OpenSSL keeps for later.
"""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from pathlib import Path

import pytest

from devcluster.authority import Authority
from sockpqd.cluster.wire.tls import TlsTransport
from sockpqd.cluster.wire.tls_handshakes import Handshakes
from tests.cluster.test_tls_records import App, Below

LARGE = bytes(range(256)) * 8192            # 2 MiB
KEPT_BYTES_MAX = 20 << 10                   # a record, with its header and what authenticates it


class Watched:
    """A MemoryBIO that notes the most that was in it."""

    def __init__(self, memory: ssl.MemoryBIO) -> None:
        self._memory = memory
        self.most = 0

    @property
    def pending(self) -> int:
        return self._memory.pending

    def read(self, size: int = -1) -> bytes:
        self.most = max(self.most, self._memory.pending)
        return self._memory.read(size)

    def write(self, data: bytes) -> int:
        written = self._memory.write(data)
        self.most = max(self.most, self._memory.pending)
        return written


class Client:
    """The other side, in memory."""

    def __init__(self, ca: Path) -> None:
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._ssl = ssl.create_default_context(cafile=ca).wrap_bio(self._in, self._out, server_hostname="n1")

    def handshake(self, data: bytes) -> bytes:
        """Go on with what the server has sent; returns what it gets."""
        self._in.write(data)
        with suppress(ssl.SSLWantReadError):
            self._ssl.do_handshake()
        return self._out.read()

    def write(self, data: bytes) -> bytes:
        sent = 0
        while sent < len(data):
            sent += self._ssl.write(memoryview(data)[sent:])
        return self._out.read()

    def read(self, data: bytes) -> bytes:
        self._in.write(data)
        pieces = []
        with suppress(ssl.SSLWantReadError):
            while piece := self._ssl.read(1 << 20):
                pieces.append(piece)
        return b"".join(pieces)


@pytest.mark.parametrize("chunk", [len(LARGE) * 2, 256 << 10, 5000])
def test_openssl_holds_a_record_at_a_time_however_large_the_data_are(tmp_path: Path, chunk: int) -> None:
    """`chunk`: the number of bytes received at once."""
    async def run() -> None:
        authority = Authority(tmp_path)
        files = authority.node("n1")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(files["cert"], files["key"])
        app, below, client = App(), Below(), Client(authority.ca)
        tls = TlsTransport(context, app, Handshakes(10, 10, lambda peer, why: None), server_side=True)
        tls.connection_made(below)
        data = client.handshake(b"")
        while data:
            tls.data_received(data)
            await asyncio.sleep(0)
            data = client.handshake(below.take())
        received, to_send = Watched(tls._received), Watched(tls._to_send)
        tls._received, tls._to_send = received, to_send     # type: ignore[assignment]
        tls.write(LARGE)
        assert client.read(below.take()) == LARGE
        encrypted = client.write(LARGE)
        for start in range(0, len(encrypted), chunk):
            tls.data_received(encrypted[start:start + chunk])
        assert app.received == LARGE
        assert 0 < to_send.most < KEPT_BYTES_MAX
        assert 0 < received.most < KEPT_BYTES_MAX
        tls.connection_lost(None)
    asyncio.run(run())
