"""Faults of a fake server: what it can do instead of answering."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable
from enum import Enum


class Fault(Enum):
    """The treatment of the next command of a verb instead of an answer."""

    CLOSE = "close without executing it"
    EXECUTE_AND_CLOSE = "execute it, then close without an answer"
    HALF_ANSWER = "execute it, send half of the answer, then close"
    HALF_AND_STALL = "execute it, send half of the answer, keep the connection open"
    FORGET = "execute it, end all sessions, close without an answer"
    STALL = "neither execute nor answer it, keep the connection open"
    EXECUTE_AND_STALL = "execute it, do not answer"
    RUBBISH = "answer something that is not the protocol"
    ENDLESS = "answer without ever ending the line"
    TWICE = "answer it, and once more"
    REFUSE = "500 Offline Mode"
    BUSY = "503 Busy"
    TOO_LARGE = "413 Data Too Large"
    TRICKLE = "announce a body and send one byte of it each 20 ms"


WITHOUT_EXECUTING = (
    Fault.CLOSE,
    Fault.STALL,
    Fault.RUBBISH,
    Fault.ENDLESS,
    Fault.REFUSE,
    Fault.BUSY,
    Fault.TOO_LARGE,
    Fault.TRICKLE,
)


def misbehave(connection: socket.socket, fault: Fault, answer: bytes, stopped: Callable[[], bool]) -> bool:
    """Apply the fault; `stopped` is set when the server has ended. Returns whether the connection stays open."""
    if fault in (Fault.STALL, Fault.EXECUTE_AND_STALL):
        _stall(connection, stopped)
    elif fault is Fault.TRICKLE:
        connection.sendall(b"200 OK q 1 0 100000\r\n")
        while not stopped():
            connection.sendall(b"x")
            time.sleep(0.02)
    elif fault in (Fault.HALF_ANSWER, Fault.HALF_AND_STALL):
        connection.sendall(answer[: len(answer) // 2])
        if fault is Fault.HALF_AND_STALL:
            _stall(connection, stopped)
    elif fault is Fault.TWICE:
        connection.sendall(answer * 2)
        _stall(connection, stopped)
    elif fault is Fault.RUBBISH:
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    elif fault is Fault.ENDLESS:
        connection.sendall(b"2" * 100_000)
        _stall(connection, stopped)
    elif fault in (Fault.REFUSE, Fault.BUSY, Fault.TOO_LARGE):
        connection.sendall(f"{fault.value}\r\n".encode())
        return True
    return False


def _stall(connection: socket.socket, stopped: Callable[[], bool]) -> None:
    while not stopped() and not hung_up(connection):
        time.sleep(0.01)


def hung_up(connection: socket.socket) -> bool:
    """Return whether the client has closed or half-closed; until then it sends nothing."""
    try:
        if isinstance(connection, ssl.SSLSocket):       # it cannot peek
            return _ended(connection)
        return connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except (BlockingIOError, ssl.SSLWantReadError):
        return False
    except OSError:
        return True


def _ended(connection: ssl.SSLSocket) -> bool:
    connection.setblocking(False)
    try:
        return connection.recv(1) == b""
    finally:
        connection.setblocking(True)
