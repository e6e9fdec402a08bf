"""The text that `sockpqd --dev --nodes 3` prints when its cluster serves: addresses, files, and commands to try."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from sockpqd.gateway.dev.folder import CLIENT, DevNode
from sockpqd.gateway.dev.ports import HOST


def guide(
    folder: Path, clusters: Sequence[Sequence[DevNode]], pids: Mapping[str, int], leaders: Sequence[str]
) -> str:
    """Return the text. `pids`: the process ids of the running nodes; `leaders`: the leader of each cluster, by name."""
    nodes = clusters[0]
    servers = ",".join(node.config.listen.client for node in nodes)
    pqctl = program("pqctl")
    names = [of_one[0].cluster for of_one in clusters]
    one = "one cluster" if len(clusters) == 1 else f"each of the clusters {' and '.join(names)}"
    run = "1 node runs" if len(nodes) == 1 else f"{len(nodes)} nodes run"
    lines = [f"{run} as {one}; their data, logs and configuration are in {folder}", ""]
    for node in (node for of_one in clusters for node in of_one):
        http = node.config.listen.http
        where = f"clients {node.config.listen.client}" + (f"  dashboard http://{http}/" if http else "")
        lines.append(f"  {node.name}  {where}  pid {pids.get(node.name, '-')}{'  leads' * (node.name in leaders)}")
    if nodes[0].config.listen.client != f"{HOST}:{CLIENT}":
        lines += [
            "", f"The usual ports ({CLIENT} and more) were in use when this cluster was made, so it has others:",
            f"without the variable SOCKPQ_SERVERS pqctl and Client() go to {HOST}:{CLIENT}, which is not this cluster.",
        ]
    lines += [
        "",
        "Try in another terminal:",
        f"  export SOCKPQ_SERVERS={servers}",
        f"  {pqctl} cluster status --watch",
        f"  {pqctl} job put notes hello",
        f"  {pqctl} queue list",
        f"  {pqctl} shell   # the protocol, typed by hand",
        *_on_the_map(pqctl, names),
        f"  kill -9 {pids.get(leaders[0], '')}   # {_of_the_killed(len(nodes))}",
        "",
        "Ctrl-C ends all nodes and keeps their data.",
        "",
    ]
    return "\n".join(lines)


def _of_the_killed(nodes: int) -> str:
    """Return what follows when the leader of a cluster with this many nodes is killed."""
    match nodes:
        case 1:
            return "the only node: it is started again, with all that it acknowledged"
        case 2:
            return "the leader: it is started again; one node of two cannot serve meanwhile"
    return "the leader: another takes over, and this one is started again"


def _on_the_map(pqctl: str, names: Sequence[str]) -> list[str]:
    """Return the lines about several clusters."""
    if len(names) == 1:
        return []
    return [
        f"  {pqctl} map show   # which cluster owns which names; at first {names[0]} owns all",
        f"  {pqctl} map move video. {names[1]}   # what is put into queues video.* goes there from now on",
    ]


def program(name: str) -> str:
    """Return how to call another program of this installation: by name if it is on the PATH, else by path."""
    beside = Path(sys.argv[0]).absolute().with_name(name)
    if not beside.exists():
        return name
    found = shutil.which(name)
    if found and os.path.samefile(found, beside):
        return name
    return str(beside.relative_to(Path.cwd()) if beside.is_relative_to(Path.cwd()) else beside)
