"""The fast path of the most frequent calls: put, reserve, and delete of a reserved job.

Such a call is one operation, and what it needs is its usual reply. After any other reply it is executed step by step
(order_execution.py), as an order that was given before: its first step is the same request of its session, which has
the same reply again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from msgspec.structs import replace

from sockpqd.beanstalk import Failure, calls
from sockpqd.core import DoneLast, Empty, Finished, Handed, Reply, Request, SessionNotFound, StoredNumber
from sockpqd.gateway.beanstalkd.operations import get_of, put_of, reserved
from sockpqd.gateway.beanstalkd.order_execution import OrderExecution, Principal, Services, Told
from sockpqd.gateway.beanstalkd.orders import AGAIN, NO_DIGEST, Order, SessionLost


class FastPath:
    """Takes the orders of one connection, one at a time, at the serving leader."""

    __slots__ = (
        "_cancelled",
        "_claimed",
        "_ended",
        "_execution",
        "_order",
        "_principal",
        "_services",
        "_told",
    )

    def __init__(
        self, services: Services, principal: Principal, ended: Callable[[calls.Result], None], told: Told,
    ) -> None:
        """`ended` is called with the result of an order, `told` with any other outcome of it."""
        self._services = services
        self._principal = principal
        self._ended = ended
        self._told = told
        self._order: Order | None = None            # under way
        self._claimed: str | None = None            # the queue of the job that a reserve will get
        self._cancelled = False
        self._execution: OrderExecution | None = None

    def take(self, order: Order) -> bool:
        """Execute an order that was not given before. False: the fast path cannot take it; nothing was done."""
        take = _TAKE.get(type(order.call))
        return take is not None and take(self, order, order.call)

    def cancel(self) -> None:
        """See OrderExecution."""
        self._cancelled = True
        if self._execution is not None:
            self._execution.cancel()

    # ---- the operations

    def _put(self, order: Order, call: calls.Put) -> bool:
        services = self._services
        if services.cluster.full or (services.access.required and not self._may("put", call.tube)):
            return False
        operation = put_of(call)
        self._propose(order, operation)
        if not call.delay_s:
            services.waiters.follow(operation.job.put, self)
        return True

    def _reserve(self, order: Order, call: calls.Reserve) -> bool:
        services = self._services
        if services.access.required and not self._may("get", *call.tubes):
            return False
        claimed = self._claimed = services.waiters.claim_for_get(call.tubes)
        if claimed is None:
            return False
        self._propose(order, get_of(call, order.session), keep_waiting=call.wait_s != 0)
        return True

    def _delete(self, order: Order, call: calls.Delete) -> bool:
        handle = call.handle
        if handle is None:
            return False
        if self._services.access.required:
            queue = self._services.cluster.machine.queue_of(handle)
            if queue is not None and not self._may("get", queue):
                return False
        self._propose(order, DoneLast(handle))
        return True

    def _may(self, right: str, *queues: str) -> bool:
        """Whether the user has a right on the queues, where users are required."""
        access, user = self._services.access, self._principal.user
        account = None if user is None else access.account(user)
        return account is not None and all(queue.startswith(getattr(account.rights, right)) for queue in queues)

    def _propose(self, order: Order, operation: Any, *, keep_waiting: bool = False) -> None:
        self._order, self._cancelled, self._execution = order, False, None
        request = Request(order.session, order.number, NO_DIGEST, 0, keep_waiting, operation)
        self._services.cluster.propose_for(self, request, self)

    # ---- ClientPending

    def applied(self, reply: Reply) -> None:
        """The operation was executed: its usual reply is the result, with any other one the steps go on."""
        order, self._order = self._order, None      # what was put is not kept until the next order
        assert order is not None
        claimed = self._claimed
        if claimed is not None:
            self._claimed = None
            self._services.waiters.settle_claim(claimed, reply)
        kind = type(reply)
        if kind is Handed:
            self._ended(reserved(self._services.cluster, cast(Handed, reply)))
        elif kind is StoredNumber:
            self._ended(calls.Number(cast(StoredNumber, reply).number))
        elif kind is Finished or (kind is Empty and self._waits_no_more(order)):
            self._ended(None)
        elif kind is SessionNotFound:
            self._told(SessionLost())
        else:
            again = replace(order, first=False)
            self._execution = OrderExecution(self._services, self._principal, again, self._told)
            self._execution.begin()

    def _waits_no_more(self, order: Order) -> bool:
        return self._cancelled or cast(calls.Reserve, order.call).wait_s == 0

    def refused(self) -> None:
        """The operation was not executed: this node does not lead any more."""
        self._give_up()
        self._told(AGAIN)

    def unknown(self) -> None:
        """It is unknown whether the operation was executed: its number will tell."""
        self._give_up()
        self._told(AGAIN)

    def overdue(self) -> None:
        """The operation had no turn: there is too much to do."""
        claimed, self._claimed = self._claimed, None
        if claimed is not None:
            self._services.waiters.settle_claim(claimed, None)
        order, self._order = self._order, None
        self._told(Failure.OUT_OF_MEMORY if order is not None and type(order.call) is calls.Put else AGAIN)

    def _give_up(self) -> None:
        claimed, self._claimed, self._order = self._claimed, None, None
        if claimed is not None:
            self._services.waiters.drop_claim(claimed)


_TAKE: dict[type, Callable[[FastPath, Order, Any], bool]] = {
    calls.Put: FastPath._put, calls.Reserve: FastPath._reserve, calls.Delete: FastPath._delete,
}
