"""Limits of the requests that go to one host at a time, from all targets together."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, nullcontext


class HostLimits:
    """A semaphore for each host that has a limit."""

    def __init__(self, limits: Mapping[str, int], default: int) -> None:
        """`limits`: by host; `default`: of every other host, 0 for none."""
        self._limits = {host.lower(): limit for host, limit in limits.items()}
        self._default = default
        self._places: dict[str, asyncio.Semaphore] = {}

    def place(self, host: str) -> AbstractAsyncContextManager[None]:
        """Return a context for one request to this host; entering it waits for a turn."""
        limit = self._limits.get(host, self._default)
        if not limit:
            return nullcontext()
        return self._places.setdefault(host, asyncio.Semaphore(limit))
