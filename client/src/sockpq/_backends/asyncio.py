"""The network for asyncio: every call suspends its task until it is done. Implements base.py."""

from __future__ import annotations

import asyncio
import math
import os
import socket
import weakref
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import Any, Generic, TypeVar

from sockpq._backends.access import Access
from sockpq._backends.asyncio_stream import TransportStream
from sockpq._backends.base import KEEPALIVE, Stream, cause_of, is_numeric, share_s
from sockpq._backends.time_limit import TimeLimit
from sockpq._process import check_own, is_inherited
from sockpq._protocol.addresses import Address
from sockpq.errors import BadArguments, SockpqError

T = TypeVar("T")

CONNECTING_MAX = 64     # connections a client opens at once: more would overflow a server's queue and wait for a second


async def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Await a coroutine of the engine; its errors are raised without the frames in between."""
    try:
        return await coroutine
    except SockpqError as error:
        raise error.with_traceback(None) from cause_of(error)


def at_once(coroutine: Coroutine[Any, Any, T], instead: str) -> T:
    """Refuse a property that would have to wait: raises BadArguments, whose message names `instead`."""
    coroutine.close()
    raise BadArguments(f"asyncio: {instead}")


class LoopNetwork:
    """The network access of one asyncio client, in the event loop of its first call."""

    def __init__(self, access: Access) -> None:
        """`access`: TLS and login of every connection."""
        self.access = access
        self._closed = asyncio.Event()
        self._connecting = asyncio.Semaphore(CONNECTING_MAX)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._process = 0                                   # which has made the first call
        self._streams: set[TransportStream] = set()
        self._leaving: set[asyncio.Task[None]] = set()      # the ends of loops that were abandoned

    @property
    def closed(self) -> bool:
        return self._closed.is_set()

    def close(self) -> None:
        """Wake all sleeping calls; later calls to `sleep` return at once."""
        self._closed.set()

    def enter(self) -> None:
        """Bind to the running loop; raises RuntimeError when the first call ran in another one, or Inherited."""
        if self._inherited:
            check_own(self._process, "this asyncio client")
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop, self._process = loop, os.getpid()
        elif self._loop is not loop:
            raise RuntimeError("this client was used in another event loop: make one for each")

    @property
    def _inherited(self) -> bool:
        return self._loop is not None and is_inherited(self._process)

    now = staticmethod(monotonic)       # itself: a call asks for the time a dozen times

    async def sleep(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with TimeLimit(seconds):
                await self._closed.wait()

    async def connect(self, address: Address, timeout: float) -> Stream:
        """Open a connection within `timeout` seconds, not counting the wait for its turn."""
        async with self._connecting, TimeLimit(timeout):
            until = monotonic() + timeout
            stream = await self._connect(address, timeout)
            context = self.access.tls
            if context is None:
                return stream

            from sockpq._backends.tls import secured  # programs without TLS do not wait for it

            return await secured(stream, context, self.access, address, until, self.now)

    async def _connect(self, address: Address, timeout: float) -> TransportStream:
        loop = asyncio.get_running_loop()
        found: list[tuple[str, int]] = [address]
        if not is_numeric(address.host):
            told = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
            found = [(str(numeric[0]), int(numeric[1])) for *_, numeric in told]
        share = share_s(timeout, len(found))
        for number, (host, port) in enumerate(found, start=1):
            try:
                async with TimeLimit(share):
                    transport, stream = await loop.create_connection(TransportStream, host, port)
                break
            except OSError:
                if number == len(found):
                    raise
        connected = transport.get_extra_info("socket")
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in KEEPALIVE:
            if hasattr(socket, option):
                connected.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
        self._streams.add(stream)
        stream.ended.add_done_callback(lambda _: self._streams.discard(stream))
        return stream

    def when_abandoned(
        self, loop: object, leave: Callable[[BaseException], Coroutine[Any, Any, None]]
    ) -> None:
        """Clean up after an abandoned `async for`: asyncio ends its generator some time later.

        settle() waits for it, so that close() is not faster.
        """
        weakref.finalize(loop, self._leave, leave).atexit = False

    def _leave(self, leave: Callable[[BaseException], Coroutine[Any, Any, None]]) -> None:
        with suppress(RuntimeError):        # no loop runs here: the garbage collector of another thread has found it
            running = asyncio.get_running_loop()
            task = running.create_task(leave(GeneratorExit()))
            self._leaving.add(task)
            task.add_done_callback(self._leaving.discard)

    async def settle(self, timeout: float) -> None:
        """Wait up to `timeout` seconds for abandoned loops to be cleaned up."""
        if self._leaving and not self._inherited:
            await asyncio.wait(self._leaving, timeout=timeout)

    async def drain(self, timeout: float) -> None:
        """Wait until all closed connections have sent their last bytes; abort those that are not ready in time."""
        if self._inherited:         # the parent's loop reports their ends
            return
        if self._streams:
            await asyncio.wait([stream.ended for stream in self._streams], timeout=timeout)
        left = [stream for stream in self._streams if not stream.ended.done()]
        for stream in left:
            stream.abort()
        if left:
            await asyncio.wait([stream.ended for stream in left], timeout=timeout)

    def lock(self) -> LoopLock:
        return LoopLock()

    def race(self, coroutines: Sequence[Coroutine[Any, Any, T]]) -> LoopRace[T]:
        """Start these coroutines, each as a task."""
        return LoopRace(coroutines)


class LoopLock:
    """A lock between tasks of one loop."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    async def acquire(self, timeout: float) -> bool:
        """Acquire the lock; returns whether it was free in time."""
        if not self._lock.locked():
            return await self._lock.acquire()
        try:
            async with TimeLimit(None if timeout == math.inf else max(timeout, 0)):
                return await self._lock.acquire()
        except TimeoutError:
            return False

    def release(self) -> None:
        """Release the lock; the next waiting task gets it."""
        self._lock.release()


class LoopRace(Generic[T]):
    """Coroutines that run in separate tasks."""

    def __init__(self, coroutines: Sequence[Coroutine[Any, Any, T]]) -> None:
        self._ended: asyncio.Queue[tuple[int, T]] = asyncio.Queue()
        self._tasks = [asyncio.create_task(coroutine) for coroutine in coroutines]
        for position, task in enumerate(self._tasks):
            task.add_done_callback(partial(self._end, position))

    def _end(self, position: int, task: asyncio.Task[T]) -> None:
        if not task.cancelled():
            self._ended.put_nowait((position, task.result()))

    async def next(self, timeout: float) -> tuple[int, T] | None:
        """Return the next one that ends."""
        try:
            async with TimeLimit(max(timeout, 0.001)):
                return await self._ended.get()
        except TimeoutError:
            return None

    def stop(self) -> None:
        """Cancel what has not ended."""
        for task in self._tasks:
            task.cancel()
