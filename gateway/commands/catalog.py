"""What each request does, as two tables: those that may run while earlier ones await their answers, and the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core import TouchSession
from gateway.commands import admin, auth, sessions, transactions
from gateway.commands.clone import Clone
from gateway.commands.read import SEEING
from gateway.commands.streams import snapshot
from gateway.commands.write import IN_LOG, no_room
from gateway.protocol import requests, responses
from gateway.protocol.request_id import Numbering
from gateway.waiting.slots import Awaited, Fate

if TYPE_CHECKING:
    from gateway.server.conversation import Conversation


# ---- requests of a session

def _numbered(conversation: Conversation, request: requests.Numbered) -> None:
    attached = conversation.attached
    if attached is None:
        conversation.say(sessions.without_session(conversation))
    else:
        command = request.command
        conversation.hub.tally.commands[type(command)] += 1
        IN_LOG[type(command)](conversation, command, Numbering(attached.number, request.number, request.digest))


# ---- transactions

def _begin(conversation: Conversation, request: requests.Begin) -> None:
    if conversation.hub.cluster.serving:
        conversation.enter_transaction(IN_TRANSACTION, transactions.Transaction())
        conversation.say(responses.OK)
    else:
        conversation.enter_transaction(AFTER_REFUSED_BEGIN, None)
        conversation.say(Fate.REFUSED)


def _rollback(conversation: Conversation, request: requests.Rollback) -> None:
    conversation.say(responses.BAD_ARGUMENTS if conversation.leave_transaction() is None else responses.OK)


def _clone_in_transaction(conversation: Conversation, request: requests.CloneStart) -> None:
    """It cannot stand there; its data still come."""
    assert conversation.transaction is not None
    conversation.clone = Clone(conversation)
    conversation.clone.fail(conversation.transaction.refuse(responses.BAD_ARGUMENTS))
    conversation.await_slot(conversation.clone)


# ---- answers known at once

def _refused(conversation: Conversation, request: requests.Refused) -> None:
    conversation.say(request.answer)


def _caps(conversation: Conversation, request: requests.Caps) -> None:
    conversation.say(responses.CAPS)


def _policy(conversation: Conversation, request: requests.PolicyDefault) -> None:
    """The connection's own, also on a node that does not serve."""
    conversation.policy = request.policy
    conversation.say(responses.OK)


def _ping(conversation: Conversation, request: requests.Ping) -> None:
    """In a session it is a use of it (spec/sessions 2.1)."""
    if conversation.attached is None:
        conversation.say(responses.OK)
    else:
        slot = Awaited(conversation)
        conversation.await_slot(slot)
        conversation.hub.cluster.propose_for(conversation, TouchSession(conversation.attached.number), slot)


# ---- this node and its applied state

def _broken(conversation: Conversation, request: requests.Broken) -> None:
    conversation.say_last(request.answer)


def _quit(conversation: Conversation, request: requests.Quit) -> None:
    conversation.say_last(responses.GOODBYE)


def _shutdown(conversation: Conversation, request: requests.Shutdown) -> None:
    conversation.say_last(responses.SHUTTING_DOWN)
    conversation.hub.shut_down(f"SHUTDOWN from {conversation.link.peer}")


def _snapshot(conversation: Conversation, request: requests.Snapshot) -> None:
    conversation.run(snapshot(conversation))


def _online(conversation: Conversation, request: requests.Online) -> None:
    conversation.hub.cluster.go_online()
    conversation.say(responses.SWITCHED_ONLINE)


# ---- CLONE

def _clone_start(conversation: Conversation, request: requests.CloneStart) -> None:
    attached = conversation.attached
    if no_room(conversation):
        clone = Clone(conversation)
        clone.fail(responses.BUSY)
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


def _session_end(conversation: Conversation, request: requests.SessionEnd) -> None:
    conversation.run(sessions.end_session(conversation, request))


def _taken(conversation: Conversation, request: requests.Taken) -> None:
    conversation.run(sessions.taken(conversation, request))


# ---- users

def _no_place(conversation: Conversation, request: object) -> None:
    conversation.say_last(responses.BUSY)


def _auth(conversation: Conversation, request: requests.Auth) -> None:
    conversation.run(auth.with_secret(conversation, request))


def _auth_word(conversation: Conversation, request: requests.AuthWord) -> None:
    conversation.run(auth.with_word(conversation, request))


def _user_set(conversation: Conversation, request: requests.UserSet) -> None:
    conversation.run(auth.set_user(conversation, request))


def _user_delete(conversation: Conversation, request: requests.UserDelete) -> None:
    conversation.run(auth.delete_user(conversation, request))


AT_ONCE: transactions.Table = {
    **IN_LOG,
    requests.Begin: _begin,
    requests.Rollback: _rollback,
    requests.PolicyDefault: _policy,
    requests.Numbered: _numbered,
    requests.Refused: _refused,
    requests.Caps: _caps,
    requests.Ping: _ping,
    requests.CloneData: _clone_data,
}

ALONE: transactions.Table = {
    **SEEING,
    requests.Broken: _broken,
    requests.Quit: _quit,
    requests.Shutdown: _shutdown,
    requests.Snapshot: _snapshot,
    requests.CloneStart: _clone_start,
    requests.SessionOpen: _session_open,
    requests.SessionAttach: _session_attach,
    requests.SessionClose: _session_close,
    requests.SessionEnd: _session_end,
    requests.Taken: _taken,
    requests.Auth: _auth,
    requests.AuthWord: _auth_word,
    requests.UserSet: _user_set,
    requests.UserDelete: _user_delete,
    requests.Online: _online,
    **dict.fromkeys(admin.WORK, admin.begin),
}

IN_TRANSACTION: transactions.Table = {
    **transactions.open_table(AT_ONCE, ALONE),
    requests.CloneStart: _clone_in_transaction,
    requests.CloneData: _clone_data,
}
TRIAL: transactions.Table = dict.fromkeys(
    (kind for kind in (*AT_ONCE, *ALONE) if kind not in (requests.Auth, requests.AuthWord)), _no_place,
)
AFTER_REFUSED_BEGIN = transactions.refused_table(AT_ONCE)
