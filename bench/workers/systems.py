"""The same three tasks for each worker program: one that does nothing, one of a millisecond, one that sleeps.

Each task appends one byte to a file when it ends, so that all of them are counted in the same way. One that sleeps also
appends how long it waited for its turn to another file.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

PQWORKER = Path(sys.executable).with_name("pqworker")

HEAD = '''
import os, sys, time
from contextlib import nullcontext
def over(byte=b"."):
    file = os.open(os.environ["BENCH_COUNT"], os.O_WRONLY | os.O_APPEND)
    os.write(file, byte)
    os.close(file)
def busy(seconds):
    until = time.perf_counter() + seconds
    while time.perf_counter() < until: pass
PLACE = os.environ.get("BENCH_PLACE")
'''
TASKS = '''
{decorator}
def noop():
    over()

{decorator}
def millisecond():
    busy(0.001); over()

{decorator}
def sleeping(seconds, put_at):
    with open(os.environ["BENCH_COUNT"] + ".waits", "a") as file:
        file.write("%.3f %.3f\\n" % (seconds, time.time() - put_at))
    time.sleep(seconds); over()
'''
PUT = '''
def put(task, count, *seconds):
    for done in range(0, count, 100):
        with {batch}:
            for _ in range(min(100, count - done)):
                args = (*seconds, time.time()) if seconds else ()
                {put}
'''


class System(NamedTuple):
    """A worker program. `app`: how tasks are declared; `put`: how one is put; `command`: starts `{children}` of it.

    `batch`: a context manager around each hundred that are put.
    """

    app: str
    decorator: str
    put: str
    command: tuple[str, ...]
    place: str | None           # of its broker, unless another is given; None: a cluster is started here
    batch: str = "nullcontext()"

    def program(self) -> str:
        """Return the source of the module `tasks`."""
        return HEAD + self.app + TASKS.format(decorator=self.decorator) + PUT.format(put=self.put, batch=self.batch)


SYSTEMS = {
    "pqworker": System(
        "from sockpq.worker import App\napp = App(PLACE)\n", '@app.task("bench")', "task.put(*args)",
        (str(PQWORKER), "tasks:app", "-c", "{children}"), None,
    ),
    "celery": System(
        "from celery import Celery\napp = Celery('tasks', broker=PLACE)\n"
        "app.conf.update(task_ignore_result=True, task_acks_late=True)\n"
        "if PLACE.startswith('amqp'): app.conf.task_default_queue_type = 'quorum'; "
        "app.conf.broker_transport_options = {'confirm_publish': True}\n",
        "@app.task", "task.delay(*args)",
        (sys.executable, "-m", "celery", "-A", "tasks", "worker", "-c", "{children}", "-l", "warning", "-O", "fair"),
        "redis://127.0.0.1:6379/0",
    ),
    "rq": System(
        "from redis import Redis\nfrom rq import Queue\nqueue = Queue(connection=Redis.from_url(PLACE))\n", "",
        "queue.enqueue(task, *args)",
        (sys.executable, "-m", "rq.cli", "worker-pool", "-n", "{children}", "-q", "--url", "{place}"), "redis://127.0.0.1:6379/1",
    ),
    "dramatiq": System(
        "import dramatiq\nfrom dramatiq.brokers.redis import RedisBroker\n"
        "dramatiq.set_broker(RedisBroker(url=PLACE))\n",
        "@dramatiq.actor", "task.send(*args)",
        (sys.executable, "-m", "dramatiq", "tasks", "-p", "{children}", "-t", "1"), "redis://127.0.0.1:6379/2",
    ),
    "huey": System(
        "from huey import RedisHuey\nhuey = RedisHuey('tasks', url=PLACE, results=False)\n", "@huey.task()",
        "task(*args)",
        (sys.executable, "-m", "huey.bin.huey_consumer", "tasks.huey", "-k", "process", "-w", "{children}", "-q"),
        "redis://127.0.0.1:6379/3",
    ),
}
