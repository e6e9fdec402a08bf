"""A client that waits for a grant (PULSE WAIT); grant_waiters.py explains how it waits."""

from __future__ import annotations

from sockpqd.core import Grant, Operation, TakeTurn
from sockpqd.gateway.protocol.request_id import Numbering
from sockpqd.gateway.pulses.windows import GrantClaim
from sockpqd.gateway.waiting.waiting_line import Waiter


class GrantWaiter(Waiter, gc=False, eq=False, kw_only=True):
    """A PULSE WAIT."""

    pulse: str
    numbering: Numbering | None = None      # of a numbered command
    claim: GrantClaim | None = None         # of the grant that the operation in flight asks for

    def __post_init__(self) -> None:
        if self.numbering is not None:
            self.request_key = self.numbering.session, self.numbering.number

    @property
    def operation(self) -> Operation:
        """Return the operation to propose: a numbered command's own, else one that looks up the pulse."""
        if self.numbering is None:
            return Grant(self.pulse, 0)
        return self.numbering.request(TakeTurn(self.pulse, self.claim is not None), keep_waiting=True)

    @property
    def refusal(self) -> bytes | None:
        """Return the answer if its client may not have a grant any more, else None."""
        return self.client.guard.refusal_of_turn(self.pulse)
