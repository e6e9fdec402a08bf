"""Batches: tasks that share an item, and calls that wait for it: for its success, its end, or its first failure."""

from __future__ import annotations

from contextlib import suppress
from time import monotonic
from types import TracebackType
from typing import Any, NamedTuple

from sockpq._protocol.arguments import Bodies
from sockpq._protocol.command import Command
from sockpq._protocol.commands import batches, items
from sockpq.errors import BadArguments, CrossCluster, ItemCancelled, ItemNotFound, ItemNotHeld, Refused, SockpqError
from sockpq.model import ItemStat, Stored
from sockpq.worker.current import current_job
from sockpq.worker.errors import BatchCancelled
from sockpq.worker.flows.calls import Call, Calls, Home, Owner, amade, async_router_of, made, router_of
from sockpq.worker.handle import AsyncHandle, Handle, async_handle, handle
from sockpq.worker.signature import Signature, Step
from sockpq.worker.task import Task, TaskCall

HOLD_S = 600.0


class Callbacks(NamedTuple):
    """The calls that wait for a batch."""

    success: Step | None
    complete: Step | None
    failure: Step | None

    def puts(self, item: str, bodies: Bodies) -> list[Command[Any]]:
        """Return the PUTs of the given callbacks; one that may never run has no number."""
        waiting: tuple[tuple[Step | None, dict[str, Any]], ...] = (
            (self.success, {"when": "done"}), (self.complete, {"when": "end"}),
            (self.failure, {"when": "failed", "number": False}),
        )
        return [
            step.call.command(step.args, step.kwargs, bodies, None, after=item, **when)._replace(beside=item)
            for step, when in waiting if step is not None
        ]

    @property
    def queues(self) -> tuple[str, ...]:
        """The queues of the given callbacks."""
        return tuple(step.call.queue for step in (self.success, self.complete, self.failure) if step is not None)


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
    """A batch that any program can look at and control, by its item: app.batch_handle(item)."""

    def __init__(self, app: Home, item: str) -> None:
        self._app = app
        self._item = item

    @property
    def item(self) -> str:
        """The name of its item, by which other programs find it."""
        return self._item

    def progress(self) -> ItemStat | None:
        """Count its tasks in each state, and those that are done; None when the batch has ended."""
        return made(router_of(self._app), progress(self.item))

    def cancel(self) -> int:
        """Remove all tasks that have not ended, interrupting running ones. Returns how many, 0 if the batch has ended.

        A callback for its success is removed; callbacks for its end or its failure are called.
        """
        return made(router_of(self._app), cancelled(self.item))

    def retry(self) -> int:
        """Put back the tasks that were given up, as if new. Returns how many, 0 if the batch has ended."""
        return made(router_of(self._app), retried(self.item))


class AsyncBatchHandle:
    """A batch that was put, by its item, for asyncio: BatchHandle with await."""

    def __init__(self, app: Home, item: str) -> None:
        self._app = app
        self._item = item

    @property
    def item(self) -> str:
        """The name of its item, by which other programs find it."""
        return self._item

    async def progress(self) -> ItemStat | None:
        """Count its tasks in each state. See BatchHandle.progress."""
        return await amade(async_router_of(self._app), progress(self.item))

    async def cancel(self) -> int:
        """Remove all tasks that have not ended. See BatchHandle.cancel."""
        return await amade(async_router_of(self._app), cancelled(self.item))

    async def retry(self) -> int:
        """Put back the tasks that were given up. See BatchHandle.retry."""
        return await amade(async_router_of(self._app), retried(self.item))


class Batch(BatchHandle):
    """A batch under construction: `with app.batch(..) as b: b.add(task, ..)`.

    Its tasks may run at once, but the batch does not end before the block. If the block raises, or its program dies,
    the batch is cancelled.
    """

    def __init__(self, app: Home, waiting: Callbacks) -> None:
        super().__init__(app, "")
        self._hold = Hold(waiting, app.queues)

    @property
    def item(self) -> str:
        """The name of its item, by which other programs find it."""
        return self._hold.item

    def add(self, task: Task[Any, Any] | TaskCall[Any, Any], *args: Any, **kwargs: Any) -> Handle:
        """Queue a call as a member of the batch. Raises BatchCancelled."""
        router = router_of(self._app)
        made(router, self._hold.renewed())
        limit = min(self._hold.left_s, router.limits.timeout)
        call = as_call(task).within(limit)
        stored = made(router, added(call, self.item, args, kwargs, router.bodies))
        return handle(self._app, call.queue, stored)

    def __enter__(self) -> Batch:
        made(router_of(self._app), self._hold.begun(router_of(self._app).bodies))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        made(router_of(self._app), self._hold.ended(failed=error is not None))


class AsyncBatch(AsyncBatchHandle):
    """A batch under construction in asyncio: `async with app.abatch(..) as b: await b.add(task, ..)`. See Batch."""

    def __init__(self, app: Home, waiting: Callbacks) -> None:
        super().__init__(app, "")
        self._hold = Hold(waiting, app.queues)

    @property
    def item(self) -> str:
        """The name of its item, by which other programs find it."""
        return self._hold.item

    async def add(self, task: Task[Any, Any] | TaskCall[Any, Any], *args: Any, **kwargs: Any) -> AsyncHandle:
        """Queue a call as a member of the batch. Raises BatchCancelled."""
        router = async_router_of(self._app)
        await amade(router, self._hold.renewed())
        limit = min(self._hold.left_s, router.limits.timeout)
        call = as_call(task).within(limit)
        stored = await amade(router, added(call, self.item, args, kwargs, router.bodies))
        return async_handle(self._app, call.queue, stored)

    async def __aenter__(self) -> AsyncBatch:
        router = async_router_of(self._app)
        await amade(router, self._hold.begun(router.bodies))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await amade(async_router_of(self._app), self._hold.ended(failed=error is not None))


class OwnBatch(BatchHandle):
    """The batch of the running task: app.current_batch()."""

    def add(self, task: Task[Any, Any] | TaskCall[Any, Any], *args: Any, **kwargs: Any) -> Handle:
        """Queue a call as a member of the batch, which cannot end while the task runs. Raises BatchCancelled."""
        item, router = own_item(), router_of(self._app)
        call = as_call(task)
        return handle(self._app, call.queue, made(router, added(call, item, args, kwargs, router.bodies)))


class AsyncOwnBatch(AsyncBatchHandle):
    """The batch of the running async task: app.acurrent_batch()."""

    async def add(self, task: Task[Any, Any] | TaskCall[Any, Any], *args: Any, **kwargs: Any) -> AsyncHandle:
        """Queue a call as a member of the batch, which cannot end while the task runs. Raises BatchCancelled."""
        item, router = own_item(), async_router_of(self._app)
        call = as_call(task)
        stored = await amade(router, added(call, item, args, kwargs, router.bodies))
        return async_handle(self._app, call.queue, stored)


class Hold:
    """The hold that keeps a batch from ending while its author adds to it."""

    def __init__(self, waiting: Callbacks, queues: tuple[str, ...]) -> None:
        """`queues`: the queues that the app has tasks for.

        Without callbacks, whose cluster the batch uses, the first queue determines the cluster.
        """
        self.item = ""
        self._callbacks = waiting
        self._queues = waiting.queues or queues[:1]
        self._until = self._renew_at = 0.0

    @property
    def left_s(self) -> float:
        """The seconds for which the hold certainly still lasts. Raises BatchCancelled if it may have ended."""
        left = self._until - monotonic()
        if not self.item or left <= 0:
            raise BatchCancelled(f"nothing was added for {HOLD_S:g} s, or the batch has not begun or is over")
        return left

    def begun(self, bodies: Bodies) -> Calls[None]:
        """Begin the item, and put the callbacks that wait for it."""
        owner = Owner(self._queues)
        while True:
            cluster = yield owner
            self._last_from(monotonic())
            self.item = yield Call(items.item_hold(expire=HOLD_S, queue=next(iter(self._queues), None)))
            waiting = self._callbacks.puts(self.item, bodies)
            try:
                if waiting:
                    yield Call(batches.transaction(waiting))
                return
            except Exception as error:
                with suppress(SockpqError):
                    yield Call(items.item_release(self.item))
                # Otherwise the queues have another owner than was known.
                if not isinstance(error, CrossCluster) or (yield owner) == cluster:
                    raise

    def renewed(self) -> Calls[None]:
        """Renew the hold when half of its time has passed."""
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


def as_call(task: Task[Any, Any] | TaskCall[Any, Any]) -> TaskCall[Any, Any]:
    """Return the task with its options."""
    return TaskCall(task, {}) if isinstance(task, Task) else task


def added(
    call: TaskCall[Any, Any], item: str, args: tuple[Any, ...], kwargs: dict[str, Any], bodies: Bodies
) -> Calls[Stored]:
    """Put this call as a member of the item, in the item's cluster. Raises BatchCancelled, CrossCluster."""
    call.check(args, kwargs, takes_result=False)
    put = call.command(args, kwargs, bodies, item=item)._replace(beside=item)
    try:
        stored: Stored = yield Call(put, timeout=call.timeout)
    except Refused as error:
        raise told(error) from error
    return stored


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
    """Return the error for the producer of a batch: a refusal, or BatchCancelled."""
    if isinstance(error, ItemCancelled | ItemNotHeld):
        return BatchCancelled("somebody has cancelled the batch, or its hold has ended before its block")
    return error


def progress(item: str) -> Calls[ItemStat | None]:
    """Get the states of a batch's tasks."""
    with suppress(ItemNotFound):
        stat: ItemStat = yield Call(items.item_stat(item))
        return stat
    return None


def cancelled(item: str) -> Calls[int]:
    """Remove the unfinished tasks of a batch; returns how many, 0 if it has ended."""
    with suppress(ItemNotFound):
        count: int = yield Call(items.item_cancel(item))
        return count
    return 0


def retried(item: str) -> Calls[int]:
    """Retry the failed tasks of a batch."""
    with suppress(ItemNotFound):
        count: int = yield Call(items.item_retry(item))
        return count
    return 0
