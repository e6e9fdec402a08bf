"""The answers of beanstalkd, as bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from sockpqd.beanstalk.limits import PER_PIECE

BAD_FORMAT = b"BAD_FORMAT\r\n"
UNKNOWN_COMMAND = b"UNKNOWN_COMMAND\r\n"
JOB_TOO_BIG = b"JOB_TOO_BIG\r\n"
EXPECTED_CRLF = b"EXPECTED_CRLF\r\n"
DRAINING = b"DRAINING\r\n"
OUT_OF_MEMORY = b"OUT_OF_MEMORY\r\n"
INTERNAL_ERROR = b"INTERNAL_ERROR\r\n"
NOT_FOUND = b"NOT_FOUND\r\n"
NOT_IGNORED = b"NOT_IGNORED\r\n"
DEADLINE_SOON = b"DEADLINE_SOON\r\n"
TIMED_OUT = b"TIMED_OUT\r\n"
DELETED = b"DELETED\r\n"
RELEASED = b"RELEASED\r\n"
BURIED = b"BURIED\r\n"
TOUCHED = b"TOUCHED\r\n"
KICKED = b"KICKED\r\n"
PAUSED = b"PAUSED\r\n"
BEGIN = "---\n"          # of a document in YAML


def inserted(number: int) -> bytes:
    """Return the answer to put: the job's id."""
    return b"INSERTED %d\r\n" % number


def using(tube: str) -> bytes:
    """The answer to use and list-tube-used."""
    return b"USING %b\r\n" % tube.encode()


def watching(count: int) -> bytes:
    """The answer to watch and ignore."""
    return b"WATCHING %d\r\n" % count


def kicked(count: int) -> bytes:
    """The answer to kick: the number of jobs."""
    return b"KICKED %d\r\n" % count


def reserved(number: int, body: bytes) -> bytes:
    """The answer to reserve and similar commands."""
    return b"RESERVED %d %d\r\n%b\r\n" % (number, len(body), body)


def found(number: int, body: bytes) -> bytes:
    """The answer to peek and similar commands."""
    return b"FOUND %d %d\r\n%b\r\n" % (number, len(body), body)


def yaml_list(names: Iterable[str]) -> bytes:
    """A list in YAML, the answer to list-tubes and list-tubes-watched."""
    return _document(f"- {name}\n" for name in names)


def long_yaml_list(names: Iterable[str]) -> Iterator[bytes]:
    """Yield a list in YAML in pieces; nothing is sent before all names are known, as the length comes first."""
    found: list[str] = []
    length = len(BEGIN)
    left = iter(names)
    while piece := list(islice(left, PER_PIECE)):
        found += piece
        length += len(_lines(piece))
        yield b""
    yield b"OK %d\r\n%b" % (length, BEGIN.encode())
    for start in range(0, len(found), PER_PIECE):
        yield _lines(found[start:start + PER_PIECE])
    yield b"\r\n"


def _lines(names: Iterable[str]) -> bytes:
    return "".join([f"- {name}\n" for name in names]).encode()


def yaml_map(values: dict[str, int | str]) -> bytes:
    """A mapping in YAML, the answer to stats and similar commands; strings that need quotes have them (`quoted`)."""
    return _document(f"{key}: {value}\n" for key, value in values.items())


def quoted(text: str) -> str:
    """A string in YAML, between quotes as beanstalkd 1.13 writes it."""
    return f'"{text}"'


def _document(lines: Iterable[str]) -> bytes:
    data = (BEGIN + "".join(lines)).encode()
    return b"OK %d\r\n%b\r\n" % (len(data), data)
