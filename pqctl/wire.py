"""One command, one line of answer: for what the client library has no method for."""

from __future__ import annotations

import socket
import time

from sockpq import ProtocolError, SockpqError, Unavailable

LINE_BYTES_MAX = 65_536


def ask_line(server: str, line: str, timeout: float) -> str:
    """The first line of the answer to `line`, on a connection of its own; `server` is "host:port".

    Raises Unavailable and ProtocolError. `timeout` in seconds, for the whole.
    """
    host, _, port = server.rpartition(":")
    until = time.monotonic() + timeout
    received = b""
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout) as connection:
            connection.sendall(f"{line}\r\n".encode())
            while b"\n" not in received and len(received) < LINE_BYTES_MAX:
                connection.settimeout(max(until - time.monotonic(), 0.001))
                chunk = connection.recv(4096)
                if not chunk:
                    raise Unavailable(f"{server}: closed without an answer")
                received += chunk
    except TimeoutError as error:
        raise Unavailable(f"{server}: no answer within {timeout:g} s") from error
    except OSError as error:
        raise Unavailable(f"{server}: {error}") from error
    answer, end, _ = received.partition(b"\r\n")
    if not end or not answer.isascii():
        raise ProtocolError(f"{server}: not the protocol: {received[:50]!r}")
    return answer.decode("ascii")


def cluster_hash(server: str, timeout: float) -> tuple[int, str]:
    """CLUSTER HASH: a position in the log and what stands for everything executed up to it. Raises SockpqError."""
    answer = ask_line(server, "CLUSTER HASH", timeout)
    match answer.split(" "):
        case ["200", "OK", applied, value] if applied.isdigit():
            return int(applied), value
        case ["200", *_]:
            raise ProtocolError(f"{server}: not the protocol: {answer!r}")
    raise SockpqError(f"{server}: {answer}")
