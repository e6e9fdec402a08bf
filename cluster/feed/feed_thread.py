"""Runs work on the disk for feeds in a thread, which starts with the first of it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

from sockpqd.cluster import limits

Result = TypeVar("Result")


class FeedStopped(Exception):
    """The node stops while a feed reads from the disk."""


class FeedThread:
    """Implements log_feed.DiskWork."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(1, "feed")
        self._stopping = threading.Event()

    async def run(self, work: Callable[[], Result]) -> Result:
        """Call it in the thread, and never return before it has, as the caller closes its files. Raises FeedStopped."""
        if self._stopping.is_set():
            raise FeedStopped
        running = self._executor.submit(work)
        try:
            return await asyncio.wrap_future(running)
        except asyncio.CancelledError:      # only the end of the loop cancels it
            self._stopping.set()
            wait([running])
            raise

    def rest(self) -> None:
        """Let other threads run, while segments are indexed. Raises FeedStopped."""
        if self._stopping.wait(limits.FEED_INDEX_REST_S):
            raise FeedStopped

    def stop(self) -> None:
        """Begin nothing more, and end indexing."""
        self._stopping.set()

    def join(self) -> None:
        """Wait until the thread has ended."""
        self._executor.shutdown()
