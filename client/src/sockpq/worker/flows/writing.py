"""Puts a flow atomically: all of it runs or none, no matter at which call its producer dies.

One transaction is enough if no job has to contain the numbers of jobs before it. Otherwise these are put first, level
by level, as their numbers are in the answers. Until then the first level waits for an item without jobs, the *gate*,
which is held: the last transaction releases it. If the producer dies the hold expires, which cancels the gate and every
job that waits for it, directly or not. A second hold, the *pulse*, ends with the first; each transaction releases it
and begins another, so that a late transaction is refused, as the items for which its jobs wait could be gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple
from uuid import uuid4

from sockpq._protocol.arguments import Bodies, Codec
from sockpq._protocol.command import Command
from sockpq._protocol.commands import batches, items
from sockpq.errors import CrossCluster, SockpqError
from sockpq.model import Stored
from sockpq.worker.flows.calls import Call, Calls, Owner
from sockpq.worker.flows.own_jobs import join, watch
from sockpq.worker.flows.plan import Plan
from sockpq.worker.signature import Canvas, Step

HOLD_S = 120.0
TRANSACTION_COMMANDS = 500
TRANSACTION_ITEMS = 1000                # to wait for
TRANSACTION_BYTES = 8 * 1024 * 1024     # half of what there may be, as a command is not split


def flow_name() -> str:
    """Return a unique name for a flow."""
    return f"flow_{uuid4().hex}"


def put_flow(
    canvas: Canvas, codec: Codec, bodies: Bodies, on_failure: Step | None
) -> Calls[tuple[Plan, list[int]]]:
    """Put a flow in the cluster that owns the queues of all its steps; returns its plan, and the numbers of its jobs.

    Raises CrossCluster when several clusters own them.
    """
    steps = [*canvas.steps, *([on_failure] if on_failure else [])]
    owner = Owner(tuple(dict.fromkeys(step.call.queue for step in steps)))
    cluster: str = yield owner
    while True:
        plan = Plan(canvas, flow_name(), cluster)
        try:
            return plan, (yield from written(plan, codec, bodies, on_failure))
        except CrossCluster:            # nothing of it is left: the queues have another owner than was known
            before, cluster = cluster, (yield owner)
            if cluster == before:
                raise


def written(plan: Plan, codec: Codec, bodies: Bodies, on_failure: Step | None) -> Calls[list[int]]:
    """Put all jobs of a flow; returns their numbers, by step. `bodies`: the client's conversion of bodies."""
    watches = _beside(plan, (watch(plan.queue, followers, codec, bodies) for followers in plan.watched()))
    last = _beside(plan, _on_failure(plan, bodies, on_failure))
    if not plan.names_parents:
        numbers = [0] * len(plan.steps)
        puts = [put for level in plan.levels() for put in _level(plan, level, codec, bodies, numbers, None)]
        (whole, *rest) = _portions([*(put.command for put in puts), *watches, *last])
        if not rest:
            _noted(puts, (yield Call(batches.transaction(whole))), numbers)
            return numbers
    return (yield from _held(plan, codec, bodies, watches, last))


def _held(
    plan: Plan, codec: Codec, bodies: Bodies, watches: Sequence[Command[Any]], last: Sequence[Command[Any]],
) -> Calls[list[int]]:
    numbers = [0] * len(plan.steps)
    gate, pulse = yield Call(batches.transaction([_hold(plan), _hold(plan)]))
    try:
        for level in plan.levels():
            puts = _level(plan, level, codec, bodies, numbers, gate)
            for portion in _portions([put.command for put in puts]):
                beats = [items.item_release(pulse), _hold(plan), _hold(plan, gate)]
                answers = yield Call(batches.transaction([*beats, *portion]))
                pulse = answers[1]
                _noted(puts, answers[len(beats) :], numbers)
                del puts[: len(portion)]
        *portions, rest = _portions(watches)
        for portion in portions:
            beats = [items.item_release(pulse), _hold(plan), _hold(plan, gate)]
            answers = yield Call(batches.transaction([*beats, *portion]))
            pulse = answers[1]
        # A withdrawn flow has not failed: the jobs that wait for its failure are put together with its beginning.
        yield Call(batches.transaction([items.item_release(pulse), *rest, *last, items.item_release(gate)]))
    except Exception:
        yield from _withdrawn(gate, pulse)
        raise
    return numbers


def _withdrawn(gate: str, pulse: str) -> Calls[None]:
    """Cancel the jobs put so far; a transaction still in flight will be refused."""
    with suppress(SockpqError):
        yield Call(items.item_release(pulse))
    for command in (items.item_cancel(gate), items.item_release(gate)):
        with suppress(SockpqError):
            yield Call(command)


def _beside(plan: Plan, commands: Iterable[Command[Any]]) -> list[Command[Any]]:
    """Return the PUTs in a form that is executed in the flow's cluster, or not at all."""
    return [command._replace(beside=plan.item) for command in commands]


class _Put(NamedTuple):
    """The PUT of a step, by its index, or of a join."""

    step: int | None
    command: Command[Stored]


def _level(
    plan: Plan, level: Sequence[int], codec: Codec, bodies: Bodies, numbers: Sequence[int], gate: str | None,
) -> list[_Put]:
    """Return the PUTs of a level; the first steps wait for the gate, if there is one."""
    puts = []
    for stage in plan.joins_before(level):
        (put,) = _beside(plan, [join(plan.queue, stage.item, *plan.waits_for(stage), codec, bodies)])
        puts.append(_Put(None, put))
    for index in level:
        step, stage = plan.steps[index], plan.stage(index)
        after, when = plan.waits_for(stage)
        if not after and gate is not None:
            after = [gate]
        waiting = {"after": after, "when": when} if after else {}
        parents = plan.parents_of(index, numbers)
        (put,) = _beside(plan, [step.call.command(
            step.args, step.kwargs, bodies, parents, item=stage.item, **waiting,
        )])
        puts.append(_Put(index, put))
    return puts


def _noted(puts: Sequence[_Put], answers: Sequence[Any], numbers: list[int]) -> None:
    """Record the numbers of steps, from the answers to the first of these PUTs."""
    for put, answer in zip(puts, answers, strict=False):
        if put.step is not None:
            numbers[put.step] = answer.number


def _on_failure(plan: Plan, bodies: Bodies, step: Step | None) -> list[Command[Any]]:
    """Return the call that waits for the failure of one of the last steps, which fail when an earlier one does."""
    after = [stage.item for stage in plan.last if not stage.optional]
    if step is None or not after:
        return []
    failed = {"after": after, "when": "failed", "number": False}
    return [step.call.command(step.args, step.kwargs, bodies, None, **failed)]


def _hold(plan: Plan, item: str | None = None) -> Command[Any]:
    """Return the hold of an item, or of a new one in the cluster of the flow's queues."""
    return items.item_hold(item, expire=HOLD_S, queue=plan.queue if item is None else None)


def _portions(commands: Sequence[Command[Any]]) -> Iterator[list[Command[Any]]]:
    """Yield the commands in portions that fit into a transaction each, at least one portion."""
    portion: list[Command[Any]] = []
    size = items_waited = 0
    for command in commands:
        length, waited = len(command.line) + len(command.data), command.line.count(b"|")
        full = size + length > TRANSACTION_BYTES or items_waited + waited > TRANSACTION_ITEMS
        if portion and (full or len(portion) == TRANSACTION_COMMANDS):
            yield portion
            portion, size, items_waited = [], 0, 0
        portion.append(command)
        size, items_waited = size + length, items_waited + waited
    yield portion
