"""What the commands do that go through the log, as a table; with a numbering they are requests of a session."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from core import (
    Batch,
    Bury,
    Change,
    Configure,
    ConfigureQueue,
    CreateQueue,
    Delete,
    DeleteQueue,
    Done,
    DoneAll,
    DoneLast,
    Finished,
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
    Reply,
    Requested,
    Results,
    ResumeQueue,
    Touch,
)
from gateway.commands import bulk, sessions
from gateway.commands.queue_policy import chosen, known_empty
from gateway.commands.splitting import Many, propose_split, split
from gateway.commands.transactions import commit, log_burial
from gateway.limits import PORTION_MAX
from gateway.protocol import requests, responses
from gateway.protocol.request_id import Numbering
from gateway.waiting.slots import Fate, Outcome, PutOfWait
from gateway.waiting.waiter import Waiter

if TYPE_CHECKING:
    from gateway.server.conversation import Conversation

# ---- putting

def _put(conversation: Conversation, put: Put, numbering: Numbering | None = None) -> None:
    if no_room(conversation):
        conversation.say(responses.BUSY)
        return
    conversation.propose(put, numbering)
    waiters = conversation.hub.waiters
    if len(waiters):
        waiters.follow(put, conversation)


def _put_with(conversation: Conversation, put: PutWith, numbering: Numbering | None = None) -> None:
    if no_room(conversation):
        conversation.say(responses.BUSY)
        return
    conversation.propose(put, numbering)
    _follow(conversation, put)


def _with_data(conversation: Conversation, operation: Change | Move, numbering: Numbering | None = None) -> None:
    """CHANGE and MOVE: other data take room as those of a new job do."""
    if operation.data is not None and no_room(conversation):
        conversation.say(responses.BUSY)
    else:
        conversation.propose(operation, numbering)


def no_room(conversation: Conversation) -> bool:
    """Is there no room for further jobs, on disk or in memory (spec/cluster 9.1)? 500 comes before 503."""
    cluster = conversation.hub.cluster
    return cluster.full and cluster.serving


def _follow(conversation: Conversation, put: Put | PutWith) -> None:
    """Send who waits for the job, if it will be ready at once."""
    waiters = conversation.hub.waiters
    if not len(waiters):
        return
    if isinstance(put, Put):
        waiters.follow(put, conversation)
    elif put.when is None and not put.after:
        waiters.follow(put.put, conversation)


def _puts(conversation: Conversation, request: requests.Puts, numbering: Numbering | None = None) -> None:
    """One operation, and a line for each job. What holds for all of them, 500 and 503, is said once."""
    if no_room(conversation):
        conversation.say(responses.BUSY)
        return
    lines = [put.answer if isinstance(put, requests.Refused) else b"" for put in request.puts]
    puts = tuple(put for put in request.puts if not isinstance(put, requests.Refused))
    if not puts:
        conversation.say(responses.lines_of(lines) if conversation.hub.cluster.serving else Fate.REFUSED)
        return

    def tell(reply: Reply) -> Outcome:
        if not isinstance(reply, Results) or len(puts) == len(lines):
            return reply
        replies = iter(reply.replies)
        return responses.lines_of([line or responses.answer(next(replies)) for line in lines])
    _propose_many(conversation, Batch(puts, atomic=False), numbering, tell)


def _propose_many(
    conversation: Conversation, command: Many, numbering: Numbering | None, tell: Callable[[Reply], Outcome],
) -> None:
    operations = split(command)
    if len(operations) == 1:
        conversation.propose_told(command, tell, numbering)
    else:
        propose_split(conversation, operations, tell, numbering)


def _put_wait(conversation: Conversation, request: requests.PutWait, numbering: Numbering | None = None) -> None:
    """Two operations, back to back: the hand-out always stands directly behind its PUT (spec/state-machine 4.7)."""
    if no_room(conversation):
        conversation.say(responses.BUSY)
        return
    waiter = Waiter(conversation, request.get, too_late=responses.WAIT_TIMEOUT)
    if numbering is not None:
        waiter.request = numbering.request(request.get, part=1, keep_waiting=True)
    slot = PutOfWait(conversation, waiter=waiter)
    conversation.await_slot(slot)
    conversation.block(waiter)
    hub = conversation.hub
    if request.within_ms is not None:
        hub.waiters.limit(waiter, request.within_ms)
    put = request.put if numbering is None else numbering.request(request.put)
    hub.cluster.propose_for(conversation, put, slot)
    hub.cluster.propose_for(conversation, waiter.operation, waiter, behind=True)
    _follow(conversation, request.put)


# ---- getting

def _get(conversation: Conversation, get: Get, numbering: Numbering | None = None) -> None:
    """The plain one, of one queue, costs no more than it must."""
    queues = get.queues
    if queues is None or len(queues) > 1 or conversation.hub.cluster.machine.settings.fast_empty:
        _pick(conversation, get, numbering)
    else:
        conversation.propose(get, numbering)


def _pick(conversation: Conversation, command: Get | Pick, numbering: Numbering | None = None) -> None:
    get = command.get if isinstance(command, Pick) else command
    if numbering is None and conversation.hub.cluster.machine.settings.fast_empty and known_empty(conversation, get):
        conversation.say(responses.QUEUE_EMPTY)
        return
    if get.queues is None or len(get.queues) > 1:
        command = chosen(conversation, command)
        if conversation.rotation is not None:
            conversation.propose_told(command, conversation.rotation.note, numbering)
            return
    conversation.propose(command, numbering)


def _blocking_get(
    conversation: Conversation, request: requests.BlockingGet, numbering: Numbering | None = None,
) -> None:
    command, until_finished = request.get, request.until_finished
    get = command.get if isinstance(command, Pick) else command
    if get.queues is None or len(get.queues) > 1:
        command = chosen(conversation, command)
    if isinstance(command, Pick):
        waiter = Waiter(conversation, command.get, until_finished, command)
    else:
        waiter = Waiter(conversation, command, until_finished)
    if numbering is not None:
        waiter.request = numbering.request(command, keep_waiting=True, until_finished=until_finished)
    conversation.block(waiter)
    hub = conversation.hub
    if request.within_ms is not None:
        hub.waiters.limit(waiter, request.within_ms)
    hub.cluster.propose_for(conversation, waiter.operation, waiter)


def _bound(conversation: Conversation, request: requests.Bound, numbering: Numbering | None = None) -> None:
    attached = conversation.attached
    if attached is None:
        conversation.say(sessions.without_session(conversation))
    else:
        command = request.to(attached.number)
        conversation.hub.tally.commands[type(command)] += 1
        IN_LOG[type(command)](conversation, command, numbering)


# ---- the others

def _operation(conversation: Conversation, operation: Requested, numbering: Numbering | None = None) -> None:
    conversation.propose(operation, numbering)


def _of_many(
    conversation: Conversation, operation: DoneAll | LaterAll, numbering: Numbering | None = None,
) -> None:
    _propose_many(conversation, operation, numbering, lambda reply: reply)


def _bury(conversation: Conversation, request: requests.BuryRequest, numbering: Numbering | None = None) -> None:
    def tell(reply: Reply) -> Reply:
        if isinstance(reply, Finished):
            log_burial(conversation, request)
        return reply
    conversation.propose_told(request.bury, tell, numbering)


def _commit(conversation: Conversation, request: requests.Commit, numbering: Numbering | None = None) -> None:
    """COMMIT, which ends the transaction in any case."""
    transaction = conversation.leave_transaction()
    if transaction is None:
        conversation.say(responses.BAD_ARGUMENTS)
    else:
        commit(conversation, transaction, numbering)


def _purge(conversation: Conversation, request: requests.PurgeRequest, numbering: Numbering | None = None) -> None:
    conversation.run(bulk.purge(conversation, request, numbering))


def _drop(conversation: Conversation, request: requests.DropQueue, numbering: Numbering | None = None) -> None:
    if request.force:
        conversation.run(bulk.drop(conversation, request, numbering))
    else:
        conversation.propose(DeleteQueue(request.queue, force=False), numbering)


def _kick(conversation: Conversation, request: Kick, numbering: Numbering | None = None) -> None:
    if request.count > PORTION_MAX:
        conversation.run(bulk.kick(conversation, request, numbering))
    else:
        conversation.propose(request, numbering)


class InLog(Protocol):
    """What a command does that goes through the log: itself, or as a request of a session."""

    def __call__(self, conversation: Conversation, request: Any, numbering: Numbering | None = None, /) -> None:
        """Execute it."""


_OPERATIONS = (
    Done, DoneLast, Later, LaterWith, Touch, Delete, Bury, Batch, CreateQueue, ConfigureQueue, PauseQueue, ResumeQueue,
    Configure,
)

IN_LOG: dict[type, InLog] = {
    **dict.fromkeys(_OPERATIONS, _operation),
    **dict.fromkeys((DoneAll, LaterAll), _of_many),
    Put: _put,
    PutWith: _put_with,
    Change: _with_data,
    Move: _with_data,
    requests.Puts: _puts,
    requests.PutWait: _put_wait,
    Get: _get,
    Pick: _pick,
    requests.BlockingGet: _blocking_get,
    requests.Bound: _bound,
    requests.BuryRequest: _bury,
    requests.Commit: _commit,
    requests.PurgeRequest: _purge,
    requests.DropQueue: _drop,
    Kick: _kick,
}
