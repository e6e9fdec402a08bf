"""Takes turns among requests with large bodies, so that small ones wait for one of them at most."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext

from sockpq_sqs.door.limits import LARGE_BYTES, REST, UNUSUAL_S


class Turns:
    """Lets large requests in one after the other."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    def turn(self, body_bytes: int) -> AbstractAsyncContextManager[None]:
        """Return the block in which a request with a body of this size is verified and decoded."""
        return nullcontext() if body_bytes < LARGE_BYTES else self._large()

    @asynccontextmanager
    async def _large(self) -> AsyncIterator[None]:
        async with self._lock:
            begun = time.thread_time()
            try:
                yield
            finally:
                took_s = time.thread_time() - begun
                # Others have their turn before the next one, and several after one that no usual message resembles.
                await asyncio.sleep(REST * took_s if took_s > UNUSUAL_S else 0)
