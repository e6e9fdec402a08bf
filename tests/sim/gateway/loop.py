"""The event loop of a simulated process: asyncio's interface, by the clock of its machine and without any waiting.

The gateway asks the running loop for the time, for timers and for callbacks; here it is given simulated ones. The
simulation of the process calls `run` when it has the processor, and reads `next_s` to know when to call again.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from contextvars import Context
from typing import Any

NEVER = float("inf")


class SimLoop(asyncio.AbstractEventLoop):
    """The event loop of one process. `clock` returns the monotonic time of its machine in seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._ready: deque[asyncio.Handle] = deque()
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._serial = 0
        self._error: BaseException | None = None

    # For the simulation of the process

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Make it the running loop during the block."""
        before = asyncio._get_running_loop()
        asyncio._set_running_loop(self)
        try:
            yield
        finally:
            asyncio._set_running_loop(before)

    def run(self) -> None:
        """Run one iteration: callbacks that are ready or due now, not those that become ready in it. Raises their
        exceptions.
        """
        now, timers, ready = self.time(), self._timers, self._ready
        while timers and timers[0][0] <= now:
            ready.append(heapq.heappop(timers)[2])
        for _ in range(len(ready)):
            handle = ready.popleft()
            if not handle.cancelled():
                handle._run()
            if self._error is not None:
                error, self._error = self._error, None
                raise error

    @property
    def busy(self) -> bool:
        """True if something is ready."""
        return bool(self._ready)

    def next_s(self) -> float:
        """Return when the next timer is due, by its clock."""
        timers = self._timers
        while timers and timers[0][2].cancelled():
            heapq.heappop(timers)
        return timers[0][0] if timers else NEVER

    def first(self, callback: Callable[[], object]) -> None:
        """Call this before everything that is ready."""
        self._ready.appendleft(asyncio.Handle(callback, (), self))

    # asyncio.AbstractEventLoop, as far as the gateway uses it

    def time(self) -> float:
        return self._clock()

    def call_soon(self, callback: Callable[..., object], *args: Any, context: Context | None = None) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_later(
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None,
    ) -> asyncio.TimerHandle:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None,
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        self._serial += 1
        heapq.heappush(self._timers, (when, self._serial, handle))
        return handle

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(self, coro: Coroutine[Any, Any, Any], **others: Any) -> asyncio.Task[Any]:  # type: ignore[override]
        return asyncio.Task(coro, loop=self, **others)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self._error = context.get("exception") or RuntimeError(context["message"])

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Do nothing: the timer stays in the heap until it is due."""
