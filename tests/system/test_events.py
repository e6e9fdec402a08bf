"""Subscribers of three real nodes, through a killed leader; and one that never reads."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest

from devcluster.cluster import LocalCluster
from tests.wire import Broken, Wire

PATIENCE_S = 60.0
ITEMS = 3               # of which each node reports the end
TYPES = "PUT|TAKE|DONE|FINQ|FINI"


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(3) as started:
        yield started


def subscribed(server: str, types: str, rest: str = "") -> tuple[Wire, str]:
    """A subscriber, and the answer to its subscription."""
    wire = Wire(server, PATIENCE_S)
    wire.send(f"SUBSCRIBE {types}{rest}")
    return wire, wire.line()


def answer(wire: Wire, line: str) -> str:
    """Return the answer to a command without data."""
    wire.send(line)
    return wire.line()


def work(server: str, item: str) -> None:
    """Put a job of the item, take it, and finish it."""
    with Wire(server, PATIENCE_S) as worker:
        assert answer(worker, f"PUT q 0 0 IS {item}") == "200 OK"
        number = answer(worker, "GET q").split()[3]
        assert answer(worker, f"DONE {number}") == "200 OK FINQ FINI"


def heard_until(wire: Wire, end: str) -> list[str]:
    """Return the lines up to one that ends with this."""
    lines = [wire.line()]
    while not lines[-1].endswith(end):
        lines.append(wire.line())
    return lines


def test_all_nodes_tell_the_same_and_go_on_after_the_leader_was_killed(cluster: LocalCluster) -> None:
    leader = cluster.wait_for_leader()
    cluster.wait_until_level()
    server = {name: cluster.server(name) for name in cluster.names}
    wires = {name: subscribed(server[name], TYPES)[0] for name in cluster.names}
    work(server[leader], "first")
    heard = {name: heard_until(wire, "FINI first") for name, wire in wires.items()}
    lines = heard[leader]
    assert [line.split(" ", 2)[2] for line in lines] == ["PUT q 0", "TAKE q 0 1", "DONE q 0 1", "FINQ q", "FINI first"]
    assert all(one == lines for one in heard.values())
    last = lines[-1].split()[1]

    cluster.kill(leader)
    with wires.pop(leader) as wire, pytest.raises(Broken):
        wire.line()
    second = cluster.wait_for_leader()
    work(server[second], "second")
    for name, wire in wires.items():
        lines = heard_until(wire, "FINI second")
        resumed, said = subscribed(server[name], TYPES, f" FROM {last}")
        assert said.startswith("200 OK ")
        assert heard_until(resumed, "FINI second") == lines         # as the dead node's subscriber would hear it
        numbers = [int(line.split()[1]) for line in lines]
        assert numbers == list(range(int(last) + 2, int(last) + 2 + len(lines)))        # between: LEADER
        resumed.close()
        wire.close()
    cluster.restart(leader)
    cluster.wait_until_level()
    wire, said = subscribed(server[leader], TYPES, f" FROM {last}")
    assert said == "409 Too Old"            # it has not recorded what it replayed
    wire.close()


def test_a_subscriber_that_does_not_read_is_cut_and_harms_nobody(cluster: LocalCluster) -> None:
    leader = cluster.wait_for_leader()
    server = cluster.server(leader)
    host, _, port = server.rpartition(":")
    frozen = socket.socket()
    frozen.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    frozen.connect((host, int(port)))
    frozen.sendall(b"SUBSCRIBE PUT\r\n")
    name = "n" * 250
    with Wire(server, PATIENCE_S) as worker:
        for _ in range(60):
            worker.send("PUTS 1000", f"{name} 0 0\r\n".encode() * 1000)
            assert worker.line() == "200 OK 1000"
            assert {worker.line() for _ in range(1000)} == {"200 OK"}
        assert answer(worker, f"QUEUE DELETE {name} FORCE") == "200 OK"
    frozen.settimeout(PATIENCE_S)
    with frozen, suppress(ConnectionResetError):
        while frozen.recv(1 << 20):     # times out if it was not cut
            pass


def test_each_fini_is_heard_on_each_node_before_the_next_done(cluster: LocalCluster) -> None:
    """tests/cluster/test_recording.py checks the time that this takes, in simulated time."""
    leader = cluster.wait_for_leader()
    cluster.wait_until_level()
    for server in cluster.servers:
        wire, _ = subscribed(server, "FINI")
        with wire:
            for number in range(ITEMS):
                work(cluster.server(leader), f"item_{number}")
                assert wire.line().endswith(f" FINI item_{number}")


def test_a_message_reaches_a_hundred_subscribers_of_three_nodes(cluster: LocalCluster) -> None:
    leader = cluster.wait_for_leader()
    cluster.wait_until_level()
    with ExitStack() as stack:
        wires = [stack.enter_context(subscribed(cluster.servers[number % 3], "MSG", " all")[0])
                 for number in range(100)]
        sender = stack.enter_context(Wire(cluster.server(leader), PATIENCE_S))
        for number in range(10):
            sender.send("NOTIFY all 1", str(number).encode())
        assert [sender.line() for _ in range(10)] == ["200 OK 100"] * 10
        for wire in wires:
            assert [notified(wire) for _ in range(10)] == [("MSG all 1", str(number).encode()) for number in range(10)]


def notified(wire: Wire) -> tuple[str, bytes]:
    """Return the next message: its line without the number, and the data."""
    line = wire.line().split(" ", 2)[2]
    return line, wire.exactly(int(line.split()[-1])) if line.startswith("MSG") else b""


def test_messages_reach_the_subscribers_of_all_nodes_in_order(cluster: LocalCluster) -> None:
    leader = cluster.wait_for_leader()
    cluster.wait_until_level()
    with Wire(cluster.server(leader), PATIENCE_S) as sender:
        sender.send("NOTIFY workers 5", b"nobody"[:5])
        assert sender.line() == "200 OK 0"
        wires = [subscribed(server, "MSG", " work*|other")[0] for server in cluster.servers for _ in range(3)]
        for number in range(300):       # they are known as soon as they were answered
            sender.send(f"NOTIFY workers {len(str(number))}", str(number).encode())
        assert {sender.line() for _ in range(300)} == {"200 OK 9"}
        for wire in wires:
            for number in range(300):
                assert notified(wire) == (f"MSG workers {len(str(number))}", str(number).encode())
        large = b"x" * (1 << 20)
        sender.send(f"NOTIFY other {len(large)}", large)
        assert sender.line() == "200 OK 9"
        for wire in wires:
            assert notified(wire) == (f"MSG other {len(large)}", large)
    for server in cluster.servers:
        if server != cluster.server(leader):
            with Wire(server, PATIENCE_S) as other:
                other.send("NOTIFY workers 1", b"x")
                assert other.line() == "500 Offline Mode"
    cluster.kill(leader)
    cluster.wait_for_leader()
    for wire, server in zip(wires, [server for server in cluster.servers for _ in range(3)], strict=True):
        if server != cluster.server(leader):
            assert notified(wire)[0].startswith("GAP ")
        wire.close()
    cluster.restart(leader)
