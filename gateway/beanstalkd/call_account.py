"""Charges forwarded calls to the memory account: the memory held here for clients of other nodes."""

from __future__ import annotations

from collections.abc import Callable

from sockpqd.beanstalk import NAMES_PER_COMMAND, CallFailure
from sockpqd.cluster.api import RunningCall
from sockpqd.connections import MemoryAccount
from sockpqd.core import Request, Taking
from sockpqd.gateway.beanstalkd.execution import queues_of
from sockpqd.gateway.beanstalkd.remote import Remote, RemoteRequest, encode
from sockpqd.gateway.limits import KIB, WAITER_QUEUE_BYTES

COUNTED_BYTES_MIN = 2 * KIB     # a smaller call costs no more than a waiting command of a native client
_NONE = encode(None)
_GONE = encode(CallFailure.GONE)


class CountedCall:
    """A forwarded call that is being executed (RunningCall), as a holder of memory in the account.

    Eviction ends a waiting call, and the connection of the client at the other node. A call whose operation is proposed
    is left alone, as it ends in a moment.
    """

    def __init__(self, account: MemoryAccount, held_bytes: int, on_outcome: Callable[[bytes | None], None]) -> None:
        self._account = account
        self._on_outcome: Callable[[bytes | None], None] | None = on_outcome
        self._doing: RunningCall | None = None
        self._evicted = False
        account.hold(self, held_bytes)

    def done_by(self, doing: RunningCall) -> CountedCall:
        """Set the object that executes the call; returns itself."""
        self._doing = doing
        if self._evicted:
            doing.cancel()
        return self

    def tell(self, data: bytes | None) -> None:
        """Report the outcome once, and release the call's memory.

        `data`: the outcome encoded, None if it is unknown.
        """
        on_outcome, self._on_outcome = self._on_outcome, None
        if on_outcome is not None:
            self._account.hold(self, 0)
            on_outcome(_GONE if self._evicted and data == _NONE else data)

    def cancel(self) -> None:
        if self._doing is not None:
            self._doing.cancel()

    def evict(self) -> None:
        self._evicted = True
        self.cancel()


def weight_of(remote: Remote, data: bytes) -> tuple[int, int]:
    """Return the memory taken by a forwarded call of this size, 0 for a small one, and its cost in commands."""
    if len(data) < COUNTED_BYTES_MIN:
        return 0, 1
    names = 0
    if isinstance(remote, RemoteRequest) and isinstance(remote.operation, Request):
        get = remote.operation.operation
        if isinstance(get, Taking):
            names = len(queues_of(get))
    return 2 * len(data) + WAITER_QUEUE_BYTES * names, 1 + names // NAMES_PER_COMMAND
