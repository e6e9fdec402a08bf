"""`python -m tests.beanstalk.upstream FOLDER`: the suites of FOLDER against a cluster of our own, on loopback.

FOLDER has `run_<suite>.sh`, `conformance.py` and `failover.py`, as its README says. They get FRESH and DRAIN, commands
that talk to this process. FRESH leaves an empty server whose counters are 0: at the program it empties the cluster and
restarts `sockpq-beanstalkd`, at a node's listener, which counts since the node began, it makes a new cluster. Ids
are counted from 1 (relay.py).
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from sockpq import Client

from devcluster.cluster import LocalCluster
from devcluster.ports import free_ports
from tests.beanstalk.upstream.relay import Relay

ROOT = Path(__file__).parents[3]
PROGRAM = Path(sys.executable).parent / "sockpq-beanstalkd"
DOWN_S = 2.0            # for which a leader that was killed stays away
LISTEN = "0A"           # of a socket, in /proc/net/tcp


class Bench:
    """The cluster, and what listens for clients of beanstalkd: the program, or the listener of a node."""

    def __init__(self, nodes: int, at: str) -> None:
        """`at`: "proxy", "leader" or "follower"."""
        self._at = at
        self._ports = dict(zip((f"n{number + 1}" for number in range(nodes)), free_ports(nodes), strict=True))
        self._program: subprocess.Popen[bytes] | None = None
        self._port = free_ports(1)[0]
        self._node = ""                 # that is connected to, if it is not the program
        self._changing = asyncio.Lock()         # no node is killed while the cluster is rebuilt, and vice versa
        self.cluster = _Cluster(nodes, {} if at == "proxy" else self._ports)
        self.relay = Relay("")

    async def start(self) -> None:
        """Start the cluster, and listen for the upstream tests."""
        await asyncio.to_thread(self.cluster.start)
        await self._listen()

    async def stop(self) -> None:
        """End the program and the cluster."""
        self._end_program()
        await asyncio.to_thread(self.cluster.stop)

    async def _listen(self) -> None:
        if self._at == "proxy":
            self._program = subprocess.Popen(
                [PROGRAM, "--listen", f"127.0.0.1:{self._port}", "--servers", ",".join(self.cluster.servers)],
                stderr=subprocess.PIPE)
            self.relay.target = f"127.0.0.1:{self._port}"
            await asyncio.to_thread(_say_lines, self._program)
        else:
            leader = await asyncio.to_thread(self.cluster.wait_for_leader)
            name = leader if self._at == "leader" else next(name for name in self._ports if name != leader)
            self._node, self.relay.target = name, f"127.0.0.1:{self._ports[name]}"
            await _wait_for(self.relay.target)

    def _end_program(self) -> None:
        if self._program is not None:
            self._program.terminate()
            self._program.wait()
            self._program = None

    # ---- what the suites ask for

    async def fresh(self) -> None:
        """Replace or empty the server, so that the next test finds no jobs."""
        self.relay.fresh()
        async with self._changing:
            if self._at == "proxy":
                self._end_program()
                await asyncio.to_thread(self._empty)
            else:
                await asyncio.to_thread(self.cluster.stop)
                self.cluster = _Cluster(len(self._ports), self._ports)
                await asyncio.to_thread(self.cluster.start)
            await self._listen()

    def _empty(self) -> None:
        with Client(self.cluster.servers) as client:
            for queue in client.queues():
                client.queue_delete(queue.name, force=True)

    async def drain(self) -> None:
        """Let it accept no more jobs."""
        if self._program is not None:
            self._program.send_signal(signal.SIGUSR1)
            await asyncio.sleep(0.1)
        else:
            await asyncio.to_thread(self._offline)

    def _offline(self) -> None:
        with Client(self.cluster.servers) as client:
            client.offline(self.cluster.server(self._node))

    async def kill_leader(self, tell: Callable[[str], None] = str) -> None:
        """Kill the leader, say its name, and start it again after DOWN_S; returns when all nodes are level.

        If that is the node to which clients are connected, another one leads first.
        """
        async with self._changing:
            name = await asyncio.to_thread(self.cluster.wait_for_leader)
            if name == self._node:
                name = await asyncio.to_thread(self._transfer)
            self.cluster.kill(name)
            tell(name)
            await asyncio.sleep(DOWN_S)
            await asyncio.to_thread(self.cluster.restart, name)
            await asyncio.to_thread(self.cluster.wait_until_level)      # two nodes away at once are another test

    def _transfer(self) -> str:
        with Client(self.cluster.servers) as client:
            client.cluster_transfer()
        return self.cluster.wait_for_leader()

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Execute a command of a suite."""
        match (await reader.readline()).strip():
            case b"fresh":
                await self.fresh()
            case b"drain":
                await self.drain()
            case b"kill":
                await self.kill_leader(lambda name: writer.write(f"killed {name}\n".encode()))
        writer.close()


class _Cluster(LocalCluster):
    """A cluster whose nodes listen for clients of beanstalkd at these ports, if there are any."""

    def __init__(self, nodes: int, ports: dict[str, int]) -> None:
        super().__init__(nodes)
        self._ports = ports

    def environment(self, name: str) -> dict[str, str]:
        listen = {"SOCKPQD_LISTEN_BEANSTALKD": f"127.0.0.1:{self._ports[name]}"} if self._ports else {}
        return {**super().environment(name), **listen}


def _say_lines(program: subprocess.Popen[bytes]) -> None:
    """Pass on the program's output; returns when it listens. A connection made to find out would be counted."""
    assert program.stderr is not None
    for line in program.stderr:
        if b"listening on" in line:
            threading.Thread(target=sys.stderr.buffer.writelines, args=(program.stderr,), daemon=True).start()
            return
    raise OSError("the program does not listen")


async def _wait_for(address: str) -> None:
    """Wait until a node listens there. A connection to ask would be counted in its statistics."""
    port = f":{int(address.rpartition(':')[2]):04X}"
    until = time.monotonic() + 30
    while True:
        sockets = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        if any(local.endswith(port) and state == LISTEN for _, local, _, state, *_ in sockets):
            return
        if time.monotonic() > until:
            raise OSError(f"nothing listens at {address}")
        await asyncio.sleep(0.02)


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--at", choices=["proxy", "leader", "follower"], default="proxy")
    parser.add_argument("--kill-every", type=float, metavar="SECONDS", help="kill the leader so often meanwhile")
    parser.add_argument("--suite", action="append", help=f"only this one: {', '.join(SUITES)}, failover")
    options = parser.parse_args()
    bench = Bench(options.nodes, options.at)
    await bench.start()
    killing: asyncio.Task[None] | None = None
    try:
        control = await asyncio.start_server(bench.handle, "127.0.0.1", 0)
        say = f"bash -c 'exec 3<>/dev/tcp/127.0.0.1/{control.sockets[0].getsockname()[1]}; echo %s >&3; cat <&3'"
        address = f"127.0.0.1:{await bench.relay.listen(0)}"
        environment = {
            **os.environ, "FRESH": say % "fresh", "DRAIN": say % "drain", "VERBOSE": "1",
        }
        if options.kill_every:
            killing = asyncio.create_task(_kill(bench, options.kill_every))
        failed = 0
        for suite in options.suite or SUITES:
            failed += await _run(options.folder, suite, address, say % "kill", environment)
            if killing is not None and killing.done():
                killing.result()                    # it has failed, and nothing is killed any more
        return 1 if failed else 0
    finally:
        if killing is not None:
            killing.cancel()
        await bench.stop()


SUITES = ("testserv", "greenstalk", "pystalk", "pheanstalk", "beaneater", "jackd", "go", "conformance")


async def _run(folder: Path, suite: str, address: str, kill: str, environment: dict[str, str]) -> int:
    if suite == "conformance":
        await _shell(environment["FRESH"], folder, environment)
        command = [sys.executable, "conformance.py", address]
    elif suite == "failover":
        await _shell(environment["FRESH"], folder, environment)
        command = [sys.executable, "failover.py", address, kill]
    else:
        command = [str(folder / f"run_{suite}.sh"), address]
    process = await asyncio.create_subprocess_exec(
        *command, cwd=folder, env=environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT)
    output, _ = await process.communicate()
    print(f"== {suite}\n{output.decode(errors='replace')}", flush=True)
    found = re.findall(r"(\d+) passed, (\d+) failed", output.decode(errors="replace"))
    return 1 if not found or found[-1][1] != "0" else 0


async def _shell(command: str, folder: Path, environment: dict[str, str]) -> None:
    process = await asyncio.create_subprocess_shell(command, cwd=folder, env=environment)
    await process.wait()


async def _kill(bench: Bench, every_s: float) -> None:
    next_s = time.monotonic()
    while True:
        next_s = max(next_s + every_s, time.monotonic())
        await asyncio.sleep(next_s - time.monotonic())
        await bench.kill_leader()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
