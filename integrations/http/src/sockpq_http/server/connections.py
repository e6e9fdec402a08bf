"""Connections with the limits of docs/SECURITY.md: places, slow clients, hosts that have vanished."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from ipaddress import IPv6Address, ip_address
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from sockpq_http.problems.problem import MEDIA_TYPE, Problem
from sockpq_http.server.metrics import Metrics
from sockpq_http.server.settings import ConnectionLimits

GONE_S = 30             # after which a host that does not answer counts as gone
SEND_BYTES = 131_072    # what the kernel holds for a client


def guarded(limits: ConnectionLimits, metrics: Metrics) -> type[H11Protocol]:
    """Return the protocol of connections with these limits, as uvicorn makes connections of a class."""

    class Guarded(GuardedConnection):
        pass

    Guarded.limits = limits
    Guarded.metrics = metrics
    Guarded.by_address = {}
    return Guarded


class GuardedConnection(H11Protocol):
    """A connection that is cut when its client is too slow, or has more than its share."""

    limits: ConnectionLimits
    metrics: Metrics
    by_address: dict[str, int]

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._address = ""
        self._reading: asyncio.TimerHandle | None = None
        self._reads_body = False
        self._writing: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a connection if there is a place for it."""
        super().connection_made(transport)
        host = self.client[0] if self.client else ""
        self._address = "" if _is_local(host) else share_of(host)
        self.by_address[self._address] = self.by_address.get(self._address, 0) + 1
        self.metrics.connections.set(len(self.connections))
        crowded = self._address and self.by_address[self._address] > self.limits.per_address_max
        if crowded or len(self.connections) > self.limits.connections_max:
            self._cut("places")
            return
        _prepare(transport.get_extra_info("socket"))
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Give its place back."""
        super().connection_lost(exc)
        left = self.by_address.get(self._address, 1) - 1
        if left > 0:
            self.by_address[self._address] = left
        else:
            self.by_address.pop(self._address, None)
        self.metrics.connections.set(len(self.connections))
        for timer in (self._reading, self._writing, self.timeout_keep_alive_task):
            if timer is not None:
                timer.cancel()

    def data_received(self, data: bytes) -> None:
        """Handle bytes; a request that has begun must be whole in time."""
        if self._reading is None and self.conn.their_state is h11.IDLE:
            self._await_head()
        super().data_received(data)
        self._note_state()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no request, in the form of all problems, and end the connection."""
        self.metrics.cut.labels("malformed").inc()
        with suppress(h11.LocalProtocolError):          # an answer is on its way already
            body = Problem(400, msg, "no-request").answer().body
            head = h11.Response(status_code=400, reason=b"Bad Request", headers=[
                (b"content-type", MEDIA_TYPE.encode()), (b"content-length", b"%d" % len(body)),
                (b"connection", b"close"),
            ])
            for event in (head, h11.Data(data=bytes(body)), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def on_response_complete(self) -> None:
        """Go on with the next request; what is left of the answer must be read in time."""
        super().on_response_complete()
        self._note_state()
        if self.transport.get_write_buffer_size():
            self._await_reader()

    def pause_writing(self) -> None:
        """Stop sending, as the client does not read; that may not last."""
        super().pause_writing()
        self._await_reader()

    def resume_writing(self) -> None:
        """Go on sending."""
        super().resume_writing()
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None

    def _note_state(self) -> None:
        """Watch the body after the head; nothing after that."""
        if self.conn.their_state is h11.SEND_BODY:
            if not self._reads_body:
                self._reads_body = True
                self._watch(self.limits.body_timeout_s, "body")
        elif self.conn.their_state is not h11.IDLE:
            self._stop_watching()

    def _await_head(self) -> None:
        self._watch(self.limits.head_timeout_s, "head")

    def _watch(self, seconds: float, limit: str) -> None:
        if self._reading is not None:
            self._reading.cancel()
        self._reading = self.loop.call_later(seconds, self._cut, limit)

    def _stop_watching(self) -> None:
        self._reads_body = False
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def _await_reader(self) -> None:
        if self._writing is None:
            self._writing = self.loop.call_later(self.limits.answer_timeout_s, self._cut_if_unread)

    def _cut_if_unread(self) -> None:
        self._writing = None
        if self.transport.get_write_buffer_size():
            self._cut("answer")

    def _cut(self, limit: str) -> None:
        self.metrics.cut.labels(limit).inc()
        self.transport.abort()


def share_of(host: str) -> str:
    """Return what shares places: an address, of IPv6 the /64 network."""
    with suppress(ValueError):
        address = ip_address(host.partition("%")[0])
        if isinstance(address, IPv6Address):
            if address.ipv4_mapped:
                return str(address.ipv4_mapped)
            return str(IPv6Address(int(address) >> 64 << 64))
    return host


def _is_local(host: str) -> bool:
    with suppress(ValueError):
        return ip_address(host.partition("%")[0]).is_loopback
    return not host


def _prepare(sock: socket.socket | None) -> None:
    """Let the kernel hold little, and notice a host that has vanished."""
    if sock is None:
        return
    with suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BYTES)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, GONE_S // 3)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, GONE_S // 6)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 4)
