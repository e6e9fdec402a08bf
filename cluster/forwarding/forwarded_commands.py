"""Commands that a node forwards to the leader for a user, over the link between the nodes.

They are not part of Raft. The node waits for the answer for a limited time, after which the outcome is unknown. It is
also unknown if the answer exceeds ANSWER_BYTES_MAX, as it is then not sent.
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
from sockpqd.cluster.wire.messages import CommandAnswer, ForwardedCommand, Message

log = logging.getLogger("sockpqd.cluster")


class CommandExecutor(Protocol):
    """Executes commands of other nodes."""

    async def execute_command(self, user: str | None, address: str, command: bytes) -> bytes | None:
        ...


class ForwardedCommands:
    """Commands that this node forwards, and those that it executes. `send` queues a message for another node."""

    def __init__(
        self, peers: Mapping[str, Peer], leader: Callable[[], str | None], listener: CommandExecutor,
        send: Callable[[str, Message], None],
    ) -> None:
        self._peers = peers
        self._leader = leader
        self._listener = listener
        self._send = send
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[CommandAnswer]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def execute(self, user: str | None, address: str, command: bytes) -> bytes:
        leader = self._leader()
        peer = None if leader is None else self._peers.get(leader)
        if leader is None or peer is None or not peer.up:
            raise NotLeader
        if peer.info is None or peer.info.subscribed is None:       # an older version, which would hang up
            raise NotLeader
        number = next(self._numbers)
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            self._send(leader, ForwardedCommand(number, user, address, command))
            async with asyncio.timeout(limits.FORWARDED_COMMAND_S):
                answered: CommandAnswer = await answer
        except TimeoutError:
            raise OutcomeUnknown from None
        finally:
            del self._waiting[number]
        if not answered.executed:
            raise NotLeader
        return answered.data

    def received(self, name: str, message: ForwardedCommand | CommandAnswer) -> None:
        """Handle a message of another node."""
        if isinstance(message, CommandAnswer):
            waiting = self._waiting.get(message.number)
            if waiting is not None and not waiting.done():
                waiting.set_result(message)
        elif len(self._tasks) < limits.FORWARDED_COMMANDS_MAX:
            task = asyncio.get_running_loop().create_task(self._answer(name, message))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            self._send(name, CommandAnswer(message.number, b"", executed=False))

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def _answer(self, name: str, question: ForwardedCommand) -> None:
        try:
            data = await self._listener.execute_command(question.user, question.address, question.command)
        except Exception:
            log.exception("a command of %s failed: report it, with this line", name)
            return
        answer = data if data is not None and len(data) <= limits.ANSWER_BYTES_MAX else b""
        self._send(name, CommandAnswer(question.number, answer, executed=data is not None))
