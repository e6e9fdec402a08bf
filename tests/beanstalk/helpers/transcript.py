"""Plays a transcript of several clients against a server in memory.

A line is `<client> > what it sends`, `<client> < the answer`, `<client> .` (it has sent its last byte), `<client> !`
(its connection is gone), `<client> x` (the server has closed), or `+ <seconds>`. Each sent line gets CR LF; `\\r`,
`\\n` and `\\0` may be written in it, and a `\\` at its end sends it without. Answers
to what was not expected yet are an error.
"""

from __future__ import annotations

from collections.abc import Callable

from sockpqd.beanstalk import BeanstalkdConversation, BeanstalkdServer
from tests.beanstalk.helpers.memory import MemoryBackend, Queue


class HandTurns:
    """Turns that are granted when the test asks for it."""

    def __init__(self) -> None:
        self.budget = 1_000_000
        self.line: list[Callable[[], object]] = []

    def call_in_turn(self, do: Callable[[], None]) -> None:
        self.line.append(do)

    def do_piece(self, piece: Callable[[], bool]) -> None:
        self.line.append(piece)


class Client:
    """The bytes that a client has received."""

    def __init__(self, server: BeanstalkdServer, queue: Queue, turns: HandTurns) -> None:
        self.got = b""
        self.closed = False
        self.turns = turns.line
        self.backend = MemoryBackend(queue)
        self.conversation = BeanstalkdConversation(server, self.backend, self)

    def write(self, data: bytes) -> None:
        self.got += data

    def close(self) -> None:
        self.closed = True

    def weigh(self) -> None:
        pass

    def read_on(self) -> None:
        pass

    def take_turns(self) -> None:
        """Wait until there is nothing more to do."""
        while self.turns:
            self.turns.pop(0)()

    def expect(self, line: bytes) -> None:
        assert self.got.startswith(line), (self.got, line)
        self.got = self.got[len(line):]


class World:
    """A queue, a server, and its clients by name."""

    def __init__(self, body_bytes_max: int = 65_535) -> None:
        self.queue = Queue()
        self.turns = HandTurns()
        self.server = BeanstalkdServer(
            "instance", body_bytes_max=body_bytes_max, now=self.queue.now, draining=lambda: self.queue.draining,
            turns=self.turns)
        self.clients: dict[str, Client] = {}

    def client(self, name: str) -> Client:
        if name not in self.clients:
            self.clients[name] = Client(self.server, self.queue, self.turns)
        return self.clients[name]

    def play(self, transcript: str, unread: str = "") -> None:
        """Play a transcript; `unread`: the client has received more than the transcript shows."""
        for row in map(str.lstrip, transcript.splitlines()):
            if row.startswith("+ "):
                self.queue.advance(float(row[2:]))
            elif row:
                self._event(row)
        for name, client in self.clients.items():
            assert client.got == b"" or name == unread, (name, client.got)

    def _event(self, row: str) -> None:
        name, sign, *text = row.split(" ", 2)
        client, line = self.client(name), _bytes(text[0] if text else "")
        if sign == ">":
            client.conversation.receive(line)
        elif sign == "<":
            client.expect(line)
        elif sign == ".":
            client.conversation.end()
        elif sign == "!":
            client.conversation.lost()
        else:
            assert sign == "x", row
            assert client.closed
        for other in self.clients.values():
            other.take_turns()


def _bytes(text: str) -> bytes:
    end = "" if text.endswith("\\") else "\r\n"
    text = text.removesuffix("\\").replace("\\r", "\r").replace("\\n", "\n").replace("\\0", "\0")
    return (text + end).encode("latin-1")
