"""A task: a function whose calls become jobs, and the settings that workers need for it."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, ParamSpec, Protocol, TypeVar
from uuid import uuid4

from sockpq._protocol.arguments import AfterWhen, Bodies, Codec, OnDuplicate
from sockpq._protocol.command import Command
from sockpq._protocol.commands import jobs
from sockpq._protocol.commands.batches import Put
from sockpq.errors import BadArguments, NotSupported
from sockpq.model import Awaited, Stored
from sockpq.worker.envelope import Envelope, opened, result_of, returned_body
from sockpq.worker.errors import Retry
from sockpq.worker.handle import AsyncHandle, Handle, async_handle, handle
from sockpq.worker.policy import Policy
from sockpq.worker.signature import Parents, Signature, Step

if TYPE_CHECKING:
    from sockpq._async.client import Client as AsyncClient
    from sockpq._sync.client import Client

P = ParamSpec("P")
R = TypeVar("R")

RESULTS = ".results"        # added to the name of a task's queue
# Options that flows and batches make.
NOT_TOGETHER = {"after", "dedup", "every", "item", "on_duplicate", "wait", "when"}


class Home(Protocol):
    """The part of an app that its tasks use."""

    codec: Codec
    eager: bool

    @property
    def client(self) -> Client:
        """The blocking client of the app."""
        ...

    @property
    def async_client(self) -> AsyncClient:
        """The client of the running event loop."""
        ...


class Schedule(NamedTuple):
    """The times at which a periodic task runs; see cron_times.py."""

    line: str
    tz: str
    catch_up: str


class Task(Generic[P, R]):
    """A function with a queue. Calling it calls the function; `put` queues a job for a worker instead."""

    def __init__(
        self, home: Home, function: Callable[P, R], name: str, queue: str, policy: Policy,
        schedule: Schedule | None = None, *, group: Callable[..., object] | None = None,
    ) -> None:
        """`group`: called with the arguments of a put(), it returns the group of that job."""
        self.function = function
        self.name = name
        self.queue = queue
        self.policy = policy
        self.schedule = schedule
        self.home = home
        self.group = group
        self.__doc__ = function.__doc__
        self._signature = inspect.signature(function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    def put(self, *args: P.args, **kwargs: P.kwargs) -> Handle:
        """Queue a call of the function. Raises TypeError when the function does not take these arguments."""
        return TaskCall(self, {}).put(*args, **kwargs)

    async def aput(self, *args: P.args, **kwargs: P.kwargs) -> AsyncHandle:
        """Queue a call, as put() does, in asyncio."""
        return await TaskCall(self, {}).aput(*args, **kwargs)

    def as_put(self, *args: P.args, **kwargs: P.kwargs) -> Put:
        """Return the job of a call, to be put into the task's queue in another way. See TaskCall.as_put."""
        return TaskCall(self, {}).as_put(*args, **kwargs)

    def call(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """Queue a call of the function and wait for its result. Raises TaskFailed when it is given up."""
        return TaskCall(self, {}).call(*args, **kwargs)

    async def acall(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """Queue and await a call, as call() does, in asyncio."""
        return await TaskCall(self, {}).acall(*args, **kwargs)

    def s(self, *args: Any, **kwargs: Any) -> Signature:
        """Return the signature of a call, for flows and batches: `send.s("ann")`.

        In a flow the results of the steps before it are passed as the first arguments.
        """
        return TaskCall(self, {}).s(*args, **kwargs)

    def si(self, *args: Any, **kwargs: Any) -> Signature:
        """Return the signature of a call, like s(), to which no results of earlier steps are passed (immutable)."""
        return TaskCall(self, {}).si(*args, **kwargs)

    def handle(self, number: int) -> Handle:
        """Return the handle of a job that was put before, perhaps by another program, by its number."""
        return handle(self.home, self.queue, Stored(number=number))

    def ahandle(self, number: int) -> AsyncHandle:
        """Return the handle of a job for asyncio. See handle."""
        return async_handle(self.home, self.queue, Stored(number=number))

    def options(
        self,
        *,
        priority: int | None = None,
        delay: float | None = None,
        at: float | None = None,
        ttl: float | None = None,
        every: float | None = None,
        after: str | Iterable[str] | None = None,
        when: AfterWhen | None = None,
        item: str | None = None,
        key: str | None = None,
        on_duplicate: OnDuplicate | None = None,
        group: str | None = None,
        headers: Mapping[str, str] | None = None,
        dedup: tuple[str, float] | None = None,
        wait: float | None = None,
        timeout: float | None = None,
    ) -> TaskCall[P, R]:
        """Return the task with options for its next job: `send.options(delay=60).put("ann")`. See Client.put.

        `wait`: how long call() waits for the result, in seconds, before it raises NoOutput.
        """
        given = {
            "priority": priority, "delay": delay, "at": at, "ttl": ttl, "every": every, "after": after, "when": when,
            "item": item, "key": key, "on_duplicate": on_duplicate, "group": group, "headers": headers, "dedup": dedup,
            "wait": wait, "timeout": timeout,
        }
        return TaskCall(self, {name: value for name, value in given.items() if value is not None})

    def envelope(self, args: tuple[Any, ...], kwargs: dict[str, Any], reply: bool = False) -> Envelope:
        """Return the body of a job, before it is encoded.

        Raises TypeError when the function does not take the arguments.
        """
        self.check(args, kwargs)
        return Envelope(self.name, list(args), kwargs, reply)

    def check(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Raise TypeError when the function does not take these arguments."""
        try:
            self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.name}(): {error}") from None

    def __repr__(self) -> str:
        return f"<Task {self.name} of {self.queue!r}>"


class TaskCall(Generic[P, R]):
    """A task with options for its next jobs."""

    def __init__(self, task: Task[P, R], options: dict[str, Any]) -> None:
        """`options` as Client.put takes them."""
        self._task = task
        self._options = options

    @property
    def name(self) -> str:
        """The name of the task."""
        return self._task.name

    @property
    def queue(self) -> str:
        """The queue of the task."""
        return self._task.queue

    @property
    def policy(self) -> Policy:
        """The policy of the task."""
        return self._task.policy

    @property
    def timeout(self) -> float | None:
        """The time limit of a put, in seconds; None for the client's."""
        limit: float | None = self._options.get("timeout")
        return limit

    def s(self, *args: Any, **kwargs: Any) -> Signature:
        """Return the signature of a call with these options. See Task.s."""
        return Signature(Step(self, args, kwargs))

    def si(self, *args: Any, **kwargs: Any) -> Signature:
        """Return the signature of a call with these options, to which no results are passed. See Task.si."""
        return Signature(Step(self, args, kwargs, immutable=True))

    def put(self, *args: P.args, **kwargs: P.kwargs) -> Handle:
        """Queue a call of the function."""
        home, queue = self._task.home, self._task.queue
        body = self._body(args, kwargs, reply=False)
        options = self._putting(args, kwargs)
        if home.eager:
            value = _run_now(self._task, body)
            return handle(home, queue, Stored(options.get("item"), options.get("key")), self._known(value))
        try:
            stored = home.client.put(queue, body, **options, **self._marks())
        except NotSupported:            # an older server: the job has no headers, and no number
            if "headers" in self._options:
                raise
            stored = home.client.put(queue, body, **options)
        return handle(home, queue, stored)

    async def aput(self, *args: P.args, **kwargs: P.kwargs) -> AsyncHandle:
        """Queue a call of the function, in asyncio."""
        home, queue = self._task.home, self._task.queue
        body = self._body(args, kwargs, reply=False)
        options = self._putting(args, kwargs)
        if home.eager:
            value = await _attempts(self._task, body)
            return async_handle(home, queue, Stored(options.get("item"), options.get("key")), self._known(value))
        try:
            stored = await home.async_client.put(queue, body, **options, **self._marks())
        except NotSupported:
            if "headers" in self._options:
                raise
            stored = await home.async_client.put(queue, body, **options)
        return async_handle(home, queue, stored)

    def as_put(self, *args: P.args, **kwargs: P.kwargs) -> Put:
        """Return the job of a call, to be put into the task's queue in another way: with many others, or by an outbox.

        `app.client.put_many(send.queue, jobs=[send.as_put("ann"), send.as_put("bob")])`. Raises TypeError when the
        function does not take these arguments.
        """
        body = self._body(args, kwargs, reply=False)
        options = {name: value for name, value in self._putting(args, kwargs).items() if name != "timeout"}
        return Put(body, **options, **self._marks())

    def call(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """Queue a call of the function and wait for its result. Raises TaskFailed, NoOutput."""
        body = self._body(args, kwargs, reply=True)
        options = self._calling()
        if self._task.home.eager:
            return _run_now(self._task, body)
        client, queue = self._task.home.client, self._task.queue
        try:
            with client.call(queue, body, queue + RESULTS, **options, **self._found_by()) as output:
                data = output.data
        except NotSupported:
            with client.call(queue, body, queue + RESULTS, **options) as output:
                data = output.data
        return result_of(data, self._task.home.codec)

    async def acall(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """Queue a call of the function and wait for its result, in asyncio."""
        body = self._body(args, kwargs, reply=True)
        options = self._calling()
        if self._task.home.eager:
            return await _attempts(self._task, body)
        client, queue = self._task.home.async_client, self._task.queue
        try:
            async with client.call(queue, body, queue + RESULTS, **options, **self._found_by()) as output:
                data = output.data
        except NotSupported:
            async with client.call(queue, body, queue + RESULTS, **options) as output:
                data = output.data
        return result_of(data, self._task.home.codec)

    def within(self, timeout: float) -> TaskCall[P, R]:
        """Return the task so that its next job is put within `timeout` seconds or not at all."""
        return TaskCall(self._task, {**self._options, "timeout": min(timeout, self._options.get("timeout", timeout))})

    def check(self, args: tuple[Any, ...], kwargs: dict[str, Any], takes_result: bool) -> None:
        """Raise TypeError when the function does not take these arguments, with a result before them."""
        self._task.check((None, *args) if takes_result else args, kwargs)

    def command(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], bodies: Bodies, parents: Parents | None = None,
        **options: Any,
    ) -> Command[Stored]:
        """Return the PUT of a call in a flow or batch, which sets `options` (as of Client.put).

        Raises BadArguments if an option of the call is not allowed there.
        """
        self._check_together()
        envelope = Envelope(self._task.name, list(args), kwargs, parents=parents)
        known = (None, *args) if parents and parents.taken else args        # what is not known yet has no group
        own = {name: value for name, value in self._putting(known, kwargs).items() if name != "timeout"}
        body = self._encoded(envelope)
        return jobs.put(self._task.queue, body, **{**own, **self._marks(), **options}, bodies=bodies)

    def _check_together(self) -> None:
        wrong = self._options.keys() & NOT_TOGETHER
        if wrong:
            raise BadArguments(f"{self._task.name}: a call in a flow or batch does not take {', '.join(sorted(wrong))}")

    def _body(self, args: tuple[Any, ...], kwargs: dict[str, Any], reply: bool) -> bytes:
        return self._encoded(self._task.envelope(args, kwargs, reply))

    def _encoded(self, envelope: Envelope) -> bytes:
        try:
            return envelope.encoded(self._task.home.codec)
        except TypeError as error:
            raise TypeError(f"the arguments of {self._task.name}() cannot be encoded: {error}") from error

    def _putting(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        if "wait" in self._options:
            raise BadArguments("wait is for call(): put() does not wait for a result")
        options = {name: value for name, value in self._options.items() if name != "headers"}
        if self._task.group is not None and "group" not in options:
            group = self._task.group(*args, **kwargs)
            if group is not None:
                options["group"] = str(group)
        return options

    def _marks(self) -> dict[str, Any]:
        """Return the options that identify the job: its headers, and a number if its task retains it."""
        numbered = self._task.policy.numbered and "every" not in self._options
        return {**self._found_by(), **({"number": True} if numbered else {})}

    def _found_by(self) -> dict[str, Any]:
        return {"headers": {**headers_of_call(self._task.name), **self._options.get("headers", {})}}

    def _known(self, value: Any) -> Awaited:
        """Return the end of a job that was run immediately."""
        kept = returned_body(self._task.home.codec, value) if self._task.policy.result else b""
        return Awaited("done", kept)

    def _calling(self) -> dict[str, Any]:
        wrong = self._options.keys() - {"priority", "item", "wait", "timeout"}
        if wrong:
            raise BadArguments(f"call() does not take {', '.join(sorted(wrong))}")
        return {"expire": self._task.policy.expire, **self._options}


def headers_of_call(task: str) -> dict[str, str]:
    """Return the headers of a job that is a call of this task: its name, and an id of the call."""
    return {"task": task, "id": uuid4().hex}


async def _attempts(task: Task[Any, Any], body: bytes) -> Any:
    """Call the function as a worker would, with encoded and decoded arguments; again if it raises Retry."""
    envelope = opened(body, task.home.codec)
    attempt = 1
    while True:
        try:
            value = task.function(*envelope.args, **envelope.kwargs)
            return await value if inspect.isawaitable(value) else value
        except Retry:
            if attempt >= task.policy.tries:
                raise
            attempt += 1


def _run_now(task: Task[Any, Any], body: bytes) -> Any:
    """Run the task; for a function that is not async no event loop is needed, and none is started."""
    attempts = _attempts(task, body)
    if inspect.iscoroutinefunction(task.function):
        return asyncio.run(attempts)
    try:
        attempts.send(None)
    except StopIteration as end:
        return end.value
    raise TypeError(f"{task.name} returns an awaitable without being async: use aput() or acall()")
