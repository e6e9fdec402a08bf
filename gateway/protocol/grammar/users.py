"""The grammar of AUTH and USER."""

from __future__ import annotations

from sockpqd.gateway import rights
from sockpqd.gateway.protocol.arguments import ArgumentError, WrongWord, secret, secret_key, user_name
from sockpqd.gateway.protocol.command import Command, Words


def _user(word: bytes) -> str:
    """Parse the user of AUTH; an error does not show the word, which may be a secret."""
    try:
        return user_name(word)
    except WrongWord as error:
        raise WrongWord(error.wanted, None) from None


def auth(words: Words) -> Command | None:
    """AUTH <user> <secret>."""
    return Command(arguments=(_user(words[1]), secret(words[2]))) if len(words) == 3 else None


def auth_word(words: Words) -> Command:
    """AUTH <user> or AUTH <answer>: which it is depends on whether a challenge is pending."""
    if len(words) != 2:
        raise ArgumentError("AUTH takes a user and a secret, or first the user and then the answer")
    return Command(arguments=(_user(words[1]),))


def user_set(words: Words) -> Command:
    """USER SET. Arguments: name, rights in normal form, key."""
    if len(words) != 4:
        raise ArgumentError("USER SET takes a user, rights and a key")
    try:
        granted = rights.of_text(words[2].decode("ascii")).text
    except ValueError:      # not ASCII, or not a right
        raise WrongWord("rights like put:mail*,get or -", words[2]) from None
    return Command(arguments=(user_name(words[1]), granted, secret_key(words[3])))


def user_delete(words: Words) -> Command:
    """USER DELETE. Arguments: name."""
    if len(words) != 2:
        raise ArgumentError("USER DELETE takes a user")
    return Command(arguments=(user_name(words[1]),))
