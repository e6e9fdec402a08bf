"""The tools of an attack: the cluster, clients of its own, and a place to note what it saw."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import sockpq

from bench.load_generator.wire import LINE, LIST, ask, open_wires
from devcluster.node import NodeError
from tests.hostile.cluster import HostileCluster
from tests.hostile.crowd import Crowd

LOOK_S = 0.5
SERVING_S = 15.0
CALL_S = 20.0
INSIST_S = 40.0
PUTS_MAX = 10_000
LINES_AT_ONCE = 500
DONE = (b"200 OK", b"409 Job Exists")
LISTED = (b"PUTS", b"GET")         # commands that are answered by a list


class Arena:
    """The arena of one attack. `seconds`: its duration."""

    def __init__(self, cluster: HostileCluster, seconds: float) -> None:
        self.cluster = cluster
        self.seconds = seconds
        self.notes: list[str] = []          # what is worth a word in the table
        self.failures: list[str] = []       # what the attack itself saw that must not be
        self.killed: set[int] = set()       # processes that it killed
        self.memory: dict[str, object] = {}     # what `prepare` keeps for `run`

    def leader(self) -> str:
        """Return the name of the node that serves. Raises NodeError when none does for long."""
        leader = self.cluster.serving(SERVING_S)
        if leader is None:
            raise NodeError("no node serves")
        return leader

    def server(self) -> str:
        """Return where clients reach it, "host:port"."""
        return self.cluster.server(self.leader())

    def note(self, text: str) -> None:
        """Add a remark to the table."""
        self.notes.append(text)

    def fail(self, text: str) -> None:
        """Note that the attack has not been held off."""
        self.failures.append(text)

    def expect(self, holds: bool, otherwise: str) -> None:
        """Call `fail` unless this holds."""
        if not holds:
            self.fail(otherwise)

    def kill(self, name: str) -> None:
        """SIGKILL, as part of the attack."""
        pid = self.cluster.pid(name)
        if pid is not None:
            self.killed.add(pid)
            self.cluster.kill(name)

    @contextlib.contextmanager
    def client(self, **options: Any) -> Iterator[sockpq.Client]:
        """Return a client of the library, without sessions, which prepares things or inspects them."""
        defaults = {"sessions": False, "timeout": CALL_S, "tls": self.cluster.ca}
        with sockpq.Client(self.cluster.servers, **{**defaults, **options}) as client:
            yield client

    async def dialogue(self, commands: Sequence[bytes]) -> list[bytes]:
        """Say these to the leader, one after the other, each answered by a line or a list of lines (jobs without data);
        the first line of each answer. Raises OSError."""
        (wire,) = await open_wires(await asyncio.to_thread(self.server), 1)
        try:
            return [(await ask(wire, command, LIST if command.startswith(LISTED) else LINE)).line
                    for command in commands]
        finally:
            wire.close()

    async def tell(self, lines: list[str]) -> None:
        """Send all of these on one connection, many before the answer to the first is read; each must be executed."""
        host, _, port = (await asyncio.to_thread(self.server)).rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        async with asyncio.timeout(5 * CALL_S):
            for start in range(0, len(lines), LINES_AT_ONCE):
                portion = lines[start:start + LINES_AT_ONCE]
                writer.write("".join(portion).encode())
                for line in portion:
                    answer = await reader.readline()
                    if not answer:
                        raise OSError(f"{line!r}: the connection was closed")
                    self.expect(answer.startswith(b"200 OK"), f"{line!r}: {answer!r}")
        writer.close()

    async def put_lists(self, queues: Sequence[str], options: Callable[[int], str] = lambda number: "") -> None:
        """Put a job without data into each of these queues; `options`: what stands behind the length. Raises
        OSError."""
        lines = [f"{queue} 0 0{options(number)}\r\n" for number, queue in enumerate(queues)]
        parts = [lines[begin:begin + PUTS_MAX] for begin in range(0, len(lines), PUTS_MAX)]
        await self.insist([f"PUTS {len(part)}\r\n{''.join(part)}".encode() for part in parts])

    async def insist(self, commands: Sequence[bytes]) -> None:
        """Say these as `dialogue` does, each until it is executed; perhaps it is twice, when the leader changes. Raises
        OSError when that takes too long."""
        until = time.monotonic() + INSIST_S
        for command in commands:
            answer = b""
            while not answer.startswith(DONE):
                if time.monotonic() > until:
                    raise OSError(f"{command[:20]!r}: {answer!r}")
                with contextlib.suppress(OSError):
                    (answer,) = await self.dialogue([command])

    async def besiege(
        self, count: int, seconds: float | None = None, *, crowds: list[Crowd] | None = None, **what: Any
    ) -> None:
        """So many hostile connections (see Crowd), at the leader of the moment, for the attack's time or so many
        seconds. `crowds`: gets the crowds, one for each leader."""
        until = time.monotonic() + (self.seconds if seconds is None else seconds)
        server = await asyncio.to_thread(self.server)
        while True:
            async with Crowd(server, count, **what) as crowd:
                if crowds is not None:
                    crowds.append(crowd)
                moved = await self._moved(server, until)
            if moved is None:
                return
            server = moved

    async def _moved(self, server: str, until: float) -> str | None:
        """Wait until another node leads, and return its address; None when the time is up."""
        while (left := until - time.monotonic()) > 0:
            await asyncio.sleep(min(LOOK_S, left))
            leader = await asyncio.to_thread(self.cluster.leader)
            if leader is not None and self.cluster.server(leader) != server:
                return self.cluster.server(leader)
        return None


async def say(server: str, command: bytes, timeout: float, source: str | None = None) -> bytes:
    """Send something on a connection of its own; all that is answered until the server is silent for a moment or
    closes, empty when there is nothing."""
    host, _, port = server.rpartition(":")
    received = b""
    try:
        async with asyncio.timeout(timeout):
            reader, writer = await asyncio.open_connection(
                host, int(port), local_addr=None if source is None else (source, 0))
            try:
                writer.write(command)
                while piece := await reader.read(65_536):
                    received += piece
                    if received.endswith(b"\r\n") and command:
                        break
            finally:
                writer.transport.abort()
    except OSError:
        pass
    return received
