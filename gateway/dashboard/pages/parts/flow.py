"""The flow that an item belongs to: the items before and after it (AFTER), with their jobs, in layers."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable

from msgspec import Struct, field

from sockpqd.core import ItemJob
from sockpqd.gateway.dashboard.pages.parts.view import View

JOBS_MAX = 200              # of a flow
STAGES_MAX = 40


class FlowStage(Struct):
    """An item with its jobs, or a job without an item that waits for items. `after`: the items waited for."""

    name: str
    jobs: list[ItemJob] = field(default_factory=list)
    unfinished: int = 0
    done: int = 0
    exists: bool = True
    after: dict[str, None] = field(default_factory=dict)
    layer: int = 0


class ItemFlow(Struct):
    """The stages of a flow, each after the stages for which it waits. `cut`: there is more."""

    stages: list[FlowStage]
    cut: bool


async def flow_of(view: View, item: str) -> ItemFlow:
    """Find the flow of an item, as far as the visitor may see its items."""
    machine, mine = view.cluster.machine, view.visitor.rights.item
    found: dict[str, FlowStage] = {}
    names, left, cut = deque([item]), JOBS_MAX, False
    while names and len(found) < STAGES_MAX:
        name = names.popleft()
        if name in found or not name.startswith(mine):
            continue
        stage = found[name] = FlowStage(name)
        summary = machine.item_summary(name)
        if summary is None:
            stage.exists = False
            continue
        stage.jobs = machine.jobs_of_item(name, left)
        stage.unfinished, stage.done = summary.unfinished, summary.done
        left -= len(stage.jobs)
        await asyncio.sleep(0)
        behind = machine.jobs_behind_item(name, JOBS_MAX)
        await asyncio.sleep(0)
        for job in (*stage.jobs, *behind):
            waiting = stage if job.item == name else _waiting(found, job) if job.item is None else None
            if waiting is not None:
                waiting.after.update(dict.fromkeys(job.after))
            names += [one for one in (*job.after, job.item) if one is not None and one not in found]
        await asyncio.sleep(0)
    cut = bool(names) or any(len(stage.jobs) < stage.unfinished for stage in found.values())
    _layers(found)
    return ItemFlow(sorted(found.values(), key=lambda stage: stage.layer), cut)


def _waiting(found: dict[str, FlowStage], job: ItemJob) -> FlowStage | None:
    """Return the stage of a job without an item; None if there is no room for it."""
    key = f"SEQ {job.seq}"              # no name of an item has a space
    if key not in found and len(found) < STAGES_MAX:
        found[key] = FlowStage("", [job], 1)
    return found.get(key)


def _layers(found: dict[str, FlowStage]) -> None:
    """Put each stage after those for which it waits. Items that wait for each other get arbitrary layers."""
    for _ in found:
        changed = False
        for stage in found.values():
            layer = 1 + max((found[name].layer for name in _known(stage.after, found)), default=-1)
            if layer > stage.layer and layer < len(found):
                stage.layer, changed = layer, True
        if not changed:
            return


def _known(names: Iterable[str], found: dict[str, FlowStage]) -> list[str]:
    return [name for name in names if name in found]
