"""Which right each command needs (PROTOCOL "Rights"), as a table: request or head of a request to a rule.

A rule gets the user's rights, the request and the cluster; it returns what is answered instead, None when nothing
stands against it. Rules are asked before data are read, and only when users are required.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from core import (
    Bury,
    Change,
    Configure,
    ConfigureQueue,
    CreateQueue,
    Delete,
    Done,
    DoneAll,
    DoneLast,
    Get,
    Kick,
    Later,
    LaterAll,
    LaterWith,
    Move,
    PauseQueue,
    Pick,
    Put,
    PutWith,
    ResumeQueue,
    Touch,
)
from gateway.protocol import requests
from gateway.protocol.grammar import CloneHead, DataHead, NumberedHead, PutHead, PutsHead, SkipHead
from gateway.protocol.responses import FORBIDDEN, JOB_NOT_FOUND

if TYPE_CHECKING:
    from cluster.api import Cluster
    from gateway.auth.rights import Rights

Rule = Callable[["Rights", Any, "Cluster"], bytes | None]

# What may be said before AUTH.
OPEN: tuple[type, ...] = (requests.Quit, requests.Ping, requests.Caps, requests.Auth, requests.AuthWord)


def _anybody(rights: Rights, request: object, cluster: Cluster) -> None:
    return None


def _admin(rights: Rights, request: object, cluster: Cluster) -> bytes | None:
    return None if "" in rights.admin else FORBIDDEN


def _put_head(rights: Rights, head: PutHead, cluster: Cluster) -> bytes | None:
    """For the queue of the job, and to get its answer from the other one."""
    if not head.queue.startswith(rights.put):
        return FORBIDDEN
    return None if head.wait is None else _get(rights, head.wait, cluster)


def _put(rights: Rights, put: Put, cluster: Cluster) -> bytes | None:
    return None if put.queue.startswith(rights.put) else FORBIDDEN


def _put_with(rights: Rights, request: PutWith, cluster: Cluster) -> bytes | None:
    return _put(rights, request.put, cluster)


def _put_wait(rights: Rights, request: requests.PutWait, cluster: Cluster) -> bytes | None:
    return RULES[type(request.put)](rights, request.put, cluster) or _get(rights, request.get, cluster)


def _puts(rights: Rights, head: PutsHead, cluster: Cluster) -> bytes | None:
    """For some queue; each job is asked for when it comes."""
    return None if rights.put else FORBIDDEN


def _get(rights: Rights, get: Get, cluster: Cluster) -> bytes | None:
    """For each queue that is named, or for all."""
    queues = get.queues
    if queues is None:
        return None if "" in rights.get else FORBIDDEN
    for queue in queues:
        if not queue.startswith(rights.get):
            return FORBIDDEN
    return None


def _running(
    rights: Rights, request: Done | DoneLast | Later | LaterWith | Touch | Bury, cluster: Cluster,
) -> bytes | None:
    """`get` for the queue of the running job."""
    return _of_job(rights.get, request.id, cluster)


def _of_job(prefixes: tuple[str, ...], number: int, cluster: Cluster) -> bytes | None:
    """A right for the queue of a running job. An id that was given and does not run any more is nobody's.

    One that was not given yet may be when the command is executed, and then it would be that of another user's job:
    nobody can know it, so it is answered here.
    """
    if "" in prefixes:
        return None
    machine = cluster.machine
    queue = machine.queue_of(number)
    if queue is not None:
        return None if queue.startswith(prefixes) else FORBIDDEN
    return JOB_NOT_FOUND if cluster.serving and number >= machine.next_id else None


def _all_running(rights: Rights, request: DoneAll | LaterAll, cluster: Cluster) -> bytes | None:
    """For the queue of each of the jobs."""
    if "" in rights.get:
        return None
    refusals = [_of_job(rights.get, number, cluster) for number in request.ids]
    return next((refusal for refusal in (FORBIDDEN, JOB_NOT_FOUND) if refusal in refusals), None)


def _move(rights: Rights, move: Move, cluster: Cluster) -> bytes | None:
    """`get` for the queue of the job, `put` for the one it goes to."""
    return _of_job(rights.get, move.id, cluster) if move.queue.startswith(rights.put) else FORBIDDEN


def _bury(rights: Rights, request: requests.BuryRequest, cluster: Cluster) -> bytes | None:
    return _running(rights, request.bury, cluster)


def _selected(rights: Rights, request: Change | Delete | requests.Peek, cluster: Cluster) -> bytes | None:
    """By its id, which only who has taken it knows, `get` as for DONE; by its key `queue` for the queue."""
    selector = request.selector
    if selector.id:
        return _of_job(rights.get, selector.id, cluster)
    return None if selector.queue.startswith(rights.queue) else FORBIDDEN


def _queue(rights: Rights, request: Any, cluster: Cluster) -> bytes | None:
    """For the one queue that is named."""
    return None if request.queue.startswith(rights.queue) else FORBIDDEN


def _settings(rights: Rights, request: CreateQueue | ConfigureQueue, cluster: Cluster) -> bytes | None:
    """Also for the dead queue that is named: jobs will be put there in the name of nobody."""
    dead = request.change.dead
    allowed = request.queue.startswith(rights.queue) and (dead is None or dead.startswith(rights.queue))
    return None if allowed else FORBIDDEN


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


def _data(rights: Rights, head: DataHead, cluster: Cluster) -> bytes | None:
    return RULES[type(head.request)](rights, head.request, cluster)


def _numbered_data(rights: Rights, head: NumberedHead, cluster: Cluster) -> bytes | None:
    return RULES[type(head.head)](rights, head.head, cluster)


def _blocking_get(rights: Rights, request: requests.BlockingGet, cluster: Cluster) -> bytes | None:
    return RULES[type(request.get)](rights, request.get, cluster)


def _pick(rights: Rights, pick: Pick, cluster: Cluster) -> bytes | None:
    return _get(rights, pick.get, cluster)


RULES: dict[type, Rule] = {
    **dict.fromkeys(OPEN, _anybody),
    PutHead: _put_head,
    PutsHead: _puts,
    DataHead: _data,
    NumberedHead: _numbered_data,
    Put: _put,
    PutWith: _put_with,
    requests.PutWait: _put_wait,
    Get: _get,
    Pick: _pick,
    **dict.fromkeys((Done, DoneLast, Later, LaterWith, Touch, Bury), _running),
    **dict.fromkeys((DoneAll, LaterAll), _all_running),
    Move: _move,
    requests.BuryRequest: _bury,
    **dict.fromkeys((Change, Delete, requests.Peek), _selected),
    **dict.fromkeys((Kick, PauseQueue, ResumeQueue, requests.PurgeRequest, requests.DropQueue), _queue),
    **dict.fromkeys((requests.PeekQueue, requests.QueueStat, requests.QueueConfig), _queue),
    **dict.fromkeys((CreateQueue, ConfigureQueue), _settings),
    Configure: _admin,
    requests.Config: _anybody,
    requests.Begin: _anybody,
    requests.Commit: _anybody,          # each command was asked for when it came
    requests.Rollback: _anybody,
    requests.PolicyDefault: _anybody,
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
    requests.SessionList: _admin,
    requests.SessionEnd: _admin,
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
