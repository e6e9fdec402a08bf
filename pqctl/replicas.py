"""Asks the nodes of a copy in another region how they follow its origin, for all commands that show it."""

from __future__ import annotations

from collections.abc import Iterable

from sockpq import Client, ForbiddenError, NotSupported, ReplicaStatus, SockpqError

FOLLOWING, SNAPSHOT, IDLE, STOPPED = "following", "snapshot", "idle", "stopped"


def ask(client: Client, named: Iterable[tuple[str, str]], timeout: float) -> dict[str, ReplicaStatus] | None:
    """Return what each node says that answers, by its name; None if the cluster is no copy of another one.

    `named`: names and addresses. `timeout`: of each answer, seconds. Raises ForbiddenError without the right admin,
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


def fenced_for(error: SockpqError) -> str | None:
    """Return the id of the cluster in whose favour this one is switched off for good; None if the error is another."""
    words = str(error).split()
    return words[-1] if words[-3:-1] == ["409", "Fenced"] or words[:2] == ["409", "Fenced"] else None


def follower_of(found: dict[str, ReplicaStatus]) -> tuple[str, ReplicaStatus] | None:
    """Return the node that follows or tries to, and what it says; None if no node does."""
    return next(((name, status) for name, status in found.items() if status.phase not in (IDLE, STOPPED)), None)


def behind(status: ReplicaStatus) -> str:
    """Describe how far behind its origin the copy is."""
    if status.lag is None or status.executed is None:
        return "not known how far behind"
    return f"{max(0, status.executed - status.position)} entries and {status.lag:.1f} s behind"


def in_words(found: dict[str, ReplicaStatus]) -> str:
    """Describe in one line how the copy follows its origin."""
    if any(status.phase == STOPPED for status in found.values()):
        return "stopped: it does not follow (`pqctl region follow` ends that)"
    if not found:
        return "no node says whether it follows"
    follower = follower_of(found)
    if follower is None:
        return next((f"not following: {status.problem}" for status in found.values() if status.problem),
                    "not following: no node that answers follows")
    name, status = follower
    if status.phase == FOLLOWING:
        return f"{name} follows {status.server}, {behind(status)}"
    if status.phase == SNAPSHOT:
        state = "a snapshot" if status.position else "the state with which the copy begins"
        return f"{name} fetches {state}, from {status.server}"
    return f"{name} does not follow: {status.problem or 'it is connecting'}"
