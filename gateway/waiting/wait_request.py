"""The request of a blocked command: its Get, and the operation around it."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from sockpqd.core import Get, GetWith, Operation, Request
from sockpqd.gateway.limits import FEW_QUEUES, WAITER_QUEUE_BYTES
from sockpqd.gateway.waiting.rates import ReservedGrants


class WaitRequest(Struct, gc=False, eq=False):
    """The operation of a blocked command: `get`, possibly with options or in a Request."""

    get: Get
    until_finished: bool = False        # GETBE
    pick: GetWith | None = None     # if it is more than a Get
    request: Request | None = None      # of a numbered command

    @property
    def operation(self) -> Operation:
        return self.request or self.pick or self.get

    def within(self, grants: ReservedGrants) -> Operation:
        """The operation with these grants for queues with a rate."""
        allowed = grants.around(self.pick or self.get)
        return allowed if self.request is None else replace(self.request, operation=allowed)

    @property
    def count(self) -> int:
        """The maximum number of jobs."""
        return 1 if self.pick is None or self.pick.count is None else self.pick.count

    @property
    def held_bytes(self) -> int:
        """Memory used by waiting for many queues; counted as 0 for a few."""
        queues = self.get.queues
        return 0 if queues is None or len(queues) <= FEW_QUEUES else len(queues) * WAITER_QUEUE_BYTES

    @property
    def in_session(self) -> bool:
        """Return whether the request belongs to a session."""
        return self.request is not None or self.get.session is not None

    def narrow(self, get: Get) -> None:
        """Replace the Get once it is known more precisely; only for PUT .. WAIT, which is never a GetWith."""
        self.get = get
        if self.request is not None:
            self.request = replace(self.request, operation=get)
