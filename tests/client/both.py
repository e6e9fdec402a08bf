"""Both clients behind one face, so that each test of what a client does runs against both.

The asyncio client runs in an event loop of its own thread; its calls look like the blocking client's.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

import sockpq
from sockpq import aio


class Loop:
    """An event loop in a thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, coroutine: Any) -> Any:
        """Wait for a coroutine of the loop; jobs become ones that can be used from here."""
        if not isinstance(coroutine, asyncio.Future):
            coroutine = self._awaited(coroutine)
        return self._from_loop(asyncio.run_coroutine_threadsafe(coroutine, self._loop).result())

    def stop(self) -> None:
        """End the loop as asyncio.run does."""
        self.run(self._loop.shutdown_asyncgens())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)
        self._loop.close()

    async def _awaited(self, awaitable: Any) -> Any:
        return await awaitable if inspect.isawaitable(awaitable) else awaitable

    def _from_loop(self, value: Any) -> Any:
        if isinstance(value, aio.Job):
            return LoopJob(self, value)
        return [self._from_loop(one) for one in value] if isinstance(value, list) else value


class LoopJob:
    """Adapts an aio.Job for use by a thread."""

    def __init__(self, loop: Loop, job: aio.Job) -> None:
        self._loop = loop
        self.job = job

    def done(self, **options: Any) -> Any:
        return self._loop.run(self.job.done(**options))

    def later(self, **options: Any) -> Any:
        return self._loop.run(self.job.later(**options))

    def touch(self, *arguments: Any, **options: Any) -> Any:
        return self._loop.run(self.job.touch(*arguments, **options))

    def change(self, **options: Any) -> Any:
        return self._loop.run(self.job.change(**options))

    def move(self, queue: str, **options: Any) -> Any:
        return self._loop.run(self.job.move(queue, **options))

    def bury(self, *arguments: Any, **options: Any) -> Any:
        return self._loop.run(self.job.bury(*arguments, **options))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.job, name)

    def __enter__(self) -> LoopJob:
        self._loop.run(self.job.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._loop.run(self.job.__aexit__(kind, error, traceback))


class LoopTransaction:
    """Adapts an aio.Transaction for use by a thread."""

    def __init__(self, loop: Loop, transaction: aio.Transaction) -> None:
        self._loop = loop
        self._transaction = transaction

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._transaction, name)
        return (lambda *words, **options: found(*map(_plain, words), **options)) if callable(found) else found

    def __enter__(self) -> LoopTransaction:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._loop.run(self._transaction.__aexit__(kind, error, traceback))


class LoopClient:
    """Adapts an aio.Client for use by threads."""

    def __init__(self, servers: Any, **settings: Any) -> None:
        self._loop = Loop()
        try:
            self.client = self._loop.run(self._make(servers, settings))
        except BaseException:
            self._loop.stop()
            raise

    async def _make(self, servers: Any, settings: dict[str, Any]) -> aio.Client:
        return aio.Client(servers, **settings)

    def transaction(self, **options: Any) -> LoopTransaction:
        return LoopTransaction(self._loop, self.client.transaction(**options))

    @contextmanager
    def hold(self, *arguments: Any, **options: Any) -> Iterator[str]:
        hold = self.client.hold(*arguments, **options)
        item = self._loop.run(hold.__aenter__())
        try:
            yield item
        except BaseException as error:
            self._loop.run(hold.__aexit__(type(error), error, None))
            raise
        self._loop.run(hold.__aexit__(None, None, None))

    def consume(self, *arguments: Any, **options: Any) -> Iterator[Any]:
        jobs: AsyncIterator[aio.Job] = self.client.consume(*arguments, **options)
        return self._consume(jobs)

    def find(self, *arguments: Any, **options: Any) -> Iterator[Any]:
        return self._consume(self.client.find(*arguments, **options))

    def _consume(self, jobs: Any) -> Iterator[Any]:
        try:
            while True:
                try:
                    job = self._loop.run(anext(jobs))
                except StopAsyncIteration:
                    return
                yield job
        finally:
            self._loop.run(jobs.aclose())

    def close(self) -> None:
        self._loop.run(self.client.close())

    def stop(self) -> None:
        """Close the client and end the loop."""
        self.close()
        self._loop.stop()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.client, name)
        return lambda *arguments, **options: self._loop.run(method(*map(_plain, arguments), **options))

    def __enter__(self) -> LoopClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class ThreadClient(sockpq.Client):
    """The blocking client, which needs no loop to be stopped."""

    def stop(self) -> None:
        self.close()


def _plain(argument: Any) -> Any:
    """Replace jobs by the asyncio client's."""
    if isinstance(argument, LoopJob):
        return argument.job
    return [_plain(one) for one in argument] if isinstance(argument, list) else argument
