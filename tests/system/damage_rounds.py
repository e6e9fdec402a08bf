"""Random damage to one of three nodes under load, again and again.

    python -m tests.system.damage_rounds --times 1000 [--seed N] [--within SECONDS]

Each time the node must be back by itself, as its service manager starts it again, and have the state and the right to
vote of the others. A round that takes longer than --within seconds (10) from the start of the node is counted, and
followed by what the node logged in that time, with the seconds, so that the longest wait is seen; one that takes longer
than --at-most ends the campaign. In the end nothing acknowledged may be missing.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import re
import shutil
import time
from collections import Counter
from datetime import datetime
from pathlib import Path

from devcluster.cluster import LocalCluster
from tests.system.damages import DAMAGES, Damage
from tests.system.load import Producer, check, drain
from tests.wire import Broken, Wire

BACK_S = 10.0                   # on a machine that does nothing else
AT_MOST_S = 120.0               # beyond that a node is taken for stuck
START_AGAIN = 75                # the exit code of a node that is to be started again
CONFIG = {"node": {"rejoins_per_hour": 0}}
JOBS = 40                       # acknowledged before and while a node is down
CHECKED = 50                    # rounds between two inventories
STAMPED = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} ")     # a line of a log, but for tracebacks
REJOINS, VOTES = "It rejoins the others", "this node votes from now on"


class Rounds:
    """Rounds on one cluster. `done`: how often each damage was done; `rejoined`: how often the node rejoined;
    `slow`: how often it was not back in time."""

    def __init__(
        self, cluster: LocalCluster, rng: random.Random, within_s: float = BACK_S, at_most_s: float = AT_MOST_S,
    ) -> None:
        """`within_s`: a longer round is `slow` and reported with its log; `at_most_s`: after this it has failed."""
        self.cluster = cluster
        self.done: Counter[str] = Counter()
        self.rejoined = self.slow = 0
        self.longest_s = 0.0
        self._rng = rng
        self._within_s, self._at_most_s = within_s, at_most_s
        self._waited_s: dict[int, float] = {}           # of each process of the node, for how long it was held up
        self._producers: list[Producer] = []

    def run(self, damage: Damage | None = None) -> str:
        """Damage one node under load (None: as drawn), and wait until it is whole again; returns what happened."""
        cluster, rng = self.cluster, self._rng
        damage = damage or rng.choice(DAMAGES)
        producers = [Producer(cluster.servers, f"p{len(self._producers) + k}") for k in range(2)]
        self._producers += producers
        for producer in producers:
            producer.start()
        self._progress(producers)
        if rng.random() < 0.3:
            with Wire(rng.choice(cluster.servers), 10.0) as wire:
                wire.say("CLUSTER SNAPSHOT")
        victim = rng.choice(cluster.names)
        cluster.kill(victim)
        data_dir, copy = cluster.data_dir(victim), cluster.folder / f"copy-{victim}"
        fresh = cluster.folder / "fresh"
        shutil.copytree(data_dir, fresh, ignore=shutil.ignore_patterns("damaged-*"))
        what = damage(data_dir, copy, rng)
        self.done[damage.__name__] += 1
        if rng.random() < 0.5:
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(fresh, copy)
        shutil.rmtree(fresh)
        emptied = not list(data_dir.glob("journal/journal-*"))
        self._progress(producers)
        logged, started = {name: len(cluster.logs(name)) for name in cluster.names}, time.monotonic()
        before = logged[victim]
        self._waited_s.clear()
        self._start(victim)
        while not self._votes(victim, before, emptied=emptied):
            self._keep_running(victim, what, started)
        for producer in producers:
            producer.finish()
        while not self._equal():
            self._keep_running(victim, what, started)
        back_s = time.monotonic() - started
        self.longest_s = max(self.longest_s, back_s)
        rejoined = REJOINS in cluster.logs(victim)[before:]
        self.rejoined += rejoined
        said = f"{victim}: {what}: {'rejoined' if rejoined else 'whole'} after {back_s:.1f} s"
        if back_s <= self._within_s:
            return said
        self.slow += 1
        return "\n".join([f"{said}: SLOW", *self._course(victim, back_s, logged)])

    def _course(self, victim: str, back_s: float, logged: dict[str, int]) -> list[str]:
        """Return the course of a slow round: the nodes' logs since its start, and how long the node was held up."""
        waited_s, processes = sum(self._waited_s.values()), len(self._waited_s)
        lines = [(line[11:23], name, line[24:]) for name, size in logged.items()
                 for line in self.cluster.logs(name)[size:].splitlines() if STAMPED.match(line)]
        end = f"equal; {processes} processes were ready and without a processor for {waited_s:.1f} s"
        lines += [(_clock(time.time() - back_s), victim, "is started"), (_clock(time.time()), "all", end)]
        return [f"    {' '.join(line)}" for line in sorted(lines)]

    def check(self) -> int:
        """Take all jobs out and compare them with what was acknowledged; returns how many that are.

        What was set aside goes then, as nodes never remove it.
        """
        check(self._producers, drain(self.cluster))
        for damaged in self.cluster.folder.glob("*/damaged-*"):
            shutil.rmtree(damaged)
        acknowledged = sum(len(producer.acknowledged) for producer in self._producers)
        self._producers = []
        return acknowledged

    def _progress(self, producers: list[Producer]) -> None:
        """Wait until this many further jobs are acknowledged."""
        def acknowledged() -> int:
            return sum(len(producer.acknowledged) for producer in producers)

        target, end = acknowledged() + JOBS, time.monotonic() + 60
        while acknowledged() < target:
            assert time.monotonic() < end, "no progress"
            time.sleep(0.01)

    def _start(self, name: str) -> None:
        self.cluster.restart(name, wait=False)

    def _keep_running(self, name: str, what: str, started: float) -> None:
        """Act as a service manager."""
        pid = self.cluster.pid(name)
        if pid is not None:
            with contextlib.suppress(OSError):          # it may end first
                self._waited_s[pid] = int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
        in_time = time.monotonic() < started + self._at_most_s
        assert in_time, f"{name}: {what}: not back\n{self.cluster.logs(name)[-4000:]}"
        if not self.cluster.running(name):
            code = self.cluster.terminate(name)
            assert code == START_AGAIN, f"{name}: {what}: exit code {code}\n{self.cluster.logs(name)[-4000:]}"
            self._start(name)
        time.sleep(0.02)

    def _votes(self, name: str, before: int, *, emptied: bool) -> bool:
        """Return whether the node has been admitted, if it had to be."""
        said = self.cluster.logs(name)[before:]
        return "connected to" in said and said.rfind(VOTES) >= max(said.rfind(REJOINS), emptied - 1)

    def _equal(self) -> bool:
        """Return whether all nodes report the same state after the same entry."""
        hashes = {self._hash(name) for name in self.cluster.names}
        return len(hashes) == 1 and None not in hashes

    def _hash(self, name: str) -> str | None:
        try:
            with Wire(self.cluster.server(name), 1.0, connect_timeout=1.0) as wire:
                return wire.say("CLUSTER HASH")
        except Broken:
            return None


def _clock(seconds: float) -> str:
    """Return a time in the form of log lines."""
    return datetime.fromtimestamp(seconds).strftime("%H:%M:%S,%f")[:12]


def main() -> None:
    """See the head of this file."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--within", type=float, default=BACK_S)
    parser.add_argument("--at-most", type=float, default=AT_MOST_S)
    options = parser.parse_args()
    print("seed", options.seed, flush=True)
    with LocalCluster(3, config=CONFIG) as cluster:
        rounds = Rounds(cluster, random.Random(options.seed), options.within, options.at_most)
        for number in range(options.times):
            print(number + 1, rounds.run(), flush=True)
            if number % CHECKED == CHECKED - 1 or number == options.times - 1:
                print(f"inventory: {rounds.check()} acknowledged jobs, none missing", flush=True)
        print(f"{options.times} damages, {rounds.rejoined} rejoined, {rounds.slow} took more than "
              f"{options.within:g} s, the longest {rounds.longest_s:.1f} s:", dict(rounds.done))


if __name__ == "__main__":
    main()
