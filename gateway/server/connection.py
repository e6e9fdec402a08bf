"""The asyncio shell of a conversation: it passes on what happens and decides nothing."""

from __future__ import annotations

import asyncio
import socket
import struct
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
from gateway.server.timeouts import Patience, Turn


class Connection(asyncio.Protocol):
    """One client's TCP connection, with TLS below it or not."""

    _transport: asyncio.Transport
    _conversation: Conversation | None = None
    _patience: Patience
    _socket: socket.socket
    _host: str | None = None    # whose place it has
    _trial: asyncio.TimerHandle | None = None
    peer = ""
    secure = False              # nobody else can read it: TLS, or it does not leave this machine

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
        """A client came."""
        self._transport = cast(asyncio.Transport, transport)
        host, number = (transport.get_extra_info("peername") or ("", 0))[:2]    # nothing: it has gone already
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
        _keep_alive(self._socket)
        self.peer = f"{host}:{number}"
        self.secure = transport.get_extra_info("ssl_object") is not None or is_loopback(host)
        self._patience = Patience(self._hub.limits, asyncio.get_running_loop().time())
        on_trial = place is Place.TRIAL
        self._conversation = Conversation(self._hub, self, on_trial=on_trial)
        if on_trial:
            self._trial = asyncio.get_running_loop().call_later(TRIAL_S, self._look_at_trial)
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
        """The client does not take what is written."""
        if self._conversation is not None:
            self._conversation.output_full()

    def resume_writing(self) -> None:
        """It did."""
        if self._conversation is not None:
            self._conversation.output_taken()

    def _refuse(self) -> None:
        """There is no place for the client. If there are few of them it is made sure that they hear so."""
        self._hub.tally.refused_connections += 1
        self._transport.write(BUSY)
        if len(self._hub.refused) < REFUSED_PLACES:
            self._hub.refused.add(self)
            self.finish()
        else:
            self._transport.close()

    def _look_at_trial(self) -> None:
        """Who has a place only as an administrator has to say so soon; he may wait for our answer to it."""
        conversation = self._conversation
        if conversation is None or conversation.closed:
            return
        if conversation.turn()[0] is Turn.OURS:
            self._trial = asyncio.get_running_loop().call_later(TRIAL_S, self._look_at_trial)
        else:
            conversation.say_last(BUSY)

    def hang_up(self) -> None:
        """This node stops: close behind what is answered."""
        if self._conversation is not None:
            self._conversation.finish()

    def look(self, now: float) -> None:
        """Cut the client off if it takes longer than it may."""
        if self._conversation is not None:
            unsent = self._transport.get_write_buffer_size()
            why = self._patience.end(
                now, self._conversation.turn(), self._written_bytes - unsent, unsent,
                stranger=self._conversation.stranger,
            )
            if why is None and _is_silent(self._socket):
                why = "it does not acknowledge what was sent"
            if why is not None:
                self._conversation.cut(why)
                self._transport.abort()     # also when the conversation has ended, and only its answers are left

    # ---- Link

    def write(self, data: bytes) -> None:
        """Send bytes."""
        self._written_bytes += len(data)
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

    def end_trial(self) -> None:
        """The client keeps its place, or goes."""
        if self._trial is not None and self._host is not None:
            self._trial.cancel()
            self._trial = None
            self._hub.places.end_trial(self._host)

    def finish(self) -> None:
        """Close behind what is written; what the client still sends is read for a moment."""
        if self._lost:
            return
        if self._end_of_input:
            self._transport.close()
        else:
            self._transport.resume_reading()
            self._transport.write_eof()
        self._finishing = asyncio.get_running_loop().call_later(LINGER_S, self._linger)

    def _linger(self) -> None:
        if not self._transport.get_write_buffer_size():
            self._transport.abort()
        else:
            self._finishing = asyncio.get_running_loop().call_later(LINGER_S, self._linger)

    def abort(self) -> None:
        """Close at once."""
        self._transport.abort()


def _keep_alive(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEPALIVE_IDLE_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, KEEPALIVE_PROBES)


def _is_silent(connection: socket.socket) -> bool:
    """Has the client not acknowledged for too long what was sent to it? Whoever only does not read does acknowledge."""
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO.size)
    probes, unacknowledged, last_acknowledged_ms = _TCP_INFO.unpack(info)
    return bool(probes or unacknowledged) and last_acknowledged_ms > SILENT_S * 1000


_TCP_INFO = struct.Struct("=3xB20xI28xI")       # of linux/tcp.h: tcpi_probes, tcpi_unacked, tcpi_last_ack_recv
