"""How messages are cut out of a byte stream.

    frame := length 4 (big-endian) | that many bytes

The highest bits of the length tell of a message in pieces: PIECE that the frame is one, LAST that it is the last one.
Other messages may stand between the pieces, so that a heartbeat does not wait behind a job of several megabytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from cluster import limits

HEAD_BYTES = 4
PIECE = 1 << 31
LAST = 1 << 30

_LENGTH = struct.Struct(">I")


def whole(*parts: bytes) -> bytes:
    """A message, given in parts that follow each other, as one frame."""
    message = parts[0] if len(parts) == 1 else b"".join(parts)
    return _LENGTH.pack(len(message)) + message


def pieces(*parts: bytes) -> Iterator[bytes]:
    """A message, given in parts that follow each other, as several frames.

    Each is made when it is asked for: so much memory as a piece takes is at hand, and still in the cache when the piece
    is sent.
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
    """Bytes in, messages out. `limit`: bytes of the largest message that is accepted.

    What is received is copied once, into the message that it belongs to.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._received = b""                        # looked at up to _start; a few bytes of a frame's head may be left
        self._start = 0
        self._pieces = bytearray()                  # of the large message that is under way
        self._frame: bytearray | None = None        # what the frame that has begun goes to: these, or one of its own
        self._left = 0                              # bytes of it that are still to come
        self._complete = False                      # is the message complete with it?

    def feed(self, data: bytes) -> None:
        """Add received bytes."""
        if self._start < len(self._received):
            data = self._received[self._start:] + data
        self._received, self._start = data, 0

    @property
    def waiting_bytes(self) -> int:
        """Bytes of messages that are not complete."""
        whole = 0 if self._frame is None or self._frame is self._pieces else len(self._frame)
        return len(self._received) - self._start + len(self._pieces) + whole

    def next(self) -> bytes | bytearray | None:
        """The next complete message, None while there is none; raises ValueError for an absurd length."""
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
        """Read the head of a frame; returns whether there was one."""
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
