"""Times of a server's writes to its clients, by the server's own clock: a busy machine may read them much later."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence

from tests.gateway.helpers.memory import MemoryClient


class Writes:
    """The lines written to these clients that match `pattern`: when, and to which of them."""

    def __init__(self, clients: Sequence[MemoryClient], pattern: re.Pattern[bytes]) -> None:
        self.times: list[float] = []
        self.order: list[int] = []
        for number, client in enumerate(clients):
            self._watch(number, client, pattern)

    def _watch(self, number: int, client: MemoryClient, pattern: re.Pattern[bytes]) -> None:
        plain = client.transport.write

        def write(data: bytes) -> None:
            if pattern.fullmatch(data):
                self.times.append(asyncio.get_running_loop().time())
                self.order.append(number)
            plain(data)
        client.transport.write = write      # type: ignore[method-assign]

    async def come(self, count: int) -> None:
        """Wait until there are this many."""
        while len(self.times) < count:
            await asyncio.sleep(0.005)

    def keep(self, rate: int, per_s: float) -> bool:
        """Return whether no window of `per_s` has more than `rate` of them."""
        return all(later - earlier > per_s for earlier, later in zip(self.times, self.times[rate:], strict=False))
