"""Each way in which a worker or a child can end: no process stays, no zombie, and no job is lost or held."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress

import pytest
from sockpq import Client

from tests.waiting import PATIENCE_S, until
from tests.worker.program.conftest import Start
from tests.worker.program.running import Worker, all_gone, zombies

JOBS = 12
LEASE_S = 1

# Each job starts a process of its own, which must not be left behind either.
APP = f'''
import subprocess
@app.handler("q", expire={LEASE_S}, tries=50, backoff=(0, 0))
def work(job):
    child = subprocess.Popen(["sleep", "60"])
    record("begin", job.text, os.getpid(), child.pid)
    time.sleep(0.3)
    child.kill()
    child.wait()
    with app.client.transaction() as t:
        t.put("out", job.data)
        t.done(job)
'''


def kill_pool(worker: Worker, client: Client) -> int:
    worker.process.kill()
    return worker.process.wait(PATIENCE_S)


def kill_children(worker: Worker, client: Client) -> int:
    for child in worker.children():
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
    assert zombies(worker.process.pid) == []
    return worker.end(signal.SIGTERM)


def stop_from_anywhere(worker: Worker, client: Client) -> int:
    worker.until(lambda: bool(client.workers()))
    client.worker_set("ending", state="stop")
    return worker.process.wait(PATIENCE_S)


def signalled(*numbers: signal.Signals) -> Callable[[Worker, Client], int]:
    return lambda worker, client: worker.end(*numbers)


ENDS: dict[str, tuple[Callable[[Worker, Client], int], int]] = {
    "term": (signalled(signal.SIGTERM), 0),
    "int": (signalled(signal.SIGINT), 0),
    "twice": (signalled(signal.SIGTERM, signal.SIGTERM), 0),
    "quit": (signalled(signal.SIGQUIT), 0),
    "killed": (kill_pool, -signal.SIGKILL),
    "children killed": (kill_children, 0),
    "stopped from anywhere": (stop_from_anywhere, 0),
}


@pytest.mark.parametrize("way", ENDS)
def test_nothing_is_left_after(start: Start, client: Client, way: str) -> None:
    end, code = ENDS[way]
    worker = start(APP, "-c", "3", "--prefetch", "2", "--name", "ending").ready(3)
    client.put_many("q", [b"%d" % number for number in range(JOBS)])
    worker.until(lambda: len(worker.record) >= 2)
    children = worker.children()
    assert end(worker, client) == code
    assert all_gone(children)
    until(lambda: not client.running())
    back, out = client.total("q").jobs, client.total("out").jobs
    assert back + out == JOBS                   # each is done, or back
    begun = [line.split() for line in worker.record]
    helpers = [int(words[3]) for words in begun]
    if way != "killed":         # SIGKILL of the pool gives nobody the time to end what tasks have started
        assert all_gone(helpers)
    for helper in helpers:
        with suppress(ProcessLookupError):
            os.kill(helper, signal.SIGKILL)
    again = start(APP, "-c", "3").ready(3)      # all may be done already, and it must know what TERM means
    again.until(lambda: client.total("out").jobs == JOBS)
    assert again.end(signal.SIGTERM) == 0
    assert sorted(int(job.data) for job in client.get_many(JOBS + 1, "out", expire=60)) == list(range(JOBS))


def test_a_child_is_replaced_after_its_tasks_and_when_it_is_large(start: Start, client: Client) -> None:
    app = '''
@app.handler("q")
def work(job):
    record(os.getpid())
    kept = bytearray(int(job.data) * 2**20)
'''
    worker = start(app, "-c", "1", "--max-tasks-per-child", "3", "--max-memory-per-child", "150M")
    client.put_many("q", [b"1", b"1", b"1", b"300", b"1", b"1"])
    worker.until(lambda: len(worker.record) == 6)
    numbers = [worker.record.index(pid) for pid in worker.record]
    assert numbers == [0, 0, 0, 3, 4, 4]
    assert zombies(worker.process.pid) == []
    assert worker.end(signal.SIGTERM) == 0
    assert client.running() == []


def test_an_interrupt_that_python_would_drop_ends_a_worker_that_is_loading_its_app(start: Start) -> None:
    """Exceptions raised in a destructor are dropped."""
    worker = start('''
class Slow:
    def __del__(self):
        record("loading")
        time.sleep(1)
Slow()
''')
    worker.until(lambda: worker.record == ["loading"])
    assert worker.end(signal.SIGINT) == -signal.SIGINT
