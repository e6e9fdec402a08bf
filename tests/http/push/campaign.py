"""Many jobs through the program, with its processor time; or while things are killed: no job may be lost.

    python -m tests.http.push.campaign --jobs 20000
    python -m tests.http.push.campaign --jobs 20000 --kill-every 1 --delay 0.05
    python -m tests.http.push.campaign --jobs 20000 --kill-leader 3 --delay 0.05

One node, one receiver and one program on this machine; with `--kill-every` two programs, of which one is killed again
and again; with `--kill-leader` three nodes, of which the leader is. With `--signed` requests are signed.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from sockpq import Client
from sockpq.testing import Server

from devcluster.cluster import LocalCluster

CONFIG = """
[push]
ttl_s = 5
[targets.a]
queues = ["hooks"]
url = "http://127.0.0.1:{port}/hook"
allow = ["127.0.0.1"]
concurrency = {concurrency}
"""
BATCH = 1000
POLL_S = 0.1
PATIENCE_S = 120.0
TICKS = os.sysconf("SC_CLK_TCK")


class Seen(NamedTuple):
    """The figures of a run. `rate`: jobs a second; times in microseconds of processor time for a job."""

    requests: int
    different: int
    rate: float
    program_us: float
    receiver_us: float


@contextmanager
def nodes(options: argparse.Namespace) -> Iterator[str]:
    """One node, or three of which the leader is killed again and again; yields their servers."""
    if not options.kill_leader:
        with Server() as server:
            yield server.address
        return
    ended = threading.Event()
    with LocalCluster(3) as cluster:
        killer = threading.Thread(target=kill_leaders, args=(cluster, options.kill_leader, ended))
        killer.start()
        try:
            yield ",".join(cluster.servers)
        finally:
            ended.set()
            killer.join()


def kill_leaders(cluster: LocalCluster, every_s: float, ended: threading.Event) -> None:
    """Kill the leader and restart it, again and again."""
    while not ended.wait(every_s):
        leader = cluster.wait_for_leader(PATIENCE_S)
        cluster.kill(leader)
        cluster.wait_for_leader(PATIENCE_S)
        cluster.restart(leader, wait=False)


@contextmanager
def process(*command: str, **variables: str) -> Iterator[subprocess.Popen[str]]:
    """Run a program of Python until the end of the block."""
    with subprocess.Popen([sys.executable, "-m", *command], env={**os.environ, **variables}, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True) as one:
        try:
            yield one
        finally:
            if one.poll() is None:
                one.kill()


def cpu_s(one: subprocess.Popen[str]) -> float:
    """Return the processor time of a process so far."""
    words = Path(f"/proc/{one.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / TICKS


def configuration(folder: Path, port: str, options: argparse.Namespace) -> str:
    """Write the configuration of the program; returns its path."""
    text = CONFIG.format(port=port, concurrency=options.concurrency)
    if options.signed:
        (folder / "secrets").write_text("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n")
        (folder / "secrets").chmod(0o600)
        text += f'secret_file = "{folder / "secrets"}"\n'
    (folder / "push.toml").write_text(text)
    return str(folder / "push.toml")


def put(client: Client, options: argparse.Namespace) -> None:
    """Put the jobs; the body of each is its number."""
    client.queue_create("hooks", numbered=True)
    for first in range(0, options.jobs, BATCH):
        numbers = range(first, min(first + BATCH, options.jobs))
        client.put_many("hooks", [str(number).rjust(options.bytes, "0").encode() for number in numbers])


def run(options: argparse.Namespace) -> Seen:
    """Let all jobs be sent."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="push-")))
        servers = stack.enter_context(nodes(options))
        client = stack.enter_context(Client(servers))
        receiver = stack.enter_context(process("tests.http.push.fast_receiver", str(options.delay)))
        assert receiver.stdout
        config = configuration(folder, receiver.stdout.readline().strip(), options)
        put(client, options)
        command = ("sockpq_http.main", "push", config)
        count = 2 if options.kill_every else 1
        running = [stack.enter_context(process(*command, SOCKPQ_SERVERS=servers)) for _ in range(count)]
        while (left := client.total("hooks").jobs) == options.jobs:
            time.sleep(POLL_S)
        begun, spent_s, received_s = time.monotonic(), cpu_s(running[0]), cpu_s(receiver)
        last, moved, due = left, begun, begun + (options.kill_every or float("inf"))
        while (total := client.total("hooks")).jobs or total.running:
            if total.jobs != last:
                last, moved = total.jobs, time.monotonic()
            if time.monotonic() - moved > PATIENCE_S:
                raise SystemExit(f"{total.jobs} jobs are left, and nothing happens")
            if time.monotonic() > due:
                at = random.randrange(count)
                running[at].kill()
                running[at] = stack.enter_context(process(*command, SOCKPQ_SERVERS=servers))
                due = time.monotonic() + options.kill_every
            time.sleep(POLL_S)
        took_s = time.monotonic() - begun
        spent_s, received_s = cpu_s(running[0]) - spent_s, cpu_s(receiver) - received_s
        receiver.terminate()
        requests, different = map(int, receiver.stdout.readline().split())
    return Seen(requests, different, left / took_s, spent_s / left * 1e6, received_s / left * 1e6)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--bytes", type=int, default=200, help="of each job")
    parser.add_argument("--concurrency", type=int, default=50)
    parser.add_argument("--kill-every", type=float, metavar="SECONDS", help="kill one of two programs that often")
    parser.add_argument("--kill-leader", type=float, metavar="SECONDS", help="kill and restart it that often")
    parser.add_argument("--delay", type=float, default=0.0, metavar="SECONDS", help="of the receiver's answers")
    parser.add_argument("--signed", action="store_true")
    options = parser.parse_args()
    seen = run(options)
    print(f"{options.jobs} jobs, {seen.requests} requests, {seen.different} different ones")
    if not options.kill_every and not options.kill_leader:
        print(f"{seen.rate:.0f} jobs/s, {seen.program_us:.0f} us of processor time a job in the program, "
              f"{seen.receiver_us:.0f} us in the receiver")
    return 0 if seen.different == options.jobs else 1


if __name__ == "__main__":
    sys.exit(main())
