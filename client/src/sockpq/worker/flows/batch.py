"""Batches: tasks that share an item, and calls that wait for it: for success, the end, or the first failure."""

from __future__ import annotations

from contextlib import suppress
from time import monotonic
from types import TracebackType
from typing import Any, NamedTuple

from sockpq._protocol.arguments import Bodies
from sockpq._protocol.command import Command
from sockpq._protocol.commands import batches, items
from sockpq.errors import BadArguments, ItemCancelled, ItemNotFound, ItemNotHeld, Refused, SockpqError
from sockpq.model import ItemStat
from sockpq.worker.current import current_job
from sockpq.worker.errors import BatchCancelled
from sockpq.worker.flows.calls import Call, Calls, Home, amade, async_executor_of, executor_of, made
from sockpq.worker.handle import AsyncHandle, Handle
from sockpq.worker.signature import Signature, Step
from sockpq.worker.task import Task, TaskCall

HOLD_S = 600.0


class Callbacks(NamedTuple):
    """The calls that wait for a batch."""

    success: Step | None
    complete: Step | None
    failure: Step | None

    def puts(self, item: str, bodies: Bodies) -> list[Command[Any]]:
        """The PUTs of those that there are; one that may never come has no number."""
        waiting: tuple[tuple[Step | None, dict[str, Any]], ...] = (
            (self.success, {"when": "done"}), (self.complete, {"when": "end"}),
            (self.failure, {"when": "failed", "number": False}),
        )
        return [
            step.call.command(step.args, step.kwargs, bodies, None, after=item, **when)
            for step, when in waiting if step is not None
        ]


Callback = Task[Any, Any] | Signature


def called(callback: Callback | None) -> Step | None:
    """Return the call of a callback, which is given no results. Raises TypeError."""
    if callback is None:
        return None
    signature = callback.s() if isinstance(callback, Task) else callback
    if not isinstance(signature, Signature):
        raise TypeError(f"a callback is a task, or task.s(..), not {callback!r}")
    step = signature.step
    step.call.check(step.args, step.kwargs, takes_result=False)
    return step


def callbacks(
    on_success: Callback | None, on_complete: Callback | None, on_failure: Callback | None,
) -> Callbacks:
    """Return the callbacks of a batch. Raises TypeError."""
    return Callbacks(called(on_success), called(on_complete), called(on_failure))


class BatchHandle:
    """A batch by its item, from any program: app.batch_handle(item)."""

    def __init__(self, app: Home, item: str) -> None:
        self._app = app
        self._item = item

    @property
    def item(self) -> str:
        """The name of its item, by which other programs find it."""
        return self._item

    def progress(self) -> ItemStat | None:
        """Count its tasks in each state, and those that are done; None when the batch has ended."""
        return made(executor_of(self._app), progress(self.item))

    def cancel(self) -> int:
        """Remove all tasks that have not ended, and interrupt running ones. Returns how many it had; 0 if it has ended.

        What waits for its success is removed; what waits for its end or its failure runs.
        """
        return made(executor_of(self._app), cancelled(self.item))

    def retry(self) -> int:
        """Put the tasks that were given up back, as if new. Returns how many, 0 if it has ended."""
        return made(executor_of(self._app), retried(self.item))


class AsyncBatchHandle:
    """A batch by its item: BatchHandle for asyncio."""

    def __init__(self, app: Home, item: str) -> None:
        self._app = app
        self._item = item

    @property
    def item(self) -> str:
        """The name of its item, by which other programs find it."""
        return self._item

    async def progress(self) -> ItemStat | None:
        """Count its tasks in each state. See BatchHandle.progress."""
        return await amade(async_executor_of(self._app), progress(self.item))

    async def cancel(self) -> int:
        """Remove all tasks that have not ended. See BatchHandle.cancel."""
        return await amade(async_executor_of(self._app), cancelled(self.item))

    async def retry(self) -> int:
        """Put the tasks that were given up back. See BatchHandle.retry."""
        return await amade(async_executor_of(self._app), retried(self.item))


class Batch(BatchHandle):
    """A batch that is being made: `with app.batch(..) as b: b.add(task, ..)`.

    Its tasks may run at once, but it does not end before the block does. If the block raises, or its program dies, the
    batch is cancelled.
    """

    def __init__(self, app: Home, waiting: Callbacks) -> None:
        super().__init__(app, "")
        self._hold = Hold(waiting)

    @property
    def item(self) -> str:
        """The name of its item, by which other programs find it."""
        return self._hold.item

    def add(self, task: Task[Any, Any] | TaskCall[Any, Any], *args: Any, **kwargs: Any) -> Handle:
        """Queue a call as a member of the batch. Raises BatchCancelled."""
        executor = executor_of(self._app)
        made(executor, self._hold.renewed())
        try:
            return member(task, self.item, min(self._hold.left_s, executor.limits.timeout)).put(*args, **kwargs)
        except Refused as error:
            raise told(error) from error

    def __enter__(self) -> Batch:
        made(executor_of(self._app), self._hold.begun(executor_of(self._app).bodies))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        made(executor_of(self._app), self._hold.ended(failed=error is not None))


class AsyncBatch(AsyncBatchHandle):
    """A batch that is being made in asyncio: `async with app.abatch(..) as b: await b.add(task, ..)`. See Batch."""

    def __init__(self, app: Home, waiting: Callbacks) -> None:
        super().__init__(app, "")
        self._hold = Hold(waiting)

    @property
    def item(self) -> str:
        """The name of its item, by which other programs find it."""
        return self._hold.item

    async def add(self, task: Task[Any, Any] | TaskCall[Any, Any], *args: Any, **kwargs: Any) -> AsyncHandle:
        """Queue a call as a member of the batch. Raises BatchCancelled."""
        executor = async_executor_of(self._app)
        await amade(executor, self._hold.renewed())
        try:
            return await member(task, self.item, min(self._hold.left_s, executor.limits.timeout)).aput(*args, **kwargs)
        except Refused as error:
            raise told(error) from error

    async def __aenter__(self) -> AsyncBatch:
        executor = async_executor_of(self._app)
        await amade(executor, self._hold.begun(executor.bodies))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await amade(async_executor_of(self._app), self._hold.ended(failed=error is not None))


class OwnBatch(BatchHandle):
    """The batch of the running task: app.current_batch()."""

    def add(self, task: Task[Any, Any] | TaskCall[Any, Any], *args: Any, **kwargs: Any) -> Handle:
        """Queue a call as a member of the batch, which cannot end meanwhile. Raises BatchCancelled."""
        try:
            return member(task, own_item()).put(*args, **kwargs)
        except Refused as error:
            raise told(error) from error


class AsyncOwnBatch(AsyncBatchHandle):
    """The batch of the running async task: app.current_abatch()."""

    async def add(self, task: Task[Any, Any] | TaskCall[Any, Any], *args: Any, **kwargs: Any) -> AsyncHandle:
        """Queue a call as a member of the batch, which cannot end meanwhile. Raises BatchCancelled."""
        try:
            return await member(task, own_item()).aput(*args, **kwargs)
        except Refused as error:
            raise told(error) from error


class Hold:
    """The hold that keeps a batch from ending while its author adds to it."""

    def __init__(self, waiting: Callbacks) -> None:
        self.item = ""
        self._callbacks = waiting
        self._until = self._renew_at = 0.0

    @property
    def left_s(self) -> float:
        """Return the seconds that it lasts at least. Raises BatchCancelled when they are over."""
        left = self._until - monotonic()
        if not self.item or left <= 0:
            raise BatchCancelled(f"nothing was added for {HOLD_S:g} s, or the batch has not begun or is over")
        return left

    def begun(self, bodies: Bodies) -> Calls[None]:
        """Begin the item, and put what waits for it."""
        self._last_from(monotonic())
        self.item = yield Call(items.item_hold(expire=HOLD_S))
        waiting = self._callbacks.puts(self.item, bodies)
        if waiting:
            try:
                yield Call(batches.transaction(waiting))
            except Exception:
                with suppress(SockpqError):
                    yield Call(items.item_release(self.item))
                raise

    def renewed(self) -> Calls[None]:
        """Renew the hold when half of it is over."""
        left = self.left_s
        if monotonic() >= self._renew_at:
            now = monotonic()
            try:
                yield Call(items.item_hold(self.item, expire=HOLD_S), timeout=left)
            except Refused as error:
                raise told(error) from error
            self._last_from(now)

    def ended(self, failed: bool) -> Calls[None]:
        """End the hold; if the author has `failed`, the batch is cancelled."""
        item, self._until = self.item, 0.0
        if failed:
            for command in (items.item_cancel(item), items.item_release(item)):
                with suppress(SockpqError):     # the error of the block is the one that counts
                    yield Call(command)
            return
        try:
            yield Call(items.item_release(item))
        except Refused as error:
            raise told(error) from error

    def _last_from(self, now: float) -> None:
        self._until, self._renew_at = now + HOLD_S, now + HOLD_S / 2


def member(task: Task[Any, Any] | TaskCall[Any, Any], item: str, timeout: float | None = None) -> TaskCall[Any, Any]:
    """Return the task, so that its next job is one of this item."""
    call = TaskCall(task, {}) if isinstance(task, Task) else task
    return call.of_item(item, timeout)


def own_item() -> str:
    """Return the item of the running task's job. Raises LookupError when there is none."""
    job = current_job()
    if job.item is None:
        raise LookupError("the running task belongs to no batch")
    if job._ended or job.lost:
        raise BadArguments("the job of the running task is not its own any more, so that its batch may be over")
    item: str = job.item
    return item


def told(error: Refused) -> Refused | BatchCancelled:
    """Return the error for the author of a batch: a refusal, or that the batch is cancelled."""
    if isinstance(error, ItemCancelled | ItemNotHeld):
        return BatchCancelled("somebody has cancelled the batch, or its hold has ended before its block")
    return error


def progress(item: str) -> Calls[ItemStat | None]:
    """Ask how the tasks of a batch stand."""
    with suppress(ItemNotFound):
        stat: ItemStat = yield Call(items.item_stat(item))
        return stat
    return None


def cancelled(item: str) -> Calls[int]:
    """Cancel a batch."""
    with suppress(ItemNotFound):
        count: int = yield Call(items.item_cancel(item))
        return count
    return 0


def retried(item: str) -> Calls[int]:
    """Retry what has failed in a batch."""
    with suppress(ItemNotFound):
        count: int = yield Call(items.item_retry(item))
        return count
    return 0
