"""The network for programs with threads: every call blocks until it is done. Implements base.py."""

from __future__ import annotations

import socket
import threading
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any, Generic, TypeVar

from sockpq._backends.access import Access
from sockpq._backends.base import KEEPALIVE, Stream, cause_of, is_numeric, share_s
from sockpq._process import note_connection
from sockpq._protocol.addresses import Address
from sockpq.errors import SockpqError

T = TypeVar("T")

READ_BYTES = 65_536             # below malloc's mmap threshold: a larger read costs page faults each time
POLL_S_MAX = 2_000_000          # 23 days: poll() counts milliseconds in 31 bits
JOIN_BYTES_MAX = 65_536         # larger bodies are sent apart from their line instead of being copied


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end. It waits only for functions of this file, which block instead of suspending."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        value: T = end.value
        return value
    except SockpqError as error:        # the frames in between mean nothing to the caller
        raise error.with_traceback(None) from cause_of(error)
    raise AssertionError("a coroutine over the blocking network was suspended")


def at_once(coroutine: Coroutine[Any, Any, T], instead: str) -> T:
    """Wait for the value of a property; `instead`: the alternative in asyncio, where a property cannot wait."""
    return run(coroutine)


class ThreadNetwork:
    """The network access of one blocking client."""

    def __init__(self, access: Access) -> None:
        """`access`: TLS and login of every connection."""
        self.access = access
        self._closed = threading.Event()

    @property
    def closed(self) -> bool:
        return self._closed.is_set()

    def close(self) -> None:
        """Wake all sleeping calls; later calls to `sleep` return at once."""
        self._closed.set()

    def enter(self) -> None:
        """Do nothing: every thread may use it."""

    now = staticmethod(monotonic)       # itself: a call asks for the time a dozen times

    async def sleep(self, seconds: float) -> None:
        self._closed.wait(seconds)

    async def connect(self, address: Address, timeout: float) -> Stream:
        """Open a connection within `timeout` seconds to any of the addresses that a name stands for."""
        timeout = min(timeout, POLL_S_MAX)
        until = monotonic() + timeout
        found: list[tuple[str, int]] = [address]
        if not is_numeric(address.host):
            told = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
            found = [(str(numeric[0]), int(numeric[1])) for *_, numeric in told]
        share = share_s(timeout, len(found))
        for number, one in enumerate(found, start=1):
            try:
                connected = socket.create_connection(one, share)
                break
            except OSError:
                if number == len(found) or monotonic() > until:
                    raise
        stream = SocketStream(connected, share)
        context = self.access.tls
        if context is None:
            return stream

        from sockpq._backends.tls import secured  # programs without TLS do not wait for it

        return await secured(stream, context, self.access, address, until, self.now)

    def when_abandoned(self, loop: object, leave: object) -> None:
        """Do nothing: a generator ends when it is no longer referenced."""

    async def settle(self, timeout: float) -> None:
        ...

    async def drain(self, timeout: float) -> None:
        """Do nothing: closed sockets send their last bytes by themselves."""

    def lock(self) -> ThreadLock:
        return ThreadLock()

    def race(self, coroutines: Sequence[Coroutine[Any, Any, T]]) -> ThreadRace[T]:
        """Start these coroutines, each in a thread of its own."""
        return ThreadRace(coroutines)


class SocketStream:
    """A connection over a socket that blocks."""

    def __init__(self, connected: socket.socket, timeout: float) -> None:
        self._socket = connected
        self._timeout = timeout
        note_connection(self)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in KEEPALIVE:
            if hasattr(socket, option):
                connected.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)

    def fileno(self) -> int:
        return self._socket.fileno()

    async def send(self, buffers: Sequence[bytes], timeout: float) -> int:
        """Send all bytes; returns how many were handed over."""
        if len(buffers) > 1 and sum(map(len, buffers)) <= JOIN_BYTES_MAX:
            buffers = [b"".join(buffers)]
        sent = 0
        if self._timeout:               # 0 after `quiet`: most commands fit into the kernel's buffer, without waiting
            self._limit(timeout)
        try:
            for buffer in buffers:
                count = 0
                while count < len(buffer):
                    try:
                        more = self._socket.send(memoryview(buffer)[count:] if count else buffer)
                    except BlockingIOError:
                        self._limit(timeout)
                        continue
                    count += more
                    sent += more
        except OSError:
            return sent                 # which shows what was not handed over
        return sent

    async def receive(self, timeout: float) -> bytes:
        self._limit(timeout)
        return self._socket.recv(READ_BYTES)

    def arrived(self) -> bytes | None:
        """Return the bytes received so far."""
        self._limit(0)
        try:
            return self._socket.recv(READ_BYTES)
        except BlockingIOError:
            return None

    def quiet(self) -> bool:
        self._limit(0)
        try:
            self._socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def peer(self) -> Address:
        """Return the numeric address of the other side."""
        try:
            host, port = self._socket.getpeername()[:2]
        except OSError as error:                    # ENOTCONN
            raise OSError("the server closed the connection") from error
        return Address(host, port)

    def expires_at(self) -> None:
        ...

    def finish(self, farewell: bytes = b"") -> None:
        with suppress(OSError):
            if farewell:
                self._limit(0)
                self._socket.send(farewell)
            self._socket.shutdown(socket.SHUT_WR)

    def withdraw(self) -> None:
        """Send no more; the thread that uses the stream is not notified."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    def abort(self) -> None:
        """Wake the thread that uses the stream."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self, farewell: bytes = b"") -> None:
        if farewell:
            with suppress(OSError):
                self._limit(0)
                self._socket.send(farewell)
        self._socket.close()

    def _limit(self, timeout: float) -> None:
        if timeout != self._timeout:        # each change is a system call
            self._timeout = timeout
            self._socket.settimeout(min(timeout, POLL_S_MAX))


class ThreadLock:
    """A lock between threads of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    async def acquire(self, timeout: float) -> bool:
        """Acquire the lock; returns whether it was free in time."""
        return self._lock.acquire(timeout=min(max(timeout, 0), threading.TIMEOUT_MAX))

    def release(self) -> None:
        """Release the lock; one waiting thread gets it."""
        self._lock.release()


class ThreadRace(Generic[T]):
    """Coroutines in separate threads. One that is no longer needed ends by its own time limit."""

    def __init__(self, coroutines: Sequence[Coroutine[Any, Any, T]]) -> None:
        self._ended: SimpleQueue[tuple[int, T]] = SimpleQueue()
        for position, coroutine in enumerate(coroutines):
            # a daemon: a name server that does not answer must not keep the program alive
            threading.Thread(target=self._run, args=(position, coroutine), name="sockpq asks", daemon=True).start()

    def _run(self, position: int, coroutine: Coroutine[Any, Any, T]) -> None:
        self._ended.put((position, run(coroutine)))

    async def next(self, timeout: float) -> tuple[int, T] | None:
        """Return the next one that ends."""
        try:
            return self._ended.get(timeout=min(max(timeout, 0.001), POLL_S_MAX))
        except Empty:
            return None

    def stop(self) -> None:
        ...
