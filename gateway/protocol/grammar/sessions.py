"""Parses the commands of SESSION: each function reads the words of one."""

from __future__ import annotations

from sockpqd.gateway.limits import SESSION_TTL_MS_MAX, SESSION_TTL_MS_MIN, SESSIONS_KEPT_MAX
from sockpqd.gateway.protocol.arguments import ArgumentError, WrongWord, milliseconds, unsigned
from sockpqd.gateway.protocol.arguments import session as sid_of
from sockpqd.gateway.protocol.command import Command, Words
from sockpqd.gateway.protocol.tokens import seconds


def session_ttl_ms(word: bytes) -> int:
    """Parse a session TTL: how long a session lives without being used."""
    ttl_ms = milliseconds(word)
    if not SESSION_TTL_MS_MIN <= ttl_ms <= SESSION_TTL_MS_MAX:
        raise WrongWord(f"seconds from {seconds(SESSION_TTL_MS_MIN)} to {seconds(SESSION_TTL_MS_MAX)}", word)
    return ttl_ms


def session(words: Words) -> Command | None:
    """SESSION [TTL <sec>]. Arguments: the TTL in milliseconds, None if not given."""
    if len(words) == 1:
        return Command(arguments=(None,))
    if words[1] != b"TTL":
        return None
    if len(words) != 3:
        raise ArgumentError("SESSION TTL takes seconds")
    return Command(arguments=(session_ttl_ms(words[2]),))


def session_attach(words: Words) -> Command:
    """SESSION <sid>. Arguments: the session's number and secret."""
    if len(words) != 2:
        raise ArgumentError("SESSION takes TTL <seconds>, the id of a session, or nothing")
    return Command(arguments=sid_of(words[1]))


def session_close(words: Words) -> Command:
    """SESSION CLOSE [RELEASE [FIRST]]. Arguments: whether to release bound jobs, and whether to their old places."""
    if words[1:] not in ([], [b"RELEASE"], [b"RELEASE", b"FIRST"]):
        raise ArgumentError("SESSION CLOSE takes RELEASE, RELEASE FIRST, or nothing")
    return Command(arguments=(len(words) > 1, len(words) > 2))


def session_keep(words: Words) -> Command:
    """SESSION KEEP <sid> .. Arguments: number and secret of each session."""
    if not 1 < len(words) <= 1 + SESSIONS_KEPT_MAX:
        raise ArgumentError(f"SESSION KEEP takes the ids of 1 to {SESSIONS_KEPT_MAX} sessions")
    return Command(arguments=tuple(map(sid_of, words[1:])))


def session_end(words: Words) -> Command:
    """SESSION END <number>. Arguments: the session's number."""
    if len(words) != 2:
        raise ArgumentError("SESSION END takes the number of a session")
    return Command(arguments=(unsigned(words[1], "the number of a session must be"),))
