"""One client, many threads."""

from __future__ import annotations

import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from sockpq import Client
from sockpq._backends.sync import SocketStream, run

from tests.client.conftest import MakeClient
from tests.client.memory_cluster import MemoryCluster


def test_threads_share_a_client_and_no_job_gets_lost_or_mixed_up(cluster: MemoryCluster, client: Client) -> None:
    def produce(worker: int) -> None:
        for number in range(40):
            client.put("q", b"%d.%d" % (worker, number))

    def consume(_: int) -> list[bytes]:
        got = []
        while job := client.get("q", block=True, expire=30, wait=0.3):
            got.append(job.data)
            job.done()
        return got

    with ThreadPoolExecutor(16) as pool:
        producing = [pool.submit(produce, worker) for worker in range(8)]
        consuming = [pool.submit(consume, worker) for worker in range(8)]
        for task in producing:
            task.result()
        got = [data for task in consuming for data in task.result()]
    assert sorted(got) == sorted(b"%d.%d" % (worker, number) for worker in range(8) for number in range(40))
    assert cluster.running == []


def test_threads_survive_a_change_of_the_leader_together(cluster: MemoryCluster, client: Client) -> None:
    begun = threading.Barrier(9)

    def produce(worker: int) -> None:
        begun.wait()
        for number in range(50):
            client.put("q", b"%d.%d" % (worker, number), retry_unknown=True)

    with ThreadPoolExecutor(8) as pool:
        tasks = [pool.submit(produce, worker) for worker in range(8)]
        begun.wait()
        for server in (1, 2, 0):
            cluster.lead(cluster.servers[server])
        cluster.servers[0].stop()
        cluster.lead(cluster.servers[1])
        for task in tasks:
            task.result()
    assert {b"%d.%d" % (worker, number) for worker in range(8) for number in range(50)} == set(cluster.bodies("q"))


def test_threads_that_find_no_leader_all_end_at_their_deadline(
    cluster: MemoryCluster, make_client: MakeClient
) -> None:
    for server in cluster.servers:
        server.stop()
    client = make_client(cluster.addresses, timeout=0.5)
    with ThreadPoolExecutor(20) as pool:
        errors = [task.exception(timeout=60) for task in [pool.submit(client.put, "q", b"x") for _ in range(20)]]
    assert all(type(error).__name__ == "Unavailable" for error in errors)


def connected() -> tuple[socket.socket, socket.socket]:
    """The two ends of a connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ours = socket.create_connection(listener.getsockname())
        ours.settimeout(1.0)
        return ours, listener.accept()[0]


def test_a_large_command_right_after_a_look_at_the_connection_waits_for_room() -> None:
    ours, theirs = connected()
    with ours, theirs, ThreadPoolExecutor(1) as pool:
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        stream = SocketStream(ours, 1.0)
        assert stream.quiet()
        body = bytes(range(256)) * 4096

        def receive() -> bytes:
            time.sleep(0.05)
            return b"".join(iter(lambda: theirs.recv(len(body)), b""))

        received = pool.submit(receive)
        sent = run(stream.send((b"PUT q 0 1048576\r\n", body), 10.0))
        ours.shutdown(socket.SHUT_WR)
        assert sent == 17 + len(body)
        assert received.result() == b"PUT q 0 1048576\r\n" + body


def test_a_command_for_which_there_is_no_room_in_time_is_counted_as_sent_in_part() -> None:
    ours, theirs = connected()
    with ours, theirs:
        stream = SocketStream(ours, 1.0)
        assert stream.quiet()
        body = bytes(8 << 20)
        assert 0 < run(stream.send((body,), 0.05)) < len(body)
