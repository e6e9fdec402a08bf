"""The lines of SESSION."""

from __future__ import annotations

from gateway.limits import SESSION_TTL_MS_MAX, SESSION_TTL_MS_MIN
from gateway.protocol.arguments import ArgumentError, milliseconds, unsigned
from gateway.protocol.arguments import session as sid_of
from gateway.protocol.command import Command, Words


def session_ttl_ms(word: bytes) -> int:
    """How long a session may live without being used."""
    ttl_ms = milliseconds(word)
    if not SESSION_TTL_MS_MIN <= ttl_ms <= SESSION_TTL_MS_MAX:
        raise ArgumentError
    return ttl_ms


def session(words: Words) -> Command | None:
    """SESSION [TTL <sec>]. Arguments: milliseconds, None when the client named no TTL."""
    if len(words) == 1:
        return Command(arguments=(None,))
    if words[1] != b"TTL":
        return None
    if len(words) != 3:
        raise ArgumentError
    return Command(arguments=(session_ttl_ms(words[2]),))


def session_attach(words: Words) -> Command:
    """SESSION <sid>. Arguments: the number and the secret in it."""
    if len(words) != 2:
        raise ArgumentError
    return Command(arguments=sid_of(words[1]))


def session_close(words: Words) -> Command:
    """Arguments: shall bound jobs go LATER?"""
    if len(words) > 2 or (len(words) == 2 and words[1] != b"RELEASE"):
        raise ArgumentError
    return Command(arguments=(len(words) == 2,))


def session_end(words: Words) -> Command:
    """Arguments: the number of the session."""
    if len(words) != 2:
        raise ArgumentError
    return Command(arguments=(unsigned(words[1]),))
