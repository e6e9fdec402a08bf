"""Forwarded commands: the leader executes a command for another node, and sends its answer."""

from __future__ import annotations

import asyncio

from sockpqd.cluster import limits
from sockpqd.cluster.forwarding.forwarded_commands import ForwardedCommands
from sockpqd.cluster.wire.messages import CommandAnswer, ForwardedCommand, Message


class Answers:
    """A gateway that gives this answer to every command."""

    def __init__(self, answer: bytes | None) -> None:
        self.answer = answer

    async def execute_command(self, user: str | None, address: str, command: bytes) -> bytes | None:
        return self.answer


def answered(answer: bytes | None) -> list[Message]:
    """Return what a node with this gateway sends."""
    async def test() -> list[Message]:
        sent: list[Message] = []
        questions = ForwardedCommands({}, lambda: None, Answers(answer), lambda name, message: sent.append(message))
        questions.received("n2", ForwardedCommand(7, "ann", "1.2.3.4:5", b"QUEUE LIST\r\n"))
        while not sent:
            await asyncio.sleep(0)
        return sent
    return asyncio.run(test())


def test_the_answer_is_sent() -> None:
    assert answered(b"200 OK\r\n") == [CommandAnswer(7, b"200 OK\r\n", executed=True)]
    assert answered(None) == [CommandAnswer(7, b"", executed=False)]


def test_an_answer_larger_than_its_bound_is_not_sent() -> None:
    most = bytes(limits.ANSWER_BYTES_MAX)
    assert answered(most) == [CommandAnswer(7, most, executed=True)]
    assert answered(most + b"x") == [CommandAnswer(7, b"", executed=True)]
