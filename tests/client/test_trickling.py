"""A server whose bytes never pause is left when its time is up, however many bytes have arrived."""

from __future__ import annotations

import ssl
from typing import Any, cast

import pytest
from sockpq._backends.base import Stream
from sockpq._backends.sync import run
from sockpq._backends.tls import TlsStream
from sockpq._engine.attempt import Alone, Attempt
from sockpq._engine.connection import Connection
from sockpq._engine.limits import Limits
from sockpq._engine.retry import Lost
from sockpq._protocol.addresses import Address
from sockpq._protocol.command import Command
from sockpq._protocol.commands import jobs
from sockpq._protocol.protocol import Protocol

LIMITS = Limits(5, 2, 1, False, True, 900, 10)


class TricklingLink:
    """A link each of whose bytes takes 0.1 ms; `silent`: only after it was finished."""

    def __init__(self, silent: bool) -> None:
        self.address = Address("here", 1)
        self.protocol = Protocol()
        self.now = 0.0
        self.entering = self.leaderless = False
        self._silent = silent

    async def send(self, *_: Any) -> bool:
        return True

    async def receive(self, timeout: float) -> list[Any]:
        if self._silent:
            self.now += timeout
            raise TimeoutError
        self.now += 0.0001
        assert self.now < 100, "a hang"
        return []

    def finish(self) -> None:
        self._silent = False

    def lost(self, reason: str) -> Lost:
        return Lost(reason, sent=True)


def ask(command: Command[Any], connection: TricklingLink) -> None:
    attempt = Attempt(cast(Connection, connection), LIMITS, Alone(), lambda: connection.now)
    run(attempt.one(command, 0, deadline=5, wait_until=3))


def test_an_answer_that_is_owed() -> None:
    connection = TricklingLink(silent=False)
    with pytest.raises(Lost):
        ask(jobs.get("q"), connection)
    assert connection.now == pytest.approx(5, abs=0.1)


def test_an_answer_to_a_command_that_was_taken_back() -> None:
    connection = TricklingLink(silent=True)
    with pytest.raises(Lost):
        ask(jobs.get("q", block=True), connection)
    assert connection.now == pytest.approx(3 + 2, abs=0.1)


class TricklingStream:
    """The layer below TLS: the beginning of a record, a byte each 0.01 s."""

    def __init__(self) -> None:
        self.now = 0.0
        self._bytes = iter(b"\x16\x03\x03\x40\x00\x02\x00\x3f\xfc" + bytes(10_000))

    async def send(self, buffers: list[bytes], timeout: float) -> int:
        return sum(map(len, buffers))

    async def receive(self, timeout: float) -> bytes:
        self.now += 0.01
        return bytes([next(self._bytes)])


@pytest.mark.parametrize("call", ["shake_hands", "receive"])
def test_records_of_tls_that_never_end(call: str) -> None:
    stream = TricklingStream()
    tls = TlsStream(cast(Stream, stream), ssl.create_default_context(), Address("here", 1), lambda: stream.now)
    with pytest.raises(TimeoutError):
        run(getattr(tls, call)(2))
    assert stream.now == pytest.approx(2, abs=0.1)
