"""The promise of a pulse over real nodes: never too many grants in any window, whoever dies (spec/pulse 2.1)."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import re

import pytest

from devcluster.cluster import LocalCluster

RATE, PER_S = 6, 1.0
CLIENTS = 60
KILLS = 3
# Grants are seen where they are read, on a machine that does other things too: one may be seen so much late.
BLUR_S = 0.15
GO = re.compile(rb"200 OK GO (\d+) 0\r\n")


class Monitor:
    """Clients that always wait for the next turn, and when each of their grants was seen."""

    def __init__(self, servers: list[str]) -> None:
        self._servers = servers
        self.seen: list[tuple[float, int]] = []         # when, which ticket

    async def client(self, number: int) -> None:
        """Wait for turns at whichever server leads, until cancelled."""
        for server in itertools.islice(itertools.cycle(self._servers), number % len(self._servers), None):
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await self._converse(server)
            await asyncio.sleep(0.02)

    async def _converse(self, server: str) -> None:
        host, _, port = server.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        try:
            while True:
                writer.write(b"PULSE WAIT p\r\n")
                found = GO.fullmatch(await reader.readuntil(b"\n"))
                if found is None:
                    return                              # 500: another one leads, or nobody yet
                self.seen.append((asyncio.get_running_loop().time(), int(found[1])))
                writer.write(b"PULSE RESULT %s OK\r\n" % found[1])
                await reader.readuntil(b"\n")
        finally:
            writer.close()

    def most_in_a_window(self) -> int:
        """The greatest number of grants seen in any PER_S, but for the blur."""
        times = sorted(at for at, _ in self.seen)
        most = start = 0
        for end, at in enumerate(times):
            while times[start] < at - (PER_S - BLUR_S):
                start += 1
            most = max(most, end - start + 1)
        return most


@pytest.mark.timeout(120)
def test_no_window_has_more_grants_than_the_pulse_allows_while_leaders_die() -> None:
    with LocalCluster(3) as cluster:
        leader = cluster.wait_for_leader()
        assert cluster.say(leader, f"PULSE CREATE p RATE {RATE} PER {PER_S}", 5) == "200 OK"
        monitor = Monitor(cluster.servers)

        async def run() -> None:
            clients = [asyncio.create_task(monitor.client(number)) for number in range(CLIENTS)]
            loop = asyncio.get_running_loop()
            await asyncio.sleep(2.5)
            for kill in range(KILLS):
                name = await loop.run_in_executor(None, cluster.wait_for_leader)
                before = len(monitor.seen)
                # Right behind a group of grants, when they count most.
                while len(monitor.seen) < before + RATE:
                    await asyncio.sleep(0.005)
                if kill == 1:
                    cluster.pause(name)                 # a frozen leader comes back and must not write what is old
                    await asyncio.sleep(2.0)
                    cluster.resume(name)
                else:
                    cluster.kill(name)
                await asyncio.sleep(3.5)
                if kill != 1:
                    await loop.run_in_executor(None, cluster.restart, name)
            await asyncio.sleep(1.0)
            for client in clients:
                client.cancel()
            await asyncio.gather(*clients, return_exceptions=True)
        asyncio.run(run())
        tickets = [ticket for _, ticket in monitor.seen]
        assert len(tickets) == len(set(tickets))
        assert len(tickets) > 5 * RATE                  # they did go on
        assert monitor.most_in_a_window() <= RATE, monitor.seen
