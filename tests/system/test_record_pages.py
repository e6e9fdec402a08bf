"""Records of ended jobs are on the disks of real nodes whose jobs are all in memory, and survive whatever these do."""

from __future__ import annotations

from pathlib import Path

import sockpq
from click.testing import CliRunner

from devcluster.cluster import LocalCluster
from tests.system import record_storage
from tests.system.test_paging import PATIENCE_S, hashes, metric, page_files
from tests.waiting import until

JOBS = 250
RESULT_BYTES = 8000         # so that the pages are in files, and not all in their buffer


def result_of(number: int) -> bytes:
    """Return the result of the job with this number."""
    return b"%d:" % number + bytes(RESULT_BYTES)


def finish(client: sockpq.Client, count: int) -> list[int]:
    """Put, take and finish this many jobs with results; returns their numbers."""
    numbers = []
    for _ in range(count):
        client.put("q", b"x", number=True)
        job = client.get("q", expire=600, meta=True)
        assert job is not None
        assert job.number is not None
        job.done(result=result_of(job.number))
        numbers.append(job.number)
    return numbers


def assert_results(cluster: LocalCluster, numbers: list[int]) -> None:
    """Check that each job has its result, and all nodes the same state."""
    with sockpq.Client(cluster.servers, timeout=PATIENCE_S) as client:
        for number in numbers:
            assert client.job_result(number) == result_of(number)
    cluster.wait_until_level()
    assert len(hashes(cluster)) == 1


def test_records_on_the_disk_survive_kills_snapshots_restores_and_transfers() -> None:
    with LocalCluster(3) as cluster, sockpq.Client(cluster.servers, timeout=PATIENCE_S) as client:
        client.put("other", b"x")
        cluster.wait_until_level()
        assert [page_files(cluster, name) for name in cluster.names] == [[], [], []]
        client.queue_config("q", retain=86_400)
        numbers = finish(client, JOBS)
        cluster.wait_until_level()
        for name in cluster.names:
            until(lambda name=name: len(page_files(cluster, name)) == 1)
            answer = cluster.say(name, "CLUSTER SNAPSHOT", PATIENCE_S)
            assert answer is not None
            assert answer.startswith("200 OK"), cluster.logs(name)[-2000:]
            assert metric(cluster, name, "snapshot_bytes") < JOBS * RESULT_BYTES / 5
        leader = cluster.wait_for_leader()
        cluster.kill(leader)
        numbers += finish(client, 50)
        cluster.restart(leader)
        cluster.wait_until_level()
        empty = next(name for name in cluster.names if name != cluster.wait_for_leader())
        cluster.kill(empty)
        cluster.wipe(empty)
        cluster.restart(empty)
        assert_results(cluster, numbers)
        until(lambda: len(page_files(cluster, empty)) == 1)
        for name in cluster.names:
            cluster.kill(name)
        for name in cluster.names:
            cluster.restart(name, wait=False)
        assert_results(cluster, numbers)
        backup = client.snapshot()
        finish(client, 5)
        client.clone(backup)
        assert_results(cluster, numbers)
        until(lambda: (
            cluster.say(cluster.wait_for_leader(), "QUEUE PURGE q ENDED", PATIENCE_S) or "").startswith("200 OK"))
        for name in cluster.names:
            until(lambda name=name: metric(cluster, name, "page_live_bytes") == 0)
        for _ in range(3):                      # what the kept snapshots name stays
            client.put("other", b"x")
            cluster.wait_until_level()
            for name in cluster.names:
                assert (cluster.say(name, "CLUSTER SNAPSHOT", PATIENCE_S) or "").startswith("200 OK")
        for name in cluster.names:
            until(lambda name=name: not page_files(cluster, name))


def test_many_records_are_kept_loaded_and_removed(tmp_path: Path) -> None:
    ended = CliRunner().invoke(record_storage.main, ["--records", "3000", "--directory", str(tmp_path)])
    assert ended.exit_code == 0, ended.output
    assert "removal_longest_s" in ended.output
    assert not [*tmp_path.iterdir()]
