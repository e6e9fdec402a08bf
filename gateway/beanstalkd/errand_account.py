"""The share of an errand in the memory account: what another node's client has it hold here."""

from __future__ import annotations

from collections.abc import Callable

from sockpqd.beanstalk import Failure, calls
from sockpqd.cluster.api import RunningCall
from sockpqd.gateway.beanstalkd.orders import Order, encode
from sockpqd.gateway.limits import KIB, WAITER_QUEUE_BYTES
from sockpqd.visits import Account

COUNTED_BYTES_MIN = 2 * KIB     # a smaller errand costs no more than a waiting command of a native client
_NONE = encode(None)
_GONE = encode(Failure.GONE)


class CountedErrand:
    """An errand that is being done (RunningCall), as a holder of the account.

    When it is evicted, what waits ends, and so does the connection of the client at the other node. What is proposed
    has its outcome in a moment.
    """

    def __init__(self, account: Account, held_bytes: int, told: Callable[[bytes | None], None]) -> None:
        self._account = account
        self._told: Callable[[bytes | None], None] | None = told
        self._doing: RunningCall | None = None
        self._evicted = False
        account.hold(self, held_bytes)

    def done_by(self, doing: RunningCall) -> CountedErrand:
        """Say what does it; returns itself."""
        self._doing = doing
        if self._evicted:
            doing.cancel()
        return self

    def tell(self, data: bytes | None) -> None:
        """It has its outcome."""
        told, self._told = self._told, None
        if told is not None:
            self._account.hold(self, 0)
            told(_GONE if self._evicted and data == _NONE else data)

    def cancel(self) -> None:
        """See RunningCall."""
        if self._doing is not None:
            self._doing.cancel()

    def evict(self) -> None:
        """See Holder."""
        self._evicted = True
        self.cancel()


def held_by(order: Order, data: bytes) -> int:
    """Return what an order of so many bytes takes in memory; 0 for a small one."""
    if len(data) < COUNTED_BYTES_MIN:
        return 0
    call = order.call
    return 2 * len(data) + (WAITER_QUEUE_BYTES * len(call.tubes) if isinstance(call, calls.Reserve) else 0)
