"""The interface of this library to the outside world: connections, time, waiting, several things at once.

Every decision (what to send where, how long to wait, when to retry) is a coroutine over this interface, written once
for both clients. sync.py implements it with calls that block and never suspend, so that `run` there takes a coroutine
to its end in one go; asyncio.py implements it with asyncio.
"""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any, Generic, Protocol, TypeVar

from sockpq._backends.access import Access
from sockpq._protocol.addresses import Address
from sockpq.errors import BatchFailed, ForeignCluster, SockpqError

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

SHARE_S_MIN = 0.2

KEEPALIVE = (                   # a host that vanished while this client was blocked is noticed after 25 s
    ("TCP_KEEPIDLE", 10),
    ("TCP_KEEPINTVL", 5),
    ("TCP_KEEPCNT", 3),
)


def cause_of(error: SockpqError) -> BaseException | None:
    """Return the cause to show with an error: for a batch the refusal of a job, and ForeignCluster; otherwise None.

    All other errors explain their causes in their messages.
    """
    cause = error.__cause__ if isinstance(error, BatchFailed) or isinstance(error.__cause__, ForeignCluster) else None
    return cause.with_traceback(None) if cause else None


def is_numeric(host: str) -> bool:
    """Return whether this is an IP address and not a name, which may stand for several."""
    return ":" in host or host.replace(".", "").isdigit()


def share_s(timeout: float, addresses: int) -> float:
    """Return the time limit for each address of a name, so that a silent one does not use up all of it."""
    return max(timeout / addresses, min(timeout, SHARE_S_MIN))


class Stream(Protocol):
    """An open connection. For one thread or task at a time, except `abort` and `withdraw`."""

    async def send(self, buffers: Sequence[bytes], timeout: float) -> int:
        """Send all bytes; returns how many were handed over, fewer than all when the connection broke.

        `timeout`: seconds without progress; bytes that are not handed over by then never will be.
        """
        ...

    async def receive(self, timeout: float) -> bytes:
        """Return the next bytes, at least one, b"" at the end. Raises TimeoutError after `timeout` seconds, OSError."""
        ...

    def arrived(self) -> bytes | None:
        """Return the bytes received so far, without waiting; None if there are none, b"" at the end."""
        ...

    def quiet(self) -> bool:
        """Return whether the stream is open and holds no unexpected bytes."""
        ...

    def peer(self) -> Address:
        """Return the numeric address of the other side."""
        ...

    def expires_at(self) -> int | None:
        """Return the end of the other side's certificate in Unix time; None without one."""
        ...

    def finish(self, farewell: bytes = b"") -> None:
        """Signal that nothing more will be sent after these bytes, and keep receiving."""
        ...

    def withdraw(self) -> None:
        """Half-close the connection, so that the other side answers and closes; callable from any thread."""
        ...

    def abort(self) -> None:
        """Wake the thread or task that uses this stream with an error; callable from any thread."""
        ...

    def close(self, farewell: bytes = b"") -> None:
        """Close it, after these bytes if they can be sent without waiting."""
        ...


class Lock(Protocol):
    """A lock that may be held while waiting for the network."""

    async def acquire(self, timeout: float) -> bool:
        """Acquire the lock; returns whether it was free within `timeout` seconds."""
        ...

    def release(self) -> None:
        """Release the lock; the next waiting call gets it."""
        ...


class Race(Protocol, Generic[T_co]):
    """Coroutines that run at the same time."""

    async def next(self, timeout: float) -> tuple[int, T_co] | None:
        """Return the position and the result of the next one that ends.

        None when none does within `timeout` seconds.
        """
        ...

    def stop(self) -> None:
        """Abandon everything that has not ended."""
        ...


class Network(Protocol):
    """The network access of one client."""

    @property
    def closed(self) -> bool:
        """True if `close` has been called."""
        ...

    def close(self) -> None:
        """Wake all sleeping calls; later calls to `sleep` return at once."""
        ...

    def enter(self) -> None:
        """Begin a call; raises RuntimeError where this network cannot be used."""
        ...

    def now(self) -> float:
        """Return the seconds on a monotonic clock."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait for some seconds, or until `close`."""
        ...

    @property
    def access(self) -> Access:
        """TLS and login of every connection."""
        ...

    async def connect(self, address: Address, timeout: float) -> Stream:
        """Open a connection, over TLS if `access` says so, within `timeout` seconds.

        Raises Untrusted, OSError (TimeoutError is one), ValueError for a name that DNS, or a certificate, cannot spell.
        """
        ...

    def lock(self) -> Lock:
        """Create a lock between concurrent calls."""
        ...

    def race(self, coroutines: Sequence[Coroutine[Any, Any, T]]) -> Race[T]:
        """Start these coroutines, which must not raise."""
        ...
