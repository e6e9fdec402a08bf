"""Attempts to receive that clients of FIFO queues may repeat when an answer was lost."""

from __future__ import annotations

import time
from typing import NamedTuple

from sockpq.aio import Client

from sockpq_sqs.model.answers import ReceiveMessageAnswer
from sockpq_sqs.queues.names import QueueName

ATTEMPT_S = 300.0           # Amazon's
ATTEMPTS_MAX = 10_000       # in an overloaded front end; a repetition of a forgotten one receives anything


class _Attempt(NamedTuple):
    """An answer that was given, and the ids of its hand-outs."""

    answer: ReceiveMessageAnswer
    ids: list[int]
    until: float


class Attempts:
    """Remembers the answers of attempts for five minutes, in the memory of this front end."""

    def __init__(self) -> None:
        self._known: dict[tuple[QueueName, str], _Attempt] = {}

    def remember(self, queue: QueueName, attempt: str, answer: ReceiveMessageAnswer, ids: list[int]) -> None:
        """Remember an answer."""
        now = time.monotonic()
        while self._known:
            oldest = next(iter(self._known))
            if self._known[oldest].until > now and len(self._known) < ATTEMPTS_MAX:
                break
            del self._known[oldest]
        self._known.pop((queue, attempt), None)
        self._known[(queue, attempt)] = _Attempt(answer, ids, now + ATTEMPT_S)

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
        self._known.pop((queue, attempt), None)
        return None
