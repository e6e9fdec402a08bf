"""The settings of queues that decide about jobs that failed."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, cast

import pytest
from sockpq import ForbiddenError, QueueNotFound, SockpqError, Unavailable
from sockpq.aio import Client
from sockpq_http.push.queue_facts import FOR_S, QueueFacts

PLAIN = {"sched": "FIFO", "backoff": "OFF", "tries": "5 DEAD x"}


class Settings:
    """A client that knows the settings of queues, or answers with an error."""

    def __init__(self, answer: dict[str, str] | SockpqError) -> None:
        self.answer = answer
        self.asked = 0

    async def queue_config(self, queue: str, **options: Any) -> dict[str, str]:
        """Return the prepared settings, or raise the prepared error."""
        self.asked += 1
        if isinstance(self.answer, SockpqError):
            raise self.answer
        return self.answer


def known(answer: dict[str, str] | SockpqError) -> tuple[bool, bool]:
    """Return whether a queue with these settings has a backoff, and whether it holds groups."""
    facts = QueueFacts(cast(Client, Settings(answer)))
    asyncio.run(facts.look("q", 0.0))
    return facts.has_backoff("q"), facts.holds_groups("q")


@pytest.mark.parametrize(("answer", "expected"), [
    (PLAIN, (False, False)),
    ({**PLAIN, "backoff": "1 3600"}, (True, False)),
    ({**PLAIN, "sched": "GROUPS"}, (False, True)),
    ({**PLAIN, "sched": "GROUPS", "rate": "10 PER 1"}, (False, False)),
    ({**PLAIN, "sched": "GROUPS", "pulse": "partner"}, (False, False)),
    ({**PLAIN, "sched": "FAIR"}, (False, False)),
    ({**PLAIN, "sched": "FAIR", "group_limit": "3"}, (False, True)),
    ({**PLAIN, "sched": "FAIR", "group_rate": "10 PER 1"}, (False, True)),
    ({**PLAIN, "sched": "FAIR", "group_by": "USER"}, (False, True)),
    ({}, (False, False)),
    (QueueNotFound("404 Queue Not Found"), (False, False)),
    (ForbiddenError("403 Forbidden"), (False, False)),
    (Unavailable("no server"), (False, False)),
])
def test_settings_are_understood(answer: dict[str, str] | SockpqError, expected: tuple[bool, bool]) -> None:
    assert known(answer) == expected


def test_they_are_read_again_after_a_while_and_kept_while_they_cannot_be() -> None:
    client = Settings({**PLAIN, "backoff": "1 60"})
    facts = QueueFacts(cast(Client, client))

    async def main() -> None:
        for now in (0.0, 1.0, FOR_S - 0.1):
            await facts.look("q", now)
        assert client.asked == 1
        client.answer = Unavailable("no server")
        await facts.look("q", FOR_S + 1)
        assert client.asked == 2
        assert facts.has_backoff("q")
        client.answer = PLAIN
        await facts.look("q", 3 * FOR_S)
        assert not facts.has_backoff("q")

    asyncio.run(main())


def test_what_a_queue_lacks_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    facts = QueueFacts(cast(Client, Settings({"tries": "0"})))

    async def main() -> None:
        for now in range(5):
            await facts.look("q", now * 2 * FOR_S)

    with caplog.at_level(logging.WARNING):
        asyncio.run(main())
    assert [record.getMessage().split(":")[1].split()[3] for record in caplog.records] == ["BACKOFF", "TRIES"]
