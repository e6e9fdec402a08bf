"""Rates of clients of beanstalkd at sockpqd, of native clients, and of beanstalkd itself, as a table.

    python -m bench.beanstalkd [--seconds 2] [--rounds 3] [--into docs/BENCHMARKS.md]

Clients put jobs, then reserve and delete them, each with one command in flight: at the listener of the leader and of a
follower, at the program `sockpq-beanstalkd`, and natively (`PUT`; `GET` and `DONE`) at the leader of three nodes, then
at one beanstalkd that syncs its log before each answer, if it is installed. The load generator shares the machine with
all of them.
"""

from __future__ import annotations

import asyncio
import shutil
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, cast

import click
import uvloop

from bench.clients.servers import ServersError, servers
from bench.load_generator.target import cpu_us
from bench.reports.recording import surroundings
from bench.reports.tables import replaced
from devcluster import HOST, free_ports
from devcluster.cluster import LocalCluster
from devcluster.node import NodeError

PROGRAM = Path(sys.executable).parent / "sockpq-beanstalkd"
CONNECTIONS = 1, 10, 100
BODY = b"x" * 100
PLACES = "the leader's listener", "a follower's listener", "the program", "natively", "beanstalkd, each write synced"
START_S = 30.0
FILL = 100          # connections that put the jobs which are then taken


class Language(NamedTuple):
    """The commands of a protocol, and how its answers begin when they are good."""

    put: bytes
    put_done: bytes
    take: bytes
    taken: bytes
    finish: bytes           # followed by the job's id
    finished: bytes
    id_at: int              # of the words of the answer to `take`


BEANSTALKD = Language(b"put 0 0 300 100\r\n" + BODY + b"\r\n", b"INSERTED ", b"reserve\r\n", b"RESERVED ",
                      b"delete %b\r\n", b"DELETED", 1)
NATIVE = Language(b"PUT bench 0 100\r\n" + BODY, b"200 OK", b"GET bench\r\n", b"200 OK", b"DONE %b\r\n", b"200 OK", 3)


class Unexpected(Exception):
    """An answer that is not good, as a sentence."""


class LoadClient(asyncio.Protocol):
    """A client with one command in flight, until the time is over."""

    def __init__(self, language: Language, *, takes: bool, end: float) -> None:
        self.cycles = 0
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._language = language
        self._takes = takes
        self._end = end
        self._received = b""
        self._transport: asyncio.Transport | None = None
        self._job = b""             # taken, and to be finished next

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """asyncio: send the first command."""
        self._transport = cast(asyncio.Transport, transport)
        self._ask()

    def connection_lost(self, error: Exception | None) -> None:
        """asyncio: nothing more is answered."""
        if not self.over.done():
            self.over.set_exception(error or Unexpected("the connection is closed"))

    def data_received(self, data: bytes) -> None:
        """asyncio: once an answer is complete, send the next command."""
        self._received += data
        line, ended, rest = self._received.partition(b"\r\n")
        if not ended:
            return
        language = self._language
        if not self._takes:
            good, self.cycles = language.put_done, self.cycles + 1
        elif self._job:
            good, self.cycles, self._job = language.finished, self.cycles + 1, b""
        else:
            good = language.taken
            if line.startswith(good):
                if len(rest) < len(BODY) + 2 * (language is BEANSTALKD):
                    return
                self._job = line.split(b" ")[language.id_at]
        self._received = b""
        if not line.startswith(good):
            if not self.over.done():
                self.over.set_exception(Unexpected(f"{line[:80]!r} where {good!r} was expected"))
        elif not self._job and time.monotonic() > self._end:
            self.over.set_result(None)
        else:
            self._ask()

    def _ask(self) -> None:
        assert self._transport is not None
        language = self._language
        if not self._takes:
            self._transport.write(language.put)
        else:
            self._transport.write(language.finish % self._job if self._job else language.take)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


async def cycles(
    address: str, language: Language, connections: int, seconds: float, *, takes: bool,
) -> tuple[int, float]:
    """Let clients repeat their commands; returns how many times they did, and in how many seconds.

    `takes`: they take and finish jobs instead of putting them. Raises OSError and Unexpected.
    """
    loop = asyncio.get_running_loop()
    host, _, port = address.rpartition(":")
    begun = time.monotonic()
    clients = [(await loop.create_connection(
        lambda: LoadClient(language, takes=takes, end=begun + seconds), host, int(port)))[1]
        for _ in range(connections)]
    try:
        await asyncio.gather(*(client.over for client in clients))
        return sum(client.cycles for client in clients), time.monotonic() - begun
    finally:
        for client in clients:
            client.close()


class BeanstalkdCluster(LocalCluster):
    """Three nodes that listen for clients of beanstalkd."""

    def __init__(self) -> None:
        super().__init__(3)
        self.ports = dict(zip(self.names, free_ports(3), strict=True))

    def environment(self, name: str) -> dict[str, str]:
        return {**super().environment(name), "SOCKPQD_LISTEN_BEANSTALKD": f"{HOST}:{self.ports[name]}"}


Place = tuple[str, Language, Sequence[int]]     # the address, the protocol, the processes of the server


@contextmanager
def nodes() -> Iterator[Mapping[str, Place]]:
    """Start three nodes and the program; yields where clients may connect. Raises NodeError and OSError."""
    (port,) = free_ports(1)
    with BeanstalkdCluster() as cluster:
        cluster.wait_until_level()
        leader = cluster.wait_for_leader()
        follower = next(name for name in cluster.names if name != leader)
        pids = [pid for name in cluster.names if (pid := cluster.pid(name))]
        program = subprocess.Popen(
            [PROGRAM, "--listen", f"{HOST}:{port}", "--servers", ",".join(cluster.servers)], stderr=subprocess.PIPE)
        try:
            assert program.stderr is not None
            if not any(b"listening on" in line for line in program.stderr):
                raise OSError("sockpq-beanstalkd does not listen")
            yield {
                PLACES[0]: (f"{HOST}:{cluster.ports[leader]}", BEANSTALKD, pids),
                PLACES[1]: (f"{HOST}:{cluster.ports[follower]}", BEANSTALKD, pids),
                PLACES[2]: (f"{HOST}:{port}", BEANSTALKD, [*pids, program.pid]),
                PLACES[3]: (cluster.server(leader), NATIVE, pids),
            }
        finally:
            program.terminate()
            program.communicate(timeout=START_S)


Figures = dict[tuple[str, bool, int], list[tuple[float, float | None]]]      # rates and µs by place, kind, connections


def measure(found: Figures, place: str, at: Place, seconds: float) -> None:
    """Put, then take and finish what was put, with each number of connections; adds the figures. Raises OSError."""
    address, language, pids = at
    for connections in CONNECTIONS:
        for takes in (False, True):
            if takes:       # more than can be taken in that time
                uvloop.run(cycles(address, language, FILL, seconds, takes=False))
            before = sum(map(cpu_us, pids))
            count, lasted = uvloop.run(cycles(address, language, connections, seconds, takes=takes))
            used = (sum(map(cpu_us, pids)) - before) / count if pids else None
            found[place, takes, connections].append((count / lasted, used))


def table(found: Figures) -> Iterator[str]:
    """Yield the lines of the table: medians of the rates, and of the processor time with most connections."""
    head = [f"{kind}, {count}" for kind in ("put", "reserve+delete") for count in CONNECTIONS]
    yield "| per second, and processor time | " + " | ".join([*head, "CPU µs, put", "CPU µs, reserve+delete"]) + " |"
    yield "|---" + "|--:" * (len(head) + 2) + "|"
    for place in PLACES:
        if not any(key[0] == place for key in found):
            continue
        rates = [f"{statistics.median(rate for rate, _ in found[place, takes, count]):,.0f}"
                 for takes in (False, True) for count in CONNECTIONS]
        costs = []
        for takes in (False, True):
            used = [of for _, of in found[place, takes, CONNECTIONS[-1]] if of is not None]
            costs.append(f"{statistics.median(used):,.0f}" if used else "")
        yield f"| {place} | " + " | ".join([*rates, *costs]) + " |"


@click.command(help=__doc__.split("\n", maxsplit=1)[0] if __doc__ else None)
@click.option("--seconds", default=2.0, show_default=True, type=click.FloatRange(0.1, 60), help="Of each load.")
@click.option("--rounds", default=3, show_default=True, type=click.IntRange(1))
@click.option("--into", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="A file with <!-- beanstalkd --> and <!-- /beanstalkd -->.")
def main(seconds: float, rounds: int, into: Path | None) -> None:
    """Measure all places in turn, and print the table or write it into a document."""
    found: Figures = defaultdict(list)
    try:
        for _ in range(rounds):
            with nodes() as places:
                for place, at in places.items():
                    measure(found, place, at, seconds)
            if shutil.which("beanstalkd"):
                with servers("greenstalk") as address:
                    measure(found, PLACES[4], (address, BEANSTALKD, ()), seconds)
    except (ServersError, NodeError, Unexpected, OSError) as error:
        sys.exit(str(error))
    text = "\n".join([*table(found), "", surroundings(), ""])
    if into is None:
        click.echo(text)
    else:
        into.write_text(replaced(into.read_text(), {"beanstalkd": text}))


if __name__ == "__main__":
    main()
