"""The first page: the verdict, problems, the figures of now, the nodes, and charts."""

from __future__ import annotations

import asyncio

from sockpqd.gateway.dashboard.markup import Child, Markup, link, tag
from sockpqd.gateway.dashboard.pages.overview.attention import concerns
from sockpqd.gateway.dashboard.pages.overview.verdict import shown, verdict
from sockpqd.gateway.dashboard.pages.parts.chart import Chart, charts, spans
from sockpqd.gateway.dashboard.pages.parts.nodes import cards, nearest_limit
from sockpqd.gateway.dashboard.pages.parts.picture import MINUTE_S, POINTS, Line, amount, mean, recent
from sockpqd.gateway.dashboard.pages.parts.tiles import tiles
from sockpqd.gateway.dashboard.pages.parts.trouble import listed, queue_link
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
    Chart("Commit latency, as leader", "ms", ("commit_p50", "commit_p95"), ("p50", "p95")),
    Chart("Processor", "percent", ("cpu",), ("of one core",)),
    Chart("Memory", "bytes", ("memory",), ("in use",)),
    Chart("Clients", "count", ("connections", "blocked"), ("connected", "blocked")),
)


async def show(view: View) -> str:
    cluster = view.cluster
    nodes, figures = cluster.status(), cluster.figures()
    found = await concerns(view, nodes, figures)
    drawn = await charts(view, CHARTS, view.samples.cluster, "cluster")
    of_node = await charts(view, NODE_CHARTS, view.samples.node, "node")
    now = await _now(view)
    await asyncio.sleep(0)
    to_look_at = section("To look at", listed(found))
    await asyncio.sleep(0)
    of_nodes = section("Nodes", tag("p", nearest_limit(nodes)), cards(view, nodes),
                       tag("p", link("/cluster", "All about the cluster")))
    await asyncio.sleep(0)
    return page(
        view, "Overview", shown(verdict(view, nodes, figures, found)), to_look_at, now, of_nodes,
        spans(view, "/", {}, view.samples.cluster), drawn,
        tag("h2", f"This node, {cluster.name}"), of_node,
    )


async def _now(view: View) -> Markup:
    """Return the tiles: the current figures, with the means of the last minutes."""
    series = view.samples.cluster
    now = series.now()
    span, span_s = recent(view)
    before = series.window(view.samples.now_s, span_s, POINTS, ("put", "done", "failed", "died")).values
    shown: list[tuple[str, Child, Child]] = [
        (label, amount(now[field], "rate"), _average(before[field], span))
        for label, field in (("in", "put"), ("done", "done"), ("put back", "failed"), ("died", "died"))
    ]
    shown += [(name, amount(now[name], "count"), None) for name in ("waiting", "running")]
    longest = view.samples.oldest.longest
    oldest_in = queue_link(longest[0][1]) if longest and view.visitor.sees(longest[0][1]) else None
    shown.append(("oldest waiting", amount(now["oldest"], "seconds") if now["oldest"] else "-",
                  ["in ", oldest_in] if oldest_in else None))
    for label, name in (("queue time", "wait"), ("run time", "run")):
        await asyncio.sleep(0)
        shown.append((f"{label}, p95", *_latency(view, f"{name}_p50", f"{name}_p95")))
    shown.append(("dead", link("/dead", amount(now["dead"], "count")), None))
    return tiles(shown)


def _latency(view: View, half: str, most: str) -> tuple[str, str]:
    """Return the p95 and the p50 of the last minute: the mean of its seconds in which something was measured."""
    series = view.samples.cluster
    values = series.window(view.samples.now_s, MINUTE_S, MINUTE_S, (half, most)).values
    return amount(mean(values[most]), "seconds"), f"p50 {amount(mean(values[half]), 'seconds')}, last minute"


def _average(line: Line, span: str) -> str | None:
    known = mean(line)
    return None if known is None else f"{amount(known, 'rate')} in the last {span}"

