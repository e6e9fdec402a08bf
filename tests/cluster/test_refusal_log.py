"""Refused attempts in the log, on a loop whose clock is the test's."""

from __future__ import annotations

import asyncio
import logging
import selectors
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from sockpqd.cluster.wire.refusal_log import AT_MOST_EVERY_S, LENGTH_MAX, SAME_AGAIN_S, RefusalLog

log = logging.getLogger("complaints")
ADDRESS = ("10.0.0.9", 5)


class Impatient(selectors.DefaultSelector):     # type: ignore[misc,valid-type]
    """A loop on which time passes only by waiting, which takes none."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout:
            self.now += timeout
        return super().select(0)


@pytest.fixture
def run(caplog: pytest.LogCaptureFixture) -> Iterator[Callable[[Callable[[RefusalLog], Any]], list[str]]]:
    """Run a test on such a loop; returns the lines."""
    selector = Impatient()
    loop = asyncio.SelectorEventLoop(selector)
    loop.time = lambda: selector.now            # type: ignore[method-assign]

    def lines(test: Callable[[RefusalLog], Any]) -> list[str]:
        loop.run_until_complete(test(RefusalLog(log)))
        return [record.getMessage() for record in caplog.records]
    yield lines
    loop.close()


Run = Callable[[Callable[[RefusalLog], Any]], list[str]]


def test_the_first_is_told_at_once_and_the_rest_of_a_burst_with_their_number(run: Run) -> None:
    async def test(complaints: RefusalLog) -> None:
        for number in range(20):
            complaints.refused(("10.0.0.9", number), f"unknown {number}")
        await asyncio.sleep(AT_MOST_EVERY_S - 0.1)
        complaints.refused(("10.0.0.9", 20), "unknown 20")
        await asyncio.sleep(0.2)
        complaints.refused(ADDRESS, "unknown 21")
        await asyncio.sleep(2 * AT_MOST_EVERY_S)
    assert run(test) == [
        "refused: 10.0.0.9:0: unknown 0",
        "refused: 10.0.0.9:20: unknown 20 (and 19 others since the last such line)",
        "refused: 10.0.0.9:5: unknown 21",
    ]


def test_the_same_reason_is_told_again_much_later_or_with_another_one(run: Run) -> None:
    async def test(complaints: RefusalLog) -> None:
        for _ in range(3):
            complaints.refused(ADDRESS, "same")
            await asyncio.sleep(SAME_AGAIN_S / 3)
        await asyncio.sleep(1)
        complaints.refused(ADDRESS, "same")
        await asyncio.sleep(1)
        complaints.refused(ADDRESS, "another")
        complaints.refused(ADDRESS, "same")
        await asyncio.sleep(AT_MOST_EVERY_S)
    assert run(test) == [
        "refused: 10.0.0.9:5: same",
        "refused: 10.0.0.9:5: same (and 1 others since the last such line)",
        "refused: 10.0.0.9:5: another (and 2 others since the last such line)",
    ]


@pytest.mark.parametrize(("address", "why", "line"), [
    (("fe80::1", 7, 0, 2), "why", "refused: [fe80::1]:7: why"),
    (None, "why", "refused: somebody who has gone: why"),
    ("10.0.0.9:HTTP", "a\r\nb\x1b[1m", "refused: 10.0.0.9:HTTP: a??b?[1m"),
    (ADDRESS, "x" * 10_000, "refused: 10.0.0.9:5: " + "x" * LENGTH_MAX),
])
def test_what_strangers_say_cannot_spoil_the_log(run: Run, address: Any, why: str, line: str) -> None:
    async def test(complaints: RefusalLog) -> None:
        complaints.refused(address, why)
    assert run(test) == [line]
