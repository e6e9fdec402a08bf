"""The lines of AUTH and USER."""

from __future__ import annotations

from gateway.auth import rights
from gateway.protocol.arguments import ArgumentError, secret, secret_key, user_name
from gateway.protocol.grammar.heads import Words
from gateway.protocol.requests import Auth, AuthWord, Command, UserDelete, UserList, UserSet


def auth(words: Words) -> Command:
    """AUTH <user> <secret>, AUTH <user>, AUTH <answer>: the last two look the same."""
    if len(words) == 3:
        return Auth(user_name(words[1]), secret(words[2]))
    if len(words) != 2:
        raise ArgumentError
    return AuthWord(user_name(words[1]))


def user(words: Words) -> Command:
    """USER SET, DELETE, LIST."""
    match words[1:]:
        case [b"SET", name, granted, key]:
            try:
                return UserSet(user_name(name), rights.of_text(granted.decode("ascii")).text, secret_key(key))
            except ValueError:      # not ASCII, or no right
                raise ArgumentError from None
        case [b"DELETE", name]:
            return UserDelete(user_name(name))
        case [b"LIST"]:
            return UserList()
    raise ArgumentError
