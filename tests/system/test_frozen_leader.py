"""A leader that stood still while another took over does not answer from what it knew."""

from __future__ import annotations

import socket

from sockpq import Client

from devcluster.cluster import LocalCluster
from tests.waiting import until

ROUNDS = 3


def test_a_leader_that_is_resumed_says_no_404_of_its_own() -> None:
    with LocalCluster(3) as nodes:
        nodes.wait_until_level()
        with Client(nodes.servers) as client:
            client.config(fast_empty=True)
        for number in range(ROUNDS):
            queue = f"q{number}"
            frozen = nodes.wait_for_leader()
            host, port = nodes.server(frozen).rsplit(":", 1)
            with socket.create_connection((host, int(port)), 60) as connection:
                connection.sendall(f"GET {queue}\r\n".encode())
                assert connection.recv(100) == b"404 Queue Empty\r\n"
                nodes.pause(frozen)
                others = [nodes.server(name) for name in nodes.names if name != frozen]
                with Client(others, timeout=60) as client:
                    client.put(queue, b"is there")
                connection.sendall(f"GET {queue}\r\n".encode())     # read before anything that a node sends
                nodes.resume(frozen)
                answer = connection.recv(100)
            assert answer in (b"", b"500 Offline Mode\r\n"), answer
            until(lambda: all(nodes.say(name, "PING", 5) for name in nodes.names))
