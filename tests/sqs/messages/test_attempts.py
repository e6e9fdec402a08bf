"""Remembered attempts: their number and their bytes are bounded."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from sockpq_sqs.messages.attempts import ATTEMPTS_MAX, BYTES_MAX, Attempts
from sockpq_sqs.model.answers import Message, ReceiveMessageAnswer
from sockpq_sqs.queues.names import QueueName

QUEUE = QueueName("000000000000", "q.fifo", "q.fifo")


def answer(body: str) -> ReceiveMessageAnswer:
    """Return the answer with one message."""
    return ReceiveMessageAnswer(messages=[Message("id", "handle", "digest", body)])


def known(attempts: Attempts, attempt: str) -> bool:
    """Return whether an attempt is remembered, and its message still in flight."""
    async def touched(ids: list[int], expire: float) -> list[bool]:
        return [True for _ in ids]

    client: Any = SimpleNamespace(touch_many=touched)
    return asyncio.run(attempts.again(client, QUEUE, attempt, 30)) is not None


def test_the_oldest_are_forgotten_where_there_is_no_room() -> None:
    attempts = Attempts()
    large = answer("x" * (BYTES_MAX // 16))
    for number in range(10):
        attempts.remember(QUEUE, str(number), large, [number])
    assert [number for number in range(10) if known(attempts, str(number))] == [7, 8, 9]
    attempts.remember(QUEUE, "too large", answer("x" * BYTES_MAX), [1])
    assert not known(attempts, "too large")
    for number in range(3):
        attempts.remember(QUEUE, "same", large, [number])
    assert known(attempts, "same")


def test_so_many_small_ones_are_remembered() -> None:
    attempts = Attempts()
    small = answer("x")
    for number in range(ATTEMPTS_MAX):
        attempts.remember(QUEUE, str(number), small, [number])
    found = [number for number in range(0, ATTEMPTS_MAX, 500) if known(attempts, str(number))]
    assert found[-1] == ATTEMPTS_MAX - 500
    assert len(found) < ATTEMPTS_MAX // 500     # by their bytes, not by their number
