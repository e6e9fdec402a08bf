"""The map of clusters in the reference model: its lines, searched for each name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sockpqd.core import (
    BindQueue,
    ConfigurePulse,
    ConfigureQueue,
    Elsewhere,
    Move,
    MoveJobs,
    PauseQueue,
    Put,
    PutWith,
    ToQueues,
    ToTopic,
)


def owner(text: str, name: str) -> str | None:
    """Return the cluster that owns the name; None if there is none."""
    while name.endswith("_dead") and name != "_dead":
        name = name[:-5]
    lines = [line.split() for line in text.splitlines()]
    best, found = -1, next(words[1] for words in lines if words[0] == "CLUSTER")
    for kind, *words in lines:
        if kind in ("RULE", "MOVING") and name.startswith(words[0]):
            weight = 2 * len(words[0]) + (kind == "MOVING")
            if weight > best:
                best, found = weight, words[-1]
    return None if found == "-" else found


def own_name(text: str, cluster_id: bytes) -> str | None:
    """Return the name of the cluster with this id; None: the map does not have it."""
    lines = [line.split() for line in text.splitlines()]
    return next((words[1] for words in lines if words[0] == "CLUSTER" and words[2] == cluster_id[:8].hex()), None)


def accepts(text: str, cluster_id: bytes, name: str) -> bool:
    """Return whether the cluster accepts operations that bring something to the name."""
    lines = [line.split() for line in text.splitlines()]
    own = own_name(text, cluster_id)
    alive = name
    while alive.endswith("_dead") and alive != "_dead":
        alive = alive[:-5]
    return own is not None and (["SPREAD", alive] in lines or owner(text, name) == own)


def brings(operation: Any, exists: set[str], reached: Iterable[str]) -> list[str]:
    """Return the names to which the operation brings something; `reached`: the queues of its topic."""
    match operation:
        case Put():
            return [operation.queue]
        case PutWith(targets=ToQueues() as targets):
            return [*targets.queues]
        case PutWith(targets=ToTopic() as targets):
            return [targets.topic, *reached]
        case PutWith():
            return [operation.put.queue]
        case Move():
            return [operation.queue]
        case MoveJobs(left=None):
            return [operation.to]
        case ConfigurePulse(create=True):
            return [operation.pulse]
        case BindQueue():
            return [operation.topic, operation.queue]
        case PauseQueue(resumes=True):
            return []
        case ConfigureQueue() | PauseQueue():
            names = [operation.queue] if operation.queue not in exists else []
            if not isinstance(operation, PauseQueue) and operation.change.dead is not None:
                names.append(operation.change.dead)
            return names
    return []


def elsewhere(text: str, cluster_id: bytes | None, names: Iterable[str]) -> Elsewhere | None:
    """Return the refusal of the first name of another cluster."""
    for name in names:
        if not accepts(text, cluster_id or b"", name):
            return Elsewhere(owner(text, name))
    return None
