"""One connection to or from a peer: it turns bytes into messages and leaves all decisions to the network."""

from __future__ import annotations

import asyncio
import socket
from typing import Protocol, cast

import msgspec

from sockpqd.cluster import limits
from sockpqd.cluster.wire.framing import Unframer, whole
from sockpqd.cluster.wire.messages import Hello, Message, decode, decode_hello
from sockpqd.cluster.wire.peer_link import PeerLink


class Events(Protocol):
    """The events of a connection, for the network that decides what follows."""

    def connected(self, connection: PeerConnection) -> None:
        """Called when the connection was established."""

    def disconnected(self, connection: PeerConnection) -> None:
        """Called when the connection has ended."""

    def writable(self, connection: PeerConnection) -> None:
        """Handle an emptied write buffer."""

    def greeted(self, connection: PeerConnection, hello: Hello) -> None:
        """Handle a Hello. Raises ValueError to refuse its sender."""

    def received(self, connection: PeerConnection, message: Message) -> None:
        """Handle a message that arrived after the greeting."""

    def receives_large(self, connection: PeerConnection) -> None:
        """Record that part of a large message arrived, which shows that its sender is alive."""

    def refuse(self, connection: PeerConnection, why: str) -> None:
        """Handle invalid bytes; `why`: the reason."""

    def now(self) -> float:
        ...


class PeerConnection(asyncio.Protocol):
    """A connection; `link` is set from the start if we dialled, and from the greeting on if the peer did."""

    def __init__(self, network: Events, link: PeerLink | None) -> None:
        self._network = network
        self._incoming = Unframer(limits.HELLO_BYTES_MAX)
        self.link = link
        self.dialed = link is not None
        self.greeting: Hello | None = None
        self.transport: asyncio.Transport | None = None     # as long as it is connected
        self.ended = False
        self.heard_at = 0.0

    @property
    def host(self) -> str | None:
        """The address of the other side; None if the connection is gone."""
        found = None if self.transport is None else self.transport.get_extra_info("peername")
        return None if found is None else str(found[0])

    # ---- Handshake (tls_handshakes.py): until it has greeted it has a place among those that have not

    waits_for_us = False

    def step(self) -> None:
        """Do nothing: a greeting is read when it comes."""

    def refuse(self, why: str) -> None:
        """Close the connection, with the reason in the log."""
        self._network.refuse(self, why)

    # ---- asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Record that the connection is established, with TLS if that is configured."""
        self.transport = cast(asyncio.Transport, transport)     # uvloop's are not registered as such
        if self.dialed:
            self.transport.set_write_buffer_limits(limits.LINK_WINDOW_BYTES)
            self.transport.get_extra_info("socket").setsockopt(
                socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, limits.KERNEL_UNSENT_BYTES,
            )
        self._network.connected(self)

    def resume_writing(self) -> None:
        """Report that the operating system accepts more bytes."""
        self._network.writable(self)

    def data_received(self, data: bytes) -> None:
        """Decode received bytes and report complete messages."""
        only = None
        if self.greeting is not None:
            self.heard_at = self._network.now()
            only = self._incoming.only(data)
        try:
            if only is not None:                # as nearly always
                self._network.received(self, decode(only))
                return
            self._incoming.feed(data)
            while self.transport is not None and (message := self._incoming.next()) is not None:
                if self.greeting is None:
                    self._network.greeted(self, decode_hello(message))
                    self._incoming.limit = limits.MESSAGE_BYTES_MAX
                else:
                    self._network.received(self, decode(message))
            if self._incoming.waiting_bytes > limits.LARGE_MESSAGE_BYTES:
                self._network.receives_large(self)
        except (ValueError, msgspec.MsgspecError) as error:
            self._network.refuse(self, str(error))

    def connection_lost(self, error: Exception | None) -> None:
        """Report that the connection ended, or that its TLS handshake failed."""
        self.transport = None
        self.ended = True
        self._network.disconnected(self)

    def send(self, message: bytes) -> None:
        """Write one message at once."""
        if self.transport is not None:
            self.transport.write(whole(message))

    def close(self) -> None:
        """Close the connection once everything is sent."""
        if self.transport is not None:
            self.transport.close()

    def unlink(self) -> None:
        """Detach the connection from its link."""
        self.link = None

    def abort(self) -> None:
        """Close the connection at once, dropping unsent bytes."""
        if self.transport is not None:
            self.transport.abort()
