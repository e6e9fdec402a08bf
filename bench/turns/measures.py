"""The measurements, each with a running cluster."""

from __future__ import annotations

import random
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

from sockpq import survey

from bench.load_generator.target import cpu_us
from bench.turns.asking import AskingClients, job, turn
from devcluster.cluster import LocalCluster

WARM_S = 2.0
GROUP = 100
APART_S = 0.3               # between two groups
FLOOD_JOBS, FLOOD_WAITERS, FLOOD_RATE, FLOOD_PUTS_S = 20_000, 200, 10, 500
ROUNDS = 3
PULSES, PER_S = 1000, 10


def say(cluster: LocalCluster, line: str) -> str:
    """Send a command to the leader."""
    return str(cluster.say(cluster.wait_for_leader(), line, 5))


def rate(cluster: LocalCluster, clients: int, seconds: float) -> Iterator[str]:
    """Let all clients wait at the leader, and wait again as soon as they have had a turn."""
    leader = cluster.wait_for_leader()
    assert say(cluster, "PULSE CREATE fast RATE 100000 PER 1") == "200 OK"
    pids = {name: pid for name in cluster.names if (pid := cluster.pid(name)) is not None}
    with closing(AskingClients(cluster.direct(leader), [turn("fast")] * clients)) as waiting:
        waiting.run(WARM_S)
        before, own = {name: cpu_us(pid) for name, pid in pids.items()}, time.process_time()
        turns = len(waiting.run(seconds))
        own = time.process_time() - own
    say(cluster, "PULSE DELETE fast")
    yield f"{turns / seconds:.0f} turns a second, {clients} clients"
    for name, pid in pids.items():
        role = "leader" if name == leader else "follower"
        yield f"{role}: {(cpu_us(pid) - before[name]) / turns:.0f} us of processor time for each"
    yield f"all clients: {1e6 * own / turns:.0f} us of processor time for each"


def together(cluster: LocalCluster, seconds: float) -> Iterator[str]:
    """A hundred clients wait for a pulse with TOGETHER."""
    assert say(cluster, f"PULSE CREATE group RATE {GROUP} PER 1 TOGETHER") == "200 OK"
    with closing(AskingClients(cluster.direct(cluster.wait_for_leader()), [turn("group")] * GROUP)) as waiting:
        seen = waiting.run(seconds)
    say(cluster, "PULSE DELETE group")
    starts = [at for at, last in zip(seen, [0.0, *seen], strict=False) if at - last > APART_S]
    spreads = sorted(max(at for at in seen if start <= at < start + APART_S) - start for start in starts)
    middle, last = 1000 * spreads[len(spreads) // 2], 1000 * spreads[-1]
    yield f"{len(spreads)} groups of {GROUP}: first to last {middle:.1f} ms in the median, {last:.1f} ms at most"


def beside(cluster: LocalCluster, seconds: float) -> Iterator[str]:
    """A queue without a rate: alone, and together with one that has a rate, many jobs and many waiting clients."""
    server = cluster.direct(cluster.wait_for_leader())
    assert say(cluster, f"QUEUE CONFIG flood RATE {FLOOD_RATE} PER 1") == "200 OK"
    with _conversation(server) as talk:
        for _ in range(FLOOD_JOBS // 1000):
            talk.send(b"PUTS 1000\r\n" + b"flood 0 1\r\nx" * 1000, 1001)
        last = dict.fromkeys((True, False), 0.0)
        for _ in range(ROUNDS):
            for alone in (True, False):
                if alone:
                    times = _steps(talk, seconds / ROUNDS)
                else:
                    with _flood(server):
                        times = _steps(talk, seconds / ROUNDS)
                times.sort()
                last[alone] += 1000 * times[len(times) * 99 // 100] / ROUNDS
        yield (
            f"99th percentile of PUT, GET, DONE: {last[True]:.2f} ms alone, {last[False]:.2f} ms beside a flooded queue"
            f" with a rate: {last[False] / last[True]:.2f} times"
        )
    say(cluster, "QUEUE DELETE flood FORCE")


class _Conversation:
    """One connection, one command after another."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket, self._file = connection, connection.makefile("rb")

    def send(self, data: bytes, lines: int = 1) -> bytes:
        """Send commands, read this many lines; returns the last one."""
        self._socket.sendall(data)
        for _ in range(lines):
            line = self._file.readline()
        return line

    def data(self) -> None:
        """Read the byte of a job."""
        self._file.read(1)


@contextmanager
def _conversation(server: str) -> Iterator[_Conversation]:
    host, _, port = server.rpartition(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield _Conversation(connection)


def _steps(talk: _Conversation, seconds: float) -> list[float]:
    """Return how long each command of a queue without a rate takes."""
    times: list[float] = []

    def timed(command: bytes) -> list[bytes]:
        begun = time.perf_counter()
        words = talk.send(command).split()
        times.append(time.perf_counter() - begun)
        return words
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        timed(b"PUT plain 0 1\r\nx")
        job_id = timed(b"GET plain\r\n")[3]
        talk.data()
        timed(b"DONE %s\r\n" % job_id)
    return times


@contextmanager
def _flood(server: str) -> Iterator[None]:
    """Let many clients wait for jobs of the queue with a rate, while another one puts more."""
    ended = threading.Event()
    def wait() -> None:
        with closing(AskingClients(server, [job("flood")] * FLOOD_WAITERS)) as waiting:
            while not ended.is_set():
                waiting.run(0.2)

    def put() -> None:
        with _conversation(server) as talk:
            while not ended.wait(10 / FLOOD_PUTS_S):
                talk.send(b"PUT flood 0 1\r\nx" * 10, 10)
    threads = [threading.Thread(target=target) for target in (wait, put)]
    for thread in threads:
        thread.start()
    try:
        time.sleep(WARM_S)
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def entries(cluster: LocalCluster, seconds: float) -> Iterator[str]:
    """Many slow pulses whose windows do not coincide, with a client waiting at each."""
    server = cluster.direct(cluster.wait_for_leader())
    for result in (False, True):
        names = [f"slow{result:d}_{number}" for number in range(PULSES)]
        with _conversation(server) as talk:
            creates = "".join(f"PULSE CREATE {name} RATE 1 PER {PER_S}\r\n" for name in names)
            assert talk.send(creates.encode(), PULSES) == b"200 OK\r\n"
            random.Random(0).shuffle(names)
            wants = [turn(name, result=result) for name in names]
            with closing(AskingClients(server, wants, spread_s=PER_S)) as waiting:
                waiting.run(WARM_S)
                begun, before = time.monotonic(), _applied(cluster)
                turns = len(waiting.run(seconds))
                lasted_s = time.monotonic() - begun
                written = _applied(cluster) - before
            talk.send("".join(f"PULSE DELETE {name}\r\n" for name in names).encode(), PULSES)
        what = "with one result each" if result else "without results"
        pace = f"{turns / lasted_s:.0f} turns and {written / lasted_s:.1f} entries a second"
        yield f"{PULSES} pulses of a turn in {PER_S} s, {what}: {pace}"


def _applied(cluster: LocalCluster) -> int:
    """Return the number of the newest entry."""
    views = survey([cluster.direct(name) for name in cluster.names], 5.0)
    return max(node.applied or 0 for view in views for node in view.nodes)
