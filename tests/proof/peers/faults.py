"""The faults that befall a system from outside, one after the other, in an order that the seed draws."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable

from msgspec import Struct

from tests.proof.outages import SHAPES, pairs_of
from tests.proof.peers.machines import Machines

LASTS_S, REST_S = (1.0, 8.0), (1.0, 3.0)
WHOLE_S = 90.0              # for the servers to recover after a fault; then the next one strikes anyway
FLIPPED_S = 5.0

Fault = Callable[[Machines, random.Random], Callable[[], None]]     # lets it begin; returns what ends it


class Strike(Struct, omit_defaults=True):
    """One fault, as it is recorded."""

    kind: str
    began_s: float
    lasted_s: float = 0.0
    whole_after_s: float | None = None      # from its end until all servers were well; None: not in time, or a bit flip
    evidence: str = ""


def _some(machines: Machines, chance: random.Random) -> list[str]:
    """One machine, a majority or all."""
    return chance.sample(list(machines.names), chance.choice((1, 1, 2, 3)))


def _outage(shape: str) -> Fault:
    def begin(machines: Machines, chance: random.Random) -> Callable[[], None]:
        machines.network.lose(pairs_of(shape, list(machines.names), chance))
        return lambda: machines.network.lose(())
    return begin


def _pause(machines: Machines, chance: random.Random) -> Callable[[], None]:
    names = chance.sample(list(machines.names), chance.choice((1, 1, 2)))
    for name in names:
        machines.pause(name)

    def end() -> None:
        for name in names:
            machines.resume(name)
    return end


def _kill(machines: Machines, chance: random.Random) -> Callable[[], None]:
    names = _some(machines, chance)
    for name in names:
        machines.pause(name)                    # at the same moment
    for name in names:
        machines.kill(name)
    return lambda: _start(machines, names)


def _power(machines: Machines, chance: random.Random) -> Callable[[], None]:
    names = _some(machines, chance)
    machines.lose_power(names)
    return lambda: _start(machines, names)


def _start(machines: Machines, names: list[str]) -> None:
    for name in names:
        machines.start(name)


KINDS: dict[str, Fault] = {
    **{shape: _outage(shape) for shape in SHAPES}, "pause": _pause, "kill": _kill, "power loss": _power,
}
BIT_FLIP = "bit flips"      # the last one of an episode: what a server does then, to stay away for good, is right, too


def play(machines: Machines, chance: random.Random, lasts_s: float, began: float) -> list[Strike]:
    """Let faults strike for this many seconds; each kind once before any comes twice. `began`: time.monotonic()."""
    strikes: list[Strike] = []
    deck: list[str] = []
    until = time.monotonic() + lasts_s
    while time.monotonic() < until:
        if not deck:
            deck = chance.sample(list(KINDS), len(KINDS))
        kind = deck.pop()
        strike = Strike(kind, round(time.monotonic() - began, 1))
        strikes.append(strike)
        end = KINDS[kind](machines, chance)
        strike.evidence = ", ".join(f"{a}>{b}" for a, b in sorted(machines.network.lost)) or machines.down_or_paused()
        _keep_up(machines, chance.uniform(*LASTS_S))
        end()
        strike.lasted_s = round(time.monotonic() - began - strike.began_s, 1)
        ended = time.monotonic()
        if machines.wait_until_whole(WHOLE_S):
            strike.whole_after_s = round(time.monotonic() - ended, 1)
        time.sleep(chance.uniform(*REST_S))
    return strikes


def flip(machines: Machines, chance: random.Random, began: float) -> Strike:
    """Let a bit of the files of one server flip while it is down."""
    name = chance.choice(list(machines.names))
    strike = Strike(BIT_FLIP, round(time.monotonic() - began, 1))
    machines.kill(name)
    strike.evidence = machines.flip_bits(name, chance)
    machines.start(name)
    _keep_up(machines, FLIPPED_S)
    strike.lasted_s = round(time.monotonic() - began - strike.began_s, 1)
    return strike


def _keep_up(machines: Machines, for_s: float) -> None:
    """Wait, and start again what ends by itself."""
    waiting, until = threading.Event(), time.monotonic() + for_s
    while time.monotonic() < until:
        machines.keep_up()
        waiting.wait(min(0.2, max(0.0, until - time.monotonic())))
