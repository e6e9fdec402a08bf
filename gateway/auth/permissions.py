"""Which right a command needs (PROTOCOL "Rights"): the rules that the rows of the catalog name.

A rule gets the user's rights, the command and the cluster; it returns what is answered instead, None when nothing
stands against it. Rules are asked before data are read, and only when users are required.
"""

from __future__ import annotations

from cluster.api import Cluster
from core import Get, Pick, Put, PutWith, Selector
from gateway.protocol.command import Command
from gateway.protocol.responses import FORBIDDEN, JOB_NOT_FOUND
from gateway.rights import Rights


def anybody(rights: Rights, command: Command, cluster: Cluster) -> None:
    """Also who has not said AUTH yet."""


def any_user(rights: Rights, command: Command, cluster: Cluster) -> None:
    """With any rights or none."""


def admin(rights: Rights, command: Command, cluster: Cluster) -> bytes | None:
    """Who looks after the cluster."""
    return None if "" in rights.admin else FORBIDDEN


# ---- jobs

def put(rights: Rights, command: Command, cluster: Cluster) -> bytes | None:
    """`put` for the queue of the job."""
    operation: Put | PutWith = command.operation
    queue = operation.put.queue if isinstance(operation, PutWith) else operation.queue
    return None if queue.startswith(rights.put) else FORBIDDEN


def put_wait(rights: Rights, command: Command, cluster: Cluster) -> bytes | None:
    """And `get` for the queue of its answer."""
    assert command.wait is not None
    return put(rights, command, cluster) or _get(rights, command.wait)


def puts(rights: Rights, command: Command, cluster: Cluster) -> bytes | None:
    """`put` for some queue; each job is asked for when it comes."""
    if command.operation is not None:
        return put(rights, command, cluster)
    return None if rights.put else FORBIDDEN


def get(rights: Rights, command: Command, cluster: Cluster) -> bytes | None:
    """`get` for each queue that is named, or for all."""
    operation: Get | Pick = command.operation
    return _get(rights, operation.get if isinstance(operation, Pick) else operation)


def _get(rights: Rights, get: Get) -> bytes | None:
    queues = get.queues
    if queues is None:
        return None if "" in rights.get else FORBIDDEN
    for queue in queues:
        if not queue.startswith(rights.get):
            return FORBIDDEN
    return None


def running(rights: Rights, command: Command, cluster: Cluster) -> bytes | None:
    """`get` for the queue of the running job."""
    return _of_job(rights.get, command.operation.id, cluster)


def all_running(rights: Rights, command: Command, cluster: Cluster) -> bytes | None:
    """`get` for the queue of each of the jobs."""
    if "" in rights.get:
        return None
    refusals = [_of_job(rights.get, number, cluster) for number in command.operation.ids]
    return next((refusal for refusal in (FORBIDDEN, JOB_NOT_FOUND) if refusal in refusals), None)


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


def move(rights: Rights, command: Command, cluster: Cluster) -> bytes | None:
    """`get` for the queue of the job, `put` for the one it goes to."""
    return running(rights, command, cluster) if command.operation.queue.startswith(rights.put) else FORBIDDEN


def selected(rights: Rights, command: Command, cluster: Cluster) -> bytes | None:
    """By its id, which only who has taken it knows, `get` as for DONE; by its key `queue` for the queue."""
    selector: Selector = command.arguments[0] if command.operation is None else command.operation.selector
    if selector.id:
        return _of_job(rights.get, selector.id, cluster)
    return None if selector.queue.startswith(rights.queue) else FORBIDDEN


# ---- queues

def queue(rights: Rights, command: Command, cluster: Cluster) -> bytes | None:
    """`queue` for the one queue that is named."""
    queue: str = command.arguments[0] if command.operation is None else command.operation.queue
    return None if queue.startswith(rights.queue) else FORBIDDEN


def settings(rights: Rights, command: Command, cluster: Cluster) -> bytes | None:
    """Also for the dead queue that is named: jobs will be put there in the name of nobody."""
    dead = command.operation.change.dead
    return queue(rights, command, cluster) if dead is None or dead.startswith(rights.queue) else FORBIDDEN


def all_jobs(rights: Rights, command: Command, cluster: Cluster) -> bytes | None:
    """`get` for all queues."""
    return None if "" in rights.get else FORBIDDEN


def total(rights: Rights, command: Command, cluster: Cluster) -> bytes | None:
    """The sums are for everybody, those of one queue for who has something to do with it."""
    queue: str | None = command.arguments[0]
    return None if queue is None or queue.startswith(rights.seen) else FORBIDDEN


def some_queue(rights: Rights, command: Command, cluster: Cluster) -> bytes | None:
    """Any right on some queue; only those are listed."""
    return None if rights.seen else FORBIDDEN
