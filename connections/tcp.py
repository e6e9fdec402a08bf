"""Socket options of a connection, and the state that the kernel reports for it."""

from __future__ import annotations

import socket
import struct
from contextlib import suppress

from sockpqd.connections.limits import (
    DISTANT_SEND_BUFFER_BYTES,
    KEEPALIVE_IDLE_S,
    KEEPALIVE_INTERVAL_S,
    KEEPALIVE_PROBES,
    KERNEL_BYTES_MIN,
    SEND_BUFFER_BYTES,
    SILENT_S,
)

_SO_MEMINFO = 55                                # asm-generic/socket.h
_SO_BUF_LOCK = 72                               # since Linux 5.14: 0 lets the sizes of the buffers grow by themselves
_MEMINFO = struct.Struct("=9I")                 # linux/sock_diag.h
_NO_LINGER = struct.pack("=ii", 1, 0)          # l_onoff, l_linger
_READ_BYTES, _WRITTEN_BYTES = 0, 5              # rmem_alloc, wmem_queued
_TCP_INFO = struct.Struct("=3xB20xI28xI")       # linux/tcp.h: tcpi_probes, tcpi_unacked, tcpi_last_ack_recv


def set_up(connection: socket.socket) -> None:
    """Let TCP detect when the client's host has vanished, and limit the memory that the kernel holds for the client."""
    with suppress(OSError):                     # it is gone already
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEPALIVE_IDLE_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, KEEPALIVE_PROBES)


def expect_distance(connection: socket.socket) -> None:
    """Let the kernel's send buffer grow to what a long line carries in a round trip, beyond the limit of set_up()."""
    with suppress(OSError):                     # it is gone already
        try:
            connection.setsockopt(socket.SOL_SOCKET, _SO_BUF_LOCK, 0)
        except OSError:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, DISTANT_SEND_BUFFER_BYTES)


def drop_when_closed(connection: socket.socket) -> None:
    """Let the kernel drop what it has not sent when the connection is closed; otherwise it keeps that for minutes."""
    with suppress(OSError):                     # it is gone already
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)


def is_silent(connection: socket.socket) -> bool:
    """Return whether the client's TCP stack has left data unacknowledged for too long.

    A client that merely does not read still acknowledges.
    """
    try:
        info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO.size)
    except (OSError, ValueError):               # it was closed a moment ago
        return False
    probes, unacknowledged, last_acknowledged_ms = _TCP_INFO.unpack(info)
    return bool(probes or unacknowledged) and last_acknowledged_ms > SILENT_S * 1000


def kernel_bytes(connection: socket.socket) -> int:
    """Return the kernel memory of a connection, for both directions; 0 if it is as little as an idle one needs."""
    try:
        info = _MEMINFO.unpack(connection.getsockopt(socket.SOL_SOCKET, _SO_MEMINFO, _MEMINFO.size))
    except (OSError, ValueError, struct.error):     # closed a moment ago, or a kernel that does not tell
        return 0
    held = int(info[_READ_BYTES] + info[_WRITTEN_BYTES])
    return held if held >= KERNEL_BYTES_MIN else 0
