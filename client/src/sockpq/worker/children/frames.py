"""Messages between a pool and its child processes: a length and a pickle. Both ends are the same program."""

from __future__ import annotations

import pickle
import socket
import struct
from collections.abc import Iterator
from typing import Any

_LENGTH = struct.Struct("!I")
READ_BYTES = 65_536         # more would be memory from the system for each read, and cost more than the read


def encode(message: Any) -> bytes:
    """Return the bytes of a message."""
    body = pickle.dumps(message, protocol=5)
    return _LENGTH.pack(len(body)) + body


class Decoder:
    """Assembles messages from received bytes."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, data: bytes) -> Iterator[Any]:
        """Yield the messages that are complete with these bytes."""
        self._bytes += data
        at = 0
        while len(self._bytes) - at >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._bytes, at)
            end = at + _LENGTH.size + length
            if len(self._bytes) < end:
                break
            yield pickle.loads(bytes(self._bytes[at + _LENGTH.size : end]))
            at = end
        del self._bytes[:at]


def messages(link: socket.socket) -> Iterator[Any]:
    """Yield the messages that arrive on a blocking socket, until its other end is closed."""
    decoder = Decoder()
    while data := link.recv(READ_BYTES):
        yield from decoder.feed(data)
