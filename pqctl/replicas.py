"""Asks the nodes of a copy in another region how they follow its origin, for all commands that show it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sockpq import BadArguments, Client, ForbiddenError, NotSupported, ReplicaStatus, SockpqError

from sockpqd.pqctl.access import ClusterAccess
from sockpqd.pqctl.output.fence import fenced, fenced_for

FOLLOWING, SNAPSHOT, IDLE, STOPPED = "following", "snapshot", "idle", "stopped"


@dataclass(frozen=True)
class RegionPart:
    """The role of a cluster for another region: a copy, or an origin that was fenced for the cluster `fenced`.

    `found`: how the nodes of a copy follow, by name; empty if it was fenced.
    """

    found: Mapping[str, ReplicaStatus]
    fenced: str | None = None

    @property
    def origin(self) -> str | None:
        """The id of the cluster of which this one is a copy, None if that is not known."""
        return next((status.origin for status in self.found.values() if status.origin is not None), None)

    @property
    def reason(self) -> str:
        """Describe why the cluster executes no clients' commands, and what to do."""
        if self.fenced is not None:
            return fenced(self.fenced)
        return (f"this cluster is a copy of the cluster {self.origin or 'in replica.of'}, and answers what only reads: "
                "name servers of that one, or promote this one if that one is lost (`pqctl region promote`)")


def part_of(named: Sequence[tuple[str, str]], timeout: float, access: ClusterAccess) -> RegionPart | None:
    """Ask the nodes for the role of their cluster; None if it has none, or if they hide it from this user."""
    if not named:
        return None
    try:
        with access.client([address for _, address in named], timeout) as client:
            return asked_part(client, named, timeout)
    except (SockpqError, BadArguments):
        return None


def asked_part(client: Client, named: Sequence[tuple[str, str]], timeout: float) -> RegionPart | None:
    """Do what part_of() does, through an existing client."""
    try:
        found = ask(client, named, timeout)
    except SockpqError as error:
        replica = fenced_for(error)
        return None if replica is None else RegionPart({}, replica)
    return RegionPart(found) if found else None


def ask(client: Client, named: Iterable[tuple[str, str]], timeout: float) -> dict[str, ReplicaStatus] | None:
    """Return the report of each node that answers, by its name; None if the cluster is not a copy of another one.

    `named`: names and addresses. `timeout`: of each answer, seconds. Raises ForbiddenError if the user may not ask,
    NotSupported if the servers are too old for copies, Refused if the cluster is fenced.
    """
    found: dict[str, ReplicaStatus] = {}
    for name, address in named:
        try:
            status = client.cluster_replica(address, timeout=timeout)
        except (ForbiddenError, NotSupported):
            raise
        except SockpqError as error:
            if fenced_for(error) is not None:
                raise
            continue
        if status is None:
            return None
        found[name] = status
    return found


def is_stopped(found: Mapping[str, ReplicaStatus]) -> bool:
    """Return whether the copy was stopped by `pqctl region stop`."""
    return any(status.phase == STOPPED for status in found.values())


def follows(found: Mapping[str, ReplicaStatus]) -> bool:
    """Return whether the copy receives what its origin executes, or the state with which it begins."""
    follower = None if is_stopped(found) else follower_of(found)
    return follower is not None and follower[1].phase in (FOLLOWING, SNAPSHOT)


def follower_of(found: Mapping[str, ReplicaStatus]) -> tuple[str, ReplicaStatus] | None:
    """Return the node that follows or tries to, and what it says; None if no node does."""
    return next(((name, status) for name, status in found.items() if status.phase not in (IDLE, STOPPED)), None)


def behind(status: ReplicaStatus) -> str:
    """Describe how far behind its origin the copy is."""
    if status.lag is None or status.executed is None:
        return "not known how far behind"
    return f"{max(0, status.executed - status.position)} entries and {status.lag:.1f} s behind"


def in_words(found: Mapping[str, ReplicaStatus]) -> str:
    """Describe in one line how the copy follows its origin."""
    if is_stopped(found):
        return "stopped: it does not follow (`pqctl region follow` ends that)"
    if not found:
        return "no node says whether it follows"
    follower = follower_of(found)
    if follower is None:
        return next((f"not following: {status.problem}" for status in found.values() if status.problem),
                    "not following: no node that answers follows")
    name, status = follower
    if status.phase == FOLLOWING:
        return f"{name} follows {status.server or 'its origin'}, {behind(status)}"
    if status.phase == SNAPSHOT:
        state = "a snapshot" if status.position else "the state with which the copy begins"
        return f"{name} fetches {state}, from {status.server or 'its origin'}"
    return f"{name} does not follow: {status.problem or 'it is connecting'}"
