"""The lines of AUTH and USER."""

from __future__ import annotations

from gateway import rights
from gateway.protocol.arguments import ArgumentError, secret, secret_key, user_name
from gateway.protocol.command import Command, Words


def auth(words: Words) -> Command | None:
    """AUTH <user> <secret>."""
    return Command(arguments=(user_name(words[1]), secret(words[2]))) if len(words) == 3 else None


def auth_word(words: Words) -> Command:
    """AUTH <user> or AUTH <answer>: which of them depends on whether there is a challenge."""
    if len(words) != 2:
        raise ArgumentError
    return Command(arguments=(user_name(words[1]),))


def user_set(words: Words) -> Command:
    """Arguments: name, rights in their usual form, key."""
    if len(words) != 4:
        raise ArgumentError
    try:
        granted = rights.of_text(words[2].decode("ascii")).text
    except ValueError:      # not ASCII, or no right
        raise ArgumentError from None
    return Command(arguments=(user_name(words[1]), granted, secret_key(words[3])))


def user_delete(words: Words) -> Command:
    """Arguments: name."""
    if len(words) != 2:
        raise ArgumentError
    return Command(arguments=(user_name(words[1]),))
