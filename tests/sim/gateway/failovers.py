"""Lets leaders fail, one after the other, in the ways that endanger a promise about what servers write."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.sim.faults.kinds import Faults
from tests.sim.world.node import SimNode

if TYPE_CHECKING:
    from tests.sim.gateway.world import GatewayWorld

LONG_S = (0.6, 0.9, 1.5, 3.0, 6.0)      # of a pause that costs the leadership, or may
SHORT_S = (0.01, 0.05, 0.2, 0.4)
SLOW_S = (0.3, 0.7, 1.5, 3.0)           # what a sync takes
FORWARD_MS = (10_000, 60_000, 3_600_000)
AGAIN_S = 4.0                           # the time after which, if no other node leads, another fault is tried
MEANWHILE_S = 2.5                       # between two small faults


class Failovers:
    """Lets the leader of a world fail `failovers` times in its `seconds`, with smaller faults in between.

    `left`: the number of failures to come.
    """

    def __init__(self, world: GatewayWorld) -> None:
        self._world = world
        self._rng = world.rng
        self._faults = Faults(world)
        self.left = world.failovers

    def begin(self) -> None:
        """Plan the first failover, and start the small disturbances."""
        self._plan_next()
        self._small()

    def _plan_next(self) -> None:
        world = self._world
        if self.left:
            left_s = max(world.seconds - world.events.now, AGAIN_S)
            world.events.after(left_s / (self.left + 1) * self._rng.uniform(0.4, 1.4), self._fail)

    def _fail(self) -> None:
        """Let the leader fail, and check later whether another one leads."""
        world = self._world
        leader = world.serving()
        if world.healed:
            return
        if leader is None:
            world.events.after(0.3, self._fail)
            return
        name, way = self._rng.choice(tuple(WAYS.items()))
        before = world.trace.seen["leaderships"]
        world.trace.fault(name, way(self, leader))
        world.events.after(AGAIN_S, lambda: self._failed(before))

    def _failed(self, before: int) -> None:
        if self._world.trace.seen["leaderships"] == before:
            self._fail()
        else:
            self._world.trace.seen["failovers"] += 1
            self.left -= 1
            self._plan_next()

    # Ways

    def crash(self, leader: SimNode) -> str:
        return self._crash(leader, power=False)

    def lose_power(self, leader: SimNode) -> str:
        return self._crash(leader, power=True)

    def _crash(self, leader: SimNode, *, power: bool) -> str:
        leader.crash(power=power)
        self._world.start_later(leader)
        return leader.name

    def pause(self, leader: SimNode) -> str:
        seconds = self._rng.choice(LONG_S)
        leader.pause(seconds)
        return f"{leader.name} {seconds} s"

    def freeze_before_writing(self, leader: SimNode) -> str:
        """Stop the leader between the commit of a grant and its answer."""
        node = self._world.gateway(leader)
        node.freeze_s = self._rng.choice(LONG_S)
        return f"{leader.name} {node.freeze_s} s before it writes"

    def set_clocks(self, leader: SimNode) -> str:
        """Set all clocks forward, and then kill the leader."""
        world = self._world
        if not world.clocks_are_set:
            return self.crash(leader)
        for node in world.nodes.values():
            node.clock.wall_offset_ms += self._rng.choice(FORWARD_MS)
        return self.crash(leader)

    def isolate(self, leader: SimNode) -> str:
        return self._isolated(leader, reset=self._rng.random() < 0.5)

    def end_their_side(self, leader: SimNode) -> str:
        """End its connections at the others' side only; it receives neither that nor anything else."""
        for other in self._world.nodes:
            if other != leader.name:
                self._world.network.end_for(other, leader.name)
        return self._isolated(leader, reset=False)

    def _isolated(self, leader: SimNode, *, reset: bool) -> str:
        network = self._world.network
        for other in self._world.nodes:
            if other != leader.name:
                network.block(leader.name, other, reset=reset)
                network.block(other, leader.name, reset=reset)
        self._faults.later((1.0, 6.0), network.unblock)
        return leader.name

    def silence(self, leader: SimNode) -> str:
        """Block its messages to the others, but not theirs to it."""
        network = self._world.network
        for other in self._world.nodes:
            if other != leader.name:
                network.block(leader.name, other, reset=False)
        self._faults.later((1.0, 6.0), network.unblock)
        return leader.name

    def slow_disk(self, leader: SimNode) -> str:
        disk = leader.disk
        disk.slow_s = self._rng.choice(SLOW_S)

        def fast() -> None:
            disk.slow_s = 0.0
        self._faults.later((1.0, 6.0), fast)
        return f"{leader.name} {disk.slow_s} s"

    def switch_offline(self, leader: SimNode) -> str:
        leader.switch(online=False)
        self._faults.later((0.5, 3.0), lambda: leader.switch(online=True) if leader.running else None)
        return leader.name

    # Meanwhile

    def _small(self) -> None:
        world, rng = self._world, self._rng
        if world.healed:
            return
        kind, fault = rng.choice(tuple(SMALL.items()))
        what = fault(self)
        if what:
            world.trace.fault(kind, what)
        world.events.after(rng.expovariate(1 / MEANWHILE_S), self._small)

    def _pause_shortly(self) -> str:
        node = self._world.gateway(self._rng.choice(list(self._world.nodes.values())))
        if not node.running:
            return ""
        seconds = self._rng.choice(SHORT_S)
        if self._rng.random() < 0.5:
            node.freeze_s = seconds
        else:
            node.pause(seconds)
        return f"{node.name} {seconds} s"


WAYS: dict[str, Callable[[Failovers, SimNode], str]] = {
    "crash": Failovers.crash,
    "power loss": Failovers.lose_power,
    "clock jump": Failovers.set_clocks,
    "pause": Failovers.pause,
    "deposed leader": Failovers.freeze_before_writing,
    "isolated leader": Failovers.isolate,
    "one-way": Failovers.silence,
    "half-open": Failovers.end_their_side,
    "slow disk": Failovers.slow_disk,
    "offline": Failovers.switch_offline,
}

SMALL: dict[str, Callable[[Failovers], str]] = {
    "pause": Failovers._pause_shortly,
    "clock jump": lambda failing: failing._faults.jump_clock(),
    "slow link": lambda failing: failing._faults.slow_link(),
    "connection lost": lambda failing: failing._faults.lose_connection(),
    "slow disk": lambda failing: failing._faults.slow_disk(),
    "snapshot": lambda failing: failing._faults.take_snapshot(),
}
