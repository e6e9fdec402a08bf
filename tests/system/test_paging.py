"""A budget for memory so small that nearly all jobs are on the disk: none is lost, and each comes in its order."""

from __future__ import annotations

import time
import urllib.request
from functools import partial
from pathlib import Path

import sockpq
from click.testing import CliRunner

from devcluster.cluster import LocalCluster
from tests.system import paged_storage
from tests.waiting import until
from tests.wire import Wire

HOT_BYTES = 300_000
JOBS = 12_000
AT_ONCE = 1000
BODY_BYTES = 300            # so that the pages are in files, and not all in their buffer
LARGE_JOBS, LARGE_BYTES, LARGE_AT_ONCE = 1000, 9000, 100
PATIENCE_S = 60.0
LIMITS = {"limits": {"hot_bytes": HOT_BYTES}}


def fill(cluster: LocalCluster, first: int, count: int) -> None:
    """Put jobs that contain their number."""
    with Wire(cluster.server(cluster.wait_for_leader()), PATIENCE_S) as wire:
        for start in range(first, first + count, AT_ONCE):
            numbers = range(start, start + AT_ONCE)
            puts = b"".join(b"q 0 %d\r\n%0*d" % (BODY_BYTES, BODY_BYTES, number) for number in numbers)
            assert wire.say(f"PUTS {AT_ONCE}", puts) == f"200 OK {AT_ONCE}"
            for _ in range(AT_ONCE):
                assert wire.line() == "200 OK"


def drain(cluster: LocalCluster, count: int) -> list[int]:
    """Finish the next jobs and return their numbers."""
    found: list[int] = []
    with sockpq.Client(cluster.servers, timeout=PATIENCE_S) as client:
        while len(found) < count:
            jobs = client.get_many(min(500, count - len(found)), "q", expire=600)
            assert jobs, "jobs are missing"
            found += [int(job.data) for job in jobs]
            client.done_many(jobs)
    return found


def large(number: int) -> bytes:
    """Return a large body that contains its number."""
    return (b"%d:" % number).ljust(LARGE_BYTES, b"x")


def fill_large(cluster: LocalCluster) -> None:
    """Put jobs with keys and large bodies, the odd ones delayed until tomorrow."""
    with Wire(cluster.server(cluster.wait_for_leader()), PATIENCE_S) as wire:
        for start in range(0, LARGE_JOBS, LARGE_AT_ONCE):
            puts = b"".join(
                b"%s 0 %d%s KEY k%d\r\n%s" % (
                    b"late" if number % 2 else b"q", LARGE_BYTES, b" DELAY 86400" if number % 2 else b"", number,
                    large(number))
                for number in range(start, start + LARGE_AT_ONCE))
            assert wire.say(f"PUTS {LARGE_AT_ONCE}", puts) == f"200 OK {LARGE_AT_ONCE}"
            for _ in range(LARGE_AT_ONCE):
                assert wire.line() == "200 OK"


def drain_large(cluster: LocalCluster, queue: str) -> list[int]:
    """Check and finish the jobs of a queue; returns their numbers."""
    found: list[int] = []
    with sockpq.Client(cluster.servers, timeout=PATIENCE_S) as client:
        while jobs := client.get_many(100, queue, expire=600):
            numbers = [int(job.data.partition(b":")[0]) for job in jobs]
            assert [job.data for job in jobs] == [large(number) for number in numbers]
            found += numbers
            client.done_many(jobs)
    return found


def metric(cluster: LocalCluster, node: str, name: str) -> float:
    """Return a metric of one node."""
    with urllib.request.urlopen(f"http://{cluster.http(node)}/metrics", timeout=PATIENCE_S) as answer:
        for line in answer.read().decode().splitlines():
            if line.startswith(f"sockpqd_{name} "):
                return float(line.split()[1])
    raise AssertionError(f"no metric {name}")


def wait_until_paged(cluster: LocalCluster, node: str, least: float, name: str = "paged_jobs") -> None:
    """Wait until this many jobs of the node are on its disk: it moves a few there in each turn."""
    until(lambda: metric(cluster, node, name) > least)


def agree(cluster: LocalCluster, name: str, queues: tuple[str, ...]) -> bool:
    """Return whether a node's figures of its queues add up to its metrics; not while it is paging."""
    with sockpq.Client(cluster.servers) as client:
        told = [client.queue_stat(queue, server=cluster.server(name)) for queue in queues]
    jobs, data_bytes = (sum(one[key] for one in told) for key in ("on_disk", "on_disk_bytes"))
    return (jobs, data_bytes) == (metric(cluster, name, "paged_jobs"), metric(cluster, name, "paged_data_bytes"))


def whole_bodies(cluster: LocalCluster, name: str) -> bool:
    """Return whether the bodies on the node's disk are LARGE_BYTES each; not while it is paging."""
    return metric(cluster, name, "paged_body_bytes") == metric(cluster, name, "paged_bodies") * LARGE_BYTES


def hashes(cluster: LocalCluster) -> set[str]:
    """Return what the nodes answer to CLUSTER HASH, once all have executed the same entry."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        answers = {cluster.say(name, "CLUSTER HASH", PATIENCE_S) or "" for name in cluster.names}
        if len({answer.split()[2] for answer in answers}) == 1:
            return answers
        time.sleep(0.05)
    raise AssertionError(f"the nodes do not become level: {answers}")


def page_files(cluster: LocalCluster, node: str) -> list[Path]:
    """Return the files of pages of one node."""
    return sorted((cluster.data_dir(node) / "pages").glob("pages-*"))


def damage_pages(cluster: LocalCluster, node: str) -> None:
    """Change all bytes of all pages of one node."""
    for path in page_files(cluster, node):
        with path.open("r+b") as file:
            data = file.read()
            file.seek(0)
            file.write(bytes(byte ^ 1 for byte in data))


def test_jobs_on_the_disk_survive_kills_snapshots_and_transfers() -> None:
    with LocalCluster(3, LIMITS) as cluster:
        fill(cluster, 0, JOBS)
        cluster.wait_until_level()
        for name in cluster.names:
            wait_until_paged(cluster, name, JOBS * 0.8)
            assert metric(cluster, name, "hot_bytes") < 3 * HOT_BYTES
            assert 0 < metric(cluster, name, "page_live_bytes") <= metric(cluster, name, "page_file_bytes") + (1 << 20)
            until(partial(agree, cluster, name, ("q",)))
        assert drain(cluster, 1000) == list(range(1000))
        leader = cluster.wait_for_leader()
        for name in cluster.names:
            answer = cluster.say(name, "CLUSTER SNAPSHOT", PATIENCE_S)
            assert answer is not None
            assert answer.startswith("200 OK"), cluster.logs(name)[-2000:]
            assert metric(cluster, name, "snapshot_bytes") < JOBS * BODY_BYTES / 2
        cluster.kill(leader)
        fill(cluster, JOBS, AT_ONCE)
        cluster.restart(leader)
        cluster.wait_until_level()
        empty = next(name for name in cluster.names if name != cluster.wait_for_leader())
        cluster.kill(empty)
        cluster.wipe(empty)
        cluster.restart(empty)
        cluster.wait_until_level()
        wait_until_paged(cluster, empty, JOBS * 0.8)
        for name in cluster.names:
            cluster.kill(name)
        for name in cluster.names:
            cluster.restart(name, wait=False)
        cluster.wait_until_level()
        assert drain(cluster, JOBS) == list(range(1000, JOBS + AT_ONCE))
        assert len(hashes(cluster)) == 1


def test_delayed_jobs_on_the_disk_survive_kills_and_come_in_the_order_of_their_times() -> None:
    tomorrow_s = int(time.time()) + 86_400
    due_s = {number: tomorrow_s + number * 7919 % JOBS for number in range(JOBS)}       # no two at the same time
    with LocalCluster(3, LIMITS) as cluster:
        with Wire(cluster.server(cluster.wait_for_leader()), PATIENCE_S) as wire:
            for start in range(0, JOBS, AT_ONCE):
                puts = b"".join(b"q 0 %d AT %d\r\n%0*d" % (BODY_BYTES, due_s[number], BODY_BYTES, number)
                                for number in range(start, start + AT_ONCE))
                assert wire.say(f"PUTS {AT_ONCE}", puts) == f"200 OK {AT_ONCE}"
                for _ in range(AT_ONCE):
                    assert wire.line() == "200 OK"
        cluster.wait_until_level()
        for name in cluster.names:
            wait_until_paged(cluster, name, JOBS * 0.8)
            answer = cluster.say(name, "CLUSTER SNAPSHOT", PATIENCE_S)
            assert answer is not None
            assert answer.startswith("200 OK"), cluster.logs(name)[-2000:]
            assert metric(cluster, name, "snapshot_bytes") < JOBS * BODY_BYTES / 2
        for name in cluster.names:
            cluster.kill(name)
        for name in cluster.names:
            cluster.restart(name, wait=False)
        cluster.wait_until_level()
        for name in cluster.names:
            wait_until_paged(cluster, name, JOBS * 0.8)
        with Wire(cluster.server(cluster.wait_for_leader()), PATIENCE_S) as wire:
            assert wire.say(f"KICK q {JOBS} HERE") == f"200 OK {JOBS}"
        assert drain(cluster, JOBS) == sorted(range(JOBS), key=due_s.__getitem__)
        assert len(hashes(cluster)) == 1


def test_a_damaged_page_stops_the_node_which_is_whole_when_started_again() -> None:
    with LocalCluster(3, LIMITS) as cluster:
        fill(cluster, 0, JOBS)
        cluster.wait_until_level()
        leader = cluster.wait_for_leader()
        damage_pages(cluster, leader)
        assert drain(cluster, JOBS) == list(range(JOBS))        # another one leads, which has its own files
        cluster.wait_until_logged(leader, "is not as it was written. This node stops")
        cluster.kill(leader)                                    # it has ended
        cluster.restart(leader)
        cluster.wait_until_level()
        assert len(hashes(cluster)) == 1


def damage_named_pages(cluster: LocalCluster, logged: str) -> None:
    """Damage the pages that a follower's snapshot names; it says so at its next start, and is level nevertheless."""
    victim = next(name for name in cluster.names if name != cluster.wait_for_leader())
    answer = cluster.say(victim, "CLUSTER SNAPSHOT", PATIENCE_S)
    assert answer is not None
    assert answer.startswith("200 OK")
    cluster.kill(victim)
    damage_pages(cluster, victim)
    cluster.restart(victim, wait=False)
    cluster.wait_until_logged(victim, logged)
    cluster.wait_until_level()


def test_large_bodies_of_jobs_in_memory_survive_kills_snapshots_and_transfers() -> None:
    """All jobs have keys, so no page takes them as they are: some READY, some DELAYED, some running."""
    with LocalCluster(3, LIMITS) as cluster:
        fill_large(cluster)
        cluster.wait_until_level()
        for name in cluster.names:
            wait_until_paged(cluster, name, LARGE_JOBS * 0.8, "paged_bodies")
            until(partial(whole_bodies, cluster, name))
            assert metric(cluster, name, "hot_bytes") < 3 * HOT_BYTES
            until(partial(agree, cluster, name, ("q", "late")))
        with sockpq.Client(cluster.servers, timeout=PATIENCE_S) as client:
            running = client.get_many(100, "q", expire=600)
        assert [job.data for job in running] == [large(number) for number in range(0, 200, 2)]
        for name in cluster.names:
            answer = cluster.say(name, "CLUSTER SNAPSHOT", PATIENCE_S)
            assert answer is not None
            assert answer.startswith("200 OK"), cluster.logs(name)[-2000:]
            assert metric(cluster, name, "snapshot_bytes") < LARGE_JOBS * LARGE_BYTES / 5
        empty = next(name for name in cluster.names if name != cluster.wait_for_leader())
        cluster.kill(empty)
        cluster.wipe(empty)
        cluster.restart(empty)
        cluster.wait_until_level()
        for name in cluster.names:
            cluster.kill(name)
        for name in cluster.names:
            cluster.restart(name, wait=False)
        cluster.wait_until_level()
        for name in cluster.names:
            wait_until_paged(cluster, name, LARGE_JOBS * 0.8, "paged_bodies")
        with sockpq.Client(cluster.servers, timeout=PATIENCE_S) as client:
            client.done_many(running)
        with Wire(cluster.server(cluster.wait_for_leader()), PATIENCE_S) as wire:
            assert wire.say(f"KICK late {LARGE_JOBS} HERE") == f"200 OK {LARGE_JOBS // 2}"
        assert drain_large(cluster, "q") == list(range(200, LARGE_JOBS, 2))
        assert drain_large(cluster, "late") == list(range(1, LARGE_JOBS, 2))
        cluster.wait_until_level()
        assert len(hashes(cluster)) == 1
        for name in cluster.names:
            assert metric(cluster, name, "paged_bodies") == metric(cluster, name, "paged_body_bytes") == 0


def test_a_damaged_body_stops_the_node_which_is_whole_when_started_again() -> None:
    with LocalCluster(3, LIMITS) as cluster:
        fill_large(cluster)
        cluster.wait_until_level()
        damage_named_pages(cluster, "is not as it was written")
        leader = cluster.wait_for_leader()
        damage_pages(cluster, leader)
        assert drain_large(cluster, "q") == list(range(0, LARGE_JOBS, 2))
        cluster.wait_until_logged(leader, "is not as it was written. This node stops")
        cluster.kill(leader)                                    # it has ended
        cluster.restart(leader)
        cluster.wait_until_level()
        assert len(hashes(cluster)) == 1


def test_a_start_does_without_a_snapshot_that_names_damaged_pages() -> None:
    with LocalCluster(3, LIMITS) as cluster:
        fill(cluster, 0, JOBS)
        cluster.wait_until_level()
        damage_named_pages(cluster, "the page at 0 is not as it was written")
        assert len(hashes(cluster)) == 1
        assert drain(cluster, JOBS) == list(range(JOBS))


def test_jobs_outside_memory_are_all_there_after_a_start(tmp_path: Path) -> None:
    options = ["--jobs", "30000", "--hot-bytes", "2000000", "--directory", str(tmp_path)]
    ended = CliRunner().invoke(paged_storage.main, options)
    assert ended.exit_code == 0, ended.output
    assert "30,000 jobs put in" in ended.output
    assert "s: 30,000 jobs," in ended.output
    assert not [*tmp_path.iterdir()]
