"""How messages are cut out of a byte stream.

    frame := length 4 (big-endian) | that many bytes

The highest bits of the length tell of a message in pieces: PIECE that the frame is one, LAST that it is the last one.
Other messages may stand between the pieces, so that a heartbeat does not wait behind a job of several megabytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

PIECE_BYTES = 128 << 10         # larger messages travel in pieces
HEAD_BYTES = 4
PIECE = 1 << 31
LAST = 1 << 30

_LENGTH = struct.Struct(">I")


def whole(message: bytes) -> bytes:
    """A message as one frame."""
    return _LENGTH.pack(len(message)) + message


def pieces(message: bytes) -> Iterator[bytes]:
    """A message as several frames."""
    for start in range(0, len(message), PIECE_BYTES):
        piece = message[start:start + PIECE_BYTES]
        last = LAST if start + PIECE_BYTES >= len(message) else 0
        yield _LENGTH.pack(len(piece) | PIECE | last) + piece


class Unframer:
    """Bytes in, messages out. `limit`: bytes of the largest message that is accepted."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._buffer = bytearray()
        self._pieces = bytearray()

    def feed(self, data: bytes) -> None:
        """Add received bytes."""
        self._buffer += data

    @property
    def waiting_bytes(self) -> int:
        """Bytes of messages that are not complete."""
        return len(self._buffer) + len(self._pieces)

    def next(self) -> bytes | None:
        """The next complete message, None while there is none; raises ValueError for an absurd length."""
        while (framed := self._frame()) is not None:
            flags, data = framed
            if not flags:
                return data
            self._pieces += data
            if flags & LAST:
                message = bytes(self._pieces)
                self._pieces.clear()
                return message
        return None

    def _frame(self) -> tuple[int, bytes] | None:
        if len(self._buffer) < 4:
            return None
        (head,) = _LENGTH.unpack_from(self._buffer)
        flags, length = head & (PIECE | LAST), head & ~(PIECE | LAST)
        if length + (len(self._pieces) if flags else 0) > self.limit or flags == LAST:
            raise ValueError(f"a frame of {length} bytes (limit {self.limit})")
        if len(self._buffer) < 4 + length:
            return None
        data = bytes(memoryview(self._buffer)[4:4 + length])
        del self._buffer[:4 + length]
        return flags, data
