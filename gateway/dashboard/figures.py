"""Answers the script that draws charts: the rows of a series over a span, as JSON, a field at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import msgspec

from sockpqd.core import OWN_PREFIX
from sockpqd.gateway.dashboard.pages.parts.chart import SPAN, SPANS
from sockpqd.gateway.dashboard.visitor import Visitor
from sockpqd.gateway.samples import FigureRows, FigureSampler, FigureSeries

ROWS_MAX = 500          # as many as a chart can show


class NoFigures(Exception):
    """The figures do not exist, or the visitor may not see them; the message says which."""


async def figures(samples: FigureSampler, visitor: Visitor, words: Mapping[str, str]) -> bytes:
    """Return the rows: `of` cluster, node, queue or pulse, with its `name`, over a `span`. Raises NoFigures."""
    series = _series(samples, visitor, words)
    span = words.get("span", SPAN)
    if span not in SPANS:
        raise NoFigures("there is no such span")
    now_s, rows, values = samples.now_s, None, {}
    for field in series.fields:
        rows = series.window(now_s, SPANS[span][1], ROWS_MAX, (field.name,))
        values.update(rows.values)
        await asyncio.sleep(0)
    assert rows is not None
    return msgspec.json.encode(FigureRows(rows.step_s, rows.times, values))


def _series(samples: FigureSampler, visitor: Visitor, words: Mapping[str, str]) -> FigureSeries:
    of, name = words.get("of"), words.get("name", "")
    if of == "cluster":
        return samples.cluster
    if of == "node":
        return samples.node
    if of not in ("queue", "pulse"):
        raise NoFigures("there are figures of cluster, node, queue and pulse")
    if not visitor.sees(name.removeprefix(OWN_PREFIX) if of == "pulse" else name):
        raise NoFigures("you have no right to see this")
    series = samples.queue(name) if of == "queue" else samples.pulses.courses.get(name)
    if series is None:
        raise NoFigures(f"nothing is known of this {of} yet")
    return series
