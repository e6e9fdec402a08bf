"""`pqctl snapshot`: saving the state to a file (SNAPSHOT) and restoring it (CLONE)."""

from __future__ import annotations

from pqctl.connect import cluster_of
from pqctl.invocation import Call
from pqctl.output.confirm import confirm
from pqctl.output.exit_codes import DONE
from pqctl.output.files import NewFile, read_file
from pqctl.output.text import counted


def save(call: Call, file: str, force: bool, node: str | None) -> int:
    """Fetch the state of this node, or of the leader, and write it durably to a file."""
    new = NewFile(file, force)
    with cluster_of(call) as (client, servers):
        name, address = servers.find(node)
        data = client.snapshot(server=address)      # the leader has everything even while switched offline
    new.write(data)
    call.answer(f"{counted(len(data), 'byte')} of {name} saved in {file}",
                {"file": file, "bytes": len(data), "name": name})
    return DONE


def restore(call: Call, file: str, yes: bool) -> int:
    """Replace the state of the cluster by a snapshot file."""
    data = read_file(file)
    with cluster_of(call, serving=True) as (client, _):
        if not yes:
            now = client.total()
            there = f"{counted(now.jobs, 'waiting job')} and {counted(now.running, 'running job')}"
            confirm(f"Replace the cluster's {there} in {counted(now.queues, 'queue')} by {file}?", yes)
        client.clone(data)
    call.answer(f"the cluster has the state of {file}", {"file": file, "bytes": len(data)})
    return DONE
