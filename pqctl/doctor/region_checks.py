"""The check of `pqctl doctor` on copies in another region: how a copy follows, and fenced origins."""

from __future__ import annotations

from collections.abc import Mapping

from sockpq import ReplicaStatus

from sockpqd.pqctl import replicas
from sockpqd.pqctl.doctor.check import FAIL, OK, WARN, Check
from sockpqd.pqctl.output.fence import fenced
from sockpqd.pqctl.replicas import RegionPart

LAG_S_MAX = 60.0        # as the alert ReplicaBehind
NAME = "region"


def look(part: RegionPart | None) -> Check | None:
    """Check the role of this cluster for another region; None if it has none, or this user may not ask."""
    if part is None:
        return None
    return judge(part.found) if part.fenced is None else Check(FAIL, NAME, fenced(part.fenced))


def judge(found: Mapping[str, ReplicaStatus]) -> Check:
    """Judge how a copy follows its origin, from what its nodes report."""
    told = replicas.in_words(found)
    if replicas.is_stopped(found):
        position = max(status.position for status in found.values())
        return Check(WARN, NAME, f"this copy was stopped at position {position} of its origin",
                     "`pqctl region follow` lets it follow again")
    follower = replicas.follower_of(found)
    if follower is None or not replicas.follows(found):
        if any(status.problem for status in found.values()):
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
