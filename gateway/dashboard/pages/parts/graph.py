"""Draws a flow as a graph: a column for each layer, a box for each item, and in it a line for each of its jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from urllib.parse import urlencode

from sockpqd.core import ItemJob
from sockpqd.gateway.dashboard.markup import Child, Markup, tag
from sockpqd.gateway.dashboard.pages.parts.body import task_of
from sockpqd.gateway.dashboard.pages.parts.flow import FlowStage, ItemFlow
from sockpqd.gateway.dashboard.pages.parts.view import View, counted

BOX, GAP_X, GAP_Y = 230, 60, 18         # pixels
HEAD, LINE, FOOT = 40, 20, 6
LINES_MAX = 12                          # of a box; the others are a number
LABEL_MAX = 18                          # characters
LINES_PER_PORTION = 5


async def drawn(view: View, flow: ItemFlow, item: str) -> Markup:
    """Return the graph. The box of `item` is marked."""
    tops: dict[int, int] = {}
    places: dict[str, tuple[int, int, int]] = {}        # by name: left, top and height
    boxes: list[Markup] = []
    for stage in flow.stages:
        lines = min(len(stage.jobs), LINES_MAX)
        height = HEAD + LINE * (lines + (stage.unfinished > lines)) + FOOT
        left, top = stage.layer * (BOX + GAP_X) + 1, tops.get(stage.layer, 1)
        tops[stage.layer] = top + height + GAP_Y
        places[_key(stage)] = left, top, height
        boxes.append(await _box(view, stage, left, top, height, marked=stage.name == item))
    edges = [_edge(places[name], places[_key(stage)])
             for stage in flow.stages for name in stage.after if name in places]
    await asyncio.sleep(0)
    width = (max(stage.layer for stage in flow.stages) + 1) * (BOX + GAP_X) - GAP_X + 2
    height = max(tops.values()) - GAP_Y + 2
    label = f"The flow of {item}: {counted(len(flow.stages), 'box', 'boxes')}, from left to right in the order of work"
    picture = tag("svg", edges, boxes, viewBox=f"0 0 {width} {height}", width=width, height=height, role="group",
                  aria_label=label, class_="graph")
    return tag("div", picture, class_="wide", tabindex="0", role="region", aria_label="The graph of the flow")


def _key(stage: FlowStage) -> str:
    return stage.name or f"SEQ {stage.jobs[0].seq}"


def _edge(source: tuple[int, int, int], target: tuple[int, int, int]) -> Markup:
    begin, end = source[0] + BOX, target[0]
    high, low = source[1] + HEAD // 2, target[1] + HEAD // 2
    middle = (begin + end) // 2
    return tag("path", d=f"M {begin} {high} C {middle} {high} {middle} {low} {end} {low}", class_="edge")


async def _box(view: View, stage: FlowStage, left: int, top: int, height: int, *, marked: bool) -> Markup:
    parts: list[Child] = [tag("rect", x=left, y=top, width=BOX, height=height, rx=6,
                              class_="box marked" if marked else "box")]
    name = _short(stage.name, LABEL_MAX + 6) if stage.name else "without an item"
    title: Child = tag("text", name, x=left + 10, y=top + 17, class_="title")
    if stage.name and not marked:
        title = tag("a", title, href=f"/items?{urlencode({'name': stage.name})}")
    parts += [title, tag("text", _about(stage), x=left + 10, y=top + 33, class_="faint")]
    for at, job in enumerate(stage.jobs[:LINES_MAX]):
        parts += _line(view, job, left, top + HEAD + LINE * at)
        if at % LINES_PER_PORTION == 0:
            await asyncio.sleep(0)
    more = stage.unfinished - min(len(stage.jobs), LINES_MAX)
    if more > 0:
        parts.append(tag("text", f"{more:,} more", x=left + 10, y=top + height - FOOT - 5, class_="faint"))
    await asyncio.sleep(0)
    return tag("g", parts)


def _about(stage: FlowStage) -> str:
    if not stage.exists:
        return "has ended, or has not begun"
    return f"{stage.unfinished:,} unfinished, {stage.done:,} done" if stage.name else "waits"


def _line(view: View, job: ItemJob, left: int, top: int) -> Iterator[Child]:
    state = job.state.name.lower()
    label = tag("text", _short(_label(view, job), LABEL_MAX), x=left + 26, y=top + 14)
    yield tag("rect", x=left + 10, y=top + 4, width=10, height=10, rx=2, class_=f"state {state}")
    yield tag("a", label, href=f"/job?{_address(job)}") if view.visitor.manages(job.queue) else label
    yield tag("text", state, x=left + BOX - 10, y=top + 14, class_="faint end")


def _address(job: ItemJob) -> str:
    if job.id is not None:
        return urlencode({"id": job.id})
    if job.number is not None:
        return urlencode({"number": job.number})
    return urlencode({"queue": job.queue, "seq": job.seq})


def _label(view: View, job: ItemJob) -> str:
    """Return a label for a job: its key, the name of its task, its number, or the name of its queue."""
    if not view.visitor.manages(job.queue):
        return "a job"
    return job.key or task_of(job.body()) or (str(job.number) if job.number is not None else job.queue)


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most - 1]}…"
