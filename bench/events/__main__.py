"""The costs of events, and the time until subscribers get them.

    python -m bench.events cost [--subscribers 1000] [--rate 1000] [--seconds 20] [--rounds 3] [--apart]
    python -m bench.events notify [--seconds 10]
    python -m bench.events delay [--rate 5000] [--seconds 20]

`cost`: PUTs at a steady rate, in turns without and with subscribers on a follower that hear 50 events a second each;
what the leader spends for one, and its time. With `--apart` the subscribers and their node get only the processor
time that nobody else wants (SCHED_IDLE), so that the others hardly feel it, as if it were on another host.
`notify`: NOTIFY as fast as the leader takes it, without a subscriber and with 100 on all nodes. `delay`: from sending a
DONE to the line of FINI at a subscriber, on each node, beside other operations. A cluster of three nodes is started,
which shares the machine with the load and the subscribers.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time

import click
import uvloop

from bench.events.beside import CONNECTIONS, QUEUE, beside
from bench.events.hearers import Hearers, hearers
from bench.load.running import LoadRun, load
from bench.load_generator.figures import LoadFigures, Row
from bench.load_generator.jobs import Jobs
from bench.load_generator.open_loop import Pacer
from bench.load_generator.target import NODES, SERVERS, Target, cpu_us
from bench.load_generator.wire import LINE, Answer, Wire, wires_to

HEARD_EACH = 50             # events a second
SETTLE_S = 1.0
NOTIFY_SENDERS, NOTIFY_IN_FLIGHT = 4, 32
NOTIFY_HEARERS = 100
LINE_S = 10.0               # how long a line may take


@load("events cost", SERVERS, NODES)
@click.option("--subscribers", default=1000, show_default=True, type=click.IntRange(1, 10_000))
@click.option("--rate", default=1000.0, show_default=True, type=click.FloatRange(50), help="PUTs per second.")
@click.option("--seconds", default=20.0, show_default=True, type=click.FloatRange(1, 3600), help="Of each turn.")
@click.option("--rounds", default=3, show_default=True, type=click.IntRange(1, 100))
@click.option("--apart", is_flag=True, help="The subscribers and their node yield the processors to the others.")
def cost(running: LoadRun, subscribers: int, rate: float, seconds: float, rounds: int, apart: bool) -> None:
    """Measure what subscribers on a follower cost the leader."""
    measured = running.target
    queues = [f"events{number}" for number in range(max(1, round(rate / HEARD_EACH)))]
    jobs = Jobs(queues, 100)
    follower = _other_than_leader(measured)
    wanted = [(follower, f"SUBSCRIBE PUT {queues[number % len(queues)]}") for number in range(subscribers)]
    if apart:
        _yield_processors(measured, follower)
    _put(measured, jobs, rate, SETTLE_S)            # warm
    for number in range(rounds):
        for count in (0, subscribers):
            with hearers(wanted[:count], yielding=apart) as heard:
                time.sleep(SETTLE_S)
                row, figures = _put(measured, jobs, rate, seconds, heard)
            running.result.rows.append({"round": number + 1, "subscribers": count, **row})
            running.result.note_problems(figures.problems)
            running.console.print(running.result.rows[-1])
            measured.purge(queues)


def _other_than_leader(measured: Target) -> str:
    """The address of a server that does not serve; of the only one where there is no other."""
    leader = measured.leader()
    return next((server for server in measured.servers.split(",") if server != leader), leader)


def _yield_processors(measured: Target, follower: str) -> None:
    """Let this follower have only the processor time that no other process wants. Raises click.UsageError."""
    if measured.cluster is None:
        raise click.UsageError("--apart needs nodes of its own")
    name = next(name for name in measured.cluster.names if measured.cluster.server(name) == follower)
    for thread in os.listdir(f"/proc/{measured.cluster.pid(name)}/task"):
        os.sched_setscheduler(int(thread), os.SCHED_IDLE, os.sched_param(0))


def _leader_cpu_us(measured: Target) -> int | None:
    """The CPU time of the leader's process so far; None: it is not ours."""
    leader = measured.cluster.leader() if measured.cluster else None
    pid = measured.cluster.pid(leader) if measured.cluster and leader else None
    return None if pid is None else cpu_us(pid)


def _put(
    measured: Target, jobs: Jobs, rate: float, seconds: float, heard: Hearers | None = None,
) -> tuple[Row, LoadFigures]:
    """Send PUTs at this rate for this long."""
    figures = LoadFigures()
    leader = measured.leader()

    async def put() -> float:
        async with wires_to(leader, CONNECTIONS) as wires:
            return await Pacer(wires, jobs, rate, figures).run(seconds)
    heard_before = heard.heard() if heard else 0
    before_us = _leader_cpu_us(measured)
    took_s = uvloop.run(put())
    after_us = _leader_cpu_us(measured)
    spent_us = None if before_us is None or after_us is None else after_us - before_us
    count = len(figures.latencies_us["PUT"])
    return {
        "put_per_second": count / took_s,
        "leader_cpu_us_per_put": spent_us / count if spent_us is not None and count else None,
        "heard_per_second": (heard.heard() - heard_before) / took_s if heard else 0.0,
        **figures.latency("PUT", (50.0, 99.0)),
    }, figures


@load("events notify", SERVERS, NODES)
@click.option("--seconds", default=10.0, show_default=True, type=click.FloatRange(1, 3600))
def notify(running: LoadRun, seconds: float) -> None:
    """Measure how many messages of NOTIFY the leader takes."""
    measured = running.target
    everywhere = measured.servers.split(",")
    for count in (0, NOTIFY_HEARERS):
        wanted = [(everywhere[number % len(everywhere)], "SUBSCRIBE MSG bench") for number in range(count)]
        with hearers(wanted) as heard:
            time.sleep(SETTLE_S)
            sent, took_s = uvloop.run(_notify(measured.leader(), seconds))
            _wait_for(heard, sent * count)
            running.result.rows.append({
                "subscribers": count, "notify_per_second": sent / took_s, "sent": sent,
                "heard_of_each": heard.heard() / count if count else 0.0,
            })


def _wait_for(heard: Hearers, count: int) -> None:
    """Wait at most LINE_S for this number of events, as subscribers may have fallen behind."""
    until = time.monotonic() + LINE_S
    while heard.heard() < count and time.monotonic() < until:
        time.sleep(0.1)


async def _notify(leader: str, seconds: float) -> tuple[int, float]:
    """Send messages; returns how many were answered, and the seconds that took."""
    command = b"NOTIFY bench 20\r\n" + b"x" * 20
    done = asyncio.Event()
    answered = flying = 0

    def go_on(wire: Wire) -> None:
        nonlocal flying
        flying += 1
        wire.ask(command, LINE, lambda answer: landed(wire, answer))

    def landed(wire: Wire, answer: Answer) -> None:
        nonlocal answered, flying
        flying -= 1
        answered += answer.good
        if answer.good and time.perf_counter() - begun < seconds:
            go_on(wire)
        elif not flying:
            done.set()
    async with wires_to(leader, NOTIFY_SENDERS) as wires:
        begun = time.perf_counter()
        for wire in wires:
            for _ in range(NOTIFY_IN_FLIGHT):
                go_on(wire)
            wire.flush()
        await done.wait()
        return answered, time.perf_counter() - begun


@load("events delay", SERVERS, NODES)
@click.option("--rate", default=5000.0, show_default=True, type=click.FloatRange(1), help="Other operations a second.")
@click.option("--seconds", default=20.0, show_default=True, type=click.FloatRange(1, 3600), help="For each node.")
def delay(running: LoadRun, rate: float, seconds: float) -> None:
    """Measure the time from a DONE to the line of its event."""
    measured = running.target
    leader = measured.leader()
    for server in measured.servers.split(","):
        figures = LoadFigures()
        with beside(leader, rate):
            time.sleep(SETTLE_S)
            _hear_dones(leader, server, seconds, figures)
        running.result.rows.append({
            "node": "leader" if server == leader else "follower", "dones": len(figures.latencies_us["DONE"]),
            **{f"line_{name}": value for name, value in figures.latency("line", (50.0, 99.0)).items()},
            **{f"DONE_{name}": value for name, value in figures.latency("DONE", (50.0, 99.0)).items()},
        })
        measured.purge([QUEUE])


def _hear_dones(leader: str, server: str, seconds: float, figures: LoadFigures) -> None:
    """Finish an item at a time at the leader, and wait for its FINI at the server."""
    with _connect(leader) as worker, _connect(server) as listening:
        said, heard = worker.makefile("rb"), listening.makefile("rb")
        listening.sendall(b"SUBSCRIBE FINI bench_*\r\n")
        heard.readline()
        note_done, note_line = figures.noter("DONE"), figures.noter("line")
        until, number = time.perf_counter() + seconds, 0
        while time.perf_counter() < until:
            number += 1
            worker.sendall(b"PUT probe 0 0 IS bench_%d\r\nGET probe\r\n" % number)
            said.readline()
            job = said.readline().split()[3]
            begun = time.perf_counter_ns()
            worker.sendall(b"DONE %s\r\n" % job)
            said.readline()
            note_done(begun, time.perf_counter_ns())
            while b" FINI bench_%d\r\n" % number not in heard.readline():
                pass
            note_line(begun, time.perf_counter_ns())
            time.sleep(0.005)


def _connect(server: str) -> socket.socket:
    host, _, port = server.rpartition(":")
    connection = socket.create_connection((host.strip("[]"), int(port)), LINE_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


main = click.Group("events", [cost, notify, delay], help="Measure the delivery of events.")


if __name__ == "__main__":
    main()
