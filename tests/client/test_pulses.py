"""Turns of a pulse, by both clients, against the real gateway and machine."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from sockpq import (
    BadArguments,
    Client,
    Denied,
    PulseExists,
    PulseInUse,
    PulseNotFound,
    TicketNotFound,
    WaitTimeout,
    aio,
)

from sockpqd.core import GiveResult, TakeTurn
from tests.client.real_server import RealServer

LISTEN = "0A"                   # the state of a socket in /proc/net/tcp


@pytest.fixture
def server() -> Iterator[RealServer]:
    with RealServer() as started:
        yield started


@pytest.fixture
def client(server: RealServer) -> Iterator[Client]:
    with Client(server.address, timeout=30) as made:
        yield made


def results(server: RealServer) -> list[str]:
    """Return the results of turns in the log, in order."""
    def found(cluster: object) -> list[str]:
        operations = [getattr(one, "operation", one) for entry in cluster.log for one in entry]     # type: ignore[attr-defined]
        return [one.result.name for one in operations if isinstance(one, GiveResult)]
    return server.do(found)


def test_a_turn_is_told_how_it_went(server: RealServer, client: Client) -> None:
    client.pulse_create("ga", rate=100)
    client.pulse_set("ga", b"hello")
    pulse = client.pulse("ga")
    with pulse.turn(within=5) as turn:
        assert turn.payload == b"hello"
    with pytest.raises(KeyError), pulse.turn():
        raise KeyError
    with pulse.turn() as turn:
        turn.slow("userRateLimitExceeded")
    with pulse.turn() as turn:
        turn.fail()
    with pulse.turn() as turn:
        turn.sleep(3600, "dailyLimitExceeded")
    assert results(server) == ["OK", "FAIL", "SLOW", "FAIL", "SLEEP"]
    with pytest.raises(WaitTimeout), pulse.turn(within=0):
        raise AssertionError                        # no permission, no act
    assert client.pulse_stat("ga")["errors"] == 4


def test_the_same_in_asyncio(server: RealServer) -> None:
    async def run() -> None:
        async with aio.Client(server.address, timeout=30) as client:
            await client.pulse_create("ga", rate=100)
            async with client.pulse("ga").turn(within=5) as turn:
                assert turn.ticket == 1
            with pytest.raises(KeyError):
                async with client.pulse("ga").turn():
                    raise KeyError
            await client.pulse_set("ga", "stop", deny=True)
            with pytest.raises(Denied) as denied:
                async with client.pulse("ga").turn():
                    raise AssertionError
            assert denied.value.payload == b"stop"
    asyncio.run(run())
    assert results(server) == ["OK", "FAIL"]


def test_a_result_is_reported_by_another_program(server: RealServer, client: Client) -> None:
    client.pulse_create("ga", rate=100, max_run=3600)
    tickets = []
    for _ in range(3):
        turn = client.pulse("ga").turn(within=5)
        turn.__enter__()            # its program does not report
        tickets.append(turn.ticket)
    with Client(server.address, timeout=30) as other:
        other.pulse_result(tickets[0])
        other.pulse_result(tickets[1], "slow", reason="userRateLimitExceeded")
        other.pulse_result(tickets[2], "sleep", sleep=60)
        with pytest.raises(TicketNotFound):
            other.pulse_result(tickets[0])
        with pytest.raises(BadArguments, match="feedback is"):
            other.pulse_result(1, "good")               # type: ignore[arg-type]
    assert results(server) == ["OK", "SLOW", "SLEEP", "OK"]         # the last one is refused when it is executed


def test_a_denied_turn_is_none(server: RealServer, client: Client) -> None:
    client.pulse_create("ga")
    client.pulse_set("ga", b"pause", deny=True)
    with pytest.raises(Denied) as denied, client.pulse("ga").turn():
        raise AssertionError
    assert denied.value.payload == b"pause"
    assert results(server) == []


def test_a_turn_is_a_numbered_command(server: RealServer, client: Client) -> None:
    client.pulse_create("ga")
    with client.pulse("ga").turn():
        pass

    def turns(cluster: object) -> int:
        operations = [getattr(one, "operation", None) for entry in cluster.log for one in entry]        # type: ignore[attr-defined]
        return sum(isinstance(one, TakeTurn) for one in operations)
    assert server.do(turns) == 1


def test_a_result_that_comes_too_late_is_no_error(server: RealServer, client: Client) -> None:
    client.pulse_create("ga", max_run=1.0)
    with client.pulse("ga").turn():
        server.pass_time(2)
    assert client.pulse_stat("ga")["errors"] == 0


def test_settings_and_refusals(client: Client) -> None:
    client.pulse_create("ga", rate=2, per=0.5, step=0.25, max_pause=10, max_run=3, together=True, max_wait=1)
    with pytest.raises(PulseExists):
        client.pulse_create("ga")
    client.pulse_config("ga", rate=3, max_wait=2)
    stat = client.pulse_stat("ga")
    assert (stat["rate"], stat["per"], stat["step"], stat["maxwait"], stat["waiting"]) == (3, 0.5, 0.25, 2, 0)
    assert client.pulses() == ["ga"]
    client.queue_config("q", pulse="ga")
    with pytest.raises(PulseInUse):
        client.pulse_delete("ga")
    client.queue_config("q", pulse="")
    client.pulse_delete("ga")
    for call in (client.pulse_stat, client.pulse_delete, client.pulse_set):
        with pytest.raises(PulseNotFound):
            call("ga")
    with pytest.raises(PulseNotFound), client.pulse("ga").turn():
        pass
    for wrong in ({"rate": 0}, {"per": 0.001}, {"step": 0}, {"max_wait": 1}):
        with pytest.raises(BadArguments):
            client.pulse_create("gb", **wrong)      # type: ignore[arg-type]
    with pytest.raises(BadArguments, match="give a setting"):
        client.pulse_config("gb")
    for name in ("OFF", "queue:gb"):
        with pytest.raises(BadArguments, match="cannot be called"):
            client.pulse_create(name)


def test_workers_of_a_queue_with_a_rate(client: Client) -> None:
    assert client.queue_config("q", rate=2, per=60)["rate"] == "2 PER 60"
    for number in range(3):
        client.put("q", str(number))
    first, second = client.get_many(5, "q", expire=60)
    assert client.get("q") is None
    first.later(slow=True)
    second.done(sleep=60, reason="dailyLimitExceeded")
    assert client.pulse_stat("queue:q")["errors"] == 2
    with pytest.raises(BadArguments):
        second.done(slow=True, sleep=1)
    assert "rate" not in client.queue_config("q", rate=0)




def listening() -> int:
    """Return the number of TCP sockets on which this process listens."""
    numbers = {os.readlink(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd") if _open(name)}
    rows = [row.split() for name in ("tcp", "tcp6") for row in Path(f"/proc/net/{name}").read_text().splitlines()[1:]]
    return sum(row[3] == LISTEN and f"socket:[{row[9]}]" in numbers for row in rows)


def _open(name: str) -> bool:
    return os.path.lexists(f"/proc/self/fd/{name}")


def test_one_port_is_all_that_a_pulse_needs() -> None:
    before = listening()
    with RealServer() as server, \
            Client(server.address, timeout=30) as boss, Client(server.address, timeout=30) as worker:
        boss.pulse_create("ga", rate=100)
        boss.pulse_set("ga", b"hello")
        with worker.pulse("ga").turn(within=5) as turn, boss.pulse("ga").turn(within=5):
            assert turn.payload == b"hello"
        boss.pulse_config("ga", rate=5)
        assert boss.pulse_stat("ga")["granted"] == 2
        assert listening() == before + 1


def test_workers_may_start_before_the_server_and_before_the_pulse() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with ThreadPoolExecutor(1) as pool, Client(f"127.0.0.1:{port}", timeout=60) as early:
        def work() -> bytes:
            """Return what a worker does that knows nothing of who starts when."""
            while True:
                with suppress(PulseNotFound), early.pulse("ga").turn(within=5) as turn:
                    return turn.payload
                time.sleep(0.02)
        worked = pool.submit(work)
        time.sleep(0.2)                             # it dials, and nobody is there
        with RealServer(port=port) as server, Client(server.address, timeout=30) as client:
            with pytest.raises(PulseNotFound), client.pulse("ga").turn():
                pass
            client.pulse_create("ga")
            assert worked.result(60) == b""
