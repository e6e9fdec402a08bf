"""Reads the log of a node as copies do, without a thread: the disk of a simulated node is read at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from sockpqd.cluster.api import FeedSlice
from sockpqd.cluster.driver import Driver
from sockpqd.cluster.feed.log_feed import LogFeed

Result = TypeVar("Result")


class AtOnce:
    """Implements log_feed.DiskWork."""

    async def run(self, work: Callable[[], Result]) -> Result:
        """Call it."""
        return work()

    def rest(self) -> None:
        """Nobody else runs."""

    def stop(self) -> None:
        """There is no thread."""

    def join(self) -> None:
        """There is no thread."""


def feed_at_once(driver: Driver) -> LogFeed:
    """Return the feed of this node."""
    return LogFeed(driver.journal, driver.replica, driver.chain, AtOnce())


def read_at_once(feed: LogFeed, index: int) -> FeedSlice | None:
    """Return the next entries from this one on, as LogFeed.read does."""
    return asyncio.run(feed.read(index))
