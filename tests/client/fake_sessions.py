"""The sessions of a FakeCluster: they remember the answers to numbered requests (spec/sessions 3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

WINDOW = 64


@dataclass
class Stored:
    """The server's memory of one request: its command, its answer (the second one of a PUT .. WAIT)."""

    command: bytes
    answer: bytes | None = None
    item: str | None = None         # of a PUT that was executed
    told: str = ""                  # the part of its first answer about the item
    connection: object = None       # on which it was sent last: one that waits for another one gives up


@dataclass
class FakeSession:
    """A session of the cluster."""

    sid: str
    ended: bool = False
    newest: int = 0
    stored: dict[int, Stored] = field(default_factory=dict)

    def request(self, number: int, command: bytes, connection: object) -> Stored | bytes:
        """Return the place for this request's answer, or the refusal."""
        if self.ended:
            return b"404 Session Not Found\r\n"
        if number <= self.newest - WINDOW:
            return b"409 Request Too Old\r\n"
        self.newest = max(self.newest, number)
        stored = self.stored.get(number)
        if stored:
            stored.connection = connection
        waits = stored is not None and stored.answer is None and stored.command.startswith(b"GETB")
        if stored is None or (waits and stored.command != command):
            stored = self.stored[number] = Stored(command, connection=connection)
        return stored if stored.command == command else b"409 Request Mismatch\r\n"


class FakeSessions:
    """All sessions of a cluster."""

    def __init__(self) -> None:
        self.all: dict[str, FakeSession] = {}
        self.full = False                   # there are as many as there may be

    @property
    def open(self) -> list[FakeSession]:
        """Return the sessions that have not ended."""
        return [session for session in self.all.values() if not session.ended]

    def end_all(self) -> None:
        """End all sessions as if their time were over."""
        for session in self.open:
            session.ended = True

    def command(
        self, words: list[str], attached: FakeSession | None, attach: Callable[[FakeSession], None]
    ) -> bytes:
        """Answer SESSION .."""
        match words[1:]:
            case ["CLOSE"] | ["CLOSE", "RELEASE"]:
                if attached is None or attached.ended:
                    return b"404 Session Not Found\r\n"
                attached.ended = True
                return b"200 OK\r\n"
            case ([] | ["TTL", _]) if self.full:
                return b"503 Busy\r\n"
            case [] | ["TTL", _]:
                number = len(self.all) + 1
                session = self.all[f"{number}_{number:016x}"] = FakeSession(f"{number}_{number:016x}")
                attach(session)
                return f"200 OK SESSION {session.sid} TTL {words[2] if words[2:] else 900}\r\n".encode()
            case [sid] if sid in self.all and not self.all[sid].ended:
                attach(self.all[sid])
                return f"200 OK SESSION {sid} TTL 900 LAST {self.all[sid].newest}\r\n".encode()
            case [_]:
                return b"404 Session Not Found\r\n"
        return b"400 Bad Arguments\r\n"
