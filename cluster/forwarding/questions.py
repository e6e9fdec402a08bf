"""Commands that one node lets the leader execute for a user, over the link between them.

They are not part of Raft: who asked waits for an answer for a while, and then does not know. An answer of more than
ANSWER_BYTES_MAX is not sent: there is none.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable, Mapping
from typing import Protocol

from sockpqd.cluster import limits
from sockpqd.cluster.api import NotLeader, OutcomeUnknown
from sockpqd.cluster.raft.peer import Peer
from sockpqd.cluster.wire.messages import Answered, Ask, Message

log = logging.getLogger("sockpqd.cluster")


class Asked(Protocol):
    """Executes what other nodes ask for."""

    async def asked(self, user: str | None, address: str, command: bytes) -> bytes | None:
        """See ClusterListener."""


class Questions:
    """What this node asks, and what it is asked. `send` passes on a message to another node, soon."""

    def __init__(
        self, peers: Mapping[str, Peer], leader: Callable[[], str | None], listener: Asked,
        send: Callable[[str, Message], None],
    ) -> None:
        self._peers = peers
        self._leader = leader
        self._listener = listener
        self._send = send
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Answered]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def ask(self, user: str | None, address: str, command: bytes) -> bytes:
        """See Cluster.ask_leader."""
        leader = self._leader()
        peer = None if leader is None else self._peers.get(leader)
        if leader is None or peer is None or not peer.up:
            raise NotLeader
        if peer.info is None or peer.info.subscribed is None:       # an older version, which would hang up
            raise NotLeader
        number = next(self._numbers)
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            self._send(leader, Ask(number, user, address, command))
            async with asyncio.timeout(limits.QUESTION_S):
                answered: Answered = await answer
        except TimeoutError:
            raise OutcomeUnknown from None
        finally:
            del self._waiting[number]
        if not answered.executed:
            raise NotLeader
        return answered.data

    def received(self, name: str, message: Ask | Answered) -> None:
        """Handle a message of another node."""
        if isinstance(message, Answered):
            waiting = self._waiting.get(message.number)
            if waiting is not None and not waiting.done():
                waiting.set_result(message)
        elif len(self._tasks) < limits.QUESTIONS_MAX:
            task = asyncio.get_running_loop().create_task(self._answer(name, message))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            self._send(name, Answered(message.number, b"", executed=False))

    def stop(self) -> None:
        """Answer nothing more."""
        for task in self._tasks:
            task.cancel()

    async def _answer(self, name: str, question: Ask) -> None:
        try:
            data = await self._listener.asked(question.user, question.address, question.command)
        except Exception:
            log.exception("a command of %s failed: report it, with this line", name)
            return
        answer = data if data is not None and len(data) <= limits.ANSWER_BYTES_MAX else b""
        self._send(name, Answered(question.number, answer, executed=data is not None))
