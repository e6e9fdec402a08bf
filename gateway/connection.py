"""The asyncio shell of a conversation: it passes on what happens and decides nothing."""

from __future__ import annotations

import asyncio
import socket
from typing import cast

from gateway.answers import BUSY
from gateway.config import is_loopback
from gateway.conversation import Conversation
from gateway.hub import Hub
from gateway.limits import (
    KEEPALIVE_IDLE_S,
    KEEPALIVE_INTERVAL_S,
    KEEPALIVE_PROBES,
    LINGER_CUT_S,
    LINGER_S,
    OUTPUT_HIGH_WATER_BYTES,
)


class Connection(asyncio.Protocol):
    """One client's TCP connection."""

    _transport: asyncio.Transport
    _conversation: Conversation | None = None
    peer = ""
    secure = False
    user: str | None = None

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._end_of_input = False
        self._lost = False
        self._finishing: asyncio.TimerHandle | None = None

    # ---- asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client came."""
        self._transport = cast(asyncio.Transport, transport)
        if len(self._hub.connections) >= self._hub.limits.connections_max:
            self._hub.tally.refused_connections += 1
            self._transport.write(BUSY)
            self._transport.close()
            return
        self._transport.set_write_buffer_limits(OUTPUT_HIGH_WATER_BYTES)
        _keep_alive(transport.get_extra_info("socket"))
        address = transport.get_extra_info("peername")
        self.peer = f"{address[0]}:{address[1]}" if address else "?"
        self.secure = bool(address) and is_loopback(address[0])
        self._conversation = Conversation(self._hub, self)
        self._hub.connections.add(self)
        self._hub.tally.connections += 1

    def data_received(self, data: bytes) -> None:
        """The client sent bytes."""
        if self._conversation is not None:
            self._conversation.receive(data)

    def eof_received(self) -> bool:
        """The client sends no more; it may still read."""
        self._end_of_input = True
        if self._finishing is not None:
            self._transport.close()
        elif self._conversation is not None:
            self._conversation.end()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        self._lost = True
        self._hub.connections.discard(self)
        if self._finishing is not None:
            self._finishing.cancel()
        if self._conversation is not None:
            self._conversation.lost()
            self._conversation = None

    def pause_writing(self) -> None:
        """The client does not take what is written."""
        if self._conversation is not None:
            self._conversation.output_full()

    def resume_writing(self) -> None:
        """It did."""
        if self._conversation is not None:
            self._conversation.output_taken()

    def hang_up(self) -> None:
        """This node stops: close behind what is answered."""
        if self._conversation is not None:
            self._conversation.finish()

    # ---- Link

    def write(self, data: bytes) -> None:
        """Send bytes."""
        self._transport.write(data)

    def unsent_bytes(self) -> int:
        """Bytes written that the kernel has not taken yet."""
        return self._transport.get_write_buffer_size()

    def pause(self) -> None:
        """Stop reading."""
        self._transport.pause_reading()

    def resume(self) -> None:
        """Read on."""
        self._transport.resume_reading()

    def finish(self) -> None:
        """Close behind what is written; what the client still sends is read for a moment (DECISIONS 12)."""
        if self._lost:
            return
        if self._end_of_input:
            self._transport.close()
        else:
            self._transport.resume_reading()
            self._transport.write_eof()
        self._finishing = asyncio.get_running_loop().call_later(LINGER_S, self._linger, LINGER_CUT_S)

    def _linger(self, left_s: float) -> None:
        if left_s <= 0 or not self._transport.get_write_buffer_size():
            self._transport.abort()
        else:
            self._finishing = asyncio.get_running_loop().call_later(LINGER_S, self._linger, left_s - LINGER_S)

    def abort(self) -> None:
        """Close at once."""
        self._transport.abort()


def _keep_alive(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEPALIVE_IDLE_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, KEEPALIVE_PROBES)
