"""What each request does, as two tables: those that may run while earlier ones await their answers, and the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from core import Done, Get, Later, Put, TouchSession
from gateway import administration, answers, authentication, requests, sessions
from gateway.clone import Clone
from gateway.numbering import Numbering
from gateway.pending import Awaited, PutOfWait
from gateway.streams import queue_list, run_list, snapshot
from gateway.waiters import Waiter

if TYPE_CHECKING:
    from gateway.conversation import Conversation


# ---- operations; with a numbering they are requests of a session

def _put(conversation: Conversation, put: Put, numbering: Numbering | None = None) -> None:
    if _no_room(conversation):
        conversation.say(answers.BUSY)
        return
    conversation.propose(put, numbering)
    waiters = conversation.hub.waiters
    if len(waiters):
        waiters.follow(put)


def _no_room(conversation: Conversation) -> bool:
    """Is there no room for further jobs, on disk or in memory (A62)? 500 comes before 503."""
    cluster = conversation.hub.cluster
    return cluster.full and cluster.serving


def _operation(
    conversation: Conversation, operation: Get | Done | Later, numbering: Numbering | None = None,
) -> None:
    conversation.propose(operation, numbering)


def _blocking_get(
    conversation: Conversation, request: requests.BlockingGet, numbering: Numbering | None = None,
) -> None:
    get, until_finished = request.get, request.until_finished
    waiter = Waiter(conversation, get, until_finished)
    if numbering is not None:
        waiter.request = numbering.request(get, keep_waiting=True, until_finished=until_finished)
    conversation.block(waiter)
    conversation.hub.cluster.propose(waiter.operation, waiter)


def _put_wait(conversation: Conversation, request: requests.PutWait, numbering: Numbering | None = None) -> None:
    """Two operations, back to back: the hand-out always stands directly behind its PUT (DECISIONS 3)."""
    if _no_room(conversation):
        conversation.say(answers.BUSY)
        return
    waiter = Waiter(conversation, request.get)
    if numbering is not None:
        waiter.request = numbering.request(request.get, part=1, keep_waiting=True)
    slot = PutOfWait(conversation, waiter=waiter)
    conversation.await_slot(slot)
    conversation.block(waiter)
    hub = conversation.hub
    hub.cluster.propose(request.put if numbering is None else numbering.request(request.put), slot)
    hub.cluster.propose(waiter.operation, waiter)
    if len(hub.waiters):
        hub.waiters.follow(request.put)


def _bound(conversation: Conversation, request: requests.Bound, numbering: Numbering | None = None) -> None:
    attached = conversation.attached
    if attached is None:
        conversation.say(sessions.without_session(conversation))
    else:
        command = request.to(attached.number)
        conversation.hub.tally.commands[type(command)] += 1
        IN_LOG[type(command)](conversation, command, numbering)


def _numbered(conversation: Conversation, request: requests.Numbered) -> None:
    attached = conversation.attached
    if attached is None:
        conversation.say(sessions.without_session(conversation))
    else:
        command = request.command
        conversation.hub.tally.commands[type(command)] += 1
        IN_LOG[type(command)](conversation, command, Numbering(attached.number, request.number, request.digest))


# ---- answers known at once

def _refused(conversation: Conversation, request: requests.Refused) -> None:
    conversation.say(request.answer)


def _caps(conversation: Conversation, request: requests.Caps) -> None:
    conversation.say(answers.CAPS)


def _ping(conversation: Conversation, request: requests.Ping) -> None:
    """In a session it is a use of it (DECISIONS 29)."""
    if conversation.attached is None:
        conversation.say(answers.OK)
    else:
        slot = Awaited(conversation)
        conversation.await_slot(slot)
        conversation.hub.cluster.propose(TouchSession(conversation.attached.number), slot)


# ---- this node and its applied state

def _broken(conversation: Conversation, request: requests.Broken) -> None:
    conversation.say_last(request.answer)


def _quit(conversation: Conversation, request: requests.Quit) -> None:
    conversation.say_last(answers.GOODBYE)


def _shutdown(conversation: Conversation, request: requests.Shutdown) -> None:
    conversation.say_last(answers.SHUTTING_DOWN)
    conversation.hub.shut_down(f"SHUTDOWN from {conversation.link.peer}")


def _total(conversation: Conversation, request: requests.Total) -> None:
    conversation.say(answers.total(conversation.hub.cluster.machine.total(request.queue)))


def _interconnect(conversation: Conversation, request: requests.Interconnect) -> None:
    conversation.say(answers.number(conversation.hub.cluster.interconnect_id()))


def _run_list(conversation: Conversation, request: requests.RunList) -> None:
    jobs = conversation.hub.cluster.machine.running()
    conversation.run(run_list(conversation, jobs, request.with_data))


def _queue_list(conversation: Conversation, request: requests.QueueList) -> None:
    names = conversation.hub.cluster.machine.queue_names(request.prefix)
    conversation.run(queue_list(conversation, conversation.guard.visible(names)))


def _snapshot(conversation: Conversation, request: requests.Snapshot) -> None:
    conversation.run(snapshot(conversation))


def _online(conversation: Conversation, request: requests.Online) -> None:
    conversation.hub.cluster.go_online()
    conversation.say(answers.SWITCHED_ONLINE)


def _cluster_status(conversation: Conversation, request: requests.ClusterStatus) -> None:
    cluster = conversation.hub.cluster
    conversation.say(answers.cluster_status(cluster.status(), cluster.machine))


def _cluster_leader(conversation: Conversation, request: requests.ClusterLeader) -> None:
    cluster = conversation.hub.cluster
    name = cluster.leader()
    conversation.say(answers.cluster_leader(next((node for node in cluster.status() if node.name == name), None)))


def _cluster_hash(conversation: Conversation, request: requests.ClusterHash) -> None:
    conversation.say(answers.cluster_hash(*conversation.hub.cluster.state_hash()))


# ---- CLONE

def _clone_start(conversation: Conversation, request: requests.CloneStart) -> None:
    attached = conversation.attached
    if _no_room(conversation):
        clone = Clone(conversation)
        clone.fail(answers.BUSY)
    elif request.number == 0:
        clone = Clone(conversation)
        clone.begin(request.total_bytes)
    elif attached is None:
        clone = Clone(conversation)
        clone.fail(sessions.without_session(conversation))
    else:
        clone = Clone(conversation, Numbering(attached.number, request.number, request.digest))
        clone.begin(request.total_bytes)
    conversation.clone = clone
    conversation.await_slot(clone)


def _clone_data(conversation: Conversation, request: requests.CloneData) -> None:
    assert conversation.clone is not None
    conversation.clone.add(request.data, request.last)
    if request.last:
        conversation.clone = None


# ---- sessions

def _session_open(conversation: Conversation, request: requests.SessionOpen) -> None:
    conversation.run(sessions.open_session(conversation, request))


def _session_attach(conversation: Conversation, request: requests.SessionAttach) -> None:
    conversation.run(sessions.attach_session(conversation, request))


def _session_close(conversation: Conversation, request: requests.SessionClose) -> None:
    conversation.run(sessions.close_session(conversation, request))


def _taken(conversation: Conversation, request: requests.Taken) -> None:
    conversation.run(sessions.taken(conversation, request))


# ---- users

def _auth(conversation: Conversation, request: requests.Auth) -> None:
    conversation.run(authentication.with_secret(conversation, request))


def _auth_word(conversation: Conversation, request: requests.AuthWord) -> None:
    conversation.run(authentication.with_word(conversation, request))


def _user_set(conversation: Conversation, request: requests.UserSet) -> None:
    conversation.run(authentication.set_user(conversation, request))


def _user_delete(conversation: Conversation, request: requests.UserDelete) -> None:
    conversation.run(authentication.delete_user(conversation, request))


def _user_list(conversation: Conversation, request: requests.UserList) -> None:
    conversation.say(answers.user_list(conversation.hub.access.listed()))


class InLog(Protocol):
    """What a command does that goes through the log: itself, or as a request of a session."""

    def __call__(self, conversation: Conversation, request: Any, numbering: Numbering | None = None, /) -> None:
        """Execute it."""


IN_LOG: dict[type, InLog] = {
    Put: _put,
    Get: _operation,
    Done: _operation,
    Later: _operation,
    requests.BlockingGet: _blocking_get,
    requests.PutWait: _put_wait,
    requests.Bound: _bound,
}

AT_ONCE: dict[type, Callable[[Conversation, Any], None]] = {
    **IN_LOG,
    requests.Numbered: _numbered,
    requests.Refused: _refused,
    requests.Caps: _caps,
    requests.Ping: _ping,
    requests.CloneData: _clone_data,
}

ALONE: dict[type, Callable[[Conversation, Any], None]] = {
    requests.Broken: _broken,
    requests.Quit: _quit,
    requests.Shutdown: _shutdown,
    requests.Total: _total,
    requests.QueueList: _queue_list,
    requests.RunList: _run_list,
    requests.Snapshot: _snapshot,
    requests.CloneStart: _clone_start,
    requests.SessionOpen: _session_open,
    requests.SessionAttach: _session_attach,
    requests.SessionClose: _session_close,
    requests.Taken: _taken,
    requests.Auth: _auth,
    requests.AuthWord: _auth_word,
    requests.UserSet: _user_set,
    requests.UserDelete: _user_delete,
    requests.UserList: _user_list,
    requests.Interconnect: _interconnect,
    requests.Online: _online,
    requests.ClusterStatus: _cluster_status,
    requests.ClusterLeader: _cluster_leader,
    requests.ClusterHash: _cluster_hash,
    **dict.fromkeys(administration.WORK, administration.begin),
}
