"""Random damage to one of three nodes under load, again and again.

    python -m tests.system.damage_rounds --times 1000 [--seed N] [--within SECONDS]

Each time the node must be back by itself, as its service manager starts it again, and have the state and the right to
vote of the others within --within seconds (10) of its start; in the end nothing acknowledged may be missing.
"""

from __future__ import annotations

import argparse
import random
import shutil
import time
from collections import Counter

from devcluster.cluster import LocalCluster
from tests.system.damages import DAMAGES, Damage
from tests.system.load import Producer, check, drain
from tests.wire import Broken, Wire

BACK_S = 10.0                   # on a machine that does nothing else
START_AGAIN = 75                # the exit code of a node that is to be started again
CONFIG = {"node": {"rejoins_per_hour": 0}}
JOBS = 40                       # acknowledged before and while a node is down
CHECKED = 50                    # rounds between two inventories
REJOINS, VOTES = "It rejoins the others", "this node votes from now on"


class Rounds:
    """Rounds on one cluster. `done`: how often each damage was done; `rejoined`: how often the node rejoined."""

    def __init__(self, cluster: LocalCluster, rng: random.Random, back_s: float) -> None:
        self.cluster = cluster
        self.done: Counter[str] = Counter()
        self.rejoined = 0
        self.longest_s = 0.0
        self._rng = rng
        self._back_s = back_s
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
        before, started = len(cluster.logs(victim)), time.monotonic()
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
        return f"{victim}: {what}: {'rejoined' if rejoined else 'whole'} after {back_s:.1f} s"

    def check(self) -> None:
        """Take all jobs out and compare them with what was acknowledged."""
        check(self._producers, drain(self.cluster))
        self._producers = []

    def _progress(self, producers: list[Producer]) -> None:
        """Until so many further jobs are acknowledged."""
        def acknowledged() -> int:
            return sum(len(producer.acknowledged) for producer in producers)

        target, end = acknowledged() + JOBS, time.monotonic() + 60
        while acknowledged() < target:
            assert time.monotonic() < end, "no progress"
            time.sleep(0.01)

    def _start(self, name: str) -> None:
        self.cluster.restart(name, wait=False)

    def _keep_running(self, name: str, what: str, started: float) -> None:
        """Do what a service manager does."""
        assert time.monotonic() < started + self._back_s, f"{name}: {what}: not back\n{self.cluster.logs(name)[-4000:]}"
        if not self.cluster.running(name):
            code = self.cluster.terminate(name)
            assert code == START_AGAIN, f"{name}: {what}: exit code {code}\n{self.cluster.logs(name)[-4000:]}"
            self._start(name)
        time.sleep(0.02)

    def _votes(self, name: str, before: int, *, emptied: bool) -> bool:
        """Has it been admitted, if it had to be?"""
        said = self.cluster.logs(name)[before:]
        return "connected to" in said and said.rfind(VOTES) >= max(said.rfind(REJOINS), emptied - 1)

    def _equal(self) -> bool:
        """Do all nodes say that they have the same state after the same entry?"""
        hashes = {self._hash(name) for name in self.cluster.names}
        return len(hashes) == 1 and None not in hashes

    def _hash(self, name: str) -> str | None:
        try:
            with Wire(self.cluster.server(name), 1.0, connect_timeout=1.0) as wire:
                return wire.say("CLUSTER HASH")
        except Broken:
            return None


def main() -> None:
    """See the head of this file."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--within", type=float, default=BACK_S)
    options = parser.parse_args()
    print("seed", options.seed, flush=True)
    with LocalCluster(3, config=CONFIG) as cluster:
        rounds = Rounds(cluster, random.Random(options.seed), options.within)
        for number in range(options.times):
            print(number + 1, rounds.run(), flush=True)
            if number % CHECKED == CHECKED - 1:
                rounds.check()
        rounds.check()
        print(f"{options.times} damages, {rounds.rejoined} rejoined, at most {rounds.longest_s:.1f} s:",
              dict(rounds.done))


if __name__ == "__main__":
    main()
