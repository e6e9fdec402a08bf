"""The lines of SESSION and REQ."""

from __future__ import annotations

from collections.abc import Callable

from gateway import requests
from gateway.grammar.heads import CloneHead, Head, NumberedPutHead, PutHead, Words
from gateway.grammar.jobs import clone, done, get, getb, getbe, later, put
from gateway.limits import SESSION_TTL_MS_DEFAULT, SESSION_TTL_MS_MAX, SESSION_TTL_MS_MIN
from gateway.numbering import digest_of
from gateway.values import ArgumentError, milliseconds, unsigned
from gateway.values import session as sid_of


def session(words: Words) -> requests.Command:
    match words[1:]:
        case []:
            return requests.SessionOpen(SESSION_TTL_MS_DEFAULT)
        case [b"TTL", seconds]:
            ttl_ms = milliseconds(seconds)
            if not SESSION_TTL_MS_MIN <= ttl_ms <= SESSION_TTL_MS_MAX:
                raise ArgumentError
            return requests.SessionOpen(ttl_ms)
        case [b"CLOSE"]:
            return requests.SessionClose(release=False)
        case [b"CLOSE", b"RELEASE"]:
            return requests.SessionClose(release=True)
        case [sid]:
            return requests.SessionAttach(*sid_of(sid))
    raise ArgumentError


def req(words: Words) -> requests.Command | Head:
    """REQ <r> <command>, of those commands that go through the log."""
    if len(words) < 3:
        raise ArgumentError
    number, words = unsigned(words[1]), words[2:]
    words[0] = words[0].upper()
    parse = NUMBERED.get(words[0])
    if number == 0 or parse is None:
        raise ArgumentError
    command = parse(words)
    digest = digest_of(words)
    if isinstance(command, PutHead):
        return NumberedPutHead(command.length, number, digest, command)
    if isinstance(command, CloneHead):
        return CloneHead(requests.CloneStart(command.start.total_bytes, number, digest.digest()))
    return requests.Numbered(number, digest.digest(), command)


NUMBERED: dict[bytes, Callable[[Words], requests.InLog | PutHead | CloneHead]] = {
    b"PUT": put,
    b"GET": get,
    b"DONE": done,
    b"LATER": later,
    b"GETB": getb,
    b"GETBE": getbe,
    b"CLONE": clone,
}
