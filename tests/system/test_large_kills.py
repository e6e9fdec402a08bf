"""Leaders die while their own and other disks write large jobs: each acknowledged one is there, once."""

from __future__ import annotations

import random
from concurrent.futures import Future, ThreadPoolExecutor
from hashlib import blake2b

import sockpq

from devcluster.cluster import LocalCluster
from tests.waiting import until

WRITERS = 3
JOBS = 40
KILLS = 4
CALL_S = 240.0              # a safety limit: on a busy machine an election and a megabyte take their time
BYTES = (250 << 10, 2 << 20)        # around where a leader begins to sync beside its loop, and above


def bodies(writer: int) -> list[bytes]:
    draw = random.Random(writer)
    return [b"%d %d " % (writer, number) + draw.randbytes(draw.randint(*BYTES)) for number in range(JOBS)]


def ended(writers: list[Future[None]]) -> bool:
    """Return whether one has ended; raises its error."""
    return any(writing.result() is None for writing in writers if writing.done())


def digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()


def test_large_jobs_survive_the_death_of_leaders() -> None:
    with LocalCluster(3) as cluster:
        put: list[bytes] = []

        def write(writer: int) -> None:
            with sockpq.Client(cluster.servers, timeout=CALL_S) as client:
                for body in bodies(writer):
                    client.put("large", body)
                    put.append(digest(body))

        with ThreadPoolExecutor() as pool:
            writers = [pool.submit(write, number) for number in range(WRITERS)]
            for kill in range(1, KILLS + 1):
                enough = kill * WRITERS * JOBS // (KILLS + 1)
                until(lambda enough=enough: len(put) >= enough or ended(writers), seconds=CALL_S)
                leader = cluster.wait_for_leader()
                cluster.kill(leader)
                cluster.restart(leader)
                cluster.wait_until_level()
            for writing in writers:
                writing.result()
        found = []
        with sockpq.Client(cluster.servers, timeout=CALL_S) as client:
            while (job := client.get("large", expire=600)) is not None:
                found.append(digest(job.data))
                client.done(job.id)
        assert sorted(found) == sorted(put)
        assert len(put) == WRITERS * JOBS
