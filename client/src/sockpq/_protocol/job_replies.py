"""How the answers to the commands for several jobs, for keys and for queues are read; replies.py has the others."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from sockpq._protocol.reader import (
    BODY_BYTES_MAX,
    LINE,
    Reader,
    as_name,
    as_number,
    as_signed,
    as_text,
    expect,
    failure,
    lines_of_list,
    ok,
)
from sockpq._protocol.replies import meta_tokens
from sockpq.errors import Aborted, JobNotFound, ProtocolError, SockpqError
from sockpq.model import PeekedJob

T = TypeVar("T")

_STATES = {"READY", "DELAYED", "RUNNING", "DEAD"}
_SETTING = re.compile(r"[A-Z][A-Z_]{0,31}")
_ABORTED = re.compile(r"409 Aborted ([0-9]{1,9}) (.*)")


def stored(item: str | None, new_item: bool) -> Reader[str | None]:
    """PUT with options: the name of the job's item, None without one."""
    return as_stored(as_text((yield LINE)), item, new_item)


def as_stored(text: str, item: str | None, new_item: bool) -> str | None:
    """What the line of a PUT tells; raises what it means when it is none."""
    fields = ok(text.encode())
    if fields in ([], ["EXISTS"], ["REPLACED"]):
        return item
    expect(new_item and len(fields) == 2 and fields[0] == "IS", "the answer to a PUT")
    return as_name(fields[1])


def is_new(text: str) -> bool:
    """Does the line of a PUT say that the job is there because of it? Raises what it means when it is refused."""
    return ok(text.encode()) != ["EXISTS"]


def each(read: Callable[[str], T], count: int) -> Reader[list[T | SockpqError]]:
    """PUTS, and DONE or LATER of several: for each what `read` makes of its line, or its error."""
    lines = yield from lines_of_list()
    expect(len(lines) == count, f"{len(lines)} lines in the answer to {count} commands")
    return [_each(line, read) for line in lines]


def alone(read: Callable[[str], T], _: int) -> Reader[list[T | SockpqError]]:
    """DONE or LATER of one, as if it were of several."""
    text = as_text((yield LINE))
    return [JobNotFound(text) if text == "404 Job Not Found" else read(text)]


def leased() -> Reader[int | None]:
    """TOUCH: when the lease ends now, in Unix time; None without one."""
    fields = ok((yield LINE))
    if not fields:
        return None
    expect(len(fields) == 2 and fields[0] == "EXPIRE", "the answer to TOUCH")
    return as_number(fields[1])


def peeked() -> Reader[PeekedJob | None]:
    """PEEK of one job; None when there is none."""
    line = yield LINE
    if line == b"404 Job Not Found":
        return None
    job, length = _peek_line(ok(line))
    return job._replace(data=(yield length))


def peeked_many(count: int) -> Reader[list[PeekedJob]]:
    """PEEK of a queue: a count, the lines, then all bodies in a row."""
    heads = [_peek_line(line.split(" ")) for line in (yield from lines_of_list())]
    expect(len(heads) <= count, "more jobs than were asked for")
    result = []
    for job, length in heads:
        result.append(job._replace(data=(yield length)))
    return result


def settings(names: Mapping[str, str]) -> Reader[dict[str, str]]:
    """QUEUE CONFIG, CONFIG: each setting with its value, which may have several words.

    `names`: what this library calls those that it does not call as the protocol does, but in small letters.
    """
    pairs = {}
    for line in (yield from lines_of_list()):
        word, _, value = line.partition(" ")
        expect(_SETTING.fullmatch(word) is not None, f"not a setting: {line[:100]!r}")
        pairs[names.get(word, word.lower())] = value
    return pairs


def counters() -> Reader[dict[str, int]]:
    """QUEUE STAT."""
    return {word: as_number(value) for word, value in (yield from settings({})).items()}


def begun() -> Reader[None]:
    """BEGIN."""
    expect(not ok((yield LINE)), "the answer to BEGIN")


def committed(readers: tuple[Callable[[str], object], ...]) -> Reader[list[object]]:
    """The commands of a transaction, then COMMIT: the values of the commands, each as its reader takes its line.

    Raises Aborted. A command that the server does not queue makes it abort; so does its not serving any more.
    """
    refused = None
    for position in range(1, len(readers) + 1):
        text = as_text((yield LINE))
        if text != "202 Queued" and refused is None:
            refused = position, failure(text)
    line = as_text((yield LINE))
    if match := _ABORTED.fullmatch(line):
        raise Aborted(line, int(match[1]), failure(match[2]))
    fields = ok(line.encode())
    if refused:
        raise ProtocolError(f"a transaction was executed without its command {refused[0]}: {refused[1]}")
    expect(fields == [str(len(readers))], "the answer to COMMIT")
    values = []
    for reader in readers:
        values.append(reader(as_text((yield LINE))))
    return values


def as_accepted(text: str) -> bool:
    """True for the line of a command whose only good answer is 200 OK, perhaps with words of no interest."""
    ok(text.encode())
    return True


def _each(line: str, read: Callable[[str], T]) -> T | SockpqError:
    """One line of the answers to several commands: a value, or its own error."""
    try:
        return read(line)
    except ProtocolError:
        raise
    except SockpqError as error:
        return error


def _peek_line(fields: list[str]) -> tuple[PeekedJob, int]:
    """`<q> <id|-> <p> <len> <state> [meta]` as a job without its data, and their length."""
    expect(len(fields) >= 5 and fields[4] in _STATES, "not the line of a job")
    item, meta = meta_tokens(fields[5:])
    return PeekedJob(
        id=None if fields[1] == "-" else as_number(fields[1]),
        queue=as_name(fields[0]),
        priority=as_signed(fields[2]),
        data=b"",
        state=fields[4].lower(),
        item=item,
        key=meta.key,
        attempt=meta.attempt,
        at=meta.at,
        expires_at=meta.expires_at,
    ), as_number(fields[3], BODY_BYTES_MAX)

