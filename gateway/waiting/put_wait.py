"""PUT .. WAIT: the slot of the PUT, whose reply decides what its waiter waits for.

The first hand-out is proposed right after the PUT if it may find something; if not, the waiter is added once the PUT is
done.
"""

from __future__ import annotations

from msgspec.structs import replace

from sockpqd.core import Reply, Stored
from sockpqd.gateway.protocol import responses
from sockpqd.gateway.waiting.job_waiter import JobWaiter
from sockpqd.gateway.waiting.job_waiters import JobWaiters
from sockpqd.gateway.waiting.slots import OperationSlot


class PutWaitSlot(OperationSlot, kw_only=True):
    """The slot of the PUT in a PUT .. WAIT; the waiter's slot follows it."""

    waiter: JobWaiter
    waiters: JobWaiters

    def applied(self, reply: Reply) -> None:
        """Answer the PUT; from now on the waiter asks for its item by name."""
        if type(reply) is not Stored:       # no new job: this line is the only answer
            self.waiter.suppress()
            self.outcome = responses.answer(reply)
        else:
            get = self.waiter.wants.get
            self.waiter.wants.narrow(replace(get, item=reply.item or get.item, item_of_put=False))
            self.outcome = responses.wait_for_output(reply)
            if not self.waiter.in_flight:
                self.waiters.add_after_put(self.waiter)
        self.client.wake()

    def refused(self) -> None:
        """Answer for both operations, neither of which was executed."""
        self.waiter.suppress()
        super().refused()

    def overdue(self) -> None:
        """Answer for both operations, neither of which will be executed."""
        self.waiter.suppress()
        super().overdue()

    def unknown(self) -> None:
        """Give both operations an unknown outcome."""
        self.outcome = self.waiter.unknown_outcome
        if not self.waiter.in_flight:
            self.waiter.end(self.outcome)
        self.client.wake()
