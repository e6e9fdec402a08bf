"""The handle of a flow: its result, and the states of its steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from time import monotonic
from typing import Any, NamedTuple

from sockpq._protocol.arguments import Codec
from sockpq._protocol.commands import items, jobs, records
from sockpq.errors import BadArguments, ItemNotFound, JobNotFound
from sockpq.model import Awaited, Number
from sockpq.worker.errors import TaskFailed
from sockpq.worker.flows.calls import Call, Calls, Home, amade, async_router_of, made, router_of
from sockpq.worker.flows.plan import Plan
from sockpq.worker.handle import failure_of

LEAST_S = 0.001


class FlowStep(NamedTuple):
    """A step that was put. `parents`: the indexes of those directly before it; `optional`: see Signature."""

    task: str
    queue: str
    number: int
    item: str
    parents: tuple[int, ...]
    optional: bool


class Node(NamedTuple):
    """A step in a graph. `state`: as that of Handle.state(); None if nothing is known about it any longer."""

    task: str
    number: int
    state: str | None


class Graph(NamedTuple):
    """The steps of a flow, and its edges: pairs of indexes of nodes, the earlier step first. str() shows it as text."""

    nodes: list[Node]
    edges: list[tuple[int, int]]

    def __str__(self) -> str:
        """Return a line for each step: its index, task, state, and the indexes of the steps before it."""
        places, width = len(str(len(self.nodes) - 1)), max(len(node.task) for node in self.nodes)
        lines = []
        for index, node in enumerate(self.nodes):
            before = [str(parent) for parent, child in self.edges if child == index]
            after = f"  after {', '.join(before)}" if before else ""
            lines.append(f"{index:>{places}}  {node.task:<{width}}  {node.state or '-':<9}{after}".rstrip())
        return "\n".join(lines)


class Flow(NamedTuple):
    """The data of a flow that was put. `last`: the steps whose results it returns; `joined`: as a list."""

    steps: tuple[FlowStep, ...]
    last: tuple[int, ...]
    joined: bool


class FlowHandle:
    """A flow that app.flow() has put. `saved()` can be stored for other programs; see App.flow_handle."""

    def __init__(self, app: Home, flow: Flow) -> None:
        self._app = app
        self._flow = flow

    @property
    def steps(self) -> tuple[FlowStep, ...]:
        """The steps, with the numbers of their jobs."""
        return self._flow.steps

    def wait(self, timeout: float | None = None) -> Any:
        """Wait until the flow has ended, for `timeout` seconds at most, and return the result of its last step.

        A list of results if it ends in a group. Raises TaskFailed when a step has failed and only steps after it
        remain; TimeoutError; JobNotFound when a step is no longer known.
        """
        return made(router_of(self._app), ended(self._flow, self._app.codec, timeout))

    def graph(self) -> Graph:
        """Return the current state of each step."""
        return made(router_of(self._app), looked(self._flow))

    def cancel(self) -> bool:
        """Remove all steps that have not ended; running ones are interrupted. Returns whether there were any."""
        return made(router_of(self._app), cancelled(self._flow))

    def saved(self) -> dict[str, Any]:
        """Return what app.flow_handle() needs, as a value for JSON."""
        return saved(self._flow)


class AsyncFlowHandle:
    """A flow that app.aflow() has put: FlowHandle for asyncio."""

    def __init__(self, app: Home, flow: Flow) -> None:
        self._app = app
        self._flow = flow

    @property
    def steps(self) -> tuple[FlowStep, ...]:
        """The steps, with the numbers of their jobs."""
        return self._flow.steps

    async def wait(self, timeout: float | None = None) -> Any:
        """Wait until the flow has ended, and return the result of its last step. See FlowHandle.wait."""
        return await amade(async_router_of(self._app), ended(self._flow, self._app.codec, timeout))

    async def graph(self) -> Graph:
        """Return the current state of each step."""
        return await amade(async_router_of(self._app), looked(self._flow))

    async def cancel(self) -> bool:
        """Remove all steps that have not ended. See FlowHandle.cancel."""
        return await amade(async_router_of(self._app), cancelled(self._flow))

    def saved(self) -> dict[str, Any]:
        """Return what app.aflow_handle() needs, as a value for JSON."""
        return saved(self._flow)


def flow_of(plan: Plan, numbers: Sequence[int], last: tuple[int, ...], joined: bool) -> Flow:
    """Return the flow of a plan that was put, whose jobs have these numbers."""
    steps = tuple(
        FlowStep(
            step.call.name, step.call.queue, number, plan.stages[stage].item, step.parents, step.optional,
        )
        for step, number, stage in zip(plan.steps, numbers, plan.stage_of, strict=True)
    )
    return Flow(steps, last, joined)


def saved(flow: Flow) -> dict[str, Any]:
    """Return the flow as a value for JSON."""
    return {"steps": [step._asdict() for step in flow.steps], "last": list(flow.last), "joined": flow.joined}


def restored(value: Mapping[str, Any]) -> Flow:
    """Return the flow that was saved. Raises BadArguments."""
    try:
        steps = [FlowStep(**step) for step in value["steps"]]
        return Flow(
            tuple(step._replace(parents=tuple(step.parents)) for step in steps), tuple(value["last"]), value["joined"],
        )
    except (KeyError, TypeError) as error:
        raise BadArguments(f"this is not what saved() of a flow has returned: {error!r}") from None


def ended(flow: Flow, codec: Codec, timeout: float | None) -> Calls[Any]:
    """Wait for the steps in order, except those prevented by a failure."""
    until = None if timeout is None else monotonic() + timeout
    failed: set[int] = set()
    failure: TaskFailed | None = None
    values: dict[int, Any] = {}
    for index, step in enumerate(flow.steps):
        if any(parent in failed and not flow.steps[parent].optional for parent in step.parents):
            failed.add(index)
            continue
        left = None if until is None else max(until - monotonic(), LEAST_S)
        end: Awaited | None = yield Call(records.await_job(step.number, left), wait=left)
        if end is None:
            raise TimeoutError(f"{step.task} has not ended yet")
        if end.state == "done":
            values[index] = codec.decode(end.data) if end.data else None
            continue
        failed.add(index)
        if not step.optional:
            failure = failure or failure_of(end.state, end.data.decode(errors="replace"))
    if failure:
        raise failure
    results = [values.get(index) for index in flow.last]
    return results if flow.joined else results[0]


def looked(flow: Flow) -> Calls[Graph]:
    """Get the state of each step."""
    nodes = []
    for step in flow.steps:
        found = yield Call(records.ended(step.number))
        state = found and found.state
        if state == "ready" and found.queue != step.queue:      # a dead job is ready in the queue in which it lies
            with suppress(JobNotFound):
                history = yield Call(jobs.job_stat(Number(step.number)))
                state = "dead" if history.died is not None else state
        nodes.append(Node(step.task, step.number, state))
    edges = [(parent, index) for index, step in enumerate(flow.steps) for parent in step.parents]
    return Graph(nodes, edges)


def cancelled(flow: Flow) -> Calls[bool]:
    """Cancel the items of all stages; later stages are removed with earlier ones, and may be gone already."""
    any_job = False
    for item in dict.fromkeys(step.item for step in flow.steps):
        with suppress(ItemNotFound):
            count = yield Call(items.item_cancel(item))
            any_job = any_job or count > 0
    return any_job
