"""Attempts to receive that clients of FIFO queues may repeat when an answer was lost."""

from __future__ import annotations

import time
from typing import NamedTuple

from sockpq.aio import Client

from sockpq_sqs.model.answers import ReceiveMessageAnswer
from sockpq_sqs.queues.names import QueueName

ATTEMPT_S = 300.0           # Amazon's
BYTES_MAX = 16 << 20        # of all messages that are remembered; more are not
ATTEMPTS_MAX = 10_000       # in an overloaded front end; a repetition of a forgotten one receives anything


class _Attempt(NamedTuple):
    """An answer that was given, and the ids of its hand-outs."""

    answer: ReceiveMessageAnswer
    ids: list[int]
    until: float
    size: int


class Attempts:
    """Remembers the answers of attempts for five minutes, in the memory of this front end."""

    def __init__(self) -> None:
        self._known: dict[tuple[QueueName, str], _Attempt] = {}
        self._bytes = 0

    def remember(self, queue: QueueName, attempt: str, answer: ReceiveMessageAnswer, ids: list[int]) -> None:
        """Remember an answer, and forget the oldest ones for it where there is no room."""
        now, size = time.monotonic(), _size(answer)
        self._forget((queue, attempt))
        while self._known:
            oldest = next(iter(self._known))
            if (
                self._known[oldest].until > now and len(self._known) < ATTEMPTS_MAX
                and self._bytes + size <= BYTES_MAX
            ):
                break
            self._forget(oldest)
        if size <= BYTES_MAX:
            self._known[(queue, attempt)] = _Attempt(answer, ids, now + ATTEMPT_S, size)
            self._bytes += size

    def _forget(self, attempt: tuple[QueueName, str]) -> None:
        known = self._known.pop(attempt, None)
        if known:
            self._bytes -= known.size

    async def again(
        self, client: Client, queue: QueueName, attempt: str, timeout_s: int,
    ) -> ReceiveMessageAnswer | None:
        """Return the answer that this attempt got before, with its messages hidden for `timeout_s` from now on.

        None if it is unknown, or if any of its messages has been deleted or has become visible since.
        """
        known = self._known.get((queue, attempt))
        if known is None or known.until < time.monotonic():
            return None
        if timeout_s and all(await client.touch_many(known.ids, expire=timeout_s)):
            return known.answer
        self._forget((queue, attempt))
        return None


def _size(answer: ReceiveMessageAnswer) -> int:
    """Return roughly how many bytes an answer takes: Python has up to four for a character."""
    return sum(4 * len(message.body) + 2000 * (1 + len(message.message_attributes)) for message in answer.messages)
