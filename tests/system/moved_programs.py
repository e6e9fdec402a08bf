"""Programs that were written for one cluster, on two whose names move while the leaders of both are killed.

`python -m tests.system.moved_programs celery --moves 20 --nodes 3` is a campaign; the suite has one move of each.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from celery import Celery
from sockpq import Client, Moving
from sockpq.worker import App

from devcluster.cluster import LocalCluster
from devcluster.ports import HOST
from tests.beanstalk.helpers.client import BeanstalkClient
from tests.client.pair import Pair
from tests.waiting import until

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
QUEUE = "film"              # which moves; all else stays at home
PAUSE_S = 0.02              # of the producer, behind each job
JOBS = 20                   # that are put before and behind each change of the map
PATIENCE_S = 120.0         # of clients: a loaded machine takes its time to start a node again
END_S = 120.0


class Running(NamedTuple):
    """A program at work. `put` puts the job with this number; `done`: the numbers of the jobs that were finished."""

    put: Callable[[int], object]
    done: Callable[[], list[int]]


Program = Callable[[Path, list[str]], AbstractContextManager[Running]]


@contextmanager
def process(folder: Path, command: Sequence[object], environment: dict[str, str]) -> Iterator[Callable[[], str]]:
    """Run a process in this folder, whose output the value returns; it is ended by SIGINT, after a time by force."""
    log = folder / "log"
    with log.open("wb") as out:
        started = subprocess.Popen(
            [str(word) for word in command], cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **environment}, start_new_session=True)
    try:
        yield log.read_text
    finally:
        started.send_signal(signal.SIGINT)
        try:
            started.wait(END_S)
        finally:
            if started.poll() is None:
                os.killpg(started.pid, signal.SIGKILL)
                started.wait()


def numbers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"^working on (\d+)$", text, re.MULTILINE)]


@contextmanager
def tutorial(folder: Path, servers: list[str]) -> Iterator[Running]:
    """Run the worker of docs/TUTORIAL.md until Ctrl-C, as described there."""
    page = (ROOT / "docs/TUTORIAL.md").read_text()
    (code,) = re.findall(r"```python\n(from sockpq import Client\n.*?)```", page, re.DOTALL)
    assert '"letters"' in code
    code = code.replace('"letters"', f'"{QUEUE}"').replace('"hello"', '"0"').replace(", wait=1", "")
    (folder / "worker.py").write_text(code)
    with process(folder, [sys.executable, "worker.py"], {"SOCKPQ_SERVERS": ",".join(servers)}) as text, \
            Client(servers, timeout=PATIENCE_S) as client:
        until(lambda: numbers(text()) == [0], text)         # which it puts itself
        yield Running(lambda number: client.put(QUEUE, str(number)), lambda: numbers(text())[1:])


# A line in one piece: print() writes the words of two threads in turn.
APP = f"""
import os
from sockpq.worker import App

app = App()

@app.task("{QUEUE}", name="work", expire=600)
def work(number: int) -> None:
    os.write(1, b"working on %d\\n" % number)
"""


@contextmanager
def pqworker(folder: Path, servers: list[str]) -> Iterator[Running]:
    """Run an app with one task by `pqworker`."""
    (folder / "app.py").write_text(APP)
    command = [BIN / "pqworker", "app:app", "-c", "2", "--pool", "threads"]
    with process(folder, command, {"SOCKPQ_SERVERS": ",".join(servers)}) as text, \
            closing(App(servers, timeout=PATIENCE_S)) as app:
        work = app.task(QUEUE, name="work")(lambda number: None)
        yield Running(work.put, lambda: numbers(text()))


PROJECT = f"""
import os
from celery import Celery

app = Celery("project", broker=os.environ["BROKER"])
app.conf.broker_transport_options = {{"patience": {PATIENCE_S}}}

@app.task(name="work")
def work(number):
    with open("done", "a") as file:
        file.write(f"working on {{number}}\\n")
"""


@contextmanager
def celery(folder: Path, servers: list[str]) -> Iterator[Running]:
    """Run a Celery app and its worker."""
    (folder / "project.py").write_text(PROJECT)
    done = folder / "done"
    done.touch()
    broker = ";".join(f"sockpq://{server}" for server in servers)
    command = [
        sys.executable, "-m", "celery", "-A", "project", "worker", "-l", "info", "-Q", QUEUE, "-P", "threads",
        "-c", "2"]
    with process(folder, command, {"BROKER": broker}) as text, closing(Celery(broker=broker)) as app:
        app.conf.broker_transport_options = {"patience": PATIENCE_S}
        until(lambda: " ready." in text(), text)
        yield Running(
            lambda number: app.send_task("work", (number,), queue=QUEUE), lambda: numbers(done.read_text()))


@contextmanager
def beanstalkd(folder: Path, servers: list[str]) -> Iterator[Running]:
    """Run clients of `sockpq-beanstalkd`: one that puts, and one that reserves and deletes."""
    command = [BIN / "sockpq-beanstalkd", "--listen", f"{HOST}:0", "--servers", ",".join(servers)]
    done: list[int] = []
    over = threading.Event()
    errors: list[Exception] = []

    def work(address: str) -> None:
        try:
            with BeanstalkClient(address, QUEUE) as client:
                while not over.is_set():
                    line = client("reserve-with-timeout 1")
                    if line != "TIMED_OUT":
                        number, body = client.rest(line)
                        assert client(f"delete {number}") == "DELETED"
                        done.append(int(body))
        except Exception as error:
            errors.append(error)

    with process(folder, command, {}) as text:
        def finished() -> list[int]:
            assert errors == [], text()
            return done

        until(lambda: "listening on" in text(), text)
        (address,) = re.findall(r"listening on (\S+)", text())
        worker = threading.Thread(target=work, args=(address,))
        worker.start()
        try:
            with BeanstalkClient(address, QUEUE) as client:
                client.socket.settimeout(PATIENCE_S)
                yield Running(lambda number: client.put(str(number), ttr=600), finished)
        finally:
            over.set()
            worker.join()


PROGRAMS: dict[str, Program] = {
    "tutorial": tutorial, "pqworker": pqworker, "celery": celery, "beanstalkd": beanstalkd}


def through_moves(program: Program, folder: Path, moves: int, nodes: int) -> None:
    """Run a program on two clusters while its queue moves so often, from one to the other and back.

    Raises AssertionError if any job is lost or done twice.
    """
    put: list[int] = []
    errors: list[Exception] = []
    over = threading.Event()

    def produce(running: Running) -> None:
        try:
            while not over.is_set():
                running.put(len(put) + 1)
                put.append(len(put) + 1)
                over.wait(PAUSE_S)
        except Exception as error:
            errors.append(error)

    with Pair(nodes) as pair:
        pair.set({QUEUE: "b"})
        with program(folder, pair.a.servers) as running:
            producer = threading.Thread(target=produce, args=(running,))
            producer.start()
            try:
                for move in range(moves):
                    source, to = ("b", "a") if move % 2 == 0 else ("a", "b")
                    _move(pair, source, to, lambda: len(put), errors)
            finally:
                over.set()
                producer.join()
            until(lambda: len(running.done()) >= len(put) or errors, lambda: (
                f"{len(running.done())} of {len(put)} are done; here are {pair.count('a', QUEUE)} at a and "
                f"{pair.count('b', QUEUE)} at b; it says: {(folder / 'log').read_text()[-2000:]}"), PATIENCE_S)
            assert errors == []
            assert Counter(running.done()) == Counter(put)
            until(lambda: pair.count("a", QUEUE) == pair.count("b", QUEUE) == (0, 0))


def _move(pair: Pair, source: str, to: str, put: Callable[[], int], errors: list[Exception]) -> None:
    """Move the queue as an operator does, and kill the leaders of both clusters during the move."""
    def some_more() -> None:
        before = put()
        until(lambda: put() >= before + JOBS or errors, seconds=PATIENCE_S)

    some_more()
    pair.set({QUEUE: None})
    pair.set({}, {QUEUE: Moving(source, to)})
    kill_leader(getattr(pair, source))
    some_more()
    kill_leader(getattr(pair, to))
    some_more()
    until(lambda: pair.count(source, QUEUE) == (0, 0) or errors, seconds=PATIENCE_S)
    pair.set({QUEUE: None})
    pair.set({QUEUE: to})
    some_more()


def kill_leader(cluster: LocalCluster) -> None:
    """Kill the leader, and start it again."""
    name = cluster.wait_for_leader()
    cluster.kill(name)
    cluster.restart(name)
    cluster.wait_for_leader()


def main() -> None:
    """Run a campaign; an AssertionError ends it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", choices=PROGRAMS)
    parser.add_argument("--moves", type=int, default=20)
    parser.add_argument("--nodes", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        through_moves(PROGRAMS[options.program], Path(folder), options.moves, options.nodes)
    print(f"{options.program}: {options.moves} moves, nothing was lost or done twice")


if __name__ == "__main__":
    main()
