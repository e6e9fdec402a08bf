"""A relay that counts ids from 1, as beanstalkd does when it begins: many of its tests expect that.

Our ids begin at the time. All the rest passes as it comes.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator

OF_IDS = re.compile(rb"(delete|release|bury|touch|peek|kick-job|stats-job|reserve-job)( +)([0-9]+)(.*)", re.DOTALL)
PUT = re.compile(rb"put(?: +[0-9]+){3} +([0-9]{1,9})$")
WITH_ID = re.compile(rb"(INSERTED|RESERVED|FOUND) ([0-9]+)(?: ([0-9]+))?$")
YAML = re.compile(rb"OK ([0-9]+)$")
LINE_BYTES_MAX = 10_000


class Ids:
    """Maps ids to numbers, and back. Unknown ones stay unchanged, on both sides."""

    def __init__(self) -> None:
        self._small: dict[int, int] = {}
        self._large: dict[int, int] = {}

    def forget(self) -> None:
        """Forget all ids, and count from 1 again."""
        self._small.clear()
        self._large.clear()

    def small(self, number: bytes) -> bytes:
        """Return the id that clients see for a number of the server's."""
        small = self._small.setdefault(int(number), len(self._small) + 1)
        self._large[small] = int(number)
        return b"%d" % small

    def large(self, number: bytes) -> bytes:
        """Return the number that the server knows by an id of a client's."""
        return number if len(number) > 20 else b"%d" % self._large.get(int(number), int(number))


class Requests:
    """The commands that a client sends."""

    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        self._buffer = b""
        self._body = 0

    def feed(self, data: bytes) -> bytes:
        """Return what can be sent on now."""
        self._buffer += data
        return b"".join(self._pieces())

    def rest(self) -> bytes:
        """Return what is left at the end."""
        return self._buffer

    def _pieces(self) -> Iterator[bytes]:
        while self._buffer:
            if self._body:
                piece, self._buffer = self._buffer[:self._body], self._buffer[self._body:]
                self._body -= len(piece)
                yield piece
                continue
            line, end, rest = self._buffer.partition(b"\r\n")
            if not end:
                if len(line) > LINE_BYTES_MAX:
                    yield self._buffer
                    self._buffer = b""
                return
            self._buffer = rest
            if (put := PUT.match(line)) and len(line) < 223:
                self._body = int(put[1]) + 2
            yield self._line(line) + end

    def _line(self, line: bytes) -> bytes:
        found = OF_IDS.fullmatch(line)
        return line if found is None else found[1] + found[2] + self._ids.large(found[3]) + found[4]


class Answers:
    """The answers of the server."""

    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        self._buffer = b""

    def feed(self, data: bytes) -> bytes:
        """Return what can be sent on now: whole answers."""
        self._buffer += data
        return b"".join(self._pieces())

    def rest(self) -> bytes:
        """Return what is left at the end."""
        return self._buffer

    def _pieces(self) -> Iterator[bytes]:
        while True:
            line, end, rest = self._buffer.partition(b"\r\n")
            if not end:
                return
            found, yaml = WITH_ID.match(line), YAML.match(line)
            length = int(yaml[1]) + 2 if yaml else int(found[3]) + 2 if found and found[3] else 0
            if len(rest) < length:
                return
            body, self._buffer = rest[:length], rest[length:]
            if found:
                line = found[1] + b" " + self._ids.small(found[2]) + (b" " + found[3] if found[3] else b"")
            elif yaml and body.startswith(b"---\nid: "):
                head, number, tail = re.split(rb"(?<=---\nid: )([0-9]+)", body, maxsplit=1)
                body = head + self._ids.small(number) + tail
                line = b"OK %d" % (len(body) - 2)
            yield line + end + body


class Relay:
    """Listens, and passes on to `target`, "host:port", which may change."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.ids = Ids()
        self._writers: set[asyncio.StreamWriter] = set()

    async def listen(self, port: int) -> int:
        """Begin to listen; returns the port."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", port, backlog=1024)
        return int(server.sockets[0].getsockname()[1])

    def fresh(self) -> None:
        """Cut all connections, and count from 1 again."""
        for writer in list(self._writers):
            writer.transport.abort()
        self.ids.forget()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, _, port = self.target.rpartition(":")
        try:
            there, back = await asyncio.open_connection(host, int(port))
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, back}
        try:
            await asyncio.gather(
                _pass(reader, back, Requests(self.ids), half=True), _pass(there, writer, Answers(self.ids), half=False))
        finally:
            self._writers -= {writer, back}
            writer.close()
            back.close()


async def _pass(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, change: Requests | Answers, *, half: bool,
) -> None:
    try:
        while data := await reader.read(1 << 16):
            if changed := change.feed(data):
                writer.write(changed)
                await writer.drain()
        writer.write(change.rest())
        if half:
            writer.write_eof()
        else:
            writer.close()
    except OSError:
        writer.transport.abort()
