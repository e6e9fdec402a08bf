"""Measures a copy behind a long line: lag, catching up, what loss and a cut do, and a promotion.

    python -m bench.regions                     # needs root: both sides are network namespaces
    python -m bench.regions --rate 2000 --entries 100000 --record FILE

The line is made of TUN devices (line.py): 100 ms each way, then also 5% of all packets lost. All processes share this
machine, whose load is recorded; delay and loss come from the line, whatever the load. *Visible after* is the time
from the execution of an entry at the origin until the copy has it; *lag* is what the copy says of itself. At the end
the copy must equal its origin, and have every acknowledged job when it is promoted.
"""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from bench.load_generator.wire import LINE, Wire, ask
from bench.regions.clusters import FarCluster, LineAuthority, NearCluster
from bench.regions.line import OWN, LongLine, alone

DELAY_S = 0.1           # each way: a round trip of 200 ms
LOSS = 0.05
LOOK_S = 0.02
LEVEL_S = 1800.0        # for catching up
CONNECTIONS = 20
AT_ONCE = 500           # PUTs on their way on each connection, while entries are made for catching up
BODY = bytes(100)
PUT = b"PUT load 0 %d\r\n%s" % (len(BODY), BODY)

Row = dict[str, Any]


@click.command()
@click.option("--nodes", default=1, show_default=True, type=click.IntRange(1, 5), help="Of each of the two clusters.")
@click.option("--rate", default=10_000, show_default=True, type=click.IntRange(1), help="PUTs a second.")
@click.option("--lossy-rate", default=100, show_default=True, type=click.IntRange(1),
              help="The same on a line with loss, and while the line is cut.")
@click.option("--seconds", default=30.0, show_default=True, help="Of each load, and of the cut.")
@click.option("--entries", default=20_000, show_default=True, type=click.IntRange(0),
              help="To catch up, with one job each.")
@click.option("--jobs", default=1_000_000, show_default=True, type=click.IntRange(0),
              help="To catch up besides, as many in an entry as come together.")
@click.option("--folder", type=click.Path(path_type=Path), help="Where the nodes have their data.")
@click.option("--record", "record_to", type=click.Path(path_type=Path), help="Append the figures to this file.")
def main(
    nodes: int, rate: int, lossy_rate: int, seconds: float, entries: int, jobs: int, folder: Path | None,
    record_to: Path | None,
) -> None:
    """Print a line for each measurement."""
    if not alone():                 # once more, in namespaces of its own
        os.execvp(OWN[0], [*OWN, sys.executable, "-m", "bench.regions", *sys.argv[1:]])
    for row in measured(folder, nodes, rate, lossy_rate, seconds, entries, jobs):
        row["load"] = round(os.getloadavg()[0], 1)
        click.echo(json.dumps(row))
        if record_to is not None:
            with record_to.open("a") as file:
                file.write(json.dumps(row) + "\n")


def measured(
    folder: Path | None, nodes: int, rate: int, lossy_rate: int, seconds: float, entries: int, jobs: int,
) -> Iterator[Row]:
    """Yield the figures of each measurement."""
    with tempfile.TemporaryDirectory(dir=folder) as name, LongLine() as line:
        authority = LineAuthority(Path(name))
        with NearCluster(Path(name), authority, nodes, 4 << 30) as origin:
            context = ssl.create_default_context(cafile=authority.ca)
            if entries:
                yield {"what": "put one at a time", **asyncio.run(_put_singly(origin, context, entries))}
            if jobs:
                yield {"what": "put together", **asyncio.run(_put_together(origin, context, jobs))}
            line.set(DELAY_S)
            with FarCluster(Path(name), authority, nodes, line, origin) as copy:
                both = Both(origin, copy, context)
                with both.processor_s() as used:
                    level, took_s = asyncio.run(both.level())
                yield {"what": "catching up", "position": level, "seconds": round(took_s, 2), "processor_s": used}
                for words, lost, per_second in (
                    ("200 ms", 0.0, rate), ("200 ms, 5% lost", LOSS, lossy_rate),
                ):
                    line.set(DELAY_S, lost)
                    with both.processor_s() as used:
                        row = asyncio.run(both.under_load(per_second, seconds))
                    yield {"what": words, **row, "processor_s": used}
                    asyncio.run(both.level())
                line.set(DELAY_S, cut=True)
                row = asyncio.run(both.load_only(lossy_rate, seconds))
                begun = time.monotonic()
                line.set(DELAY_S)
                asyncio.run(both.level())
                yield {"what": "a cut", "seconds": seconds, "rate": row["rate"],
                       "level_again_s": round(time.monotonic() - begun, 2)}
                yield {"what": "equal", "position": asyncio.run(both.equal())}
                yield {"what": "promotion", "first_answer_s": asyncio.run(both.promote())}


async def _wires(server: str, count: int, context: ssl.SSLContext) -> list[Wire]:
    host, _, port = server.rpartition(":")
    loop = asyncio.get_running_loop()
    return [(await loop.create_connection(Wire, host, int(port), ssl=context, server_hostname=host))[1]
            for _ in range(count)]


async def _put_singly(origin: NearCluster, context: ssl.SSLContext, entries: int) -> Row:
    """Put jobs, each in an entry of its own."""
    (wire,) = await _wires(origin.server(origin.wait_for_leader()), 1, context)
    begun = time.monotonic()
    for _ in range(entries):
        await ask(wire, PUT)
    row = {"position": await _position(wire), "jobs": entries, "seconds": round(time.monotonic() - begun, 1)}
    wire.close()
    return row


async def _put_together(origin: NearCluster, context: ssl.SSLContext, jobs: int) -> Row:
    """Put jobs with many commands in flight; returns also how many entries the log has then."""
    wires = await _wires(origin.server(origin.wait_for_leader()), CONNECTIONS, context)
    left, begun = jobs, time.monotonic()

    async def some(wire: Wire) -> None:
        nonlocal left
        while (count := min(left, AT_ONCE)) > 0:
            left -= count
            await asyncio.gather(*(ask(wire, PUT) for _ in range(count)))

    await asyncio.gather(*map(some, wires))
    row = {"position": await _position(wires[0]), "jobs": jobs, "seconds": round(time.monotonic() - begun, 1)}
    for wire in wires:
        wire.close()
    return row


class Both:
    """The origin and its copy, and what is measured on them."""

    def __init__(self, origin: NearCluster, copy: FarCluster, context: ssl.SSLContext) -> None:
        self._origin = origin
        self._copy = copy
        self._context = context

    @contextmanager
    def processor_s(self) -> Iterator[dict[str, float]]:
        """Measure the processor time of the nodes of each side during the block."""
        used: dict[str, float] = {}
        before = {side: _used_s(cluster) for side, cluster in self._sides()}
        yield used
        used |= {side: round(_used_s(cluster) - before[side], 2) for side, cluster in self._sides()}

    def _sides(self) -> Sequence[tuple[str, NearCluster | FarCluster]]:
        return [("origin", self._origin), ("copy", self._copy)]

    async def level(self) -> tuple[int, float]:
        """Wait until the copy has what the origin has at this moment.

        Returns its position, and the seconds from the first entry that came.
        """
        there, here = await self._lookers()
        try:
            begun, wanted = time.monotonic(), await _position(there)
            until, first = begun + LEVEL_S, await _position(here)
            while (now := await _position(here)) < wanted:
                if time.monotonic() > until:
                    raise click.ClickException(f"the copy is at {now} of {wanted} after {LEVEL_S:.0f} s")
                if now == first:
                    begun = time.monotonic()
                await asyncio.sleep(LOOK_S)
            return now, time.monotonic() - begun
        finally:
            there.close()
            here.close()

    async def equal(self) -> int:
        """Compare the hashes of both at one position, which is returned. Raises ClickException if they differ."""
        there, here = await self._lookers()
        try:
            while True:
                origin, copy = [(await ask(wire, b"CLUSTER HASH\r\n")).line.split()[2:] for wire in (there, here)]
                if origin == copy:
                    return int(copy[0])
                if origin[0] == copy[0]:
                    raise click.ClickException(f"the copy differs from its origin: {copy}, {origin}")
                await asyncio.sleep(LOOK_S)
        finally:
            there.close()
            here.close()

    async def _lookers(self) -> tuple[Wire, Wire]:
        """Connect to the leader of each."""
        leader = self._copy.wait_for_leader()
        (there,) = await _wires(self._origin.server(self._origin.wait_for_leader()), 1, self._context)
        (here,) = await _wires(self._copy.server(leader), 1, self._context)
        return there, here

    async def load_only(self, per_second: int, seconds: float) -> Row:
        """Put at this rate; returns what was reached."""
        wires = await _wires(self._origin.server(self._origin.wait_for_leader()), CONNECTIONS, self._context)
        good, sent, begun = 0, 0, time.monotonic()

        def answered(answer: Any) -> None:
            nonlocal good
            good += answer.good

        while (now := time.monotonic()) < begun + seconds:
            due = int((now - begun) * per_second)
            while sent < due and sent - good < AT_ONCE * CONNECTIONS:
                wires[sent % CONNECTIONS].ask(PUT, LINE, answered)
                sent += 1
            for wire in wires:
                wire.flush()
            await asyncio.sleep(0.005)
        rate = good / (time.monotonic() - begun)
        while good < sent:
            await asyncio.sleep(LOOK_S)
        for wire in wires:
            wire.close()
        return {"rate": round(rate), "jobs": good}

    async def under_load(self, per_second: int, seconds: float) -> Row:
        """Put at this rate, and look how far the copy is; returns seconds until entries are visible, and lags."""
        there, here = await self._lookers()
        marks: list[tuple[float, int]] = []             # of the origin: when it had executed which entry,
        newest = 0                                      # and the last of these
        seen: list[float] = []
        lags: list[float] = []
        load = asyncio.create_task(self.load_only(per_second, seconds))
        while not load.done() or marks:
            at, position = time.monotonic(), await _position(there)
            if not load.done() and position > newest:
                marks.append((at, position))
                newest = position
            words = (await ask(here, b"CLUSTER REPLICA\r\n")).line.split()
            now, reached = time.monotonic(), int(words[3])
            if words[6] != b"-":
                lags.append(int(words[6]) / 1000)
            while marks and marks[0][1] <= reached:
                seen.append(now - marks.pop(0)[0])
            await asyncio.sleep(LOOK_S)
        there.close()
        here.close()
        return {"rate": load.result()["rate"], "visible_after_s": _shares(seen), "lag_s": _shares(lags)}

    async def promote(self) -> float:
        """Promote the copy, which is level; returns the seconds until it has acknowledged a job.

        Raises ClickException if it has other jobs than its origin.
        """
        there, here = await self._lookers()
        try:
            begun = time.monotonic()
            answer = await ask(here, b"CLUSTER PROMOTE\r\n")
            if not answer.good:
                raise click.ClickException(f"CLUSTER PROMOTE: {answer.line!r}")
            while not (await ask(here, PUT)).good:
                await asyncio.sleep(0.001)
            took_s = time.monotonic() - begun
            jobs, copied = [int((await ask(wire, b"TOTAL load\r\n")).line.split()[4]) for wire in (there, here)]
            if copied != jobs + 1:
                raise click.ClickException(f"the origin has {jobs} jobs, the copy and one more {copied}")
            return round(took_s, 3)
        finally:
            there.close()
            here.close()


async def _position(wire: Wire) -> int:
    return int((await ask(wire, b"CLUSTER HASH\r\n")).line.split()[2])


def _shares(values: Sequence[float]) -> dict[str, float]:
    """Return the median, the 99th percentile and the maximum."""
    ordered = sorted(values)
    if not ordered:
        return {}
    return {name: round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 3)
            for name, share in (("p50", 0.5), ("p99", 0.99), ("max", 1.0))}


def _used_s(cluster: NearCluster | FarCluster) -> float:
    """Return the processor time of all threads of the nodes, seconds."""
    pids = [pid for name in cluster.names if (pid := cluster.pid(name)) is not None]
    return sum(int(file.read_text().split()[0]) for pid in pids
               for file in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


if __name__ == "__main__":
    main()
