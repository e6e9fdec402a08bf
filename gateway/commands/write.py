"""Commands that go through the log; with a numbering they are requests of a session."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from msgspec.structs import replace

from sockpqd.core import (
    SPREAD_JOBS_MAX,
    Batch,
    Change,
    DataDropped,
    Done,
    End,
    Finished,
    Get,
    GetWith,
    JobPut,
    Later,
    Move,
    Policy,
    Put,
    PutWith,
    Rearmed,
    Reply,
    Results,
    Selector,
    Taking,
    ToQueues,
    put_by,
)
from sockpqd.gateway.commands.choice import chosen, known_empty
from sockpqd.gateway.commands.context.client import Client
from sockpqd.gateway.commands.context.putting import user_of
from sockpqd.gateway.commands.context.splitting import Many, propose_split, split
from sockpqd.gateway.commands.context.transaction import data_bytes, without_text
from sockpqd.gateway.commands.transactions import log_end, owned
from sockpqd.gateway.limits import LINES_PER_COMMAND
from sockpqd.gateway.protocol import responses
from sockpqd.gateway.protocol.command import Command
from sockpqd.gateway.protocol.request_id import Numbering
from sockpqd.gateway.waiting.end_waiters import EndWaiter
from sockpqd.gateway.waiting.job_grants import RatedGetSlot
from sockpqd.gateway.waiting.job_waiter import JobWaiter, WaitRequest
from sockpqd.gateway.waiting.put_wait import PutWaitSlot
from sockpqd.gateway.waiting.slots import NoReply, Outcome


def proposed(client: Client, command: Command) -> None:
    """Propose the operation and answer with its reply, as most commands do."""
    client.propose(command.operation, command.numbering)


def hold(client: Client, command: Command) -> None:
    """ITEM HOLD: hold an item; a new one belongs to the user."""
    client.propose(owned(client, command.operation), command.numbering)


def no_room(client: Client) -> bool:
    """Return whether disk or memory is too full for more jobs (spec/cluster 9.1); 500 takes precedence over 503."""
    cluster = client.hub.cluster
    return cluster.full and cluster.serving


def heartbeat(client: Client, command: Command) -> None:
    """WORKER: the heartbeat of a pool, with its address."""
    client.propose(replace(command.operation, address=client.link.peer), command.numbering)


# ---- putting

def put(client: Client, command: Command) -> None:
    """PUT: store a job, and hand it to a waiter right away if there is one."""
    hub, operation = client.hub, command.operation
    if hub.cluster.full and no_room(client):
        client.say(responses.BUSY)
        return
    if client.guard.user is not None and (user := user_of(client)) is not None:
        operation = put_by(operation, user)
    client.propose(operation, command.numbering)
    if type(operation) is Put:              # nearly always
        hub.job_waiters.follow(operation, client)
    else:
        _follow(client, operation)


def _follow(client: Client, put: JobPut) -> None:
    """Propose a waiter's Get right after the PUT, if the job will be ready immediately."""
    if isinstance(put, Put):
        client.hub.job_waiters.follow(put, client)
    elif put.when is None and not put.after and put.group is None and put.targets is None:
        client.hub.job_waiters.follow(put.put, client)


def put_wait(client: Client, command: Command) -> None:
    """PUT .. WAIT: the PUT, and a waiter for its output (spec/state-machine 4.7)."""
    if no_room(client):
        client.say(responses.BUSY)
        return
    hub, wait, put, numbering = client.hub, command.wait, command.operation, command.numbering
    assert wait is not None
    refusals = (hub.cluster.machine.elsewhere(name) for name in wait.queues or ())
    refusal = next((one for one in refusals if one is not None), None)
    if refusal is not None and hub.cluster.serving:
        client.say(responses.answer(refusal))
        return
    if (user := user_of(client)) is not None:
        put = put_by(put, user)
    wants = WaitRequest(wait)
    if numbering is not None:
        wants.request = numbering.request(wait, part=1, keep_waiting=True)
    waiter = JobWaiter(client, hub.job_waiters, wants=wants, timeout_answer=responses.WAIT_TIMEOUT)
    slot = PutWaitSlot(client, waiter=waiter, waiters=hub.job_waiters)
    client.await_slot(slot)
    client.block(waiter)
    hub.job_waiters.limit(waiter, command.within_ms)
    hub.cluster.propose_for(client, put if numbering is None else numbering.request(put), slot)
    if waiter.timed_out or _may_find_output(client, put, wants):
        hub.job_waiters.add_with_put(waiter)
    _follow(client, put)


def _may_find_output(client: Client, put: JobPut, wants: WaitRequest) -> bool:
    """Return whether there can be an output as soon as the job is put: an existing one, or the job itself."""
    get = wants.get
    queue = put.queue if isinstance(put, Put) else put.put.queue
    if get.queues is None or queue in get.queues:
        return True
    return get.item is not None and client.hub.job_waiters.has_job_for(wants)


def puts(client: Client, command: Command) -> None:
    """PUTS: store many jobs, answered with a line each. Errors that concern all of them, 500 and 503, are sent once."""
    if no_room(client):
        client.say(responses.BUSY)
        return
    arguments = command.arguments
    if any(type(job) is PutWith and job.targets is not None for job in arguments):
        arguments = _refuse_spread(arguments)
    lines = [job if isinstance(job, bytes) else b"" for job in arguments]
    jobs = tuple(job for job in arguments if not isinstance(job, bytes))
    if not jobs:
        client.say(responses.lines_of(lines) if client.hub.cluster.serving else NoReply.REFUSED)
        return

    def tell(reply: Reply) -> Outcome:
        if not isinstance(reply, Results) or len(jobs) == len(lines):
            return reply
        replies = iter(reply.replies)
        return responses.lines_of([line or responses.answer(next(replies)) for line in lines])
    _propose_many(client, Batch(jobs, atomic=False, user=user_of(client)), command.numbering, tell)


def _refuse_spread(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Refuse lines of a PUTS that name more queues than one command may put into.

    The PUTS can be several operations, each of which counts only its own queues.
    """
    left = SPREAD_JOBS_MAX
    checked: list[Any] = []
    for job in arguments:
        targets = job.targets if isinstance(job, PutWith) else None
        names = len(set(targets.queues)) if isinstance(targets, ToQueues) else 0
        if names > left:
            checked.append(responses.TOO_LARGE)
        else:
            checked.append(job)
            left -= names
    return tuple(checked)


def _propose_many(
    client: Client, operation: Many, numbering: Numbering | None, tell: Callable[[Reply], Outcome],
) -> None:
    operations = split(operation, client.hub.cluster.machine.known_work)
    if len(operations) == 1:
        client.propose_mapped(operation, tell, numbering)
    else:
        propose_split(client, operations, tell, numbering)


def with_data(client: Client, command: Command) -> None:
    """CHANGE and MOVE: propose them; with data, and no room for it, refuse them like a new job."""
    operation: Change | Move = command.operation
    if data_bytes(operation) is not None and no_room(client):
        client.say(responses.BUSY)
    else:
        client.propose(operation, command.numbering)


# ---- taking

def get(client: Client, command: Command) -> None:
    """GET: hand out jobs. The plain form, for one queue, takes a fast path."""
    operation: Taking = command.operation
    if (
        type(operation) is Get and (queues := operation.queues) is not None and len(queues) == 1
        and client.state.policy is None
        and (settings := (machine := client.hub.cluster.machine).settings).policy is Policy.RANDOM
        and not settings.fast_empty and not machine.rate_limited_queues
    ):
        client.propose(operation, command.numbering)
    else:
        _pick(client, operation, command.numbering)


def _pick(client: Client, operation: Taking, numbering: Numbering | None) -> None:
    get = operation.get if isinstance(operation, GetWith) else operation
    taking, round_robin = chosen(client, operation), client.state.round_robin
    if numbering is None and client.hub.cluster.machine.settings.fast_empty and known_empty(client, get):
        client.say(responses.QUEUE_EMPTY)
        return
    note: Callable[[Reply], Reply] | None = None
    if round_robin is not None and isinstance(taking, GetWith) and taking.turn is not None:
        note = partial(round_robin.note, named=get.queues is not None)
    rated, numbered = client.hub.cluster.machine.rate_limited_queues, numbering is not None
    if rated and (grants := client.hub.grant_reservations.take(taking, numbered=numbered)) is not None:
        slot = RatedGetSlot(client, client.hub.cluster, grants, taking, note or _as_it_is, numbering)
        client.await_slot(slot)
        slot.propose()
    elif note is not None:
        client.propose_mapped(taking, note, numbering)
    else:
        client.propose(taking, numbering)


def _as_it_is(reply: Reply) -> Reply:
    return reply


def blocking_get(client: Client, command: Command) -> None:
    """GETB and GETBE: block until there is a job."""
    operation: Taking = command.operation
    hub, until_finished, numbering = client.hub, command.until_finished, command.numbering
    taking = chosen(client, operation)
    get, pick = (taking, None) if isinstance(taking, Get) else (taking.get, taking)
    wants = WaitRequest(get, until_finished, pick)
    if numbering is not None:
        wants.request = numbering.request(taking, keep_waiting=True, until_finished=until_finished)
    waiter = JobWaiter(client, hub.job_waiters, wants=wants, round_robin=client.state.round_robin)
    client.block(waiter)
    if get.queues is not None and len(get.queues) > LINES_PER_COMMAND:
        hub.budget -= len(get.queues) // LINES_PER_COMMAND
    hub.job_waiters.limit(waiter, command.within_ms)
    hub.job_waiters.add(waiter, propose_now=numbering is not None and client.number_in_flight(numbering.number))


def await_end(client: Client, command: Command) -> None:
    """AWAIT: block until the job has ended.

    It writes nothing, and asks the log only if the state does not have the answer.
    """
    attached, selector = client.state.attached, command.operation.selector
    waiter = EndWaiter(
        client, client.hub.end_waiters, question=command.operation, by_key=isinstance(selector, Selector),
        queue=selector.queue if isinstance(selector, Selector) else None,
        in_session=None if attached is None else attached.number,
    )
    client.block(waiter)
    client.hub.end_waiters.add(waiter, command.within_ms)


# ---- the others

def of_many(client: Client, command: Command) -> None:
    """DONE, LATER and TOUCH on many jobs."""
    _propose_many(client, command.operation, command.numbering, lambda reply: reply)


def delete(client: Client, command: Command) -> None:
    """DELETE: remove a job."""
    client.propose(owned(client, command.operation), command.numbering)


def later(client: Client, command: Command) -> None:
    """LATER: put a job back into its queue."""
    operation: Later | End = command.operation
    client.propose(_without_text(client, operation) if isinstance(operation, End) else operation, command.numbering)


def ended(client: Client, command: Command) -> None:
    """DONE and BURY: finish a job or give it up; the reason goes to the server's log."""
    def tell(reply: Reply) -> Reply:
        if isinstance(reply, Finished | Rearmed | DataDropped):
            log_end(client, command)
        return reply
    operation: Done | End = command.operation
    if type(operation) is End:
        operation = _without_text(client, operation)
    if command.arguments:
        client.propose_mapped(operation, tell, command.numbering)
    else:
        client.propose(operation, command.numbering)


def _without_text(client: Client, end: End) -> End:
    """Return the operation without its ERROR or RESULT if there is no room for that."""
    return without_text(end) if end.text and no_room(client) else end
