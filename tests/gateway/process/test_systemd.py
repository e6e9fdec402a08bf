"""The notifications of the service manager, by the real program and by the class alone."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from devcluster.ports import free_ports
from sockpqd.cluster.api import NodeStatus
from sockpqd.gateway.process.systemd import ServiceManager, describe
from tests.gateway.helpers.fake_cluster import FakeCluster
from tests.gateway.helpers.service_manager import PATIENCE_S, Ear

SOCKPQD = Path(sys.executable).parent / "sockpqd"


@pytest.fixture
def ear(tmp_path: Path) -> Iterator[Ear]:
    ear = Ear(str(tmp_path / "notify"))
    yield ear
    ear.close()


def manager(tmp_path: Path, status: str = "leader", **environment: str) -> ServiceManager:
    return ServiceManager({"NOTIFY_SOCKET": str(tmp_path / "notify"), **environment}, lambda: status)


def test_a_node_says_that_it_started_how_it_is_that_it_lives_and_that_it_stops(tmp_path: Path, ear: Ear) -> None:
    environment = {**os.environ, "NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "200000"}
    begun = time.monotonic()
    process = subprocess.Popen(
        [SOCKPQD, "--dev"], cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        assert ear.hear() == ["READY=1"]
        heard = ear.hear_until("STATUS=leader, term 1")
        assert heard.count("WATCHDOG=1") >= 1
        assert [ear.hear() for _ in range(5)] == [["WATCHDOG=1"]] * 5
        assert heard.count("WATCHDOG=1") + 5 <= (time.monotonic() - begun) / 0.1 + 1    # at half the time that is left
        process.send_signal(signal.SIGTERM)
        ear.hear_until("STOPPING=1")
        assert process.wait(PATIENCE_S) == 0
    finally:
        process.kill()
        process.wait()


def test_the_first_of_three_nodes_is_ready_although_nobody_leads(tmp_path: Path, ear: Ear) -> None:
    ports = free_ports(2)
    members = "".join(
        f'[[cluster.members]]\nname = "n{number}"\nclient = "127.0.0.1:{client}"\npeer = "127.0.0.1:{peer}"\n'
        for number, (client, peer) in enumerate([ports, (1, 2), (3, 4)], start=1)
    )
    (tmp_path / "n1.toml").write_text(
        f'[node]\nname = "n1"\ndata_dir = "data"\n[listen]\nclient = "127.0.0.1:{ports[0]}"\n'
        f'peer = "127.0.0.1:{ports[1]}"\n{members}'
    )
    process = subprocess.Popen(
        [SOCKPQD, "--config", "n1.toml"], cwd=tmp_path, stderr=subprocess.DEVNULL,
        env={**os.environ, "NOTIFY_SOCKET": str(tmp_path / "notify")},
    )
    try:
        assert ear.hear() == ["READY=1"]
        (status,) = ear.hear()                      # and no watchdog: nobody asked for it
        assert re.fullmatch(r"STATUS=(follower|candidate), term \d+, leader: none", status)
    finally:
        process.kill()
        process.wait()


def test_reload_is_framed_by_words(tmp_path: Path, ear: Ear) -> None:
    async def reload_twice() -> None:
        node = manager(tmp_path)
        node.reload(lambda: done.append("early"))       # nobody hears of it
        node.started()
        node.reload(lambda: done.append("read"))

    done: list[str] = []
    asyncio.run(reload_twice())
    assert ear.hear() == ["READY=1"]
    assert ear.hear() == ["STATUS=leader"]
    reloading = ear.hear()
    assert reloading[0] == "RELOADING=1"
    assert 0 < int(reloading[1].removeprefix("MONOTONIC_USEC=")) <= time.monotonic_ns() // 1000
    assert (ear.hear(), done) == (["READY=1"], ["early", "read"])


def test_an_abstract_address_is_understood() -> None:
    name = f"sockpqd-test-{os.getpid()}"
    ear = Ear(f"\0{name}")
    ServiceManager({"NOTIFY_SOCKET": f"@{name}"}, lambda: "").stopping()
    assert ear.hear() == ["STOPPING=1"]
    ear.close()


def test_without_a_manager_nothing_is_said_and_nothing_asked(caplog: pytest.LogCaptureFixture) -> None:
    async def start() -> None:
        ServiceManager({}, lambda: pytest.fail("nobody listens")).started()
        await asyncio.sleep(0)

    asyncio.run(start())
    assert not caplog.records


def test_a_manager_that_does_not_listen_stops_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        manager(tmp_path).stopping()
    assert caplog.messages == ["could not send STOPPING=1 to the service manager: [Errno 2] No such file or directory"]


def test_describe() -> None:
    def cluster(role: str, *, serving: bool) -> FakeCluster:
        cluster = FakeCluster()
        row = NodeStatus(1, "n1", "10.0.0.1:11361", role, True, 3, 9, 0, "0.1.0", 0)
        cluster.status = lambda: [row]  # type: ignore[method-assign]
        cluster.serving = serving
        return cluster

    assert describe(cluster("LEADER", serving=True)) == "leader, term 3"
    assert describe(cluster("LEADER", serving=False)) == "leader, term 3, does not serve"
    assert describe(cluster("FOLLOWER", serving=False)) == "follower, term 3, leader: none"
    assert describe(FakeCluster()) == "not a member of the cluster"         # it has not led, nobody is a member
