"""A rolling upgrade to a release of a higher feature level, and the way back: nobody stops, and no call fails.

The next release is next_release.py. Its nodes and those of this program are real processes with clients at work.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import threading
from collections.abc import Iterator

import msgspec
import pytest
import sockpq

from devcluster.cluster import LocalCluster
from tests.waiting import until
from tests.wire import Wire

NEXT = (sys.executable, "-m", "tests.upgrade.next_release")
HELD_BACK = {"SOCKPQD_RAFT_FEATURE_LEVEL_MAX": "2"}
CALL_S = 60.0
SEEDS = 8                   # simulated clusters
HEAD_AT = 12                # in a snapshot: behind its magic and its format
FIELDS = 19                 # of the head at the first level, its name included
OLDER = (False, "400 Bad Command", "400 Bad Arguments")         # what a leader of this release answers
HELD = (False, "501 Not Yet", "501 Not Yet")                    # and one of the next, at the level of this one
NEWER = (True, "200 OK", "404 Job Not Found")
ELSEWHERE = {"500", "503"}  # another node leads by now, or none


class Rolling(LocalCluster):
    """A cluster whose nodes can be given another release."""

    def replace(self, name: str, *, newer: bool, held_back: bool = False) -> None:
        """Stop this node and start the other release there; then let another one lead, if none had to yet."""
        led = self.wait_for_leader() == name
        assert self.terminate(name) == 0
        self.install(name, newer=newer, held_back=held_back)
        self.restart(name)
        self.wait_until_level()
        if not led:
            assert (self.say(self.wait_for_leader(), "CLUSTER TRANSFER", CALL_S) or "").startswith("200 OK")
            self.wait_until_level()

    def install(self, name: str, *, newer: bool, held_back: bool = False) -> None:
        """Install what is started next on this node, which does not run."""
        self.run_by(name, *NEXT if newer else ())
        self._nodes[name].environment = HELD_BACK if held_back else {}

    def levels(self) -> set[tuple[int | None, int | None]]:
        """Return the levels that the nodes know, and the level of the cluster, as the leader has it."""
        with sockpq.Client([self.server(self.wait_for_leader())]) as client:
            return {(node.level, node.cluster_level) for node in client.cluster_status()}

    def ask_for_news(self) -> tuple[bool, str, str]:
        """Return whether the leader lists the new command, and its answers to it and to the new option."""
        while True:
            wire = Wire(self.server(self.wait_for_leader()), CALL_S)
            try:
                wire.send("CAPS")
                listed = b"poke\n" in wire.exactly(int(wire.line().split()[2]))
                wire.send("POKE poked")
                poked = wire.line()
                wire.send("LATER 1 QUIET")          # there is no such job
                later = wire.line().partition(":")[0]
            finally:
                wire.close()
            if not {poked[:3], later[:3]} & ELSEWHERE:
                return listed, poked, later

    def write_snapshot(self, name: str) -> None:
        """Let this node write a snapshot, from which it is started next."""
        until(lambda: (self.say(name, "CLUSTER SNAPSHOT", CALL_S) or "").startswith("200 OK"))

    def pokes_in_snapshot(self, name: str) -> int | None:
        """Return the number of pokes in the state of this node; None: the field is not there."""
        state = io.BytesIO()
        with sockpq.Client(self.servers, timeout=CALL_S) as client:
            client.snapshot_into(state, server=self.server(name))
        data = state.getvalue()
        length = int.from_bytes(data[HEAD_AT:HEAD_AT + 4], "big")
        head = msgspec.msgpack.decode(data[HEAD_AT + 4:HEAD_AT + 4 + length])
        return int(head[FIELDS]) if len(head) > FIELDS else None


class Worker(threading.Thread):
    """Puts a job, takes it and reports it done, again and again, until it is stopped or a call fails."""

    def __init__(self, servers: list[str]) -> None:
        super().__init__(daemon=True)
        self._servers = servers
        self._stopping = threading.Event()
        self.error: Exception | None = None
        self.calls = 0

    def run(self) -> None:
        try:
            with sockpq.Client(self._servers, timeout=CALL_S) as client:
                while not self._stopping.is_set():
                    client.put("work", b"%d" % self.calls)
                    job = client.get("work")
                    assert job is not None
                    assert job.data == b"%d" % self.calls
                    job.done()
                    self.calls += 1
                    self._stopping.wait(0.02)
        except Exception as error:
            self.error = error

    def finish(self) -> int:
        """Return how often it has worked; raises its error."""
        self._stopping.set()
        self.join(2 * CALL_S)
        if self.error is not None:
            raise self.error
        return self.calls


@pytest.fixture
def cluster() -> Iterator[Rolling]:
    with Rolling() as cluster:
        yield cluster


def test_a_rolling_upgrade_and_the_way_back(cluster: Rolling) -> None:
    worker = Worker(cluster.servers)
    worker.start()
    for name in cluster.names:
        cluster.replace(name, newer=True, held_back=True)
        assert cluster.ask_for_news() in (OLDER, HELD)
    assert cluster.levels() == {(3, 2)}
    assert cluster.ask_for_news() == HELD
    for name in cluster.names:
        assert cluster.pokes_in_snapshot(name) is None
        cluster.write_snapshot(name)
    for name in cluster.names:
        cluster.replace(name, newer=False)
    assert cluster.levels() == {(2, 2)}
    assert cluster.ask_for_news() == OLDER
    for name in cluster.names:
        assert {level for _, level in cluster.levels()} == {2}
        cluster.replace(name, newer=True)
    cluster.wait_until(lambda views: all(
        (node.level, node.cluster_level) == (3, 3) for view in views for node in view.nodes), "the level is raised")
    assert cluster.ask_for_news() == NEWER
    for name in cluster.names:
        cluster.wait_until_logged(name, " was poked, ")
    assert worker.finish() > 10
    assert all(cluster.running(name) for name in cluster.names)

    late = next(name for name in cluster.names if name != cluster.wait_for_leader())
    cluster.write_snapshot(late)
    pokes = cluster.pokes_in_snapshot(late)
    assert pokes
    cluster.kill(late)
    cluster.restart(late)
    assert cluster.pokes_in_snapshot(late) == pokes
    assert cluster.ask_for_news() == NEWER
    until(lambda: (cluster.pokes_in_snapshot(late) or 0) > pokes)

    with sockpq.Client(cluster.servers) as client:
        state = client.snapshot()
    refused = pytest.raises(sockpq.NotSupported, match="501")
    with LocalCluster(1) as older, sockpq.Client(older.servers) as client, refused:
        client.clone(state)

    assert cluster.terminate(late) == 0
    cluster.wipe(late)
    cluster.install(late, newer=False)
    cluster.restart(late)
    cluster.wait_until_logged(late, f"start a newer version of sockpqd on {late}")
    assert cluster.ask_for_news() == NEWER


def test_simulated_upgrades_and_ways_back() -> None:
    """Nobody is given what its release does not know: an operation, a field, a message; states stay equal."""
    done = subprocess.run([*NEXT, "sim", str(SEEDS)], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["failures"] == {}
    for what in ("levels raised", "taken back", "pokes", "quiet", "pokes heard of"):
        assert found["seen"][what] > 0, what
