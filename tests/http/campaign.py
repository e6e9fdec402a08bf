"""Requests with an Idempotency-Key while leaders and instances are killed: each is executed once.

    python -m tests.http.campaign --requests 20000

Three nodes, two instances of sockpq-http as processes. Threads put jobs, alone (DEDUP and one marker) and into two
queues (two markers), each with a key of its own; a request that fails or gets no answer is repeated at the other
instance, and some are repeated although they were answered. Each few seconds the leader is killed, and sometimes an
instance. At the end every queue has each job once.
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sockpq import Client

from devcluster.cluster import LocalCluster
from tests.http.test_program import answers, free_port
from tests.waiting import PATIENCE_S, until

PROGRAM = Path(sys.executable).parent / "sockpq-http"
THREADS = 16
KILL_EACH_S = 5.0
AGAIN = 0.05            # this share of requests is repeated although it was answered
ANSWER_S = 60.0
QUEUES = ("one", "left", "right")


class Instances:
    """Two instances of the program; one may be killed and started again."""

    def __init__(self, servers: str) -> None:
        self._servers = servers
        self.ports = [free_port(), free_port()]
        self._processes = [self._start(port) for port in self.ports]

    def __enter__(self) -> Instances:
        for port in self.ports:
            until(lambda port=port: answers(f"http://127.0.0.1:{port}"), "it is ready")     # type: ignore[misc]
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.kill()
            process.wait()

    def kill(self, which: int) -> None:
        """Kill one and start it again."""
        self._processes[which].kill()
        self._processes[which].wait()
        self._processes[which] = self._start(self.ports[which])

    def _start(self, port: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [PROGRAM, "serve", "--listen", f"127.0.0.1:{port}", "--servers", self._servers],
            stderr=subprocess.DEVNULL,
        )


class Requests:
    """The requests of one thread, with a connection to each instance."""

    def __init__(self, ports: list[int], counts: Counter[str]) -> None:
        self._ports = ports
        self._counts = counts
        self._connections: dict[int, http.client.HTTPConnection] = {}

    def put(self, number: int) -> float:
        """Put a job, however often that takes; returns how long it took in seconds."""
        begun = time.monotonic()
        instance = number % 2
        while not self._once(number, instance):
            instance = 1 - instance
            self._counts["repeated"] += 1
        took = time.monotonic() - begun
        if random.random() < AGAIN:
            self._counts["repeated although answered"] += self._once(number, 1 - instance)
        return took

    def _once(self, number: int, instance: int) -> bool:
        single = number % 4 != 0
        path = "/v1/queues/one/jobs" if single else "/v1/jobs"
        body = {"text": str(number)} if single else {"text": str(number), "queues": ["left", "right"]}
        try:
            connection = self._connection(instance)
            connection.request("POST", path, json.dumps(body), {
                "Content-Type": "application/json", "Idempotency-Key": f"request-{number}",
            })
            answer = connection.getresponse()
            data = answer.read()
        except (OSError, http.client.HTTPException):
            self._connections.pop(instance).close()
            time.sleep(0.01)
            return False
        self._counts[f"status {answer.status}"] += 1
        if answer.status not in (201, 502, 503, 504) or b"Queue Full" in data:
            raise AssertionError(f"{answer.status} {data!r}")
        return answer.status == 201

    def _connection(self, instance: int) -> http.client.HTTPConnection:
        if instance not in self._connections:
            self._connections[instance] = http.client.HTTPConnection(
                "127.0.0.1", self._ports[instance], timeout=ANSWER_S
            )
        return self._connections[instance]


def kill_leaders(cluster: LocalCluster, instances: Instances, ended: threading.Event, counts: Counter[str]) -> None:
    """Kill the leader every few seconds, and now and then an instance."""
    while not ended.wait(KILL_EACH_S):
        leader = cluster.wait_for_leader(PATIENCE_S)
        cluster.kill(leader)
        counts["leaders killed"] += 1
        if counts["leaders killed"] % 3 == 0:
            instances.kill(counts["leaders killed"] // 3 % 2)
            counts["instances killed"] += 1
        cluster.wait_for_leader(PATIENCE_S)
        cluster.restart(leader, wait=False)


def run(requests: int) -> Counter[str]:
    """Run the campaign; returns what was counted. Raises AssertionError."""
    counts: Counter[str] = Counter()
    with LocalCluster(3) as cluster, Instances(",".join(cluster.servers)) as instances:
        with Client(cluster.servers, timeout=PATIENCE_S) as client:
            client.queue_create("one", dedup_max=2 * requests)      # without settings it remembers 10,000 keys
        ended = threading.Event()
        killer = threading.Thread(target=kill_leaders, args=(cluster, instances, ended, counts))
        killer.start()
        local = threading.local()

        def put(number: int) -> float:
            if not hasattr(local, "requests"):
                local.requests = Requests(instances.ports, counts)
            took: float = local.requests.put(number)
            return took

        try:
            with ThreadPoolExecutor(THREADS) as pool:
                took = sorted(pool.map(put, range(requests)))
        finally:
            ended.set()
            killer.join()
        counts["longest request, ms"] = round(took[-1] * 1000)
        counts["median request, ms"] = round(took[len(took) // 2] * 1000)
        check(cluster, requests)
    return counts


def check(cluster: LocalCluster, requests: int) -> None:
    """Compare the queues with the requests. Raises AssertionError."""
    wanted = {
        "one": {str(number) for number in range(requests) if number % 4},
        "left": {str(number) for number in range(0, requests, 4)},
        "right": {str(number) for number in range(0, requests, 4)},
    }
    with Client(cluster.servers, timeout=PATIENCE_S) as client:
        for queue in QUEUES:
            found: list[str] = []
            while jobs := client.get_many(1000, queue, expire=3600):
                found += [job.text for job in jobs]
            doubled = [text for text, times in Counter(found).items() if times > 1]
            assert not doubled, f"{queue} has twice: {doubled[:10]}"
            lost = wanted[queue] - set(found)
            assert not lost, f"{queue} lacks: {sorted(lost)[:10]}"
            assert len(found) == len(wanted[queue]), queue


def main() -> None:
    """Run it and print what was counted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=20_000)
    given = parser.parse_args()
    for name, count in sorted(run(given.requests).items()):
        print(f"{name}: {count}")
    print(f"{given.requests} requests, each executed once")


if __name__ == "__main__":
    main()
