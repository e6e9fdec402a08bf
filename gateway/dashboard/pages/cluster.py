"""The page of the cluster: its nodes, how many may be lost, this node's figures, and the operator's actions."""

from __future__ import annotations

from collections.abc import Iterator

from sockpqd.cluster import Figures, NodeStatus, PagingFigures
from sockpqd.core import Machine
from sockpqd.gateway.dashboard.markup import Child, FigureText, Markup, pairs, table, tag
from sockpqd.gateway.dashboard.pages.parts.nodes import clock, disk, memory, who_may_be_lost
from sockpqd.gateway.dashboard.pages.parts.picture import amount
from sockpqd.gateway.dashboard.pages.parts.view import View, counted, details, form, page, section, size
from sockpqd.gateway.monitoring.readiness import why_not_ready
from sockpqd.gateway.replica import Phase, Puller


async def show(view: View) -> str:
    cluster = view.cluster
    nodes, figures = cluster.status(), cluster.figures()
    reason = why_not_ready(cluster)
    now, queues = view.samples.cluster.now(), cluster.machine.total(None).queues
    return page(
        view, "Cluster",
        tag("p", "This node is ready." if reason is None else f"This node is not ready: {reason}."),
        tag("p", who_may_be_lost(nodes)),
        await table(
            ("node", "role", "memory", "disk free", "lag", "clock", "applied", "term", "id", "clients dial", "version"),
            (_row(node) for node in nodes), counted(len(nodes), "node"),
        ),
        section("Jobs", pairs([
            ("queues", f"{queues:,}"),
            *((name, amount(now[name], "count")) for name in ("waiting", "delayed", "running", "dead")),
            ("sessions", cluster.machine.session_count), ("connections here", len(view.hub.connections)),
            ("blocked here", len(view.hub.job_waiters) + len(view.hub.end_waiters)),
        ])),
        None if view.hub.puller is None else section("Replica", pairs(_origin(view.hub.puller, cluster.machine))),
        section("This node", pairs(_figures(figures))),
        section("Actions", list(_actions(view, nodes))) if view.visitor.admin else None,
    )


def _row(node: NodeStatus) -> list[Child]:
    host = None if node.role == "DOWN" else node.host       # the figures of a node that is down are old
    return [
        node.name,
        [tag("span", node.role, class_=f"role {node.role.lower()}"),
         [" ", tag("strong", "offline", class_="mark")] if node.online is False else None],
        None if host is None else memory(host), None if host is None else disk(host), _figure(node.lag),
        FigureText("" if node.ahead_ms is None else clock(node.ahead_ms)), _figure(node.applied), _figure(node.term),
        _figure(node.server_id), node.client,
        [node.version, " ", None if node.level is None else tag("small", f"knows level {node.level}", class_="whole")],
    ]


def _figure(value: int | None) -> FigureText:
    return FigureText("" if value is None else f"{value}")


def _origin(puller: Puller, machine: Machine) -> list[tuple[str, Child]]:
    """Return how far this node has followed the origin of the replica."""
    figures, index = puller.figures, machine.mirrored
    idle = "nothing here: the leader of the replica follows the origin"
    return [
        ("copied up to entry", "nothing, or it was promoted" if index is None else index),
        ("follows", idle if figures.phase is Phase.IDLE else figures.server or figures.phase.value),
        ("behind", None if puller.lag_s is None or figures.phase is Phase.IDLE
         else f"{puller.lag_entries} entries, {puller.lag_s:.1f} s"),
        ("problem", figures.problem or "none"),
    ]


def _figures(figures: Figures) -> list[tuple[str, Child]]:
    return [
        ("role", figures.role), ("term", figures.term), ("committed", figures.commit_index),
        ("applied", figures.applied_index),
        ("feature level of the cluster", figures.cluster_level), ("elections started here", figures.elections),
        ("memory", f"{size(figures.memory_used_bytes)} of {size(figures.memory_mark_bytes)}"),
        *_paging(figures),
        ("disk free", f"{size(figures.disk_free_bytes)}, needs {size(figures.disk_free_bytes_min)}"),
        ("journal", size(figures.journal_bytes)),
        ("snapshot", f"{size(figures.snapshot_bytes)} at entry {figures.snapshot_index}"),
        ("takes jobs", "no: it is full" if figures.full else "yes"),
    ]


def _paging(figures: Figures) -> list[tuple[str, Child]]:
    """Return the part of the data that is on disk, if any may be."""
    paging = figures.paging
    in_memory = f"{size(figures.hot_bytes)} of {size(figures.hot_bytes_max)}" if figures.hot_bytes_max else "all"
    return [] if paging is None or not (figures.hot_bytes_max or paging.files) else [
        ("waiting jobs in memory", in_memory),
        ("waiting jobs on the disk", f"{paging.jobs}, with {size(paging.data_bytes)} of data"),
        ("large bodies on the disk", f"{paging.bodies} of jobs in any state, {size(paging.body_bytes)}"),
        ("files of waiting jobs and records", f"{paging.files} of {size(paging.file_bytes)}, {_needed(paging)} needed"
         + (f"; {paging.rewriting} being rewritten" if paging.rewriting else "")),
        ("pages of waiting jobs", f"{paging.read} read, {paging.expected} in advance; "
         f"{paging.misses} were not in memory in time"),
    ]


def _needed(paging: PagingFigures) -> str:
    """The part of the files that is needed."""
    return f"{min(100, paging.live_bytes * 100 // paging.file_bytes)}%" if paging.file_bytes else "all"


def _actions(view: View, nodes: list[NodeStatus]) -> Iterator[Markup]:
    for node in nodes:
        if node.role == "FOLLOWER":
            yield form(view, "cluster.transfer", f"Let {node.name} lead", {"node": node.name}, back="/cluster")
    yield form(view, "node.snapshot", "Write a snapshot here", back="/cluster")
    if view.cluster.online:
        yield form(view, "node.offline", f"Switch {view.cluster.name} offline", back="/cluster")
    else:
        yield form(view, "node.online", f"Switch {view.cluster.name} online", back="/cluster")
    if view.cluster.machine.online:
        yield details("The whole service", form(view, "cluster.offline", "Switch the service offline", back="/cluster"))
    else:
        yield form(view, "cluster.online", "Switch the service online", back="/cluster")
