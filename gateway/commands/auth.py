"""AUTH and USER: authenticating clients and managing users (spec/access 2)."""

from __future__ import annotations

import asyncio
import re

from sockpqd.core import SetUser, User
from sockpqd.gateway.commands.context.client import Client
from sockpqd.gateway.commands.context.client_state import Run
from sockpqd.gateway.commands.context.proposing import propose
from sockpqd.gateway.limits import AUTH_FAILURES_MAX
from sockpqd.gateway.protocol import responses
from sockpqd.gateway.protocol.command import Command

_ANSWER = re.compile(r"[0-9A-Fa-f]{64}")        # of HMAC-SHA256


def with_secret(client: Client, command: Command) -> None:
    """AUTH <user> <secret>: only accepted on a secure connection."""
    client.run(_with_secret(client, *command.arguments))


async def _with_secret(client: Client, user: str, secret: str) -> None:
    guard, link = client.guard, client.link
    guard.challenge = None
    if guard.fixed or not link.secure:
        await _refuse(client, "AUTH on a port of a fixed user" if guard.fixed else "AUTH without TLS",
                      user)
    elif await client.hub.access.check(user, secret, link.peer) is None:
        _refused(client)
    else:
        _accepted(client, user)


def with_word(client: Client, command: Command) -> None:
    """AUTH <user>, answered with a challenge, or AUTH <answer> to a pending challenge; each allows one attempt."""
    client.run(_with_word(client, *command.arguments))


async def _with_word(client: Client, word: str) -> None:
    guard, access = client.guard, client.hub.access
    challenge, guard.challenge = guard.challenge, None
    if guard.fixed:
        await _refuse(client, "AUTH on a port of a fixed user", word)
    elif challenge is None or _ANSWER.fullmatch(word) is None:
        guard.challenge = word, access.new_nonce()
        client.say(responses.challenge(guard.challenge[1]))
    elif access.answers(*challenge, bytes.fromhex(word)):
        _accepted(client, challenge[0])
    else:
        await _refuse(client, "wrong user or secret", challenge[0])


def _accepted(client: Client, user: str) -> None:
    _become(client, user)
    if client.state.trial is not None:
        if not client.guard.administrator:
            client.say_last(responses.BUSY)
            return
        client.state.end_trial()
    client.say(responses.OK)


async def _refuse(client: Client, why: str, user: str) -> None:
    began = asyncio.get_running_loop().time()
    await client.hub.access.refuse(why, user, client.link.peer, began)
    _refused(client)


def _refused(client: Client) -> None:
    """Answer a failed AUTH; the connection loses its user, so that the client does not act as the wrong one."""
    guard = client.guard
    if not guard.fixed:
        _become(client, None)
    guard.failures += 1
    if guard.failures < AUTH_FAILURES_MAX and client.state.trial is None:
        client.say(responses.FORBIDDEN)
    else:
        client.say_last(responses.FORBIDDEN)


def _become(client: Client, user: str | None) -> None:
    if user != client.guard.user:
        client.state.attach(None)       # the session belongs to the previous user
    client.guard.become(user)


def on_trial(command: Command) -> Run | None:
    """Decide how to run a command of a client on trial: only AUTH is allowed."""
    return None if command.row.run in (with_secret, with_word) else _no_place


def _no_place(client: Client, command: Command) -> None:
    client.say_last(responses.BUSY)


# ---- USER

def set_user(client: Client, command: Command) -> None:
    """USER SET: create or change a user; it carries a key, so it is only accepted on a secure connection."""
    client.run(_set_user(client, *command.arguments))


async def _set_user(client: Client, name: str, rights: str, key: bytes) -> None:
    hub = client.hub
    if not client.link.secure:
        hub.access.complain("USER SET without TLS", client.guard.user, client.link.peer)
        client.say(responses.FORBIDDEN)
    elif not _is_in_file(client, name):
        client.say(await propose(hub.cluster, SetUser(name, User(rights, key)), client))


def delete_user(client: Client, command: Command) -> None:
    """USER DELETE: delete a user that the cluster keeps."""
    client.run(_delete_user(client, *command.arguments))


async def _delete_user(client: Client, name: str) -> None:
    if not _is_in_file(client, name):
        client.say(await propose(client.hub.cluster, SetUser(name, None), client))


def _is_in_file(client: Client, user: str) -> bool:
    """Refuse the command, and return True, if the users file defines this user; 500 takes precedence over 409."""
    hub = client.hub
    if hub.cluster.serving and user in hub.access.file_users:
        client.say(responses.USER_IN_FILE)
        return True
    return False
