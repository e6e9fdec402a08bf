"""AUTH and USER: who a client is, and who may be one (spec/access 2)."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

from core import DeleteUser, SetUser
from gateway.commands.sessions import propose
from gateway.limits import AUTH_FAILURES_MAX
from gateway.protocol import requests, responses

if TYPE_CHECKING:
    from gateway.server.conversation import Conversation

_ANSWER = re.compile(r"[0-9A-Fa-f]{64}")        # of HMAC-SHA256


async def with_secret(conversation: Conversation, request: requests.Auth) -> None:
    """AUTH <user> <secret>: only where nobody can listen."""
    guard, link = conversation.guard, conversation.link
    guard.challenge = None
    if guard.fixed or not link.secure:
        await _refuse(conversation, "AUTH on a port of a fixed user" if guard.fixed else "AUTH without TLS",
                      request.user)
    elif await conversation.hub.access.check(request.user, request.secret, link.peer) is None:
        _refused(conversation)
    else:
        _accepted(conversation, request.user)


async def with_word(conversation: Conversation, request: requests.AuthWord) -> None:
    """AUTH <user>, which is answered by a challenge, or AUTH <answer>, while there is one: it is for one try."""
    guard, access = conversation.guard, conversation.hub.access
    challenge, guard.challenge = guard.challenge, None
    if guard.fixed:
        await _refuse(conversation, "AUTH on a port of a fixed user", request.word)
    elif challenge is None or _ANSWER.fullmatch(request.word) is None:
        guard.challenge = request.word, access.new_nonce()
        conversation.say(responses.challenge(guard.challenge[1]))
    elif access.answers(*challenge, bytes.fromhex(request.word)):
        _accepted(conversation, challenge[0])
    else:
        await _refuse(conversation, "wrong user or secret", challenge[0])


def _accepted(conversation: Conversation, user: str) -> None:
    _become(conversation, user)
    if conversation.trial is not None:
        if not conversation.guard.administrator:
            conversation.say_last(responses.BUSY)
            return
        conversation.end_trial()
    conversation.say(responses.OK)


async def _refuse(conversation: Conversation, why: str, user: str) -> None:
    began = asyncio.get_running_loop().time()
    await conversation.hub.access.refuse(why, user, conversation.link.peer, began)
    _refused(conversation)


def _refused(conversation: Conversation) -> None:
    """Whoever failed is nobody, so that he does nothing in the name of the wrong user."""
    guard = conversation.guard
    if not guard.fixed:
        _become(conversation, None)
    guard.failures += 1
    if guard.failures < AUTH_FAILURES_MAX and conversation.trial is None:
        conversation.say(responses.FORBIDDEN)
    else:
        conversation.say_last(responses.FORBIDDEN)


def _become(conversation: Conversation, user: str | None) -> None:
    if user != conversation.guard.user:
        conversation.attach(None)       # the session is that of the user before
    conversation.guard.become(user)


# ---- USER

async def set_user(conversation: Conversation, request: requests.UserSet) -> None:
    """USER SET: it carries a key, so it is only taken where nobody can listen."""
    hub = conversation.hub
    if not conversation.link.secure:
        hub.access.complain("USER SET without TLS", conversation.guard.user, conversation.link.peer)
        conversation.say(responses.FORBIDDEN)
    elif not _is_in_file(conversation, request.name):
        conversation.say(await propose(hub.cluster, SetUser(request.name, request.rights, request.key)))


async def delete_user(conversation: Conversation, request: requests.UserDelete) -> None:
    """USER DELETE."""
    if not _is_in_file(conversation, request.name):
        conversation.say(await propose(conversation.hub.cluster, DeleteUser(request.name)))


def _is_in_file(conversation: Conversation, user: str) -> bool:
    """Say that the file decides about this user, if it does; 500 comes before 409."""
    hub = conversation.hub
    if hub.cluster.serving and user in hub.access.file_users:
        conversation.say(responses.USER_IN_FILE)
        return True
    return False
