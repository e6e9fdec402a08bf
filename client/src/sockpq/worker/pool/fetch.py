"""The request for jobs: a GETB of several, from several queues, with all properties that the pool needs."""

from __future__ import annotations

from sockpq._protocol.arguments import Policy
from sockpq._protocol.command import Command
from sockpq._protocol.commands.batches import TakeSource
from sockpq.model import Handed

WAIT_S = 60.0           # a GETB that is blocked for longer is sent again
POLICIES = ("random", "priority", "fair", "weight", "rr", "order", "sorted", "oldest")


def request(queues: tuple[str, ...], count: int, expire: float, by: Policy | None) -> Command[list[Handed]]:
    """Return a request for up to `count` jobs with leases of `expire` seconds.

    `by`: how the server chooses among the queues.
    """
    return TakeSource(queues, True, expire, None, WAIT_S, None, True, "if_known", by).many(count, True)
