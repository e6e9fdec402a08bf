"""Asks a server for many jobs by their numbers, with many lines at once: one by one it takes minutes."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping, Sequence
from typing import BinaryIO, NamedTuple

TOGETHER = 500              # jobs that are asked for at once: their lines and answers fit into the buffers of sockets
SILENCE_S = 120.0


class History(NamedTuple):
    """A job as it is shown: its state, hand-outs, headers as sent, data, and the texts of its error and result."""

    state: str
    attempts: int
    headers: bytes
    data: bytes
    error: bytes
    result: bytes


def header_block(headers: Mapping[str, str]) -> bytes:
    """Return headers as they are sent."""
    return b"".join(f"{name}: {value}\n".encode() for name, value in headers.items())


def shown(server: str, numbers: Sequence[int]) -> Iterator[History | None]:
    """Yield what this server shows of each job, in this order; None: it knows none of that number."""
    host, _, port = server.rpartition(":")
    with socket.create_connection((host, int(port)), SILENCE_S) as connection, connection.makefile("rb") as answers:
        for at in range(0, len(numbers), TOGETHER):
            together = numbers[at:at + TOGETHER]
            connection.sendall("".join(
                f"PEEK NUMBER {number} ENDED HEAD\r\nPEEK NUMBER {number} ERROR\r\nPEEK NUMBER {number} RESULT\r\n"
                for number in together
            ).encode())
            for _ in together:
                yield _history(answers)


def _history(answers: BinaryIO) -> History | None:
    """Read the answers to the three lines."""
    words = _words(answers)
    if words is None:
        assert _text(answers) is None, "a job that is not shown has an error"
        assert _text(answers) is None, "a job that is not shown has a result"
        return None
    body = answers.read(int(words[3]))
    attempts = int(words[words.index("TRY") + 1])
    head = int(words[words.index("HEAD") + 1]) if "HEAD" in words else 0
    return History(words[4], attempts, body[:head], body[head:], _text(answers) or b"", _text(answers) or b"")


def _text(answers: BinaryIO) -> bytes | None:
    words = _words(answers)
    return None if words is None else answers.read(int(words[0]))


def _words(answers: BinaryIO) -> list[str] | None:
    """Return the words behind `200 OK`; None for `404 Job Not Found`."""
    line = answers.readline().decode().rstrip("\r\n")
    if line == "404 Job Not Found":
        return None
    assert line.startswith("200 OK "), f"the answer to PEEK is {line!r}"
    return line.split()[2:]
