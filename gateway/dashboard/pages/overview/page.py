"""The first page."""

from __future__ import annotations

import asyncio

from sockpqd.gateway.dashboard.markup import Child, Markup, link, tag
from sockpqd.gateway.dashboard.pages.overview.attention import Concern, concerns, queue_link
from sockpqd.gateway.dashboard.pages.overview.verdict import shown, verdict
from sockpqd.gateway.dashboard.pages.parts.chart import Chart, charts, spans
from sockpqd.gateway.dashboard.pages.parts.nodes import cards, nearest_limit
from sockpqd.gateway.dashboard.pages.parts.picture import HOUR_S, POINTS, Line, amount, mean
from sockpqd.gateway.dashboard.pages.parts.view import View, page, section

CHARTS = (
    Chart("Jobs per second", "rate", ("put", "taken", "done"), ("in", "handed out", "done")),
    Chart("Failed per second", "rate", ("failed", "died"), ("put back", "died")),
    Chart("Jobs", "count", ("waiting", "running", "delayed", "dead"), ("waiting", "running", "delayed", "dead")),
    Chart("Queue time", "seconds", ("wait_p50", "wait_p95"), ("p50", "p95")),
    Chart("Run time", "seconds", ("run_p50", "run_p95"), ("p50", "p95")),
    Chart("Oldest waiting", "seconds", ("oldest",), ("oldest",)),
)
NODE_CHARTS = (
    Chart("Commit latency", "ms", ("commit_p50", "commit_p95"), ("p50", "p95")),
    Chart("Processor", "percent", ("cpu",), ("of one core",)),
    Chart("Memory", "bytes", ("memory",), ("in use",)),
    Chart("Clients", "count", ("connections", "blocked"), ("connected", "blocked")),
)


MINUTE_S = 60


async def show(view: View) -> str:
    cluster = view.cluster
    nodes, figures = cluster.status(), cluster.figures()
    found = await concerns(view, nodes, figures)
    drawn = await charts(view, CHARTS, view.samples.cluster, "cluster")
    of_node = await charts(view, NODE_CHARTS, view.samples.node, "node")
    now = _now(view)
    await asyncio.sleep(0)
    return page(
        view, "Overview", shown(verdict(view, nodes, figures, found)),
        section("To look at", _list(found)) if found else None, now,
        section("Nodes", tag("p", nearest_limit(nodes)), cards(view, nodes),
                tag("p", link("/cluster", "All about the cluster"))),
        spans(view, "/", {}), drawn,
        tag("h2", f"This node, {cluster.name}"), of_node,
    )


def _now(view: View) -> Markup:
    """Return the current figures."""
    series = view.samples.cluster
    now = series.now()
    hour = series.window(view.samples.now_s, HOUR_S, POINTS, ("put", "done", "failed", "died")).values
    tiles: list[tuple[str, Child, Child]] = [
        (label, amount(now[field], "rate"), _average(hour[field]))
        for label, field in (("in", "put"), ("done", "done"), ("put back", "failed"), ("died", "died"))
    ]
    tiles += [(name, amount(now[name], "count"), None) for name in ("waiting", "running")]
    longest = view.samples.oldest.longest
    oldest_in = queue_link(longest[0][1]) if longest and view.visitor.sees(longest[0][1]) else None
    tiles.append(("oldest waiting", amount(now["oldest"], "seconds") if now["oldest"] else "-",
                  ["in ", oldest_in] if oldest_in else None))
    for label, name in (("queue time", "wait"), ("run time", "run")):
        tiles.append((f"{label}, p95", *_latency(view, f"{name}_p50", f"{name}_p95")))
    tiles.append(("dead", link("/dead", amount(now["dead"], "count")), None))
    return tag("dl", [
        tag("div", tag("dt", name), tag("dd", value, tag("small", more) if more else None))
        for name, value, more in tiles
    ], class_="figures")


def _latency(view: View, half: str, most: str) -> tuple[str, str]:
    """Return the p95 and the p50 of the last minute: the mean of its seconds in which something was measured."""
    series = view.samples.cluster
    values = series.window(view.samples.now_s, MINUTE_S, MINUTE_S, (half, most)).values
    return amount(mean(values[most]), "seconds"), f"p50 {amount(mean(values[half]), 'seconds')}, last minute"


def _average(line: Line) -> str | None:
    known = mean(line)
    return None if known is None else f"{amount(known, 'rate')} in the last hour"


def _list(found: list[Concern]) -> Markup:
    return tag("ul", [
        tag("li", tag("span", one.word, class_="word"), tag("span", one.sentence),
            class_="bad" if one.severe else "warn") for one in found
    ], class_="attention")
