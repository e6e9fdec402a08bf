"""The cluster: its nodes, its settings, its map, and pools of workers."""

from __future__ import annotations

from typing import Literal

from pydantic import Field
from starlette.responses import Response

from sockpq_http.exchange.caller import Calling, answer, given
from sockpq_http.problems.problem import Problem
from sockpq_http.routes.queues import SettingsView
from sockpq_http.routes.running import changed_answer
from sockpq_http.routes.takes import Policy
from sockpq_http.values.model import Model, View
from sockpq_http.values.names import Worker
from sockpq_http.values.times import Span


class ClusterSettings(Model):
    """Settings of the cluster; one that is not given stays as it is."""

    expire_default: Literal["later", "done"] | None = None
    autocreate: bool | None = None
    policy: Policy | None = None
    grace: Span | None = None
    session_ttl: Span | None = None
    fast_empty: bool | None = None
    retained_bytes: int | None = Field(default=None, ge=0)


class WorkerSettings(Model):
    """Limits of a pool of workers."""

    most: int | None = Field(default=None, ge=0, description="How many jobs at a time at most.")
    least: int | None = Field(default=None, ge=0)
    state: Literal["run", "pause", "stop"] | None = None


class NodeView(View):
    """A node, as the leader knows it."""

    name: str
    client: str | None = None
    role: str
    online: bool | None = None
    term: int | None = None
    applied: int | None = None
    lag: int | None = None
    version: str | None = None
    level: int | None = None


class ClusterView(View):
    """The cluster that executes requests."""

    id: str | None = None
    name: str | None = None
    nodes: list[NodeView]
    caps: list[str] = Field(description="The extensions of the protocol that it has.")


class MapView(View):
    """The map of clusters that are used as one; version 0: there is none."""

    version: int
    clusters: list[str]
    rules: dict[str, str | None] = Field(description="The owner of names, by their prefix.")
    spread: list[str]


class WorkerView(View):
    """A pool of workers."""

    name: str
    address: str | None = None
    slots: int
    busy: int
    age: int
    state: str


class WorkersView(View):
    """A list of pools of workers."""

    workers: list[WorkerView]


async def status(caller: Calling) -> Response:
    """Return the nodes of the cluster, and its features."""
    client = caller.client
    identity = await client.cluster_id()
    nodes = [
        NodeView(**given(**{name: getattr(node, name) for name in NodeView.model_fields}))
        for node in await client.cluster_status()
    ]
    return answer(ClusterView(
        **given(id=identity.id, name=identity.name), nodes=nodes, caps=sorted(await client.caps())
    ))


async def cluster_map(caller: Calling) -> Response:
    """Return which cluster owns which names."""
    found = await caller.client.cluster_map()
    return answer(MapView(
        version=found.version, clusters=list(found.clusters), rules=dict(found.rules), spread=sorted(found.spread)
    ))


async def config(caller: Calling) -> Response:
    """Return the settings of the cluster."""
    return answer(SettingsView(settings=await caller.client.config()))


async def configure(caller: Calling, settings: ClusterSettings) -> Response:
    """Change settings of the cluster."""
    options = settings.model_dump(exclude_none=True)
    if not options:
        raise Problem(400, "give a setting to change", "not-valid")
    return answer(SettingsView(settings=await caller.client.config(**options)))


async def workers(caller: Calling) -> Response:
    """List the pools of workers."""
    return await caller.listed("workers", caller.client.workers, lambda one: WorkerView(**given(**one._asdict())))


async def configure_worker(caller: Calling, worker: Worker, settings: WorkerSettings) -> Response:
    """Limit a pool of workers, or let it run, pause or stop."""
    options = settings.model_dump(exclude_none=True)
    if not options:
        raise Problem(400, "give a setting to change", "not-valid")
    await caller.client.worker_set(worker, **options)
    return changed_answer()
