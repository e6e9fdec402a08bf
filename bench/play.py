"""`make play`: a cluster of three nodes that stays, with a producer and a pqworker, so that there is something to see.

    python -m bench.play [--celery | --sqs] [--clusters 2] [DIR]

The cluster is `sockpqd --dev --nodes 3`, with its data below DIR (default: here). The producer puts jobs of three
priorities into the queue `play`, two in a second; a pqworker with two children takes them. All continue despite the
loss of any node. Ctrl-C ends everything.

With two clusters, a and b, the second one owns the queue `film.play`, and has a producer and a pqworker too.
"""

from __future__ import annotations

import atexit
import ctypes
import itertools
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, MutableMapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import click
from sockpq import Client, ClientClosed, Job, QueueExists, SockpqError
from sockpq.worker import App

from devcluster.node import NodeError, program

ROOT = Path(__file__).parents[1]

NODES = 3
QUEUE = "play"
PREFIX = "film."            # of names that the second cluster owns
WORKERS = 2
PUT_EVERY_S = 0.5
WORK_S = 0.7                # what a job takes
LEASE_S = 10.0
STOP_S = 10.0
TELL_EVERY_S = 10.0
LAST_LINES = 3              # of a worker that has ended
SQS_ADDRESS = "127.0.0.1:9324"
SERVERS = "export SOCKPQ_SERVERS="      # in what sockpqd prints
PR_SET_PDEATHSIG = 1        # prctl(2)
PRCTL = ctypes.CDLL(None).prctl


app = App()


@app.handler(PREFIX + QUEUE, expire=LEASE_S)
@app.handler(QUEUE, expire=LEASE_S)
def deliver(job: Job) -> None:
    """Process a letter with any content, as users of the example may put their own."""
    time.sleep(WORK_S)


class Programs:
    """Programs in a folder of examples."""

    FOLDER = ""
    COMMANDS: tuple[tuple[str, ...], ...] = ()

    def __init__(self, servers: str) -> None:
        self._servers = servers
        self._running: list[subprocess.Popen[bytes]] = []
        self._stopping = threading.Event()

    def environment(self) -> dict[str, str]:
        """Return the variables by which the programs find the cluster."""
        return {"SOCKPQ_SERVERS": self._servers}

    def start(self) -> None:
        for name, *arguments in self.COMMANDS:
            one = subprocess.Popen(
                [Path(sys.executable).with_name(name), *arguments], cwd=ROOT / "examples" / self.FOLDER,
                env={**os.environ, **self.environment()}, process_group=0, preexec_fn=_end_with_parent,
            )
            self._running.append(one)
            threading.Thread(target=self._watch, args=(name, one), daemon=True).start()

    def _watch(self, name: str, one: subprocess.Popen[bytes]) -> None:
        code = one.wait()
        if not self._stopping.is_set():
            _say(f"{name} has ended with exit code {code}")

    def stop(self) -> None:
        self._stopping.set()
        for one in self._running:
            _end(one)


class Celery(Programs):
    """A worker and a producer of the Celery project in examples/celery."""

    FOLDER = "celery"
    COMMANDS = (
        ("celery", "-A", "shop", "worker", "-c", str(WORKERS), "--loglevel", "warning"), ("python", "-m", "shop"),
    )


class Sqs(Programs):
    """The program sockpq-sqs, and behind it a producer and a consumer of examples/sqs with boto3."""

    FOLDER = "sqs"
    COMMANDS = (
        ("sockpq-sqs",), ("python", "-m", "shop", "produce"), ("python", "-m", "shop", "consume"),
    )

    def environment(self) -> dict[str, str]:
        """Return the variables of AWS as well; nothing verifies the key."""
        return {
            **super().environment(), "SOCKPQ_SQS_HTTP_LISTEN": SQS_ADDRESS,
            "AWS_ENDPOINT_URL_SQS": f"http://{SQS_ADDRESS}",
            "AWS_ACCESS_KEY_ID": "play", "AWS_SECRET_ACCESS_KEY": "play", "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_MAX_ATTEMPTS": "20",           # the consumer may come before sockpq-sqs listens
        }

    def start(self) -> None:
        """Start them, and say how others join."""
        super().start()
        _say(f"export AWS_ENDPOINT_URL_SQS=http://{SQS_ADDRESS} lets your own programs join")


class Play:
    """A producer in this process, and a pqworker."""

    def __init__(self, servers: str, queue: str = QUEUE) -> None:
        self._servers = servers
        self._queue = queue
        self._client = Client(servers)
        self._put = 0
        self._done_before = 0       # by earlier runs with the same data
        self._worker: subprocess.Popen[str] | None = None
        self._lines: deque[str] = deque(maxlen=LAST_LINES)      # of the worker's log
        self._stopping = threading.Event()

    def start(self) -> None:
        with suppress(QueueExists):
            self._client.queue_create(self._queue)        # else it would end, with its counters, whenever it is empty
        self._done_before = self._client.queue_stat(self._queue)["total_done"]
        self._worker = subprocess.Popen(
            [program().with_name("pqworker"), "bench.play:app", "-c", str(WORKERS), "--queues", self._queue],
            cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace", process_group=0,
            env={**os.environ, "SOCKPQ_SERVERS": self._servers},        # which the app reads
            preexec_fn=_end_with_parent,
        )
        for run in (self._produce, self._tell, self._listen):
            threading.Thread(target=_telling_errors, args=(run,), daemon=True).start()

    def stop(self) -> None:
        """End producer and pqworker, so that neither misses the nodes."""
        self._stopping.set()
        self._client.close()
        if self._worker is not None:
            _end(self._worker)

    def _produce(self) -> None:
        for number in itertools.count(1):
            self._client.put(self._queue, f"letter {number}", priority=random.choice((0, 0, 0, 5, 9)))
            self._put += 1
            time.sleep(PUT_EVERY_S)

    def _tell(self) -> None:
        before = 0
        while True:
            time.sleep(TELL_EVERY_S)
            done = self._client.queue_stat(self._queue)["total_done"] - self._done_before
            idle = done == before and self._lines
            _say(f"producer: {self._put} jobs put into {self._queue}; workers: {done} done"
                 + (f", none since the last line; their log ends: {self._lines[-1]}" if idle else ""))
            before = done

    def _listen(self) -> None:
        """Keep the end of the worker's log, and print it if the worker ends by itself."""
        assert self._worker is not None
        assert self._worker.stderr is not None
        with self._worker.stderr as log:
            self._lines.extend(line.rstrip() for line in log)
        code = self._worker.wait()
        if not self._stopping.is_set():
            _say("\n".join((f"the workers of {self._queue} have ended with exit code {code}; their log ends:",
                            *self._lines)))


class TwoPlays:
    """A producer and a pqworker at each of two clusters."""

    def __init__(self, servers: str) -> None:
        with Client(servers) as client:
            (_, first), (name, second) = client.cluster_map().clusters.items()
        command = ["--servers", servers, "map", "move", PREFIX, name]
        subprocess.run([program().with_name("pqctl"), *command], check=True, stdout=subprocess.DEVNULL)
        self._plays = [Play(",".join(first.servers)), Play(",".join(second.servers), PREFIX + QUEUE)]

    def start(self) -> None:
        for play in self._plays:
            play.start()

    def stop(self) -> None:
        for play in self._plays:
            play.stop()


Played: TypeAlias = Play | Programs | TwoPlays


def _end_with_parent() -> None:
    """Prepare a new process: it gets no Ctrl-C of the terminal, and ends when its parent is killed."""
    PRCTL(PR_SET_PDEATHSIG, signal.SIGTERM)


def _end(process: subprocess.Popen[Any]) -> None:
    process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()


def _telling_errors(run: Callable[[], None]) -> None:
    try:
        run()
    except ClientClosed:            # the end of all
        pass
    except SockpqError as error:
        _say(f"a producer or worker has ended: {error}")


def _say(what: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {what}", flush=True)


def configure(home: Path, environment: MutableMapping[str, str]) -> None:
    """Let all programs find the new cluster, which has neither TLS nor users, whatever this user's own cluster has.

    `home`: an empty folder for an empty configuration file, which takes the place of the user's and of the system's.
    """
    for variable in [name for name in environment if name.startswith("SOCKPQ_")]:
        del environment[variable]
    file = home / "sockpq" / "config.toml"
    file.parent.mkdir()
    file.touch()
    environment["XDG_CONFIG_HOME"] = str(home)


@click.command()
@click.argument("folder", metavar="[DIR]", default=".", type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.option("--celery", is_flag=True, help="Instead a producer and a worker of Celery's, from examples/celery.")
@click.option("--sqs", is_flag=True, help="Instead sockpq-sqs with a producer and a consumer, from examples/sqs.")
@click.option("--clusters", type=click.IntRange(1, 2), default=1, metavar="N", help="Two clusters used as one.")
def main(folder: Path, celery: bool, sqs: bool, clusters: int) -> None:
    """Run three nodes with a producer and workers until Ctrl-C."""
    if celery + sqs + (clusters > 1) > 1:
        raise click.UsageError("--celery and --sqs go alone, with one cluster")
    home = tempfile.TemporaryDirectory(prefix="sockpqd-play-")
    atexit.register(home.cleanup)
    configure(Path(home.name), os.environ)
    kind: Callable[[str], Played] = Celery if celery else Sqs if sqs else TwoPlays if clusters > 1 else Play
    try:
        command = [str(program()), "--dev", "--nodes", str(NODES), "--clusters", str(clusters)]
    except NodeError as error:
        raise click.UsageError(str(error)) from None
    # Groups of their own: Ctrl-C is for this process alone, which ends workers before nodes, so that none misses them.
    cluster = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, text=True, process_group=0, preexec_fn=_end_with_parent,
    )
    assert cluster.stdout is not None
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    play: Played | None = None
    while True:
        try:
            for line in cluster.stdout:
                print(line, end="", flush=True)
                if SERVERS in line and play is None:
                    play = kind(line.partition(SERVERS)[2].strip())
                    play.start()
            if play is not None:
                play.stop()
            sys.exit(cluster.wait())
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            if play is not None:
                play.stop()
            cluster.send_signal(signal.SIGINT)


if __name__ == "__main__":
    main()
