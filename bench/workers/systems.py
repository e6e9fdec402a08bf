"""The same three tasks for each worker program: one that does nothing, one of a millisecond, one that sleeps.

Each task appends one byte to a file when it is over: that is how all of them are counted alike.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

BIN = Path(sys.executable).parent

HEAD = '''
import os, sys, time
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
def sleeping(seconds):
    time.sleep(seconds); over(b"s" if seconds < 5 else b"L")
'''
PUT = '''
def put(task, count, *args):
    for _ in range(count):
        {put}
if __name__ == "__main__":
    put(globals()[sys.argv[1]], int(sys.argv[2]), *map(float, sys.argv[3:]))
'''


class System(NamedTuple):
    """A worker program. `app`: how tasks are declared; `put`: how one is put; `command`: starts `{children}` of it."""

    app: str
    decorator: str
    put: str
    command: tuple[str, ...]
    place: str | None           # of its broker, unless another is given; None: a cluster is started here

    def program(self) -> str:
        """The module `tasks`."""
        return HEAD + self.app + TASKS.format(decorator=self.decorator) + PUT.format(put=self.put)


SYSTEMS = {
    "pqworker": System(
        "from sockpq.worker import App\napp = App(PLACE)\n", '@app.task("bench")', "task.put(*args)",
        (str(BIN / "pqworker"), "tasks:app", "-c", "{children}"), None,
    ),
    "celery": System(
        "from celery import Celery\napp = Celery('tasks', broker=PLACE)\n"
        "app.conf.update(task_ignore_result=True, task_acks_late=True)\n"
        "if PLACE.startswith('amqp'): app.conf.task_default_queue_type = 'quorum'; "
        "app.conf.broker_transport_options = {'confirm_publish': True}\n",
        "@app.task", "task.delay(*args)",
        (str(BIN / "celery"), "-A", "tasks", "worker", "-c", "{children}", "-l", "warning", "-O", "fair"),
        "redis://127.0.0.1:6379/0",
    ),
    "rq": System(
        "from redis import Redis\nfrom rq import Queue\nqueue = Queue(connection=Redis.from_url(PLACE))\n", "",
        "queue.enqueue(task if __name__ != '__main__' else 'tasks.' + task.__name__, *args)",
        (str(BIN / "rq"), "worker-pool", "-n", "{children}", "-q", "--url", "{place}"), "redis://127.0.0.1:6379/1",
    ),
    "dramatiq": System(
        "import dramatiq\nfrom dramatiq.brokers.redis import RedisBroker\n"
        "dramatiq.set_broker(RedisBroker(url=PLACE))\n",
        "@dramatiq.actor", "task.send(*args)",
        (str(BIN / "dramatiq"), "tasks", "-p", "{children}", "-t", "1"), "redis://127.0.0.1:6379/2",
    ),
    "huey": System(
        "from huey import RedisHuey\nhuey = RedisHuey('tasks', url=PLACE, results=False)\n", "@huey.task()",
        "task(*args)", (str(BIN / "huey_consumer"), "tasks.huey", "-k", "process", "-w", "{children}", "-q"),
        "redis://127.0.0.1:6379/3",
    ),
}
