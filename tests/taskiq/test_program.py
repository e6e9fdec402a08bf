"""The program of Taskiq: a worker process that is killed, and one that is stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from sockpq import Client
from sockpq.testing import Server

from tests.waiting import PATIENCE_S, until

APP = """
import asyncio
from sockpq_taskiq import SockpqBroker

broker = SockpqBroker("ADDRESS", ttl=1.0)

@broker.task(task_name="wait")
async def wait():
    await broker.client.put("begun", b"")
    while not (await broker.client.total("go_on")).jobs:
        await asyncio.sleep(0.02)
"""
KICK = """
import asyncio
from app import broker, wait

async def main():
    await broker.startup()
    await wait.kiq()
    await broker.shutdown()

asyncio.run(main())
"""


def test_the_task_of_a_killed_worker_is_done_by_another_one(
    own_server: Server, own_client: Client, tmp_path: Path,
) -> None:
    own_server.empty()
    (tmp_path / "app.py").write_text(APP.replace("ADDRESS", own_server.address))
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    subprocess.run([sys.executable, "-c", KICK], env=environment, check=True, timeout=PATIENCE_S)

    def start() -> subprocess.Popen[bytes]:
        with (tmp_path / "log").open("ab") as log:
            return subprocess.Popen(
                [Path(sys.executable).with_name("taskiq"), "worker", "app:broker", "-w", "1"], cwd=tmp_path, stdout=log,
                stderr=log, env=environment, start_new_session=True,
            )

    first = start()
    try:
        until(lambda: own_client.total("begun").jobs, lambda: (tmp_path / "log").read_text())
    finally:
        os.killpg(first.pid, signal.SIGKILL)        # the program and its worker process
        first.wait()
    begun = own_client.total("begun").jobs
    second = start()
    try:
        until(lambda: own_client.total("begun").jobs > begun, lambda: (tmp_path / "log").read_text())
        own_client.put("go_on", b"")
        until(lambda: own_client.total("taskiq").running == 0)
        second.send_signal(signal.SIGTERM)
        assert second.wait(PATIENCE_S) == 0, (tmp_path / "log").read_text()
    finally:
        second.kill()
        second.wait()

