"""What a blocked command asks for: its Get, and what stands around it in the log."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from core import Get, Operation, Pick, Request
from gateway.limits import FEW_QUEUES, WAITER_QUEUE_BYTES


class Wanted(Struct, gc=False, eq=False):
    """`get` says of which queues; the others are around it."""

    get: Get
    until_finished: bool = False        # GETBE
    pick: Pick | None = None            # when it is more than a Get
    request: Request | None = None      # of a numbered command

    @property
    def operation(self) -> Operation:
        """What is proposed."""
        return self.request or self.pick or self.get

    @property
    def count(self) -> int:
        """How many jobs at most."""
        return 1 if self.pick is None or self.pick.count is None else self.pick.count

    @property
    def held_bytes(self) -> int:
        """What it costs to wait for many queues; nothing that counts for few."""
        queues = self.get.queues
        return 0 if queues is None or len(queues) <= FEW_QUEUES else len(queues) * WAITER_QUEUE_BYTES

    @property
    def in_session(self) -> bool:
        """Is it asked for in the name of a session?"""
        return self.request is not None or self.get.session is not None

    def narrow(self, get: Get) -> None:
        """It is known more exactly now; only of a PUT .. WAIT, which is no Pick."""
        self.get = get
        if self.request is not None:
            self.request = replace(self.request, operation=get)
