"""The app: maps queues and tasks to the functions that process their jobs."""

from __future__ import annotations

import asyncio
import os
import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, NamedTuple, ParamSpec, TypeVar, cast

from sockpq._async.client import Client as AsyncClient
from sockpq._engine.tracing import Tracing
from sockpq._protocol.arguments import JOB_KEY, Codec, name
from sockpq._sync.client import Client
from sockpq.errors import BadArguments
from sockpq.worker.current import check_cancelled
from sockpq.worker.envelope import JsonCodec
from sockpq.worker.flows.batch import (
    AsyncBatch,
    AsyncBatchHandle,
    AsyncOwnBatch,
    Batch,
    BatchHandle,
    OwnBatch,
    callbacks,
    called,
    own_item,
)
from sockpq.worker.flows.calls import amade, async_router_of, made, router_of
from sockpq.worker.flows.handle import AsyncFlowHandle, FlowHandle, flow_of, restored
from sockpq.worker.flows.writing import put_flow
from sockpq.worker.policy import EXPIRE_S, TRIES, Errors, Policy, policy_of
from sockpq.worker.signature import Canvas, Signature
from sockpq.worker.task import Schedule, Task

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])
CatchUp = Literal["none", "one", "all"]

CRON_QUEUE = "cron"
TASK_NAME_MAX = 100         # with ".<unix time>" it is a key


class Handler(NamedTuple):
    """A function that gets the raw jobs of a queue."""

    function: Callable[[Any], Any]
    queue: str
    policy: Policy


class App:
    """Tasks and handlers, and the clients that put their jobs.

    `servers` and the `client` options are those of sockpq.Client; nothing is sent before the first put. `codec`: an
    object with `encode(value)` to bytes and `decode(data)`, instead of JSON. `name`: the owner of the schedules, for
    apps that share a queue of periodic jobs. With `eager = True` put() and call() run the function at once, in this
    process, without any server: for tests.
    """

    def __init__(
        self, servers: str | Iterable[str] | None = None, *, name: str = "app", codec: Codec | None = None,
        eager: bool = False, **client: Any,
    ) -> None:
        self.name = name
        self.codec: Codec = codec or JsonCodec()
        self.eager = eager
        self.tasks: dict[str, Task[Any, Any]] = {}
        self.handlers: dict[str, Handler] = {}
        self.child_starts: list[Callable[[], Any]] = []
        self._servers = servers if servers is None or isinstance(servers, str) else tuple(servers)
        self._options = client
        self._client: Client | None = None
        self.stand_in: Any = None           # instead of both clients, in tests: see inline.py
        self._async_clients: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncClient]
        self._async_clients = weakref.WeakKeyDictionary()

    @property
    def tracing(self) -> Tracing | None:
        """The spans of its client; None unless it was created with tracing=True."""
        return self.client._router.tracing if self._options.get("tracing") and self.stand_in is None else None

    # declaring

    def task(
        self,
        queue: str,
        *,
        name: str | None = None,
        expire: float = EXPIRE_S,
        tries: int = TRIES,
        backoff: tuple[float, float] | None = None,
        retry_on: Errors | None = None,
        give_up_on: Errors = (),
        retain: float | None = None,
        result: bool = False,
        on_cancel: Callable[[Any], Any] | None = None,
        group: Callable[..., object] | None = None,
    ) -> Callable[[Callable[P, R]], Task[P, R]]:
        """Make a function a task of `queue`: `put(..)` with its arguments queues a job, a worker calls it.

        `expire`: the lease in seconds; a worker renews it as long as it lives. `tries`: how often it is tried before
        the job is given up (dead). `backoff`: the pause after the first failure, doubled by each, and the longest, in
        seconds; by default (2, 600). If given, it also becomes the queue's setting, for workers that die. `retry_on`:
        only these errors are tried again; `give_up_on`: these never are. `retain`: for how many seconds ended jobs are
        kept; `result`: with the function's return value, for an hour without `retain`. `on_cancel`: called with a job
        that was cancelled while the function ran, when it has been interrupted or has returned. `group`: called with
        the arguments of put(), returns the job's group, for queues that choose by groups (None: the queue's name).
        `name`: by default the function's module and name.
        """
        if callable(queue):
            raise TypeError('a task needs a queue: @app.task("mail")')
        self._task_queue(queue)
        policy = policy_of(expire, tries, backoff, retry_on, give_up_on, retain, result, on_cancel)

        def declare(function: Callable[P, R]) -> Task[P, R]:
            named = name or name_of(function)
            return self._added(Task(self, function, named, self._task_queue(queue), policy, group=group))

        return declare

    def cron(
        self,
        line: str,
        *,
        tz: str = "UTC",
        queue: str = CRON_QUEUE,
        catch_up: CatchUp = "one",
        name: str | None = None,
        expire: float = EXPIRE_S,
        tries: int = TRIES,
        backoff: tuple[float, float] | None = None,
        retry_on: Errors | None = None,
        give_up_on: Errors = (),
    ) -> Callable[[Callable[P, R]], Task[P, R]]:
        """Make a function without arguments a periodic task: `line` as in crontab, in the time zone `tz`.

        There is no scheduler: each run is a job with a key and a time, put by the worker of the run before. `catch_up`:
        how to handle times that passed while no worker ran: "none" of them, "one" run for all, or "all". The other
        options are those of task(). Needs sockpq[worker].
        """
        from sockpq.worker import cron_times

        policy = policy_of(expire, tries, backoff, retry_on, give_up_on)
        cron_times.check(line, tz)
        if catch_up not in ("none", "one", "all"):
            raise BadArguments(f"catch_up is 'none', 'one' or 'all', not {catch_up!r}")

        def declare(function: Callable[P, R]) -> Task[P, R]:
            named = name or name_of(function)
            if not JOB_KEY.fullmatch(named) or len(named) > TASK_NAME_MAX:
                raise BadArguments(
                    f"{named!r}: the name of a periodic task is 1 to {TASK_NAME_MAX} of A-Z a-z 0-9 _ . : - (name=..)"
                )
            task = Task(self, function, named, self._task_queue(queue), policy, Schedule(line, tz, catch_up))
            task.envelope((), {})       # it takes no arguments: raises TypeError otherwise
            return self._added(task)

        return declare

    def handler(
        self,
        queue: str,
        *,
        expire: float = EXPIRE_S,
        tries: int = TRIES,
        backoff: tuple[float, float] | None = None,
        retry_on: Errors | None = None,
        give_up_on: Errors = (),
    ) -> Callable[[F], F]:
        """Make a function process the raw jobs of `queue`: it is called with the job. The options are those of task().

        The job is DONE when it returns, unless it ended the job itself.
        """
        policy = policy_of(expire, tries, backoff, retry_on, give_up_on)
        self._queue_name(queue)
        if queue in self.queues:
            raise BadArguments(f"queue {queue!r} has a handler or tasks already")

        def declare(function: F) -> F:
            self.handlers[queue] = Handler(function, queue, policy)
            return function

        return declare

    def on_child_start(self, function: F) -> F:
        """Call `function()` in each child before its first job: to open what a child needs of its own."""
        self.child_starts.append(function)
        return function

    # flows and batches

    def flow(self, canvas: Canvas, *, on_failure: Task[Any, Any] | Signature | None = None) -> FlowHandle:
        """Put a flow, `app.flow(fetch.s(1) >> (parse.s() | index.s()) >> report.s())`: all of it, or nothing.

        Each step is a job that waits until the steps before it are done, and gets their results as its first argument,
        a list after a group. If a step is given up, the steps after it are removed, unless it is
        task.s(..).continue_on_failure(). `on_failure`: called once if the flow fails.
        """
        router = router_of(self)
        plan, numbers = made(router, put_flow(canvas, self.codec, router.bodies, called(on_failure)))
        return FlowHandle(self, flow_of(plan, numbers, canvas.last, canvas.joined))

    async def aflow(self, canvas: Canvas, *, on_failure: Task[Any, Any] | Signature | None = None) -> AsyncFlowHandle:
        """Put a flow, as flow() does, in asyncio."""
        router = async_router_of(self)
        plan, numbers = await amade(router, put_flow(canvas, self.codec, router.bodies, called(on_failure)))
        return AsyncFlowHandle(self, flow_of(plan, numbers, canvas.last, canvas.joined))

    def flow_handle(self, saved: Mapping[str, Any]) -> FlowHandle:
        """Return the handle of a flow that was put before, from what its saved() returned."""
        return FlowHandle(self, restored(saved))

    def aflow_handle(self, saved: Mapping[str, Any]) -> AsyncFlowHandle:
        """Return the handle of a flow for asyncio. See flow_handle."""
        return AsyncFlowHandle(self, restored(saved))

    def batch(
        self, *, on_success: Task[Any, Any] | Signature | None = None,
        on_complete: Task[Any, Any] | Signature | None = None, on_failure: Task[Any, Any] | Signature | None = None,
    ) -> Batch:
        """Make a batch: `with app.batch(on_success=report.s(7)) as b: b.add(resize, "a.gif")`.

        Called when all its tasks are done (`on_success`), when no task is left to run, whatever their outcomes
        (`on_complete`), and as soon as one is given up, or the batch is cancelled (`on_failure`).
        """
        return Batch(self, callbacks(on_success, on_complete, on_failure))

    def abatch(
        self, *, on_success: Task[Any, Any] | Signature | None = None,
        on_complete: Task[Any, Any] | Signature | None = None, on_failure: Task[Any, Any] | Signature | None = None,
    ) -> AsyncBatch:
        """Make a batch in asyncio, as batch() does: `async with app.abatch() as b: await b.add(resize, "a.gif")`."""
        return AsyncBatch(self, callbacks(on_success, on_complete, on_failure))

    def batch_handle(self, item: str) -> BatchHandle:
        """Return the handle of a batch that was made before, perhaps by another program, by its item."""
        return BatchHandle(self, item)

    def abatch_handle(self, item: str) -> AsyncBatchHandle:
        """Return the handle of a batch for asyncio. See batch_handle."""
        return AsyncBatchHandle(self, item)

    def current_batch(self) -> OwnBatch:
        """Return the batch of the running task, which may add to it. Raises LookupError when it is in none."""
        return OwnBatch(self, own_item())

    def acurrent_batch(self) -> AsyncOwnBatch:
        """Return the batch of the running task, for asyncio."""
        return AsyncOwnBatch(self, own_item())

    # looking up

    @property
    def queues(self) -> tuple[str, ...]:
        """All queues that have a task or a handler, in the order of declaration."""
        return tuple(dict.fromkeys([*(task.queue for task in self.tasks.values()), *self.handlers]))

    def policy_of(self, queue: str) -> Policy:
        """Return the default policy of a queue: its handler's, or else its first task's."""
        handler = self.handlers.get(queue)
        if handler:
            return handler.policy
        return next((task.policy for task in self.tasks.values() if task.queue == queue), Policy())

    def policies_of(self, queue: str) -> list[Policy]:
        """Return the policies of the queue's handler and tasks, in the order of declaration."""
        handler = self.handlers.get(queue)
        return [handler.policy] if handler else [one.policy for one in self.tasks.values() if one.queue == queue]

    def lease_of(self, queue: str) -> float:
        """Return the longest lease that a job of this queue needs, in seconds."""
        leases = [task.policy.expire for task in self.tasks.values() if task.queue == queue]
        return max([*leases, self.policy_of(queue).expire]) if leases else self.policy_of(queue).expire

    # clients

    @property
    def servers(self) -> str:
        """The addresses of its servers, separated by commas."""
        if self.stand_in:
            return "none"
        return ",".join(map(str, self.client._router.addresses))

    @property
    def client(self) -> Client:
        """The blocking client; safe in threads and in forked children."""
        if self.stand_in:
            return cast(Client, self.stand_in)
        if self._client is None:
            self._client = Client(self._servers, **self._options)
            self._client._router.guard = check_cancelled
        return self._client

    @property
    def async_client(self) -> AsyncClient:
        """The client of the running event loop."""
        if self.stand_in:
            return cast(AsyncClient, self.stand_in.as_async)
        loop = asyncio.get_running_loop()
        client = self._async_clients.get(loop)
        if client is None:
            client = self._async_clients[loop] = AsyncClient(self._servers, **self._options)
        return client

    def new_async_client(self, **options: Any) -> AsyncClient:
        """Return a client for the pool, apart from those of tasks."""
        return AsyncClient(self._servers, **{**self._options, **options})

    async def close_async_client(self) -> None:
        """Close the client of the running event loop, if there is one."""
        client = self._async_clients.pop(asyncio.get_running_loop(), None)
        if client:
            await client.close()

    def use_servers(self, servers: str) -> None:
        """Use these servers from now on; servers named in the program's options take precedence."""
        self._servers = servers
        self.close()

    def close(self) -> None:
        """Close the blocking client, if there is one; it is created again when needed."""
        client, self._client = self._client, None
        if client:
            client.close()

    # checks

    def _added(self, task: Task[P, R]) -> Task[P, R]:
        if task.name in self.tasks:
            raise BadArguments(f"there is a task {task.name!r} already: give one of them another name=")
        self.tasks[task.name] = task
        return task

    def _task_queue(self, queue: str) -> str:
        if self._queue_name(queue) in self.handlers:
            raise BadArguments(f"queue {queue!r} has a handler, which gets all its jobs")
        return queue

    def _queue_name(self, queue: str) -> str:
        return name(queue, "queue")

    def __repr__(self) -> str:
        return f"<App {self.name}, {len(self.tasks)} tasks, queues {', '.join(self.queues) or '-'}>"


def name_of(function: Callable[..., Any]) -> str:
    """Return the name of a function's task: its module and its name."""
    module = getattr(function, "__module__", None) or "app"
    if module == "__main__":        # a worker imports the file by its name, not as __main__
        main = __import__("__main__")
        module = os.path.splitext(os.path.basename(getattr(main, "__file__", None) or "app"))[0]
    return f"{module}.{function.__name__}"
