"""Clients whose host vanishes without notice: a real link that goes down, between two network namespaces."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator

import pytest
import uvloop

from sockpqd.gateway.limits import Limits
from tests.gateway.helpers.sockets import PATIENCE_S, Gateway

# Of this process alone: another run of the tests may have such a link, too.
NETWORK = f"10.231.{os.getpid() // 64 % 256}"
OURS, THEIRS = f"{NETWORK}.{os.getpid() % 64 * 4 + 1}", f"{NETWORK}.{os.getpid() % 64 * 4 + 2}"

# Connects once for each line, says it, and keeps all connections open without ever reading more than one answer.
CLIENT = """
import socket, sys
connections = []
for line in sys.argv[3:]:
    connection = socket.create_connection((sys.argv[1], int(sys.argv[2])))
    connection.sendall(line.encode() + b"\\r\\n")
    if line == "PING":
        connection.recv(100)
    connections.append(connection)
print("ready", flush=True)
sys.stdin.read()
"""


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


@pytest.fixture
def namespace() -> Iterator[str]:
    """A network namespace with a link to ours; skipped where there can be none."""
    name, link = f"sockpqd-{os.getpid()}", f"spq{os.getpid()}"
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root and the program ip")
    try:
        ip("netns", "add", name)
        ip("link", "add", link, "type", "veth", "peer", "name", "there", "netns", name)
    except subprocess.CalledProcessError as error:
        subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)
        pytest.skip(f"no network namespace: {error.stderr.decode()}")
    try:
        ip("addr", "add", f"{OURS}/30", "dev", link)
        ip("link", "set", link, "up")
        ip("-n", name, "addr", "add", f"{THEIRS}/30", "dev", "there")
        ip("-n", name, "link", "set", "there", "up")
        yield name
    finally:
        with contextlib.suppress(subprocess.CalledProcessError):
            ip("netns", "del", name)                # and with it the link


def test_who_vanished_is_gone_although_idle_blocked_or_sent_a_job(
    namespace: str, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sockpqd.connections.tcp.KEEPALIVE_IDLE_S", 1)
    monkeypatch.setattr("sockpqd.connections.tcp.KEEPALIVE_INTERVAL_S", 1)
    monkeypatch.setattr("sockpqd.connections.tcp.KEEPALIVE_PROBES", 2)
    monkeypatch.setattr("sockpqd.connections.tcp.SILENT_S", 2.0)

    async def test() -> None:
        gateway = Gateway(Limits(answer_timeout_s=3600, hello_timeout_s=5))
        gateway.cluster.start(gateway.hub)
        host, port = await gateway.server.start(OURS, 0)
        client = subprocess.Popen(
            ["ip", "netns", "exec", namespace, sys.executable, "-c", CLIENT, host, str(port), "PING", "GETB idle",
             "GETB q"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )
        try:
            assert client.stdout is not None
            await asyncio.wait_for(asyncio.to_thread(client.stdout.readline), PATIENCE_S)
            await gateway.until(lambda: len(gateway.hub.job_waiters) == 2)
            ip("-n", namespace, "link", "set", "there", "down")
            gateway.address = host, port
            assert await gateway.talk(b"PUT q 0 1\r\nx") == b"200 OK\r\n"
            assert gateway.cluster.machine.total(None).running == 1
            await gateway.until(lambda: not gateway.hub.connections)
            assert not len(gateway.hub.job_waiters)
        finally:
            client.kill()
            client.communicate()
            await gateway.close()
    uvloop.run(test())
