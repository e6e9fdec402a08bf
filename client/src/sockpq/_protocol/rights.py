"""The rights that a command needs, in words, for the message of its refusal (PROTOCOL "Rights").

The server answers `403 Forbidden` and no more. Which rights it asked for is known from the line of the command; which
of several the user lacks is not, so all of them are named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from sockpq._protocol.command import Command

SHOWN_MAX = 3               # of a transaction, or a batch: the rights that are named
ALL_QUEUES = "for all queues"
OF_JOB = "for the queue of the job"
GET_OPTIONS = frozenset(("EXPIRE", "IS", "BY", "COUNT", "WITHIN", "META", "HEAD", "BOUND", "BATCH"))    # without queues

_Rule = Callable[[Sequence[str]], Iterator[str]]


def needed(command: Command[Any]) -> str:
    """Return the rights that a command needs, as "put for queue mail"; "" if its line does not say which."""
    if command.members:
        found = list(dict.fromkeys(right for member in command.members for right in _of_line(member.line)))
        more = [f"{len(found) - SHOWN_MAX} more"] if len(found) > SHOWN_MAX else []
        return " and ".join(found[:SHOWN_MAX] + more)
    return " and ".join(_of_line(command.line))


def _of_line(line: bytes) -> list[str]:
    words = line.decode("utf-8", "replace").split()
    rule = _RULES.get(" ".join(words[:2])) or _RULES.get(words[0] if words else "")
    return [] if rule is None else list(rule(words))


def _queues(right: str, names: str) -> str:
    """Return a right for queues as a line names them: separated by |, or * for all."""
    if names == "*":
        return f"{right} {ALL_QUEUES}"
    return f"{right} for {'queues' if '|' in names else 'queue'} {names.replace('|', ', ')}"


def _named(kind: str, names: str) -> str:
    """Return the right for items or groups, several of which a line separates by |."""
    return f"{kind} for {kind}{'s' if '|' in names else ''} {names.replace('|', ', ')}"


def _word(words: Sequence[str], at: int) -> str:
    return words[at] if at < len(words) else "?"


def _after(words: Sequence[str], option: str, first: int) -> Iterator[str]:
    """Yield the word after an option, if the line has it behind its first words."""
    if option in words[first:-1]:
        yield words[words.index(option, first) + 1]


def _put(words: Sequence[str]) -> Iterator[str]:
    yield _queues("put", _word(words, 1))
    for queue in _after(words, "WAIT", 4):
        yield _queues("get", queue)
    for option in ("IS", "AFTER"):
        for item in _after(words, option, 4):
            yield _named("item", item)
    for group in _after(words, "GROUP", 4):
        yield f"group for group {group}"


def _get(words: Sequence[str]) -> Iterator[str]:
    if words[1:2] == ["NUMBER"]:
        yield f"get {OF_JOB}"
    else:
        names = words[1] if len(words) > 1 and words[1] not in GET_OPTIONS else "*"
        yield _queues("get", names)


def _move(words: Sequence[str]) -> Iterator[str]:
    yield f"get {OF_JOB}"
    yield _queues("put", _word(words, 2))


def _selected(first: int, by_id: str) -> _Rule:
    """Return the rule of commands that name a job by its id, key, place or number, in the words from `first` on."""
    def rule(words: Sequence[str]) -> Iterator[str]:
        kind = _word(words, first)
        if kind in ("KEY", "SEQ"):
            yield _queues("queue", _word(words, first + 1))
        elif kind == "NUMBER":
            yield f"queue {OF_JOB}"
        elif kind.isdigit():
            yield f"{by_id} {OF_JOB}"
        else:
            yield _queues("queue", kind)
        for item in _after(words, "IS", first + 1):
            yield f"item for item {item}"
    return rule


def _await(words: Sequence[str]) -> Iterator[str]:
    yield _queues("queue or put", _word(words, 2)) if words[1:2] == ["KEY"] else f"queue {OF_JOB}"


def _hold(words: Sequence[str]) -> Iterator[str]:
    yield "put for some queue" if words[2:3] == ["NEW"] else f"item for item {_word(words, 2)}"


def _queue_settings(words: Sequence[str]) -> Iterator[str]:
    yield _queues("queue", _word(words, 2))
    for queue in _after(words, "DEAD", 3):
        yield _queues("queue", queue)


def _each(template: str, *places: int) -> _Rule:
    """Return the rule of a right for each of the words at these places."""
    def rule(words: Sequence[str]) -> Iterator[str]:
        for at in places:
            yield template.format(_word(words, at))
    return rule


def _same(right: str) -> _Rule:
    return lambda words: iter((right,))


_ADMIN = _same(f"admin {ALL_QUEUES}")
_SECRET = _same(f"admin {ALL_QUEUES}, and a connection by TLS or on the server's own host")
_RULES: dict[str, _Rule] = {
    "PUT": _put, "GET": _get, "GETB": _get, "GETBE": _get, "MOVE": _move, "AWAIT": _await,
    **dict.fromkeys(("DONE", "LATER", "TOUCH", "BURY"), _same(f"get {OF_JOB}")),
    **dict.fromkeys(("CHANGE", "DELETE", "PEEK"), _selected(1, "get")),
    "JOB STAT": _selected(2, "queue"), "KICK JOB": _selected(2, "queue"), "KICK": _each("queue for queue {}", 1),
    **dict.fromkeys(("QUEUE CREATE", "QUEUE CONFIG"), _queue_settings),
    **dict.fromkeys(("QUEUE DELETE", "QUEUE PURGE", "QUEUE PAUSE", "QUEUE RESUME", "QUEUE STAT"),
                    _each("queue for queue {}", 2)),
    "QUEUE MOVE": _each("queue for queue {}", 2, 3), "FIND": lambda words: iter((_queues("queue", _word(words, 1)),)),
    **dict.fromkeys(("QUEUE LIST", "TOPIC LIST", "PULSE LIST"), _same("some right for some queue")),
    **dict.fromkeys(("PULSE CREATE", "PULSE CONFIG", "PULSE DELETE", "PULSE SET"), _each("queue for pulse {}", 2)),
    "PULSE WAIT": _each("get for pulse {}", 2), "PULSE RESULT": _same("get for the pulse of the ticket"),
    "PULSE STAT": _each("some right for pulse {}", 2),
    "TOPIC DELETE": _each("queue for topic @{}", 2),
    **dict.fromkeys(("TOPIC BIND", "TOPIC UNBIND"),
                    lambda words: iter((f"queue for topic @{_word(words, 2)}", _queues("queue", _word(words, 3))))),
    "ITEM STAT": _each("item for item {}", 2), "ITEM HOLD": _hold,
    **dict.fromkeys(("ITEM RETRY", "ITEM RELEASE", "ITEM CANCEL"), _each("item for item {}", 2)),
    "SCHED GROUP": _each("group for group {}", 2), "TOTAL": _each("some right for queue {}", 1),
    "RUNLIST": _same(f"get {ALL_QUEUES}"), "WORKER": _same("get for some queue"),
    "NOTIFY": _each("put for queue {}", 1),
    **dict.fromkeys(("CONFIG", "SCHED CONFIG", "GROUP CONFIG", "GROUP PAUSE", "GROUP RESUME", "GROUP DELETE", "CLONE",
                     "SESSION LIST", "SESSION END", "WORKER SET", "USER LIST", "USER DELETE", "MAP SET", "CLUSTER",
                     "OFFLINE", "ONLINE", "SHUTDOWN"), _ADMIN),
    **dict.fromkeys(("USER SET", "SNAPSHOT", "CLUSTER FEED"), _SECRET),
}
