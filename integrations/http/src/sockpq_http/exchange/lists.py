"""Lists of any length: made in pieces between other requests, few at a time, one at a time for each address of a user.

A list of 100,000 queues takes half a second to become JSON, and tens of megabytes meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from heapq import merge
from itertools import islice
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from starlette.responses import Response

from sockpq_http.values.model import View

T = TypeVar("T")
LISTS_MAX = 2           # that are made at a time
PIECE_LINES = 200       # of a list, made before other requests get on: a millisecond


class Lists:
    """The places of lists. Users take turns, and so do the addresses of one user: many requests delay nobody else."""

    def __init__(self) -> None:
        self._places = asyncio.Semaphore(LISTS_MAX)
        self._lines: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def place(self, user: str, address: str) -> AsyncIterator[None]:
        """Wait for a place for a list of this user at this address, of which each has one at a time."""
        async with self._lines.setdefault((user, address), asyncio.Lock()), self._places:
            yield

    async def answer(
        self, user: str, address: str, name: str, call: Callable[[], Awaitable[list[T]]], view: Callable[[T], View],
        key: Callable[[T], Any] | None = None,
    ) -> Response:
        """Return the answer with a list under this name: the results of `call`, each as a `view`, sorted by `key`."""
        async with self.place(user, address):
            found: Iterable[T] = await call()
            if key is not None:
                found = await _in_order(found, key)
            pieces: list[str] = []
            rest = iter(found)
            while piece := list(islice(rest, PIECE_LINES)):
                pieces.append(",".join([view(one).model_dump_json(by_alias=True, exclude_unset=True) for one in piece]))
                await asyncio.sleep(0)
            return Response(f'{{"{name}":[{",".join(pieces)}]}}', media_type="application/json")


async def _in_order(found: Iterable[T], key: Callable[[T], Any]) -> Iterator[T]:
    """Return the list in order; sorting one that is already in order costs little."""
    rest = iter(found)
    runs: list[list[T]] = []
    while run := sorted(islice(rest, 10 * PIECE_LINES), key=key):
        runs.append(run)
        await asyncio.sleep(0)
    return merge(*runs, key=key)
