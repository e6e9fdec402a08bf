"""Reasons in the node's log: neither one client nor all together fill the disk with them."""

from __future__ import annotations

import pytest

from sockpqd.gateway.commands.context.reason_log import ReasonLog
from sockpqd.gateway.limits import REASONS_LOGGED_MAX, REASONS_OF_ONE_LOGGED_MAX
from tests.gateway.helpers.memory import MemoryGateway, with_gateway


def test_so_many_a_second_are_logged_and_the_others_counted(caplog: pytest.LogCaptureFixture) -> None:
    now = 5.0
    reasons = ReasonLog(lambda: now)
    with caplog.at_level("INFO", "sockpqd.gateway"):
        for number in range(1000):
            reasons.note("flood", f"job {number} is dead, broken")
        reasons.note("other", "job 7 is done, well")
        assert len(caplog.records) == REASONS_OF_ONE_LOGGED_MAX + 1
        assert caplog.messages[-1] == "other: job 7 is done, well"
        for number in range(1000):
            reasons.note(f"client {number}", "job 1 is done, well")
        assert len(caplog.records) == REASONS_LOGGED_MAX
        caplog.clear()
        now = 6.0
        reasons.note("flood", "job 1001 is dead, broken")
        left_out = 2001 - REASONS_LOGGED_MAX
        assert caplog.messages == [
            f"{left_out} reasons of clients were not logged: too many came in a second",
            "flood: job 1001 is dead, broken",
        ]


def test_ends_of_jobs_and_turns_are_counted_together(caplog: pytest.LogCaptureFixture) -> None:
    async def test(gateway: MemoryGateway) -> None:
        gateway.hub.reasons = ReasonLog(lambda: 5.0)
        client = gateway.connect()
        client.send(b"PUT q 0 0\r\n" * 200 + b"GET q\r\n" * 200)
        await gateway.settle()
        with caplog.at_level("INFO", "sockpqd.gateway"):
            client.send(b"".join(b"BURY %d REASON broken\r\nDONE %d REASON well\r\n" % (job, job + 1)
                                 for job in range(1, 200, 2)))
            await gateway.settle()
        assert sum("job" in message for message in caplog.messages) == REASONS_OF_ONE_LOGGED_MAX
    with_gateway(test)
