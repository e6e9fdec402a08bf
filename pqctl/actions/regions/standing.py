"""The role of a cluster in a pair of regions: a copy, its origin, a cluster that was fenced, or none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sockpq import Client, NotSupported, ReplicaStatus, ServerView, SockpqError

from sockpqd.pqctl import replicas
from sockpqd.pqctl.connect import Servers
from sockpqd.pqctl.health import id_of
from sockpqd.pqctl.invocation import Call
from sockpqd.pqctl.output.exit_codes import REFUSED, UNREACHED, Failure
from sockpqd.pqctl.output.fence import fenced, fenced_for

NO_REPLICA = "this cluster is no copy of another one: it was promoted, or its nodes have no replica.of"


def copy_of(call: Call, client: Client, servers: Servers) -> dict[str, ReplicaStatus] | None:
    """Return how the nodes follow, by name; None if the cluster is not a copy.

    Raises Failure if it was fenced, if no node reports it, or if the servers are too old; ForbiddenError without admin.
    """
    try:
        found = replicas.ask(client, servers.named(), call.timeout)
    except NotSupported as error:
        raise Failure(REFUSED, "the servers do not know copies in another region: upgrade them") from error
    except SockpqError as error:
        if (replica := fenced_for(error)) is None:
            raise
        raise Failure(REFUSED, fenced(replica)) from error
    if found is not None and not found:
        raise Failure(UNREACHED, "no node says whether it follows, try again")
    return found


def must_be_copy(call: Call, client: Client, servers: Servers, done: str = "") -> dict[str, ReplicaStatus]:
    """Like copy_of(), but raise Failure as well if the cluster is not a copy. `done`: added to the message."""
    found = copy_of(call, client, servers)
    if found is None:
        raise Failure(REFUSED, NO_REPLICA + done)
    return found


def mismatch(
    found: Mapping[str, ReplicaStatus], own: Iterable[ServerView], origin: Iterable[ServerView],
) -> str | None:
    """Describe why a cluster cannot be the origin of this copy; None if it can. `own`: views of the copy's servers."""
    here, there = id_of(own), id_of(origin)
    if here is not None and here == there:
        return f"both are the same cluster, {here}: give servers of the copy by --servers, and others as ORIGIN"
    known = next((status.origin for status in found.values() if status.origin is not None), None)
    if known is not None and there not in (None, known):
        return f"ORIGIN is another cluster, {there}: this one is a copy of {known}"
    return None
