"""Reads the parts of a command's line that determine its cluster: names, or the id of a job."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple

from sockpq._protocol.arguments import ENDED_STATES, STATES
from sockpq._protocol.command import Command
from sockpq._protocol.job_ids import local_id

ANY = "*"           # instead of names: all queues


class Use(Enum):
    """The relation of a command to the names in it."""

    FIRST = "it concerns a cluster itself: the one whose servers the client was given"
    HOME = "it concerns what belongs to all clusters and is kept in the first one of the map"
    EVERY = "it concerns what each cluster has, and goes to all of them"
    BRINGS = "it brings something to these names: only their owner accepts it"
    SETS = "it sets how these names are served: their owner has that, of a spread queue every cluster"
    LIES = "it takes, shows, ends or removes what lies under these names, wherever that is"
    JOB = "it is about jobs with these ids"
    ITEM = "it is about this item"


class Target(NamedTuple):
    """The subject of a command: the names of queues, topics, pulses or channels; of an item; or ids of jobs."""

    use: Use
    names: tuple[str, ...] = ()
    ids: tuple[int, ...] = ()


FIRST, HOME, EVERY = Target(Use.FIRST), Target(Use.HOME), Target(Use.EVERY)
_PEEKED = {state.upper() for state in (*STATES, *ENDED_STATES)} | {"ENDED"}


def target_of(line: bytes) -> Target:
    """Return the target of the command with this line."""
    words = line.decode().split()
    reader = _READERS.get(words[0])
    return reader(words) if reader else FIRST


def as_sent(command: Command[Any], ids: tuple[int, ...]) -> Command[Any]:
    """Return the command about jobs with these ids with the ids used by their cluster."""
    line = command.line
    for job in ids:         # in the order of the line, in which they come before anything else that may look so
        line = line.replace(b" %d" % job, b" %d" % local_id(job), 1)
    return command._replace(line=line, older=command.older and as_sent(command.older, ids))


def _put(words: list[str]) -> Target:
    names = words[1].split("|")
    if names[0].startswith("@"):
        names[0] = names[0][1:]
    if "WAIT" in words:
        names.append(words[words.index("WAIT") + 1])
    return Target(Use.BRINGS, tuple(names))


def _get(words: list[str]) -> Target:
    if len(words) == 1 or words[1] in (ANY, "EXPIRE"):
        return Target(Use.LIES, (ANY,))
    if words[1] == "NUMBER" and len(words) > 2 and words[2].isdigit():
        return _job(words[2])
    return _lying(words[1])


def _job(word: str) -> Target:
    return Target(Use.JOB, ids=(int(word),))


def _lying(word: str) -> Target:
    return Target(Use.LIES, tuple(word.split("|")))


def _jobs(words: list[str]) -> Target:
    ids = []
    for word in words[1:]:
        if not word.isdigit():
            break
        ids.append(int(word))
    return Target(Use.JOB, ids=tuple(ids))


def _move(words: list[str]) -> Target:
    return Target(Use.JOB, (words[2],), (int(words[1]),))


def _selected(words: list[str]) -> Target:
    """Return a job by its number, key or place, or by its id."""
    if words[1] in ("KEY", "SEQ"):
        return _lying(words[2])
    return _job(words[2] if words[1] == "NUMBER" else words[1])


def _peek(words: list[str]) -> Target:
    return _lying(words[1]) if len(words) > 2 and words[2] in _PEEKED and "COUNT" in words else _selected(words)


def _kick(words: list[str]) -> Target:
    return _job(words[3]) if words[1:3] == ["JOB", "NUMBER"] else _lying(words[1])


def _total(words: list[str]) -> Target:
    return _lying(words[1]) if len(words) > 1 else Target(Use.LIES, (ANY,))


def _queue(words: list[str]) -> Target:
    if words[1] == "LIST":
        return Target(Use.LIES, (ANY,))
    if words[1] == "MOVE":
        return Target(Use.BRINGS, tuple(words[2:4]))
    return Target(Use.SETS if words[1] in ("CREATE", "CONFIG", "PAUSE") else Use.LIES, tuple(words[2:3]))


def _topic(words: list[str]) -> Target:
    if words[1] == "LIST":
        return Target(Use.LIES, (ANY,))
    return Target(Use.BRINGS, tuple(words[2:4] if words[1] == "BIND" else words[2:3]))


def _pulse(words: list[str]) -> Target:
    if words[1] == "RESULT":
        return _job(words[2])
    return Target(Use.LIES, (ANY,)) if words[1] == "LIST" else Target(Use.BRINGS, (words[2].removeprefix("queue:"),))


def _item(words: list[str]) -> Target:
    if words[1] == "LIST":
        return Target(Use.LIES, (ANY,))
    return HOME if words[1:3] == ["HOLD", "NEW"] else Target(Use.ITEM, (words[2],))


_READERS: dict[str, Callable[[list[str]], Target]] = {
    "PUT": _put,
    "NOTIFY": lambda words: Target(Use.BRINGS, (words[1],)),
    "GET": _get, "GETB": _get, "GETBE": _get,
    "DONE": _jobs, "LATER": _jobs, "TOUCH": _jobs, "BURY": _jobs, "MOVE": _move,
    "PEEK": _peek, "CHANGE": _selected, "DELETE": _selected, "AWAIT": _selected,
    "JOB": lambda words: _job(words[3]),
    "KICK": _kick, "TOTAL": _total, "FIND": _get, "RUNLIST": lambda words: Target(Use.LIES, (ANY,)),
    "QUEUE": _queue, "TOPIC": _topic, "PULSE": _pulse, "ITEM": _item,
    "GROUP": lambda words: Target(Use.LIES, (ANY,)) if words[1] == "LIST" else EVERY,
    "WORKER": lambda words: HOME,
}
