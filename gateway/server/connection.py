"""The asyncio shell around a conversation: it forwards socket events and makes no decisions."""

from __future__ import annotations

import asyncio
import socket
import struct
from contextlib import suppress
from typing import cast

from cluster import RefusalLog
from gateway.config import is_loopback
from gateway.limits import (
    KEEPALIVE_IDLE_S,
    KEEPALIVE_INTERVAL_S,
    KEEPALIVE_PROBES,
    LINGER_S,
    OUTPUT_HIGH_WATER_BYTES,
    REFUSED_PLACES,
    SILENT_S,
    TRIAL_S,
)
from gateway.protocol.responses import BUSY
from gateway.server.conversation import Conversation
from gateway.server.hub import Hub
from gateway.server.places import Place
from gateway.server.port import Port
from gateway.server.timeouts import ClientTimeouts, Turn


class Connection(asyncio.Protocol):
    """One client's TCP connection, with or without TLS underneath."""

    _transport: asyncio.Transport
    _conversation: Conversation | None = None
    _patience: ClientTimeouts
    _socket: socket.socket
    _host: str | None = None    # the host its place is counted under
    _trial: asyncio.TimerHandle | None = None
    peer = ""
    secure = False              # cannot be eavesdropped on: TLS, or it does not leave this machine

    def __init__(self, hub: Hub, port: Port, complaints: RefusalLog) -> None:
        self.user = port.user
        self._hub = hub
        self._port = port
        self._complaints = complaints
        self._written_bytes = 0
        self._end_of_input = False
        self._lost = False
        self._finishing: asyncio.TimerHandle | None = None

    # ---- asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Accept a new client, or refuse it if its network or the connection limits do not allow it."""
        self._transport = cast(asyncio.Transport, transport)
        host, number = (transport.get_extra_info("peername") or ("", 0))[:2]    # empty: it is gone already
        if host and not self._port.admits(host):
            self._complaints.refused((host, number), f"it is in none of the networks of the port of {self.user}")
            self._transport.abort()
            return
        self._socket = transport.get_extra_info("socket")
        place = self._hub.places.take(host) if host else Place.NONE
        if place is Place.NONE:
            self._refuse()
            return
        self._host = host
        self._transport.set_write_buffer_limits(OUTPUT_HIGH_WATER_BYTES)
        keep_alive(self._socket)
        self.peer = f"{host}:{number}"
        self.secure = transport.get_extra_info("ssl_object") is not None or is_loopback(host)
        self._patience = ClientTimeouts(self._hub.limits, asyncio.get_running_loop().time())
        on_trial = place is Place.TRIAL
        self._conversation = Conversation(self._hub, self, on_trial=on_trial)
        if on_trial:
            self._trial = asyncio.get_running_loop().call_later(TRIAL_S, self._look_at_trial)
        self._hub.connections.add(self)
        self._hub.tally.connections += 1

    def data_received(self, data: bytes) -> None:
        """Feed received bytes to the conversation."""
        if self._conversation is not None:
            self._conversation.receive(data)

    def eof_received(self) -> bool:
        """Handle a half-close: the client sends no more but may still read."""
        self._end_of_input = True
        if self._finishing is not None:
            self._transport.close()
        elif self._conversation is not None:
            self._conversation.end()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Release everything that belongs to the lost connection."""
        self._lost = True
        self._hub.connections.discard(self)
        self._hub.refused.discard(self)
        if self._host is not None:
            if self._trial is not None:
                self.end_trial()
            self._hub.places.leave(self._host)
        if self._finishing is not None:
            self._finishing.cancel()
        if self._conversation is not None:
            self._conversation.lost()
            self._conversation = None

    def pause_writing(self) -> None:
        """Back-pressure: the client is not reading what is written to it."""
        if self._conversation is not None:
            self._conversation.output_full()

    def resume_writing(self) -> None:
        """The write buffer has drained; continue with answers."""
        if self._conversation is not None:
            self._conversation.output_taken()

    def _refuse(self) -> None:
        """Turn the client away with 503. Unless too many are being refused, linger so that the answer arrives."""
        self._hub.tally.refused_connections += 1
        self._transport.write(BUSY)
        if len(self._hub.refused) < REFUSED_PLACES:
            self._hub.refused.add(self)
            self.finish()
        else:
            self._transport.close()

    def _look_at_trial(self) -> None:
        """End the trial of a client that has not authenticated as an administrator, unless our answer is pending."""
        conversation = self._conversation
        if conversation is None or conversation.closed:
            return
        if conversation.turn()[0] is Turn.OURS:
            self._trial = asyncio.get_running_loop().call_later(TRIAL_S, self._look_at_trial)
        else:
            conversation.say_last(BUSY)

    def hang_up(self) -> None:
        """Close after the answers so far are sent, because this node is stopping."""
        if self._conversation is not None:
            self._conversation.finish()

    def look(self, now: float) -> None:
        """Enforce the timeouts: cut the client off if one has expired."""
        if self._conversation is not None:
            unsent = self._transport.get_write_buffer_size()
            why = self._patience.end(
                now, self._conversation.turn(), self._written_bytes - unsent, unsent,
                stranger=self._conversation.stranger,
            )
            if why is None and _is_silent(self._socket):
                why = "it does not acknowledge what was sent to it"
            if why is not None:
                self._conversation.cut(why)
                self._transport.abort()     # even if the conversation has ended and only its answers are left

    # ---- Link

    def write(self, data: bytes) -> None:
        """Send bytes."""
        self._written_bytes += len(data)
        self._transport.write(data)

    def unsent_bytes(self) -> int:
        """Return how many written bytes the kernel has not accepted yet."""
        return self._transport.get_write_buffer_size()

    def pause(self) -> None:
        """Stop reading."""
        self._transport.pause_reading()

    def resume(self) -> None:
        """Resume reading."""
        self._transport.resume_reading()

    def end_trial(self) -> None:
        """End the trial: the client has turned out to be an administrator, or is leaving."""
        if self._trial is not None and self._host is not None:
            self._trial.cancel()
            self._trial = None
            self._hub.places.end_trial(self._host)

    def finish(self) -> None:
        """Close after pending writes; input that still arrives is read and dropped for a moment."""
        if self._lost:
            return
        if self._end_of_input:
            self._transport.close()
        else:
            self._transport.resume_reading()
            with suppress(OSError):         # the client was faster, and the loop does not know yet
                self._transport.write_eof()
        self._finishing = asyncio.get_running_loop().call_later(LINGER_S, self._linger)

    def _linger(self) -> None:
        if not self._transport.get_write_buffer_size():
            self._transport.abort()
        else:
            self._finishing = asyncio.get_running_loop().call_later(LINGER_S, self._linger)

    def abort(self) -> None:
        """Close immediately, dropping unsent output."""
        self._transport.abort()


def keep_alive(connection: socket.socket) -> None:
    """Let TCP find out when the client's host has vanished."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEPALIVE_IDLE_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, KEEPALIVE_PROBES)


def _is_silent(connection: socket.socket) -> bool:
    """Return whether the client's TCP stack has left data unacknowledged for too long.

    A client that merely does not read still acknowledges.
    """
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO.size)
    probes, unacknowledged, last_acknowledged_ms = _TCP_INFO.unpack(info)
    return bool(probes or unacknowledged) and last_acknowledged_ms > SILENT_S * 1000


_TCP_INFO = struct.Struct("=3xB20xI28xI")       # linux/tcp.h: tcpi_probes, tcpi_unacked, tcpi_last_ack_recv
