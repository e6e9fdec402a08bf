"""Three real nodes, three pools, and all of these killed, frozen and cut off; what tasks do is recorded outside."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from sockpq import Client
from sockpq.worker.envelope import Envelope, JsonCodec

from devcluster.cluster import LocalCluster
from tests.chaos.machines.cluster import ProxiedCluster
from tests.chaos.pools.hand_outs import again_after_the_end, leases_lost, runs_of, two_at_a_time
from tests.chaos.pools.trio import Trio
from tests.chaos.proxies.proxies import Link
from tests.worker.program.running import Worker, all_gone, zombies

JOBS = 240
LONG = 24               # each so many-th task is longer than its lease
RUNS = 30
LEASE_S = 3
BEYOND_S = 1.6 * LEASE_S
STEP_S = 0.6
END_S = 120.0
QUEUES = ("once", "least", "cron")

APP = f'''
def work(label, seconds, transaction):
    words = label, current_job().id, os.getppid(), os.getpid()
    record("begin", *words, time.time())
    try:
        time.sleep(seconds)
        if transaction:
            with app.client.transaction() as t:
                t.put("out", label)
                t.done(current_job())
    finally:
        record("end", *words, time.time())

@app.handler("once", expire={LEASE_S}, tries=1000, backoff=(0.05, 0.2))
def once(job):
    work("once:" + job.text, 0.02, True)

@app.cron("* * * * *", name="minute", catch_up="all", expire={LEASE_S}, tries=1000, backoff=(0.05, 0.2))
def minute():
    work("cron:" + current_job().meta.key, 0.02, True)

@app.task("least", name="least", expire={LEASE_S}, tries=1000, backoff=(0.05, 0.2))
def least(number):
    work("least:" + str(number), 0.02 if number % {LONG} else {1.3 * LEASE_S}, False)
'''


class Ends:
    """The ends of hand-outs, as the servers report them, by the hand-outs' numbers."""

    def __init__(self, client: Client) -> None:
        self.by_hand_out: dict[int, str] = {}
        self._client = client
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="events")
        self._thread.start()

    def close(self) -> None:
        """Receive the remaining events, then stop."""
        self._over.set()
        self._thread.join()

    def _listen(self) -> None:
        position = None
        while True:
            last = self._over.is_set()
            events = self._client.events(("DONE", "LATER", "EXPIRED", "DEAD"), QUEUES, after=position, wait=0.5)
            for event in events:
                if event.id is not None:
                    self.by_hand_out[event.id] = event.type
            position = events.position
            if last:
                return


class Leader:
    """Faults of the serving node, one at a time."""

    def __init__(self, cluster: ProxiedCluster) -> None:
        self._cluster = cluster
        self._end: Callable[[], None] | None = None
        self._until = 0.0
        self._to_come = [self._frozen, self._cut_off, self._killed]
        self.done: list[str] = []

    def step(self) -> None:
        """End faults whose time is up; begin the next one some time later."""
        now = time.monotonic()
        if now < self._until:
            return
        if self._end:
            self._end()
            self._end, self._until = None, now + 1.5
        elif self._to_come:
            name = self._cluster.wait_for_leader()
            self._end, self._until = self._to_come.pop()(name), now + 2.5
            self.done.append(name)

    def finish(self) -> None:
        """End the fault in progress, if there is one."""
        if self._end:
            self._end()

    def _killed(self, name: str) -> Callable[[], None]:
        self._cluster.kill(name)
        return lambda: self._cluster.restart(name)

    def _frozen(self, name: str) -> Callable[[], None]:
        self._cluster.pause(name)
        return lambda: self._cluster.resume(name)

    def _cut_off(self, name: str) -> Callable[[], None]:
        links = self._cluster.between([name], [other for other in self._cluster.names if other != name])
        self._cluster.together(links, Link.silence)
        return lambda: self._cluster.together(links, Link.heal)


def put_all(client: Client) -> int:
    """Put the jobs; returns the time of the first periodic run."""
    client.put_many("once", [b"%d" % number for number in range(JOBS)])
    client.put_many("least", json=[{"task": "least", "args": [number], "kwargs": {}} for number in range(JOBS)])
    return put_first_run(client)


@pytest.mark.usefixtures("toxiproxy_server")
def test_no_effect_is_lost_with_transactions_none_comes_twice_and_never_two_work_on_one_lease(tmp_path: Path) -> None:
    draw = random.Random(24)
    with ProxiedCluster(3) as cluster, Client(cluster.servers) as client, ExitStack() as stack:
        trio = Trio(stack, tmp_path, cluster, APP, "-c", "2", "--prefetch", "2")
        healthy = str(trio.workers[0].process.pid)      # only its children are killed
        ends = Ends(client)
        stack.callback(ends.close)
        first = put_all(client)
        faults: list[Callable[[], object]] = [
            *[lambda: trio.kill_child(draw.randrange(3), draw)] * 8,
            *[lambda: trio.kill(1), lambda: trio.kill(2)],
            *[lambda: trio.freeze(1, BEYOND_S), lambda: trio.freeze(2, BEYOND_S)],
            *[lambda how=how: trio.cut_off(2, BEYOND_S, how) for how in ("silent", "lossy", "cut")],  # type: ignore[misc]
            *[lambda: trio.cut_off(1, BEYOND_S, "silent")],
        ]
        draw.shuffle(faults)
        leader = Leader(cluster)
        until = time.monotonic() + END_S
        while faults or len(leader.done) < 3:
            if faults and faults[-1]() is not False:    # else the pool is under another fault: later
                faults.pop()
            leader.step()
            trio.heal()
            time.sleep(STEP_S)
            assert time.monotonic() < until, (faults, leader.done)
        leader.finish()
        trio.heal(everything=True)
        wait_until_done(client, trio.workers)
        assert all_gone(list(trio.killed))
        assert [zombies(worker.process.pid) for worker in trio.workers] == [[], [], []]
        children = [child for worker in trio.workers for child in worker.children()]
        assert [worker.end(signal.SIGTERM) for worker in trio.workers] == [0, 0, 0]
        assert all_gone(children)
        assert client.running() == []
        ends.close()
        judge_effects(client, first)
        runs = runs_of((tmp_path / "record").read_text().splitlines(), trio.killed)
        told = ends.by_hand_out
        assert "EXPIRED" in told.values(), "no pool was away for longer than its leases: this proves nothing"
        assert {run.job for run in runs} >= {f"least:{number}" for number in range(JOBS)}       # at least once
        assert list(two_at_a_time(runs, told)) == []
        assert list(leases_lost(runs, told, [healthy])) == []
        assert list(again_after_the_end(runs, told)) == []
        assert len(runs) < 4 * JOBS         # faults are the exception


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
        for worker in workers:
            worker.until(lambda worker=worker: worker.log)      # type: ignore[misc]    # a quick one may have done all
        assert [worker.end(signal.SIGTERM) for worker in workers] == [0] * 10
        keys = [job.text for job in client.get_many(1000, "out", expire=60)]
        runs = [int(key.rpartition(".")[2]) for key in keys]
        assert sorted(runs) == list(range(first, max(runs) + 60, 60))
        waiting = [job.key for state in ("delayed", "ready") for job in client.peek_queue("cron", state, 9)]  # type: ignore[arg-type]
        assert waiting == [f"minute.{max(runs) + 60}"]


def put_first_run(client: Client) -> int:
    """Put a run that was due half an hour ago; returns its time."""
    first = (int(time.time()) // 60 - RUNS + 1) * 60
    told = {"at": first, "app": "app", "line": "* * * * *", "tz": "UTC", "catch_up": "all"}
    client.queue_config("cron", keep=86_400)
    body = Envelope("minute", [], {}, cron=told).encoded(JsonCodec())
    client.put("cron", body, key=f"minute.{first}", on_duplicate="ignore")
    return first


def wait_until_done(client: Client, workers: list[Worker]) -> None:
    """Wait until no job is left but the next periodic run."""
    end = time.monotonic() + END_S
    while True:
        found = {one.name: one for one in client.queues() if one.name in QUEUES}
        left = {name: (one.ready, one.running) for name, one in found.items()}
        delayed = sum(one.delayed for name, one in found.items() if name != "cron")
        if not delayed and all(counts == (0, 0) for counts in left.values()):
            return
        assert time.monotonic() < end, f"{left}, {delayed} delayed\n" + "\n".join(
            worker.text[-1500:] for worker in workers
        )
        time.sleep(0.1)


def judge_effects(client: Client, first: int) -> None:
    """Compare what came out with what was put."""
    out: Counter[str] = Counter()
    while taken := client.get_many(1000, "out", expire=60):
        out.update(job.text for job in taken)
        client.done_many(taken)
    assert max(out.values()) == 1
    assert {label for label in out if label.startswith("once:")} == {f"once:{number}" for number in range(JOBS)}
    runs = sorted(int(label.rpartition(".")[2]) for label in out if label.startswith("cron:"))
    assert runs == list(range(first, runs[-1] + 60, 60))                    # each minute, without a gap
    assert len(runs) >= RUNS
