"""Measures waiting for the ends of jobs (AWAIT) at real nodes.

    python -m bench.awaited [--jobs 1000] [--waiting 9900] [--seconds 10]

First the time from sending DONE until a client that waits for that job has its end, one job after another. Then
many clients wait for a job each: what one takes of the leader's memory and CPU time while nothing happens, how long
an ordinary client's PUT takes in the meantime, and how long it takes until all of them have their answer, when one
command removes all the jobs.
"""

from __future__ import annotations

import asyncio
import time

import click

from bench.load.running import LoadRun, load
from bench.load_generator.figures import Row
from bench.load_generator.target import NODES, SERVERS, Target, cpu_us, memory_bytes
from bench.load_generator.wire import JOB, LINE, Answer, Wire, ask, wires_to

QUEUE, OTHER = "awaited", "awaited-beside"
BODY = bytes(100)
WARM_UP = 100
PAUSE_S = 0.002         # between the PUTs of the ordinary client


@load("awaited", SERVERS, NODES)
@click.option("--jobs", default=1000, show_default=True, type=click.IntRange(1), help="Of which the ends are timed.")
@click.option("--waiting", default=9900, show_default=True, type=click.IntRange(1, 9990), help="Clients that wait.")
@click.option("--seconds", default=10.0, show_default=True, type=click.FloatRange(1), help="For which they wait.")
def main(running: LoadRun, jobs: int, waiting: int, seconds: float) -> None:
    """Measure the time until the end of a job is known, and the cost of ten thousand waiting clients."""
    running.empty([QUEUE, OTHER])
    running.target.settle()
    ends_us = asyncio.run(_ends(running.target.leader(), jobs))
    running.result.rows.append(_row("end of the work to the caller", ends_us))
    running.target.settle()
    asyncio.run(_crowd(running, waiting, seconds))


def _row(name: str, times_us: list[float]) -> Row:
    ordered = sorted(times_us)
    return {
        "what": name, "count": len(ordered), "p50_us": ordered[len(ordered) // 2],
        "p99_us": ordered[len(ordered) * 99 // 100], "max_us": ordered[-1],
    }


async def _ends(leader: str, jobs: int) -> list[float]:
    """Return the microseconds from DONE to the answer of AWAIT, for one job after another."""
    times: list[float] = []
    async with wires_to(leader, 2) as (worker, caller):
        for number in range(jobs + WARM_UP):
            job = await _put(caller, QUEUE)
            taken = await ask(worker, f"GET {QUEUE}\r\n".encode(), JOB)
            end = asyncio.ensure_future(ask(caller, b"AWAIT NUMBER %d\r\n" % job))
            await asyncio.sleep(PAUSE_S)        # so that it waits
            done = await ask(worker, b"DONE %s\r\n" % taken.line.split()[3])
            answer = await end
            assert answer.line == b"200 OK DONE 0", answer.line
            if number >= WARM_UP:
                times.append((answer.now_ns - done.asked_ns) / 1000)
    return times


async def _put(wire: Wire, queue: str) -> int:
    """Put a job with a number, and return its number."""
    answer = await ask(wire, f"PUT {queue} 0 {len(BODY)} NUMBER\r\n".encode() + BODY, LINE)
    return int(answer.line.split()[3])


async def _crowd(running: LoadRun, waiting: int, seconds: float) -> None:
    leader = running.target.leader()
    async with wires_to(leader, 2) as (client, operator):
        running.result.rows.append(_row("PUT, nobody waits", await _puts(client, seconds)))
        numbers = [await _put(operator, QUEUE) for _ in range(waiting)]
        async with wires_to(leader, waiting) as wires:
            await asyncio.sleep(1)
            before = _leader_memory(running.target)
            answers: list[Answer] = []
            ended = asyncio.Event()

            def note(answer: Answer) -> None:
                answers.append(answer)
                if len(answers) == waiting:
                    ended.set()

            for wire, number in zip(wires, numbers, strict=True):
                wire.ask(b"AWAIT NUMBER %d\r\n" % number, LINE, note)
                wire.flush()
            await ask(operator, b"AWAIT NUMBER 5\r\n")
            await asyncio.sleep(1)
            after = _leader_memory(running.target)
            idle_us = await _idle_us(running.target, seconds)
            running.result.rows.append(_row("PUT, all wait", await _puts(client, seconds)))
            begun, beside = time.monotonic(), asyncio.ensure_future(_puts(client, seconds))
            await ask(operator, f"QUEUE PURGE {QUEUE} ALL\r\n".encode())
            await ended.wait()
            all_s = time.monotonic() - begun
            running.result.rows.append(_row("PUT, while all get their answer", await beside))
            wrong = sum(answer.line != b"404 Job Not Found" for answer in answers)
            running.result.note_problems({"other answers": wrong} if wrong else {})
    running.result.summary = {
        "waiting": waiting, "bytes_each": None if before is None or after is None else (after - before) / waiting,
        "idle_cpu_us_per_s": idle_us, "all_answered_s": all_s,
    }


async def _puts(wire: Wire, seconds: float) -> list[float]:
    """Return the microseconds of each of a client's PUTs, which it sends one by one, with pauses."""
    times: list[float] = []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        answer = await ask(wire, f"PUT {OTHER} 0 {len(BODY)}\r\n".encode() + BODY, LINE)
        times.append((answer.now_ns - answer.asked_ns) / 1000)
        await asyncio.sleep(PAUSE_S)
    return times


def _leader_pid(target: Target) -> int | None:
    return target.cluster.pid(target.cluster.wait_for_leader()) if target.cluster else None


def _leader_memory(target: Target) -> int | None:
    pid = _leader_pid(target)
    return None if pid is None else memory_bytes(pid)


async def _idle_us(target: Target, seconds: float) -> float | None:
    """Return the microseconds of CPU time that the idle leader takes per second."""
    pid = _leader_pid(target)
    if pid is None:
        return None
    before = cpu_us(pid)
    await asyncio.sleep(seconds)
    return (cpu_us(pid) - before) / seconds


if __name__ == "__main__":
    main()
