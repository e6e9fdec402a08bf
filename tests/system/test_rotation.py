"""Programs that stay go on when the authority and a secret are replaced, as CONFIGURATION says, and nodes restarted."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from sockpq import Client, ClientClosed, EventsLost

from devcluster.authority import Authority
from devcluster.cluster import LocalCluster
from devcluster.ports import HOST, free_ports
from tests.beanstalk.helpers.client import BeanstalkClient
from tests.client.both import LoopClient
from tests.waiting import PATIENCE_S, until
from tests.worker.program.running import Worker

BIN = Path(sys.executable).parent
OLD, NEW = "old-secret-of-the-programs", "new-secret-of-the-programs"

APP = '''
app = App(tls=os.environ["CA"], user="programs", secret_file=os.environ["SECRET"])

@app.handler("work")
def work(job):
    record(job.text)
'''


class Place:
    """A cluster whose nodes have files of their own, and the files that programs were given."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._old, self._new = Authority(folder, "ca"), Authority(folder, "new")
        old, new = self._old.ca.read_bytes(), self._new.ca.read_bytes()
        self.ca, self.secret = folder / "of-programs.crt", folder / "secret"
        self.ca.write_bytes(old)
        self.secret.write_text(OLD)
        self._authorities = {"both": old + new, "new": new}
        self._old.ca.write_bytes(old + new)         # what this test itself looks with
        self.cluster = LocalCluster(3, authority=self._old)
        self._old.ca.write_bytes(old)
        stack.enter_context(self.cluster)
        self.cluster.wait_for_leader()
        with Client(self.cluster.servers, tls=str(self.ca)) as operator:
            operator.set_user("programs", "admin,put,get,queue", OLD)
        self.cluster.wait_until_level()             # a follower knows users when it has applied their entries

    @property
    def access(self) -> dict[str, Any]:
        return {"tls": str(self.ca), "user": "programs", "secret_file": str(self.secret)}

    def rotate(self) -> None:
        """Replace the authority in three steps, then the secret; nodes are notified of each by SIGHUP."""
        self._trust("both")
        replace(self.ca, self._authorities["both"])
        for name in self.cluster.names:
            self._new.node(name)
        self._hang_up()
        self._trust("new")
        replace(self.ca, self._authorities["new"])
        with Client(self.cluster.servers, tls=str(self.ca)) as operator:
            operator.set_user("programs", "admin,put,get,queue", NEW)
        replace(self.secret, NEW.encode())

    def roll(self) -> None:
        """Restart one node after the other."""
        for name in self.cluster.names:
            self.cluster.terminate(name)
            self.cluster.restart(name)
            self.cluster.wait_for_leader()
            self.cluster.wait_until_level()

    def _trust(self, whom: str) -> None:
        self._old.ca.write_bytes(self._authorities[whom])
        self._hang_up()

    def _hang_up(self) -> None:
        for name in self.cluster.names:
            start = len(self.cluster.logs(name))
            self.cluster.hang_up(name)
            self.cluster.wait_until_logged(name, "certificates reloaded", start)


def replace(file: Path, content: bytes) -> None:
    """Replace files as programs that renew certificates do."""
    other = file.with_suffix(".next")
    other.write_bytes(content)
    os.replace(other, file)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with ExitStack() as stack:
        yield Place(tmp_path, stack)


def test_programs_that_stay_go_on(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CA", str(place.ca))
    monkeypatch.setenv("SECRET", str(place.secret))
    servers = place.cluster.servers
    address = f"{HOST}:{free_ports(1)[0]}"
    heard: list[str] = []

    def hear() -> None:
        events = client.events("PUT", "told_*")
        while True:
            try:
                for event in events:
                    heard.append(event.name)
            except EventsLost:          # no node has those of before its restart
                continue
            except ClientClosed:
                return

    with ExitStack() as stack:
        client = stack.enter_context(Client(servers, **place.access))
        asynchronous: Any = LoopClient(servers, **place.access)
        stack.callback(asynchronous.stop)
        worker = stack.enter_context(Worker(tmp_path, ",".join(servers), APP, "-c", "1"))
        log = stack.enter_context((tmp_path / "proxy").open("wb"))
        proxy = subprocess.Popen(
            [BIN / "sockpq-beanstalkd", "--listen", address, "--servers", ",".join(servers), "--ca", place.ca,
             "--user", "programs", "--secret-file", place.secret], stderr=log)
        stack.callback(proxy.wait)
        stack.callback(proxy.kill)
        listening = threading.Thread(target=hear, daemon=True)
        listening.start()
        until(lambda: b"listening" in (tmp_path / "proxy").read_bytes())
        beanstalk = stack.enter_context(BeanstalkClient(address, "tube"))

        def use(time: str) -> None:
            """Check that every program works, by letting it do something."""
            client.put("work", time)
            asynchronous.put(f"told_{time}", b"x")
            beanstalk.send("put 0 0 60 1\r\nx")
            assert beanstalk.line().startswith("INSERTED ")
            until(lambda: time in worker.record and f"told_{time}" in heard, lambda: worker.text)
            with client.get(f"told_{time}", expire=60, wait=PATIENCE_S) as job:     # type: ignore[union-attr]
                assert job

        use("before")
        place.rotate()
        use("rotated")
        place.roll()
        use("restarted")
        assert client.queue_stat("tube")["ready"] == 3
        assert proxy.poll() is None
