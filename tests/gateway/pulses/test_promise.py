"""The promise over failovers, simulated: leaders that are slow, frozen, cut off, one log, one true clock.

What is simulated is what the leaders know: the real window, the real machine, and the two conditions for writing a
grant (spec/pulse 2.1). A seed is a history.
"""

from __future__ import annotations

from random import Random

import pytest

from sockpqd.core import (
    ConfigurePulse,
    Feedback,
    GiveResult,
    Grant,
    Granted,
    Lead,
    Machine,
    Operation,
    PulseChange,
    Reply,
)
from sockpqd.core.pulse.pulses import Pulses
from sockpqd.gateway.pulses.window import Window
from sockpqd.gateway.pulses.windows import WRITTEN_MS_MAX

LEASE_S = 0.55
RATE, PER_S = 5, 1.0
FAILOVERS = 20
SEEDS = range(60)


class Leader:
    """A leader: its window, until when it may write, and the grants that wait to be written."""

    def __init__(self, window: Window, now: float) -> None:
        self.window = window
        self.lease_until = now + LEASE_S
        self.frozen_until = 0.0


class World:
    """One log, one clock, one leader after the other. `written`: the true times of grants."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.now = 0.0
        self.machine = Machine()
        self.index = 0
        self.terms = 0
        self.written: list[float] = []
        self.flying: list[tuple[float, float, int, Leader]] = []    # applied when, stamped when, how many, whose
        self.going: list[tuple[float, float, int, Leader]] = []     # written when, stamped when, how many, by whom
        self.tickets: list[int] = []
        self._apply(Lead("n0", 0, ("n0", "n1", "n2"), b"id", 0), self.now)
        self._apply(ConfigurePulse("p", PulseChange(rate=RATE, per_ms=int(PER_S * 1000)), create=True), self.now)
        self.leader = self._elected()

    def _apply(self, operation: Operation, stamp: float) -> Reply:
        self.index += 1
        return self.machine.apply(self.index, 1_000_000 + int(stamp * 1000), 0, [operation]).replies[0]

    def _elected(self) -> Leader:
        self.terms += 1
        self._apply(Lead(f"n{self.terms % 3}", self.terms, ("n0", "n1", "n2"), b"id", 0), self.now)
        counted = sum(count for _, count in self.machine.pulses["p"].window)
        return Leader(Window(counted, self.now), self.now)

    def fail_over(self) -> None:
        """Cut off the leader: its lease ends, some of its entries are committed, then another one leads."""
        if self.random.random() < 0.5:          # frozen, with grants that it is about to write
            self.leader.frozen_until = self.leader.lease_until + self.random.uniform(0.5, 3.0)
            self.going.append((self.now, self.now, RATE, self.leader))
            self.leader.window.in_flight += RATE
        self.now = max(self.now, self.leader.lease_until) + self.random.uniform(0.01, 0.8)
        for _, stamp, count, _ in self.flying:
            if self.random.random() < 0.5:
                self._apply(Grant("p", count), stamp)
        self.flying.clear()                     # of what it has under way it may write nothing any more
        self.leader = self._elected()

    def step(self) -> None:
        """Let a little time go by."""
        random, leader = self.random, self.leader
        self.now += random.uniform(0.0005, 0.02)
        if random.random() < 0.002:
            leader.frozen_until = self.now + random.choice([0.1, 0.4, 1.5])
        due = [one for one in self.going if one[0] <= self.now and one[3].frozen_until <= self.now]
        for at, stamp, count, its in due:
            self.going.remove((at, stamp, count, its))
            self._write(stamp, count, its)
        if self.now < leader.frozen_until:
            return
        leader.lease_until = max(leader.lease_until, self.now + LEASE_S)
        while self.flying and self.flying[0][0] <= self.now:
            _, stamp, count, its = self.flying.pop(0)
            reply = self._apply(Grant("p", count), stamp)
            assert isinstance(reply, Granted)
            self.tickets += range(reply.first, reply.first + count)
            slow = random.choice([0.0, 0.0, 0.01, 0.3])
            self.going.append((self.now + slow, stamp, count, its))
        free = leader.window.free(self.machine.pulses["p"], self.now)
        if free:
            leader.window.in_flight += free
            latency = random.choice([0.002, 0.01, 0.2, 3.5])       # the disk is slow at times
            at = max(self.now + latency, self.flying[-1][0] if self.flying else 0.0)
            self.flying.append((at, self.now, free, leader))
        if self.tickets and random.random() < 0.1:
            feedback = random.choice([Feedback.OK, Feedback.OK, Feedback.OK, Feedback.FAIL])
            self._apply(GiveResult(self.tickets.pop(), feedback), self.now)

    def _write(self, stamp: float, count: int, leader: Leader) -> None:
        """Let a leader write grants, perhaps after it was frozen or has been replaced."""
        if self.now >= leader.lease_until or (self.now - stamp) * 1000 > WRITTEN_MS_MAX:
            leader.window.in_flight -= count
            return
        leader.window.write(count)
        leader.window.stamp(self.now)
        self.written += [self.now] * count

    def run(self) -> None:
        """Run a history with many failovers."""
        for _ in range(FAILOVERS):
            for _ in range(self.random.randrange(20, 400)):
                self.step()
            self.fail_over()

    def kept(self) -> bool:
        """Return whether no window had more grants than the pulse allows."""
        times = self.written
        return all(later - earlier >= PER_S for earlier, later in zip(times, times[RATE:], strict=False))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_promise_holds(seed: int) -> None:
    world = World(seed)
    world.run()
    assert len(world.written) > FAILOVERS
    assert world.kept()


def test_without_the_rule_of_the_new_leader_it_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pulses, "lead", _forget)
    worlds = [World(seed) for seed in SEEDS]
    for world in worlds:
        world.run()
    assert not all(world.kept() for world in worlds)


def test_without_the_lease_at_the_moment_of_writing_it_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(World, "_write", _write_always)
    worlds = [World(seed) for seed in SEEDS]
    for world in worlds:
        world.run()
    assert not all(world.kept() for world in worlds)


def _forget(pulses: Pulses, before_ms: int, clock_ms: int) -> None:
    for pulse in pulses.by_name.values():
        pulse.window.clear()


def _write_always(world: World, stamp: float, count: int, leader: Leader) -> None:
    leader.window.write(count)
    leader.window.stamp(world.now)
    world.written += [world.now] * count
