"""Which right each command needs (PROTOCOL.md "Users"), as a table: request or head of a request to a rule.

A rule gets the user's rights, the request and the cluster; it returns what is answered instead, None when nothing
stands against it. Rules are asked before data are read, and only when users are required.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from core import Done, Get, Later
from gateway import requests
from gateway.answers import FORBIDDEN, JOB_NOT_FOUND
from gateway.grammar import CloneHead, NumberedPutHead, PutHead, SkipHead

if TYPE_CHECKING:
    from cluster.api import Cluster
    from gateway.rights import Rights

Rule = Callable[["Rights", Any, "Cluster"], bytes | None]

# What may be said before AUTH.
OPEN: tuple[type, ...] = (requests.Quit, requests.Ping, requests.Caps, requests.Auth, requests.AuthWord)


def _anybody(rights: Rights, request: object, cluster: Cluster) -> None:
    return None


def _admin(rights: Rights, request: object, cluster: Cluster) -> bytes | None:
    return None if "" in rights.admin else FORBIDDEN


def _put(rights: Rights, head: PutHead, cluster: Cluster) -> bytes | None:
    """For the queue of the job, and to get its answer from the other one."""
    if not head.queue.startswith(rights.put):
        return FORBIDDEN
    return None if head.wait is None else _get(rights, head.wait, cluster)


def _get(rights: Rights, get: Get, cluster: Cluster) -> bytes | None:
    """For each queue that is named, or for all."""
    queues = get.queues
    if queues is None:
        return None if "" in rights.get else FORBIDDEN
    for queue in queues:
        if not queue.startswith(rights.get):
            return FORBIDDEN
    return None


def _running(rights: Rights, request: Done | Later, cluster: Cluster) -> bytes | None:
    """For the queue of the running job. An id that was given and does not run any more is nobody's.

    One that was not given yet may be when the command is executed, and then it would be that of another user's job:
    nobody can know it, so it is answered here.
    """
    if "" in rights.get:
        return None
    machine = cluster.machine
    queue = machine.queue_of(request.id)
    if queue is not None:
        return None if queue.startswith(rights.get) else FORBIDDEN
    return JOB_NOT_FOUND if cluster.serving and request.id >= machine.next_id else None


def _all_jobs(rights: Rights, request: object, cluster: Cluster) -> bytes | None:
    return None if "" in rights.get else FORBIDDEN


def _total(rights: Rights, request: requests.Total, cluster: Cluster) -> bytes | None:
    """The sums are for everybody, those of one queue for who has something to do with it."""
    return None if request.queue is None or request.queue.startswith(rights.seen) else FORBIDDEN


def _queue_list(rights: Rights, request: requests.QueueList, cluster: Cluster) -> bytes | None:
    """Whoever has a right on some queue; only those are listed."""
    return None if rights.seen else FORBIDDEN


def _inner(rights: Rights, request: requests.Numbered | requests.Bound, cluster: Cluster) -> bytes | None:
    return RULES[type(request.command)](rights, request.command, cluster)


def _numbered_put(rights: Rights, head: NumberedPutHead, cluster: Cluster) -> bytes | None:
    return _put(rights, head.put, cluster)


def _blocking_get(rights: Rights, request: requests.BlockingGet, cluster: Cluster) -> bytes | None:
    return _get(rights, request.get, cluster)


RULES: dict[type, Rule] = {
    **dict.fromkeys(OPEN, _anybody),
    PutHead: _put,
    NumberedPutHead: _numbered_put,
    Get: _get,
    Done: _running,
    Later: _running,
    requests.BlockingGet: _blocking_get,
    requests.Bound: _inner,
    requests.Numbered: _inner,
    requests.Total: _total,
    requests.QueueList: _queue_list,
    requests.RunList: _all_jobs,
    requests.Snapshot: _admin,
    CloneHead: _admin,
    requests.Interconnect: _anybody,
    requests.Offline: _admin,
    requests.Online: _admin,
    requests.Shutdown: _admin,
    requests.SessionOpen: _anybody,
    requests.SessionAttach: _anybody,
    requests.SessionClose: _anybody,
    requests.Taken: _anybody,
    requests.ClusterStatus: _anybody,
    requests.ClusterLeader: _anybody,
    requests.ClusterHash: _anybody,
    requests.ClusterAdd: _admin,
    requests.ClusterRemove: _admin,
    requests.ClusterTransfer: _admin,
    requests.ClusterSwitch: _admin,
    requests.ClusterSnapshot: _admin,
    requests.UserSet: _admin,
    requests.UserDelete: _admin,
    requests.UserList: _admin,
    requests.Refused: _anybody,         # what the original's servers say to each other
    SkipHead: _anybody,
}
