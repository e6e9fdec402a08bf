"""The framing of messages in a byte stream.

    frame := length 4 (big-endian) | that many bytes

The highest bits of the length mark a message in pieces: PIECE says that the frame is one, LAST that it is the last one.
Other messages may come between the pieces, so a heartbeat does not wait behind a job of several megabytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from sockpqd.cluster import limits

HEAD_BYTES = 4
PIECE = 1 << 31
LAST = 1 << 30

_LENGTH = struct.Struct(">I")


def whole(*parts: bytes) -> bytes:
    """Encode a message, given as consecutive parts, as one frame."""
    message = parts[0] if len(parts) == 1 else b"".join(parts)
    return _LENGTH.pack(len(message)) + message


def pieces(*parts: bytes) -> Iterator[bytes]:
    """Encode a message, given as consecutive parts, as several frames.

    Each is made on demand, so a piece needs little memory and is still in the CPU's cache when it is sent.
    """
    left = sum(map(len, parts))
    rest = iter(parts)
    part = memoryview(b"")
    while left:
        length = min(limits.PIECE_BYTES, left)
        left -= length
        frame: list[bytes | memoryview] = [_LENGTH.pack(length | PIECE | (0 if left else LAST))]
        while length:
            part = part or memoryview(next(rest))
            frame.append(part[:length])
            length -= len(frame[-1])
            part = part[len(frame[-1]):]
        yield b"".join(frame)


class Unframer:
    """Decodes frames: bytes in, messages out. `limit`: the size of the largest accepted message in bytes.

    Received bytes are copied once, into their message.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._received = b""                        # consumed up to _start; part of a frame's head may be left
        self._start = 0
        self._pieces = bytearray()                  # of the large message in progress
        self._frame: bytearray | None = None        # buffer of the present frame: _pieces, or one of its own
        self._left = 0                              # bytes of it still to come
        self._complete = False                      # the message ends with this frame

    def only(self, data: bytes) -> memoryview | None:
        """The message, if `data` is one whole frame and nothing is left from before; None: feed() it."""
        if self._frame is None and not self._pieces and self._start == len(self._received) and len(data) > HEAD_BYTES:
            (head,) = _LENGTH.unpack_from(data)
            if head == len(data) - HEAD_BYTES and head <= self.limit:
                return memoryview(data)[HEAD_BYTES:]
        return None

    def feed(self, data: bytes) -> None:
        if self._start < len(self._received):
            data = self._received[self._start:] + data
        self._received, self._start = data, 0

    @property
    def waiting_bytes(self) -> int:
        """The number of bytes of incomplete messages."""
        whole = 0 if self._frame is None or self._frame is self._pieces else len(self._frame)
        return len(self._received) - self._start + len(self._pieces) + whole

    def next(self) -> bytes | bytearray | None:
        """The next complete message, or None. Raises ValueError for an invalid length."""
        while self._frame is not None or self._begin():
            frame, start = self._frame, self._start
            assert frame is not None
            self._start = end = min(start + self._left, len(self._received))
            frame += memoryview(self._received)[start:end]
            self._left -= end - start
            if self._left:
                return None
            self._frame = None
            if self._complete:
                if frame is self._pieces:
                    self._pieces = bytearray()
                return frame
        return None

    def _begin(self) -> bool:
        """Read the head of the next frame; returns False if it has not arrived."""
        start = self._start
        if len(self._received) - start < HEAD_BYTES:
            return False
        (head,) = _LENGTH.unpack_from(self._received, start)
        flags, length = head & (PIECE | LAST), head & ~(PIECE | LAST)
        if length + (len(self._pieces) if flags else 0) > self.limit or flags == LAST:
            raise ValueError(f"a frame of {length} bytes (limit {self.limit})")
        self._start = start + HEAD_BYTES
        self._frame = self._pieces if flags else bytearray()
        self._left = length
        self._complete = flags != PIECE
        return True
