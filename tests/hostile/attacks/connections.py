"""Connections that say nothing, and connections of which the other half is gone."""

from __future__ import annotations

import asyncio
import ipaddress
import sys
import time
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path

from tests.hostile import network
from tests.hostile.arena import Arena, say
from tests.hostile.attack import Attack, Bounds
from tests.hostile.crowd import Crowd
from tests.hostile.ordinary import Habits

PLACES = 300
HELLO_S = 3
STRANGERS = 3
AGAIN_S = 1.0
BEGIN_S = 2.0
ANSWER_S = 5.0
CUT_S = HELLO_S + 4.0
SILENT = 50
ATTEMPTS = 50

GONE_S = 32.0               # 30, and what the kernel's timers are late
HALF = 60
LOOK_S = 0.2
ESTABLISHED = "01"


async def connect_flood(arena: Arena) -> None:
    """Take all places repeatedly, from addresses that are not loopback's."""
    server = await asyncio.to_thread(arena.server)
    async with AsyncExitStack() as stack:
        flood = [await stack.enter_async_context(
            Crowd(server, PLACES, source=network.stranger(number), again_s=AGAIN_S)) for number in range(STRANGERS)]
        await asyncio.sleep(BEGIN_S)
        await _operator(arena)
        answers = Counter([await say(server, b"PING\r\n", ANSWER_S, network.stranger(0)) for _ in range(ATTEMPTS)])
        arena.expect(answers.keys() <= {b"503 Busy\r\n", b"200 OK\r\n"} and b"503 Busy\r\n" in answers,
                     f"who finds no place is told {dict(answers)}")     # now and then there is one
        await asyncio.sleep(max(arena.seconds - 2 * BEGIN_S, 0))
        arena.note(f"{sum(crowd.made for crowd in flood)} connections made, "
                   f"{max(crowd.standing for crowd in flood)} of an address stood")
    async with Crowd(server, SILENT, source=network.stranger(0)) as crowd:
        until = time.monotonic() + CUT_S
        while crowd.standing and time.monotonic() < until:
            await asyncio.sleep(LOOK_S)
        arena.expect(not crowd.standing, f"{crowd.standing} of {SILENT} silent clients were not cut")


async def _operator(arena: Arena) -> None:
    """Ask what an operator wants to know in such a moment."""
    for name in arena.cluster.names:
        answer = await say(arena.cluster.http(name), b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", ANSWER_S)
        arena.expect(answer.startswith(b"HTTP/1.1 200"), f"/healthz of {name}: {answer[:40]!r}")
    pqctl = await asyncio.create_subprocess_exec(
        Path(sys.executable).parent / "pqctl", "--servers", ",".join(arena.cluster.servers), "cluster", "status",
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT)
    try:
        output, _ = await asyncio.wait_for(pqctl.communicate(), 2 * ANSWER_S)
    except TimeoutError:
        pqctl.kill()
        await pqctl.wait()
        arena.fail("pqctl cluster status does not end")
    else:
        arena.expect(pqctl.returncode == 0, f"pqctl cluster status: {output.decode('utf-8', 'replace')[-100:]}")


async def half_open(arena: Arena) -> None:
    """Let a host vanish with its clients: some wait for a job and are sent one, some do nothing."""
    server = await asyncio.to_thread(arena.server)
    stranger = network.stranger(0)
    async with (Crowd(server, HALF, opening=b"GETB vanished EXPIRE 600\r\n", source=stranger),
                Crowd(server, HALF, source=stranger, opening=b"PING\r\n")):
        network.remove(stranger)
        begun = time.monotonic()
        await arena.put_lists(["vanished"] * HALF)
        while (left := _standing(server, stranger)) and time.monotonic() < begun + GONE_S:
            await asyncio.sleep(LOOK_S)
    if left:
        arena.fail(f"{left} of {2 * HALF} half-open connections stood after {GONE_S:g} s")
    else:
        arena.note(f"gone after {time.monotonic() - begun:.1f} s")


def _standing(server: str, stranger: str) -> int:
    """Return how many connections the server still has from there, as the kernel reports."""
    port = int(server.rpartition(":")[2])
    remote = f"{int.from_bytes(ipaddress.ip_address(stranger).packed, sys.byteorder):08X}"
    lines = Path("/proc/self/net/tcp").read_text().splitlines()[1:]
    return sum(local.endswith(f":{port:04X}") and there.startswith(remote) and state == ESTABLISHED
               for _, local, there, state, *_ in map(str.split, lines))


ATTACKS = (
    Attack("connect-flood", "900 silent connections from three addresses for 300 places, again and again",
           connect_flood, strangers=STRANGERS, habits=Habits(cycles=1),
           config={"limits": {"connections_max": PLACES, "hello_timeout_s": HELLO_S}}, bounds=Bounds(growth_mb=300)),
    Attack("half-open", "a host vanishes with 120 connections, half of which are sent a job", half_open, strangers=1,
           seconds=GONE_S, bounds=Bounds(growth_mb=300)),
)
