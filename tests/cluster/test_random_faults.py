"""Random histories on a few real drivers: crashes with power loss, cuts, lost messages, snapshots.

One seed, one history: `RandomFaults(seed).run()`. The simulation (tests/sim) has all these faults and many more, and
judges more; here a few histories show that a second world of drivers, made for single tests, tells the same.
"""

from __future__ import annotations

import random

import pytest

from sockpqd.cluster.wire.messages import Message
from sockpqd.core import Put
from tests.cluster.helpers.small_cluster import Outcome, SmallCluster

STEPS = 120


class RandomFaults:
    """One history and its promises."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.world = SmallCluster(self.rng.choice((3, 3, 5)), seed)
        self.puts: dict[bytes, Outcome] = {}
        self.faults = 0
        self.leaders: dict[int, str] = {}

    def step(self) -> None:
        world, rng = self.world, self.rng
        names = list(world.nodes)
        running = [node.name for node in world if node.driver is not None]
        down = [name for name in names if name not in running]
        choice = rng.random()
        if choice < 0.5:
            self.put(rng.randrange(1, 20))
        elif choice < 0.6 and running:
            self.faults += 1
            world.kill(rng.choice(running))
        elif choice < 0.72 and down:
            world.start(rng.choice(down))
        elif choice < 0.8:
            self.faults += 1
            side = rng.sample(names, rng.randrange(1, len(names)))
            world.cut(" ".join(side), " ".join(name for name in names if name not in side))
        elif choice < 0.88:
            world.heal()
        elif choice < 0.92:
            self.faults += 1
            world.flap(*rng.sample(names, 2))
        elif choice < 0.96:
            lossy = rng.sample(names, 2)
            world.filter = lambda source, target, message: [source, target] != lossy
        elif running:
            world[rng.choice(running)].up.replica.compact()
        world.run(rng.choice((0.001, 0.01, 0.1, 0.5, 1.5)))
        if rng.random() < 0.3:
            world.filter = self.deliver_all
        self.look()

    @staticmethod
    def deliver_all(source: str, target: str, message: Message) -> bool:
        return True

    def put(self, count: int) -> None:
        serving = [node for node in self.world if node.driver is not None and node.driver.leadership.serving]
        for node in serving:
            for _ in range(count):
                body = b"%d" % len(self.puts)
                self.puts[body] = node.propose(Put("q", 0, body))

    def look(self) -> None:
        for node in self.world:
            assert node.failure is None, repr(node.failure)
            if node.driver is not None and node.driver.replica.is_leader:
                term = node.driver.replica.term
                assert self.leaders.setdefault(term, node.name) == node.name, f"two leaders in term {term}"

    def run(self) -> None:
        for _ in range(STEPS):
            self.step()
        world = self.world
        world.filter = self.deliver_all
        world.heal()
        for node in world:
            if node.driver is None:
                world.start(node.name)
        world.heal()
        world.run(5)
        world.leader()
        world.put_now(b"last")
        world.run_until(world.settled)
        assert len(world.states()) == 1
        found = world.bodies("n1")
        assert len(set(found)) == len(found)
        by_state = {state: {body for body, outcome in self.puts.items() if outcome.state == state}
                    for state in ("applied", "refused", "open", "unknown")}
        assert by_state["applied"] <= set(found), "an acknowledged job is lost"
        assert not by_state["refused"] & set(found), "a refused job was executed"
        assert self.faults > 5, "too few faults: this run counts for nothing"
        assert by_state["applied"], "nothing was acknowledged: this run counts for nothing"


@pytest.mark.parametrize("seed", range(5))
def test_nothing_acknowledged_is_lost(seed: int) -> None:
    RandomFaults(seed).run()
