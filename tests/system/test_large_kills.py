"""Leaders die while their disks, and those of the others, write large jobs: each acknowledged one is there, once."""

from __future__ import annotations

import random
import threading
from hashlib import blake2b

import sockpq

from devcluster.cluster import LocalCluster

WRITERS = 3
JOBS = 40
KILLS = 4
BYTES = (250 << 10, 2 << 20)        # around where a leader begins to sync beside its loop, and above


def bodies(writer: int) -> list[bytes]:
    draw = random.Random(writer)
    return [b"%d %d " % (writer, number) + draw.randbytes(draw.randint(*BYTES)) for number in range(JOBS)]


def digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()


def test_large_jobs_survive_the_death_of_leaders() -> None:
    with LocalCluster(3) as cluster:
        put: list[bytes] = []

        def write(writer: int) -> None:
            with sockpq.Client(cluster.servers, timeout=60) as client:
                for body in bodies(writer):
                    client.put("large", body)
                    put.append(digest(body))

        writers = [threading.Thread(target=write, args=(number,)) for number in range(WRITERS)]
        for writer in writers:
            writer.start()
        for kill in range(1, KILLS + 1):
            while len(put) < kill * WRITERS * JOBS // (KILLS + 1):
                assert any(writer.is_alive() for writer in writers)
                threading.Event().wait(0.01)
            leader = cluster.leader()
            cluster.kill(leader)
            cluster.restart(leader)
            cluster.wait_until_level()
        for writer in writers:
            writer.join(120)
        found = []
        with sockpq.Client(cluster.servers, timeout=60) as client:
            while (job := client.get("large", expire=600)) is not None:
                found.append(digest(job.data))
                client.done(job.id)
        assert sorted(found) == sorted(put)
        assert len(put) == WRITERS * JOBS
