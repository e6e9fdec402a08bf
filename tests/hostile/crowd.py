"""Hostile connections, many at once: each sends what it is given, for ever if that is wanted, and reads or does not.

    async with Crowd(server, 60, repeated=b"PUT q 0 1\r\nx") as crowd:
        await asyncio.sleep(5)
    crowd.good          # answers 200 that came
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Self, cast

AT_ONCE = 100               # connections being made
CONNECT_S = 5.0
WRITE_BYTES = 256 * 1024    # kept here for a server that does not read
HEAD_BYTES = 200            # of the input of each connection, kept for diagnosis

GOOD = b"200 OK"

Bytes = Callable[[int], bytes]      # what the connection of this number sends


class Crowd:
    """This many connections to one server, from `async with` to its end."""

    def __init__(
        self, server: str, count: int, *, opening: bytes | Bytes = b"", repeated: bytes = b"", reads: bool = True,
        source: str | None = None, again_s: float | None = None, most_bytes: int | None = None,
    ) -> None:
        """`opening` is sent once, then `repeated` as fast as the server reads: without end, or so long as it is no more
        than `most_bytes` on a connection. `again_s`: the seconds after which a client that was cut off reconnects."""
        self._host, _, port = server.rpartition(":")
        self._port = int(port)
        self._count = count
        self._opening = opening if callable(opening) else lambda number: opening
        self._repeated = repeated
        self._reads = reads
        self._source = None if source is None else (source, 0)
        self._again_s = again_s
        self._most_bytes = most_bytes
        self._members: set[_Member] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._closing = False
        self.made = 0               # connections in all,
        self.refused = 0            # that could not be made,
        self.cut = 0                # that were ended by the server
        self.sent = 0               # bytes, some of which may not have left this process
        self.good = 0               # answers 200 that came,
        self.bytes = 0              # and bytes in all
        self.heads: list[bytes] = []    # how the answers to some connections that were cut began

    @property
    def standing(self) -> int:
        """The number of open connections."""
        return len(self._members)

    async def __aenter__(self) -> Self:
        await asyncio.gather(*(self._connect(number) for number in range(self._count)))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._closing = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for member in list(self._members):
            member.abort()
        while self._members:
            await asyncio.sleep(0)

    async def _connect(self, number: int) -> None:
        async with self._slots:
            try:
                async with asyncio.timeout(CONNECT_S):
                    await asyncio.get_running_loop().create_connection(
                        lambda: _Member(self, number), self._host, self._port, local_addr=self._source)
            except OSError:
                self.refused += 1
                self._come_back(number)

    def _come_back(self, number: int) -> None:
        if self._again_s is not None and not self._closing:
            task = asyncio.get_running_loop().create_task(self._later(number, self._again_s))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _later(self, number: int, seconds: float) -> None:
        await asyncio.sleep(seconds)
        await self._connect(number)


class _Member(asyncio.Protocol):
    """One connection of a crowd."""

    def __init__(self, crowd: Crowd, number: int) -> None:
        self._crowd = crowd
        self._number = number
        self._writes = True
        self._written = 0
        self._head = b""
        self._transport: asyncio.Transport | None = None

    def abort(self) -> None:
        """Close the connection without sending what is left."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        crowd = self._crowd
        self._transport = cast(asyncio.Transport, transport)
        crowd.made += 1
        crowd._members.add(self)
        if crowd._closing:
            self._transport.abort()
            return
        self._transport.set_write_buffer_limits(WRITE_BYTES)
        if not crowd._reads:        # some releases of asyncio begin to read after this call, paused or not
            asyncio.get_running_loop().call_soon(self._transport.pause_reading)
        if opening := crowd._opening(self._number):
            crowd.sent += len(opening)
            self._transport.write(opening)
        self._more()

    def connection_lost(self, error: Exception | None) -> None:
        crowd = self._crowd
        crowd._members.discard(self)
        self._transport = None
        if not crowd._closing:
            crowd.cut += 1
            if len(crowd.heads) < 1000:
                crowd.heads.append(self._head)
            crowd._come_back(self._number)

    def data_received(self, data: bytes) -> None:
        self._crowd.good += data.count(GOOD)        # one that comes in two pieces is not worth the trouble
        self._crowd.bytes += len(data)
        if len(self._head) < HEAD_BYTES:
            self._head = (self._head + data)[:HEAD_BYTES]

    def pause_writing(self) -> None:
        self._writes = False

    def resume_writing(self) -> None:
        self._writes = True
        self._more()

    def _more(self) -> None:
        """Write until the server's and the kernel's buffers are full, giving way to the others now and then."""
        repeated, most = self._crowd._repeated, self._crowd._most_bytes
        if not repeated or not self._writes or self._transport is None or self._crowd._closing:
            return
        self._written += len(repeated)
        if most is not None and self._written > most:
            return
        self._crowd.sent += len(repeated)
        self._transport.write(repeated)
        if self._writes:
            asyncio.get_running_loop().call_soon(self._more)
