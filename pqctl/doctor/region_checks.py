"""The check of `pqctl doctor` on copies in another region: how one follows, and whether an origin was fenced."""

from __future__ import annotations

from collections.abc import Sequence

from sockpq import BadArguments, ReplicaStatus, ServerView, SockpqError

from sockpqd.pqctl import replicas
from sockpqd.pqctl.access import ClusterAccess
from sockpqd.pqctl.doctor.check import FAIL, OK, WARN, Check
from sockpqd.pqctl.health import own_line

LAG_S_MAX = 60.0        # as the alert ReplicaBehind
NAME = "region"


def look(own: Sequence[ServerView], timeout: float, access: ClusterAccess) -> Check | None:
    """Ask the nodes of this cluster; returns None if it is neither a copy nor a fenced origin, or may not be asked."""
    named = [(line.name, view.server) for view in own if (line := own_line(view)) is not None]
    if not named:
        return None
    try:
        with access.client([address for _, address in named], timeout) as client:
            found = replicas.ask(client, named, timeout)
    except (SockpqError, BadArguments) as error:
        replica = replicas.fenced_for(error)
        return None if replica is None else fenced(replica)
    return judge(found) if found else None


def fenced(replica: str) -> Check:
    """Report that the service was switched off for good, in favour of this cluster."""
    return Check(FAIL, NAME, f"this cluster is switched off for good: its copy, the cluster {replica}, takes its place",
                 "give programs the addresses of that one; these nodes can become its copy with empty data directories "
                 "(docs/REGIONS.md, Going back)")


def judge(found: dict[str, ReplicaStatus]) -> Check:
    """Judge by what the nodes of a copy say how it follows."""
    told = replicas.in_words(found)
    if any(status.phase == replicas.STOPPED for status in found.values()):
        position = max(status.position for status in found.values())
        return Check(WARN, NAME, f"this copy was stopped at position {position} of its origin",
                     "`pqctl region follow` lets it follow again")
    follower = replicas.follower_of(found)
    if follower is None or follower[1].phase not in (replicas.FOLLOWING, replicas.SNAPSHOT):
        problem = any(status.problem for status in found.values())
        if problem:
            return Check(FAIL, NAME, told, "`pqctl region follow ORIGIN` looks for the cause")
        return Check(WARN, NAME, told, "look again in some seconds")
    status = follower[1]
    if status.phase == replicas.SNAPSHOT or status.lag is None:
        return Check(WARN, NAME, told,
                     "wait for it" if status.position else "wait for it; until then it cannot be promoted")
    if status.lag > LAG_S_MAX:
        return Check(WARN, NAME, told, "look at the line between the clusters, and at the disks of the copy")
    others = sorted(name for name, one in found.items() if one.problem)
    if others:
        return Check(WARN, NAME, f"{told}; {', '.join(others)} could not follow: {found[others[0]].problem}",
                     "correct the configuration, and start the node again")
    return Check(OK, NAME, told)
