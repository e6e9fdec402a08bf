"""Measures sockpq-http against the Python client: jobs a second, processor time for each, and the pause of a failover.

    python -m tests.http.figures --seconds 5

One node without replication gives the rates, as it shares the machine with the load; three nodes the failover. The load
is sent by 32 connections of plain sockets, which cost little themselves.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from sockpq.aio import Client
from sockpq.testing import Server

from devcluster.cluster import LocalCluster
from tests.http.test_program import answers, free_port
from tests.waiting import until

PROGRAM = Path(sys.executable).parent / "sockpq-http"
CONNECTIONS = 32
TICKS = os.sysconf("SC_CLK_TCK")


def processor_s(pid: int) -> float:
    """Return the processor time of a process so far, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


class Connection:
    """A connection that sends one request after another."""

    def __init__(self, port: int) -> None:
        self._port = port

    async def open(self) -> None:
        """Connect to the port on this host."""
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)

    async def post(self, path: str, body: bytes) -> bytes:
        """Send a request; returns the body of its answer."""
        self._writer.write(
            b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
            % (path.encode(), len(body), body)
        )
        head = await self._reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 20"):
            raise RuntimeError(head.decode())
        for line in head.lower().split(b"\r\n"):
            if line.startswith(b"content-length: "):
                return await self._reader.readexactly(int(line[16:]))
        raise RuntimeError("an answer without a length")

    def close(self) -> None:
        """Close it."""
        self._writer.close()


async def rate(seconds: float, step: Callable[[int], Coroutine[Any, Any, None]]) -> float:
    """Return how often `step` is done in a second by all connections."""
    end = time.monotonic() + seconds
    counts = [0] * CONNECTIONS

    async def work(number: int) -> None:
        while time.monotonic() < end:
            await step(number)
            counts[number] += 1

    begun = time.monotonic()
    await asyncio.gather(*map(work, range(CONNECTIONS)))
    return sum(counts) / (time.monotonic() - begun)


async def of_client(servers: str, seconds: float) -> None:
    """Measure the asyncio client for `seconds` each: put, then take and done."""
    async with Client(servers) as client:
        async def put(_: int) -> None:
            await client.put("load", b"x" * 100)

        async def take(_: int) -> None:
            job = await client.get("load", expire=60)
            if job is not None:
                await job.done()

        for name, step in (("put", put), ("take and done", take)):
            before = time.process_time()
            found = await rate(seconds, step)
            spent = (time.process_time() - before) / (found * seconds)
            print(f"client: {name}: {found:,.0f} a second, {spent * 1e6:,.0f} us of processor time each")


async def of_instances(server: str, seconds: float, count: int) -> None:
    """Measure `count` instances of the program, for `seconds` each."""
    ports = [free_port() for _ in range(count)]
    programs = [
        subprocess.Popen([PROGRAM, "serve", "--listen", f"127.0.0.1:{port}", "--servers", server],
                         stderr=subprocess.DEVNULL)
        for port in ports
    ]
    try:
        for port in ports:
            until(lambda port=port: answers(f"http://127.0.0.1:{port}"), "it is ready")     # type: ignore[misc]
        connections = [Connection(ports[number % count]) for number in range(CONNECTIONS)]
        for connection in connections:
            await connection.open()

        async def put(number: int) -> None:
            await connections[number].post("/v1/queues/load/jobs", json.dumps({"text": "x" * 100}).encode())

        async def take(number: int) -> None:
            jobs = json.loads(await connections[number].post("/v1/queues/load/take", b"{}"))["jobs"]
            if jobs:
                await connections[number].post(f"/v1/jobs/{jobs[0]['id']}/done", b"{}")

        for name, step in (("put", put), ("take and done", take)):
            before = sum(processor_s(program.pid) for program in programs)
            found = await rate(seconds, step)
            spent = (sum(processor_s(program.pid) for program in programs) - before) / (found * seconds)
            print(f"{count} x sockpq-http: {name}: {found:,.0f} a second, {spent * 1e6:,.0f} us of processor time each")
        for connection in connections:
            connection.close()
    finally:
        for program in programs:
            program.terminate()
            program.wait()


def kill_leader(cluster: LocalCluster) -> None:
    """Kill the leader, once the requests go on."""
    time.sleep(2)
    cluster.kill(cluster.wait_for_leader())


async def failover() -> None:
    """Measure the longest pause of one connection while the leader is killed."""
    with LocalCluster(3) as cluster:
        port = free_port()
        program = subprocess.Popen(
            [PROGRAM, "serve", "--listen", f"127.0.0.1:{port}", "--servers", ",".join(cluster.servers)],
            stderr=subprocess.DEVNULL,
        )
        try:
            until(lambda: answers(f"http://127.0.0.1:{port}"), "it is ready")
            connection = Connection(port)
            await connection.open()
            longest, end = 0.0, time.monotonic() + 6
            killing = asyncio.create_task(asyncio.to_thread(kill_leader, cluster))
            while time.monotonic() < end:
                begun = time.monotonic()
                await connection.post("/v1/queues/load/jobs", b'{"text": "x"}')
                longest = max(longest, time.monotonic() - begun)
            await killing
            connection.close()
            print(f"failover: the longest of all requests took {longest * 1000:,.0f} ms, none failed")
        finally:
            program.terminate()
            program.wait()


def main() -> None:
    """Measure the client and the instances, and the time of a failover."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0, help="for each rate; 0: the failover only")
    seconds = parser.parse_args().seconds
    with Server() as server:
        if seconds:
            asyncio.run(of_client(server.address, seconds))
        for count in (1, 2) if seconds else ():
            asyncio.run(of_instances(server.address, seconds, count))
    asyncio.run(failover())


if __name__ == "__main__":
    main()
