"""One connection over an asyncio transport: bytes in, bytes out, with a time limit on every wait."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import cast

from sockpq._process import note_connection
from sockpq._protocol.addresses import Address

READ_BYTES = 65_536         # at once; for asyncio's 262,144 malloc asks the system for memory each time, 12 us of CPU
PAUSE_BYTES = 1_048_576     # received bytes kept for a task that is not receiving; above this, reading pauses


class TransportStream(asyncio.Protocol):
    """A stream on an asyncio transport, for one task at a time, except `abort`."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._received: list[bytes] = []
        self._received_bytes = 0
        self._at_end = False                            # nothing more will come
        self._error: Exception | None = None            # why
        self._finished = False                          # nothing more can be sent
        self._paused = False                            # the transport does not read
        self._full = False                              # the transport has bytes that the system does not take
        self._waiter: asyncio.Future[None] | None = None
        self._wait_until = 0.0                          # of the waiter, on the loop's clock
        self._timer: asyncio.TimerHandle | None = None  # one for many waits: most are over long before
        self.ended: asyncio.Future[None] = self._loop.create_future()

    # called by the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)    # uvloop's is one without inheriting from it
        note_connection(self)
        self._transport.set_write_buffer_limits(high=0)       # so that pause_writing tells of the first byte not sent
        if hasattr(transport, "max_size"):                      # uvloop's has a buffer of its own
            transport.max_size = READ_BYTES

    def data_received(self, data: bytes) -> None:
        self._received.append(data)
        self._received_bytes += len(data)
        if self._received_bytes > PAUSE_BYTES and not self._paused:
            self._paused = True
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> bool:
        """Record the end of input; the other side no longer reads either, so the transport may close."""
        self._at_end = True
        self._wake()
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self._at_end = True
        self._error = error
        if self._timer:
            self._timer.cancel()
            self._timer = None
        if not self.ended.done():
            self.ended.set_result(None)
        self._wake()

    def pause_writing(self) -> None:
        """Stop writing until the system takes bytes again."""
        self._full = True

    def resume_writing(self) -> None:
        """Wake the writer: the transport has taken all bytes."""
        self._full = False
        self._wake()

    # called by the library

    def fileno(self) -> int:
        """See Connected. A closing connection is left out: its descriptor may belong to another file by now."""
        if self._transport.is_closing():
            return -1
        return cast(int, self._transport.get_extra_info("socket").fileno())

    async def send(self, buffers: Sequence[bytes], timeout: float) -> int:
        """Send all bytes; returns how many were handed over, or all but one if the number is unknown."""
        size = sum(map(len, buffers))
        if self._at_end or self._finished:
            return 0
        self._transport.write(buffers[0] if len(buffers) == 1 else b"".join(buffers))
        if self._transport.is_closing():        # the system refused it, and the transport has dropped it
            return size - 1
        left = self._left()
        while self._full and not self._at_end:
            try:
                await self._wait(timeout)
            except TimeoutError:
                if self._left() == left:
                    break
            left = self._left()
        if not self._full:
            return size
        self._transport.abort()     # close() would send the rest some time later, and a command would be executed
        return size - 1

    async def receive(self, timeout: float) -> bytes:
        if not self._received and not self._at_end:
            await self._wait(timeout)
        data = self.arrived()
        if data is None:
            raise TimeoutError
        return data

    def arrived(self) -> bytes | None:
        """Return the bytes received so far."""
        if self._received:
            data = self._received[0] if len(self._received) == 1 else b"".join(self._received)
            self._received.clear()
            self._received_bytes = 0
            if self._paused:
                self._paused = False
                self._transport.resume_reading()
            return data
        if not self._at_end:
            return None
        if self._error:
            raise OSError(*self._error.args) from self._error
        return b""

    def quiet(self) -> bool:
        return not self._received and not self._at_end

    def peer(self) -> Address:
        """Return the numeric address of the other side."""
        name = self._transport.get_extra_info("peername")
        if name is None:
            raise OSError("the server closed the connection")
        return Address(*name[:2])

    def expires_at(self) -> None:
        ...

    def finish(self, farewell: bytes = b"") -> None:
        if not self._at_end and not self._finished and self._transport.can_write_eof():
            self._finished = True
            with suppress(OSError):         # the other side was faster
                if farewell:
                    self._transport.write(farewell)
                self._transport.write_eof()

    def withdraw(self) -> None:
        self.finish()

    def abort(self) -> None:
        """Wake the task that uses the stream."""
        self._transport.abort()

    def close(self, farewell: bytes = b"") -> None:
        if farewell and not self._at_end:
            self._transport.write(farewell)
        self._transport.close()

    # inside

    def _left(self) -> int:
        return self._transport.get_write_buffer_size()

    def _wake(self) -> None:
        if self._waiter and not self._waiter.done():
            self._waiter.set_result(None)

    async def _wait(self, timeout: float) -> None:
        """Wait until the transport calls; raises TimeoutError."""
        self._waiter = self._loop.create_future()
        self._wait_until = self._loop.time() + timeout
        if self._timer is None or self._timer.when() > self._wait_until:
            self._set_timer()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _set_timer(self) -> None:
        if self._timer:
            self._timer.cancel()
        self._timer = self._loop.call_at(self._wait_until, self._ring)

    def _ring(self) -> None:
        """End the wait if its time is up; otherwise reset the timer, which was set for an earlier wait."""
        self._timer = None
        if self._waiter is None or self._waiter.done():
            return
        if self._loop.time() >= self._wait_until:
            self._waiter.set_exception(TimeoutError())
        else:
            self._set_timer()
