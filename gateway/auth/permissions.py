"""The right that each command needs (PROTOCOL "Rights"): the rules named in the rows of the catalog.

A rule takes the user's rights, the command and the cluster; it returns the refusal, or None if the command is allowed.
Rules are applied before data are read, and only where authentication is required.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from sockpqd.cluster.api import Cluster
from sockpqd.core import (
    OWN_PREFIX,
    AnySelector,
    Await,
    Get,
    GetWith,
    JobPut,
    Machine,
    Number,
    Place,
    Put,
    Selector,
    Taking,
    ToQueues,
    ToTopic,
    WorkerPool,
)
from sockpqd.gateway.events.filters import MSG, OPEN, Filter
from sockpqd.gateway.protocol.command import Command
from sockpqd.gateway.protocol.responses import FORBIDDEN, JOB_NOT_FOUND, OFFLINE_MODE, TICKET_NOT_FOUND
from sockpqd.gateway.rights import Rights

OF_ITEMS = ("FINI", "FAILI")
NO_JOB = 0          # the number that no job has
MADE_BY_NEW = re.compile(r"i[0-9]+")


def anybody(rights: Rights, command: Command, cluster: Cluster) -> None:
    """Allow any client, even before AUTH."""


def any_user(rights: Rights, command: Command, cluster: Cluster) -> None:
    """Allow any authenticated user, whatever their rights."""


def admin(rights: Rights, command: Command, cluster: Cluster) -> bytes | None:
    """Require `admin` for all queues, as cluster administration does."""
    return None if "" in rights.admin else FORBIDDEN


# ---- jobs

def put(rights: Rights, command: Command, cluster: Cluster) -> bytes | None:
    """Require `put` for the job's queue, and its items."""
    operation: JobPut = command.operation
    if isinstance(operation, Put):
        return None if operation.queue.startswith(rights.put) and _owns(rights, operation.item) else FORBIDDEN
    targets = operation.targets
    if isinstance(targets, ToQueues):
        names = targets.queues
    elif isinstance(targets, ToTopic):
        names = (f"@{targets.topic}",)
    else:
        names = (operation.put.queue,)
    if not all(name.startswith(rights.put) for name in names):
        return FORBIDDEN
    if rights.group and operation.group is not None and not operation.group.startswith(rights.group):
        return FORBIDDEN
    return None if all(_owns(rights, item) for item in (operation.put.item, *operation.after)) else FORBIDDEN


def _owns(rights: Rights, item: str | None) -> bool:
    """Return whether an item is the user's own; jobs of an item affect its ITEMLIMIT, FINI and AFTER.

    An item that the server made for NEW belongs to every client that knows its name.
    """
    return item is None or item.startswith(rights.item) or MADE_BY_NEW.fullmatch(item) is not None


def item(rights: Rights, command: Command, cluster: Cluster) -> bytes | None:
    """Require `item` for the item named; the right implied by `put` is enough."""
    return None if _owns(rights, command.arguments[0]) else FORBIDDEN


def own_item(rights: Rights, command: Command, cluster: Cluster) -> bytes | None:
    """Require an explicit `item` for the item named: the right implied by `put` is not enough."""
    return None if command.operation.item.startswith(rights.own_item) else FORBIDDEN


def held_item(rights: Rights, command: Command, cluster: Cluster) -> bytes | None:
    """As `own_item`; for a new item `put` for any queue is enough. Its creator needs no right (Guard)."""
    if command.operation.item is None:
        return None if rights.put else FORBIDDEN
    return own_item(rights, command, cluster)


def put_wait(rights: Rights, command: Command, cluster: Cluster) -> bytes | None:
    """Require `put` for the job's queue and `get` for the queue of its answer."""
    assert command.wait is not None
    return put(rights, command, cluster) or taking(rights, command.wait)


def puts(rights: Rights, command: Command, cluster: Cluster) -> bytes | None:
    """Require `put` for some queue; each job is checked as it arrives."""
    if command.operation is not None:
        return put(rights, command, cluster)
    return None if rights.put else FORBIDDEN


def get(rights: Rights, command: Command, cluster: Cluster) -> bytes | None:
    """Require `get` for each named queue, or for all queues if none is named."""
    operation: Taking = command.operation
    return taking(rights, operation.get if isinstance(operation, GetWith) else operation)


def get_number(rights: Rights, command: Command, cluster: Cluster) -> bytes | None:
    """Require `get` for the queue of the job; see _of_number."""
    get: GetWith = command.operation
    assert get.number is not None
    refusal, hidden = _of_number(rights.get, get.number, cluster)
    if hidden:
        command.operation = replace(get, number=NO_JOB)
    return refusal


def taking(rights: Rights, get: Get) -> bytes | None:
    """Require `get` for each queue of a Get. Its item needs no right, as it only narrows the choice."""
    queues = get.queues
    if queues is None:
        return None if "" in rights.get else FORBIDDEN
    for queue in queues:
        if not queue.startswith(rights.get):
            return FORBIDDEN
    return None


def taking_some(rights: Rights, command: Command, cluster: Cluster) -> bytes | None:
    """Require `get` for some queue: a client that may not take jobs cannot be a worker."""
    return None if rights.get else FORBIDDEN


def owner_of(machine: Machine, worker: WorkerPool) -> str | None:
    """The user whose session the pool of workers is in, "" if no users are required; None: it has ended meanwhile."""
    session = machine.session(worker.session)
    return None if session is None else session.user


def running(rights: Rights, command: Command, cluster: Cluster) -> bytes | None:
    """Require `get` for the running job's queue."""
    return _of_job(rights.get, command.operation.id, cluster)


def all_running(rights: Rights, command: Command, cluster: Cluster) -> bytes | None:
    """Require `get` for the queue of each job."""
    if "" in rights.get:
        return None
    refusals = [_of_job(rights.get, number, cluster) for number in command.operation.ids]
    return next((refusal for refusal in (FORBIDDEN, JOB_NOT_FOUND) if refusal in refusals), None)


def _of_job(prefixes: tuple[str, ...], number: int, cluster: Cluster) -> bytes | None:
    """Require one of `prefixes` for a running job's queue. An id once assigned but not running is not protected.

    An id not assigned yet could be by the time the command is executed, and could then belong to another user's job. No
    client can legitimately know it, so it is refused here.
    """
    if "" in prefixes:
        return None
    machine = cluster.machine
    queue = machine.queue_of(number)
    if queue is not None:
        return None if queue.startswith(prefixes) else FORBIDDEN
    return _to_come(cluster, JOB_NOT_FOUND) if number >= machine.next_id else None


def _to_come(cluster: Cluster, not_found: bytes) -> bytes | None:
    """Refuse a number that is not assigned yet, as far as this node knows; a node that does not serve always refuses
    it.
    """
    if not cluster.serving:
        return None
    return not_found if cluster.holds_lease else OFFLINE_MODE


def move(rights: Rights, command: Command, cluster: Cluster) -> bytes | None:
    """Require `get` for the job's queue and `put` for the destination."""
    return running(rights, command, cluster) if command.operation.queue.startswith(rights.put) else FORBIDDEN


def selected(rights: Rights, command: Command, cluster: Cluster) -> bytes | None:
    """Require `get` for a job named by id, as for DONE: only its worker knows the id.

    Otherwise require `queue` for its queue.
    """
    selector: AnySelector = command.arguments[0] if command.operation is None else command.operation.selector
    if isinstance(selector, Selector) and selector.id:
        return _of_job(rights.get, selector.id, cluster)
    if isinstance(selector, Number):
        refusal, hidden = _of_number(rights.queue, selector.number, cluster)
        if hidden and command.operation is None:
            command.arguments = (Number(NO_JOB), *command.arguments[1:])
        elif hidden:
            command.operation = replace(command.operation, selector=Number(NO_JOB))
        return refusal
    return None if selector.queue.startswith(rights.queue) else FORBIDDEN


def kicked_place(rights: Rights, command: Command, cluster: Cluster) -> bytes | None:
    """Require `queue` for the queue in which the job is, and for the one to which it goes back."""
    place: Place = command.operation.selector
    if "" in rights.queue:
        return None
    if not place.queue.startswith(rights.queue):
        return FORBIDDEN
    job = cluster.machine.peek(place)
    if job is None:
        return _to_come(cluster, JOB_NOT_FOUND) if place.seq >= cluster.machine.next_seq else None
    return None if job.origin is None or job.origin.startswith(rights.queue) else FORBIDDEN


def change(rights: Rights, command: Command, cluster: Cluster) -> bytes | None:
    """Require the right for the selected job, and the right for its new item."""
    return selected(rights, command, cluster) if _owns(rights, command.operation.item) else FORBIDDEN


def awaited(rights: Rights, command: Command, cluster: Cluster) -> bytes | None:
    """Require `queue` for the queue of the job of this number; for the queue of a key `put` is enough."""
    selector = command.operation.selector
    if isinstance(selector, Selector):
        return awaiting(rights, selector.queue, by_key=True)
    refusal, hidden = _of_number(rights.queue, selector.number, cluster)
    if hidden:
        command.operation = Await(Number(NO_JOB))
    return refusal


def awaiting(rights: Rights, queue: str, *, by_key: bool) -> bytes | None:
    """Require `queue` for the queue of an awaited job; for one that is named by its key `put` is enough."""
    return None if queue.startswith(rights.queue) or (by_key and queue.startswith(rights.put)) else FORBIDDEN


def _of_number(
    prefixes: tuple[str, ...], number: int, cluster: Cluster,
) -> tuple[bytes | None, bool]:
    """Return the refusal, and whether the job is hidden: the user has none of `prefixes` for its queue.

    A hidden job is looked up as NO_JOB, so it looks as if it no longer existed. So is one of which only the record is
    left, also for commands that do not ask for records: an entry on its way may bring it back. A number that is not
    assigned yet is refused, as an id is.
    """
    if "" in prefixes:
        return None, False
    if not prefixes:
        return FORBIDDEN, False
    job = cluster.machine.peek(Number(number))
    queue = job.queue if job is not None else cluster.machine.queue_of_ended(number)
    if queue is not None:
        return None, not queue.startswith(prefixes)
    return _to_come(cluster, JOB_NOT_FOUND) if number >= cluster.machine.next_seq else None, False


# ---- events

def subscribe(rights: Rights, command: Command, cluster: Cluster) -> bytes | None:
    """Require the right for each name. Without names, a subscription covers what the user may see."""
    return None if may_subscribe(rights, command.arguments[0]) else FORBIDDEN


def may_subscribe(rights: Rights, wish: Filter) -> bool:
    """Return whether the user has the right for each name of a filter, if it has any."""
    names = (*wish.names, *wish.prefixes)
    return wish.everything or all(may_hear(rights, event, name) for event in wish.types for name in names)


def notify(rights: Rights, command: Command, cluster: Cluster) -> bytes | None:
    """Require `put` for the channel."""
    return None if command.operation.channel.startswith(rights.put) else FORBIDDEN


def may_hear(rights: Rights, event_type: str, name: str) -> bool:
    """Return whether the user may receive events of this type for this name (or prefix)."""
    if event_type in OPEN:
        return True
    if event_type in OF_ITEMS:
        return name.startswith(rights.item)
    if event_type == MSG:
        return name.startswith(rights.get)
    return name.removeprefix(OWN_PREFIX).startswith(rights.get + rights.queue)


# ---- queues

def queue(rights: Rights, command: Command, cluster: Cluster) -> bytes | None:
    """Require `queue` for the queue named."""
    queue: str = command.arguments[0] if command.operation is None else command.operation.queue
    return None if queue.startswith(rights.queue) else FORBIDDEN


def both_queues(rights: Rights, command: Command, cluster: Cluster) -> bytes | None:
    """Require `queue` for the named queue and for the one that receives its jobs."""
    return queue(rights, command, cluster) if command.operation.to.startswith(rights.queue) else FORBIDDEN


def found(rights: Rights, command: Command, cluster: Cluster) -> bytes | None:
    """Require `queue` for each queue named. A search of all queues covers those for which the user has this right."""
    queues: tuple[str, ...] | None = command.arguments[0]
    return None if queues is None or all(queue.startswith(rights.queue) for queue in queues) else FORBIDDEN


def topic(rights: Rights, command: Command, cluster: Cluster) -> bytes | None:
    """Require `queue` for the topic, `@<topic>`."""
    return None if f"@{command.operation.topic}".startswith(rights.queue) else FORBIDDEN


def binding(rights: Rights, command: Command, cluster: Cluster) -> bytes | None:
    """Require `queue` for the topic and for the queue that is bound."""
    return topic(rights, command, cluster) or queue(rights, command, cluster)


def settings(rights: Rights, command: Command, cluster: Cluster) -> bytes | None:
    """Require `queue` for the queue and for its dead-letter queue, as jobs get there without any user's `put`.

    For a shared pulse require `get` or `queue`, as the queue's hand-outs use up its grants.
    """
    operation = command.operation
    dead = operation.change.dead
    pulse = operation.change.pulse
    if pulse and not pulse.startswith((*rights.get, *rights.queue)):
        return FORBIDDEN
    return queue(rights, command, cluster) if dead is None or dead.startswith(rights.queue) else FORBIDDEN


def shown_group(rights: Rights, command: Command, cluster: Cluster) -> bytes | None:
    """Require the right `group` for the group, or any right on the queue that it may be: its name is a group, too."""
    return None if command.arguments[0].startswith((*rights.group, *rights.seen)) else FORBIDDEN


# ---- pulses: named like queues, and a queue's own pulse follows the queue

def pulse(rights: Rights, command: Command, cluster: Cluster) -> bytes | None:
    """Require `queue` for the pulse, to change it."""
    return None if _queue_of(command.operation.pulse).startswith(rights.queue) else FORBIDDEN


def turn(rights: Rights, command: Command, cluster: Cluster) -> bytes | None:
    """Require `get` for the pulse, to take turns."""
    return turning(rights, command.arguments[0])


def turning(rights: Rights, pulse: str) -> bytes | None:
    """Require `get` for the pulse."""
    return None if _queue_of(pulse).startswith(rights.get) else FORBIDDEN


def ticket(rights: Rights, command: Command, cluster: Cluster) -> bytes | None:
    """Require `get` for the pulse of the ticket.

    As with ids, a closed ticket is not protected, and a future one is refused.
    """
    if "" in rights.get:
        return None
    machine, number = cluster.machine, command.operation.ticket
    pulse = machine.pulse_of_ticket(number)
    if pulse is None:
        return _to_come(cluster, TICKET_NOT_FOUND) if number >= machine.next_ticket else None
    return None if _queue_of(pulse).startswith(rights.get) else FORBIDDEN


def seen_pulse(rights: Rights, command: Command, cluster: Cluster) -> bytes | None:
    """Require any right on the pulse."""
    return None if _queue_of(command.arguments[0]).startswith(rights.seen) else FORBIDDEN


def _queue_of(pulse: str) -> str:
    return pulse.removeprefix(OWN_PREFIX)


def all_jobs(rights: Rights, command: Command, cluster: Cluster) -> bytes | None:
    """Require `get` for all queues."""
    return None if "" in rights.get else FORBIDDEN


def total(rights: Rights, command: Command, cluster: Cluster) -> bytes | None:
    """Allow the totals to any user; for a single queue require any right on it."""
    queue: str | None = command.arguments[0]
    return None if queue is None or queue.startswith(rights.seen) else FORBIDDEN


def some_queue(rights: Rights, command: Command, cluster: Cluster) -> bytes | None:
    """Require any right on some queue; only such queues are listed."""
    return None if rights.seen else FORBIDDEN
