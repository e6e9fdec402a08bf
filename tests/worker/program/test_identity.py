"""A pqworker whose cluster was replaced by another one on the same ports ends, and ends no job there."""

from __future__ import annotations

from pathlib import Path

from sockpq import Client

from devcluster.cluster import LocalCluster
from tests.replaced import replace
from tests.worker.program.running import WAIT_S, Worker

HOLD = '''
@app.handler("q")
def hold(job):
    record("begin", job.id)
    while not os.path.exists("over"):
        time.sleep(0.02)
    record("end", job.id)
'''


def test_it_ends_and_what_it_had_taken_is_not_ended_there(tmp_path: Path) -> None:
    with LocalCluster(1) as cluster:
        server = cluster.servers[0]
        with Client(server) as client:
            mine = client.cluster_id().id
            client.put("q", b"ours")
        with Worker(tmp_path, server, HOLD, "-c", "1") as worker:
            worker.until(lambda: len(worker.record) == 1)
            replace(cluster)
            with Client(server) as stranger:
                other = stranger.cluster_id().id
                stranger.put("q", b"theirs")
                theirs = stranger.get("q")
                assert theirs
                assert worker.record == [f"begin {theirs.id}"], "the two jobs have the same number"
                (tmp_path / "over").touch()
                assert worker.process.wait(WAIT_S) == 1, worker.text
                assert stranger.total("q").running == 1
                stranger.put("q", b"more")
                assert worker.record == [f"begin {theirs.id}", f"end {theirs.id}"]
                assert stranger.workers() == []
    last = worker.text.splitlines()[-1]
    assert last.startswith("pqworker: ")
    assert all(part in last for part in (str(mine), str(other), server)), worker.text
