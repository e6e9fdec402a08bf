"""Three real nodes, three pools, and all of these killed or frozen in turn; what tasks do is recorded outside."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from contextlib import ExitStack, suppress
from pathlib import Path

from sockpq import Client
from sockpq.worker.envelope import Envelope, JsonCodec

from devcluster.cluster import LocalCluster
from tests.worker.program.running import Worker, all_gone

JOBS = 250
RUNS = 30
LEASE_S = 2
FAULTS_S = 9.0
END_S = 90.0

APP = f'''
def effect(word):
    job = current_job()
    record(word, "begin", job.text if word == "once" else job.meta.key, time.time())
    time.sleep(0.02)
    with app.client.transaction() as t:
        t.put("out", word + " " + (job.text if word == "once" else job.meta.key))
        t.done(job)

@app.handler("once", expire={LEASE_S}, tries=1000, backoff=(0.05, 0.2))
def once(job):
    effect("once")

@app.cron("* * * * *", name="minute", catch_up="all", expire={LEASE_S}, tries=1000, backoff=(0.05, 0.2))
def minute():
    effect("cron")

@app.task("least", name="least", expire={LEASE_S}, tries=1000, backoff=(0.05, 0.2))
def least(number):
    record("least", "begin", number, time.time())
    time.sleep(0.02)
    record("least", "end", number, time.time())
'''


class Pools:
    """Three workers; one that is killed starts again."""

    def __init__(self, stack: ExitStack, folder: Path, servers: str) -> None:
        self._start = lambda: stack.enter_context(
            Worker(folder, servers, APP, "-c", "2", "--prefetch", "2", "--name", f"w{time.monotonic_ns()}")
        )
        self.workers = [self._start() for _ in range(3)]
        self.killed: list[int] = []         # children of pools that were killed
        self.frozen: list[tuple[float, Worker]] = []

    def kill(self, number: int) -> None:
        """SIGKILL; another one takes its place."""
        worker = self.workers[number]
        if any(worker is frozen for _, frozen in self.frozen):
            return
        self.killed += worker.children()
        worker.process.kill()
        worker.process.wait(20)
        self.workers[number] = self._start()

    def kill_child(self, number: int, draw: random.Random) -> None:
        """SIGKILL for one of its children."""
        children = self.workers[number].children()
        if children:
            with suppress(ProcessLookupError):
                os.kill(draw.choice(children), signal.SIGKILL)

    def freeze(self, number: int) -> None:
        """Beyond its leases."""
        worker = self.workers[number]
        if not any(worker is frozen for _, frozen in self.frozen):
            worker.process.send_signal(signal.SIGSTOP)
            self.frozen.append((time.monotonic() + 1.6 * LEASE_S, worker))

    def thaw(self, all_of_them: bool = False) -> None:
        """Those whose time has come go on."""
        for until, worker in list(self.frozen):
            if all_of_them or time.monotonic() >= until:
                worker.process.send_signal(signal.SIGCONT)
                self.frozen.remove((until, worker))


def put_all(client: Client) -> int:
    """The jobs; returns the time of the first periodic run."""
    client.put_many("once", [b"%d" % number for number in range(JOBS)])
    client.put_many("least", json=[{"task": "least", "args": [number], "kwargs": {}} for number in range(JOBS)])
    return put_first_run(client)


def test_no_effect_is_lost_and_with_transactions_none_comes_twice(tmp_path: Path) -> None:
    draw = random.Random(24)
    with LocalCluster(3) as cluster, ExitStack() as stack, Client(cluster.servers) as client:
        pools = Pools(stack, tmp_path, ",".join(cluster.servers))
        first = put_all(client)
        begun = time.monotonic()
        leader_killed = leader_frozen = ""
        while (elapsed := time.monotonic() - begun) < FAULTS_S:
            number = draw.randrange(3)
            action = draw.choice(["child", "child", "pool", "freeze"])
            if action == "child":
                pools.kill_child(number, draw)
            elif action == "pool":
                pools.kill(number)
            else:
                pools.freeze(number)
            if not leader_killed and elapsed > FAULTS_S / 3:
                leader_killed = cluster.wait_for_leader()
                cluster.kill(leader_killed)
                cluster.restart(leader_killed)
            elif not leader_frozen and elapsed > FAULTS_S * 2 / 3:
                leader_frozen = cluster.wait_for_leader()
                cluster.pause(leader_frozen)
            pools.thaw()
            time.sleep(0.5)
        cluster.resume(leader_frozen)
        pools.thaw(all_of_them=True)
        wait_until_done(client, pools)
        assert all_gone(pools.killed)
        children = [child for worker in pools.workers for child in worker.children()]
        assert [worker.end(signal.SIGTERM) for worker in pools.workers] == [0, 0, 0]
        assert all_gone(children)
        assert client.running() == []
        judge(client, (tmp_path / "record").read_text().splitlines(), first)


def test_each_periodic_run_is_one_with_ten_pools_and_leaders_killed(tmp_path: Path) -> None:
    app = '''
@app.cron("* * * * *", name="minute", catch_up="all", expire=2)
def minute():
    with app.client.transaction() as t:
        t.put("out", current_job().meta.key)
        t.done(current_job())
'''
    with LocalCluster(3) as cluster, ExitStack() as stack, Client(cluster.servers) as client:
        servers = ",".join(cluster.servers)
        first = put_first_run(client)
        workers = []
        for number in range(10):
            folder = tmp_path / str(number)
            folder.mkdir()
            workers.append(stack.enter_context(Worker(folder, servers, app, "-c", "1", "--pool", "threads")))
        for _ in range(2):
            done = client.total("out").jobs
            workers[0].until(lambda done=done: client.total("out").jobs >= min(done + 5, RUNS))   # type: ignore[misc]
            leader = cluster.wait_for_leader()
            cluster.kill(leader)
            cluster.restart(leader, wait=False)
        workers[0].until(lambda: client.total("out").jobs >= RUNS)
        assert [worker.end(signal.SIGTERM) for worker in workers] == [0] * 10
        keys = [job.text for job in client.get_many(1000, "out", expire=60)]
        runs = [int(key.rpartition(".")[2]) for key in keys]
        assert sorted(runs) == list(range(first, max(runs) + 60, 60))
        waiting = [job.key for state in ("delayed", "ready") for job in client.peek_queue("cron", state, 9)]  # type: ignore[arg-type]
        assert waiting == [f"minute.{max(runs) + 60}"]


def put_first_run(client: Client) -> int:
    """A run of half an hour ago; returns its time."""
    first = (int(time.time()) // 60 - RUNS + 1) * 60
    told = {"at": first, "app": "app", "line": "* * * * *", "tz": "UTC", "catch_up": "all"}
    client.queue_config("cron", keep=86_400)
    body = Envelope("minute", [], {}, cron=told).encoded(JsonCodec())
    client.put("cron", body, key=f"minute.{first}", on_duplicate="ignore")
    return first


def wait_until_done(client: Client, pools: Pools) -> None:
    """Until no job is left but the next periodic run."""
    end = time.monotonic() + END_S
    while True:
        left = {one.name: (one.ready, one.running) for one in client.queues() if one.name in ("once", "least", "cron")}
        delayed = sum(one.delayed for one in client.queues() if one.name in ("once", "least"))
        if not delayed and all(counts == (0, 0) for counts in left.values()):
            return
        assert time.monotonic() < end, f"{left}, {delayed} delayed\n" + "\n".join(
            worker.text[-1500:] for worker in pools.workers
        )
        time.sleep(0.1)


def judge(client: Client, record: list[str], first: int) -> None:
    """Compare what was recorded with what was put."""
    out: Counter[str] = Counter()
    while taken := client.get_many(1000, "out", expire=60):
        out.update(job.text for job in taken)
        client.done_many(taken)
    once = {key: count for key, count in out.items() if key.startswith("once ")}
    assert once == {f"once {number}": 1 for number in range(JOBS)}          # exactly once
    runs = sorted(int(key.rpartition(".")[2]) for key in out if key.startswith("cron "))
    assert runs == list(range(first, runs[-1] + 60, 60))                    # each minute, without a gap
    assert len(runs) >= RUNS
    assert max(out.values()) == 1
    words = [line.split() for line in record]
    ended = {line[2] for line in words if line[:2] == ["least", "end"]}
    assert ended == {str(number) for number in range(JOBS)}                 # at least once
    begins: dict[tuple[str, str], list[float]] = {}
    for line in words:
        if line[1] == "begin":
            begins.setdefault((line[0], line[2]), []).append(float(line[3]))
    assert sum(len(times) for times in begins.values()) < 4 * JOBS          # faults are the exception
