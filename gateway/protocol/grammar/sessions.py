"""The lines of SESSION and REQ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from core import DoneAll, LaterAll, Pick
from gateway.limits import (
    NUMBERED_BATCH_JOBS_MAX,
    SESSION_TTL_MS_DEFAULT,
    SESSION_TTL_MS_MAX,
    SESSION_TTL_MS_MIN,
)
from gateway.protocol import requests
from gateway.protocol.arguments import ArgumentError, milliseconds, unsigned
from gateway.protocol.arguments import session as sid_of
from gateway.protocol.grammar.heads import CloneHead, DataHead, Head, NumberedHead, PutHead, PutsHead, Words
from gateway.protocol.grammar.jobs import bury, clone, done, kick, later, touch
from gateway.protocol.grammar.no_arguments import alone
from gateway.protocol.grammar.puts import put, puts
from gateway.protocol.grammar.queues import config, queue
from gateway.protocol.grammar.selectors import change, delete, move
from gateway.protocol.grammar.take import get, getb, getbe
from gateway.protocol.request_id import digest_of
from gateway.protocol.responses import BAD_ARGUMENTS


def session(words: Words) -> requests.Command:
    match words[1:]:
        case []:
            return requests.SessionOpen(SESSION_TTL_MS_DEFAULT, default=True)
        case [b"TTL", seconds]:
            ttl_ms = milliseconds(seconds)
            if not SESSION_TTL_MS_MIN <= ttl_ms <= SESSION_TTL_MS_MAX:
                raise ArgumentError
            return requests.SessionOpen(ttl_ms)
        case [b"CLOSE"]:
            return requests.SessionClose(release=False)
        case [b"CLOSE", b"RELEASE"]:
            return requests.SessionClose(release=True)
        case [b"LIST"]:
            return requests.SessionList()
        case [b"END", number]:
            return requests.SessionEnd(unsigned(number))
        case [sid]:
            return requests.SessionAttach(*sid_of(sid))
    raise ArgumentError


def req(words: Words) -> requests.Command | Head:
    """REQ <r> <command>, of those commands that change something and whose answer can be stored (spec/sessions 3.4)."""
    if len(words) < 3:
        raise ArgumentError
    number, words = unsigned(words[1]), words[2:]
    words[0] = words[0].upper()
    parse = NUMBERED.get(words[0])
    if number == 0 or parse is None:
        raise ArgumentError
    command = parse(words)
    digest = digest_of(words)
    if isinstance(command, PutHead | DataHead):
        return NumberedHead(command.length, number, digest, command)
    if isinstance(command, PutsHead):
        refusal = BAD_ARGUMENTS if command.count > NUMBERED_BATCH_JOBS_MAX else None
        return PutsHead(command.count, number, digest, refusal)
    if isinstance(command, CloneHead):
        return CloneHead(requests.CloneStart(command.start.total_bytes, number, digest.digest()))
    if type(command) in _READING or _jobs(command) > NUMBERED_BATCH_JOBS_MAX:
        raise ArgumentError
    return requests.Numbered(number, digest.digest(), command)


# What has a verb in common with commands that change something.
_READING = (requests.QueueList, requests.QueueStat, requests.QueueConfig, requests.Config)


def _jobs(command: object) -> int:
    """How many jobs there can be in the answer."""
    while isinstance(command, requests.Bound | requests.BlockingGet):
        command = command.command if isinstance(command, requests.Bound) else command.get
    if isinstance(command, Pick):
        return command.count or 1
    return len(command.ids) if isinstance(command, DoneAll | LaterAll) else 1


NUMBERED: dict[bytes, Callable[[Words], Any]] = {
    b"PUT": put,
    b"GET": get,
    b"DONE": done,
    b"LATER": later,
    b"GETB": getb,
    b"GETBE": getbe,
    b"PUTS": puts,
    b"TOUCH": touch,
    b"CHANGE": change,
    b"DELETE": delete,
    b"MOVE": move,
    b"BURY": bury,
    b"KICK": kick,
    b"COMMIT": alone(requests.Commit()),
    b"QUEUE": queue,
    b"CONFIG": config,
    b"CLONE": clone,
}
