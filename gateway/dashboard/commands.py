"""Executes a command of the protocol for a user of the dashboard, without a connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from sockpqd.cluster.api import OutcomeUnknown
from sockpqd.gateway.server.conversation import Conversation
from sockpqd.gateway.server.hub import Hub

PATIENCE_S = 8.0                # a page must be answered in 10
COUNTED_BYTES_MIN = 64 << 10    # smaller answers are not in the account
NO_ANSWER = b""                 # nobody knows whether the command was executed


async def execute(hub: Hub, user: str | None, address: str, data: bytes) -> bytes:
    """Execute a command, with its data, for this user; return the answers to it.

    Returns NO_ANSWER if they are not complete within PATIENCE_S: the command may have been executed.
    """
    link = _Memory(user, address)
    conversation = Conversation(hub, link)
    link.weigh = conversation.pipeline.weigh
    try:
        conversation.receive(data)
        conversation.end()
        async with asyncio.timeout(PATIENCE_S):
            await link.ended
    except TimeoutError:
        return NO_ANSWER
    finally:
        link.over = True
        conversation.lost()
    return NO_ANSWER if link.aborted else bytes(link.written)


async def execute_at_leader(hub: Hub, user: str | None, address: str, data: bytes) -> bytes:
    """Execute commands for this user at the leader, which may be this node; return the answers to them.

    Returns NO_ANSWER if it is unknown whether they were executed. Raises NotLeader if none was.
    """
    cluster = hub.cluster
    if cluster.leader() == cluster.name:        # it leads, though the service may be offline
        return await execute(hub, user, address, data)
    try:
        return await cluster.forward_command(user, address, data)
    except OutcomeUnknown:
        return NO_ANSWER


class _Memory:
    """A link that keeps the answers in memory for the caller."""

    secure = True

    def __init__(self, user: str | None, address: str) -> None:
        self.user = user
        self.peer = address
        self.written = bytearray()
        self.aborted = False                        # a part of the answer is missing
        self.over = False                           # nothing counts any longer
        self.weigh: Callable[[], None] = lambda: None
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def write(self, data: bytes) -> None:
        """Keep the bytes; charge the client for them once they are COUNTED_BYTES_MIN."""
        self.written += data
        if len(self.written) >= COUNTED_BYTES_MIN:
            self.weigh()

    def tell(self, lines: list[bytes]) -> None:
        self.write(b"".join(lines))

    def held_bytes(self) -> int:
        """Return the size of the answers kept, 0 after `execute` has returned."""
        return 0 if self.over else len(self.written)

    def unsent_bytes(self) -> int:
        return 0

    def pause(self) -> None:
        """Do nothing: all input has been read."""

    def resume(self) -> None:
        """Do nothing: all input has been read."""

    def end_trial(self) -> None:
        """Do nothing: no connection slot is used."""

    def expect_distance(self) -> None:
        """Do nothing: there is no feed on the dashboard."""

    def finish(self) -> None:
        """End the wait of `execute`: the answers are complete."""
        if not self.ended.done():
            self.ended.set_result(None)

    def abort(self) -> None:
        """End the wait of `execute`: there will be no further answers."""
        self.aborted = True
        self.finish()
