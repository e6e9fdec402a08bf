"""A story of pulses in simulated time: real gateways, workers that take turns, and an API with a limit.

Nothing fails here; what is measured is the pace. The promise itself is judged throughout, as in all simulated runs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from tests.sim.gateway.answers import Asked, Form
from tests.sim.gateway.clients import FOR_EVER, GatewayClient, Life, operates
from tests.sim.gateway.world import GatewayWorld

TURN = Asked(Form.TURN, "ga")
BEGIN_S = 2.0                   # a leader leads and the pulse is there


class StoryWorld(GatewayWorld):
    """A cluster without faults, and these clients."""

    def __init__(self, lives: list[Callable[[GatewayClient], Life]], seconds: float) -> None:
        self._story = lives
        super().__init__(1, seconds=seconds, failovers=0, nodes=3, drift=0.0, heartbeat_ms=300)

    def _lives(self) -> list[Any]:
        return self._story

    def _trouble(self) -> None:
        for name in self.voters:
            self.nodes[name].start()
        for number, life in enumerate(self._lives()):
            GatewayClient(self, number, life)
        self.steps += self.events.run_until(self.seconds)

    def _end(self) -> None:
        """Return True: nobody has to recover."""


def run(lives: list[Callable[[GatewayClient], Life]], seconds: float) -> StoryWorld:
    world = StoryWorld(lives, seconds)
    world.run()
    return world


class Api:
    """Serves `limit` requests in any second; `slow`: this many, from when, until when. `seen`: when, was it served."""

    def __init__(self, limit: int, slow: tuple[int, float, float] = (0, 0.0, 0.0)) -> None:
        self._limit = limit
        self._slow = slow
        self._served: deque[float] = deque()
        self.seen: list[tuple[float, bool]] = []

    def request(self, now: float) -> bool:
        while self._served and self._served[0] <= now - 1:
            self._served.popleft()
        slow, begin, end = self._slow
        served = len(self._served) < (slow if begin <= now < end else self._limit)
        if served:
            self._served.append(now)
        self.seen.append((now, served))
        return served

    def times(self, begin: float, end: float) -> list[float]:
        return [at for at, _ in self.seen if begin <= at < end]

    def refused(self, begin: float) -> float:
        """Return the fraction of requests refused since then."""
        served = [served for at, served in self.seen if at >= begin]
        return served.count(False) / len(served)


def worker(
    api: Api, *, tells: bool = True, silent: bool = False, afterwards_s: float = 0.0,
) -> Callable[[GatewayClient], Life]:
    """Wait for a turn, call the API, report the result, work on the answer. `tells`: reports refusals; `silent`:
    nothing.
    """
    def life(client: GatewayClient) -> Life:
        while not client.world.prepared:
            yield 0.1
        client.dial()
        while True:
            answer = yield from client.ask("PULSE WAIT ga", TURN, patience_s=FOR_EVER)
            if answer is None or answer.ticket is None:
                client.leave()
                yield 0.1
                client.dial()
                continue
            served = api.request(client.world.events.now)
            if not silent:
                yield from client.ask(f"PULSE RESULT {answer.ticket} {'OK' if served or not tells else 'SLOW'}")
            if afterwards_s:
                yield afterwards_s
    return life


def others(api: Api, in_a_second: float) -> Callable[[GatewayClient], Life]:
    """A program that calls the same API and takes no turns."""
    def life(client: GatewayClient) -> Life:
        while True:
            yield client.rng.uniform(0.5, 1.5) / in_a_second
            api.request(client.world.events.now)
    return life


def test_a_pulse_is_regular_and_gives_as_many_turns_in_each_period_as_it_may() -> None:
    api = Api(1000)
    run([operates(["PULSE CREATE ga RATE 5 PER 1"]), *[worker(api) for _ in range(12)]], BEGIN_S + 10)
    times = api.times(BEGIN_S, BEGIN_S + 10)
    assert len(times) >= 5 * 10 * 0.95
    assert max(later - earlier for earlier, later in pairwise(times)) < 1.1     # no period is left out


def test_together_each_period_has_one_group() -> None:
    api = Api(1000)
    run([operates(["PULSE CREATE ga RATE 4 PER 1 TOGETHER"]), *[worker(api) for _ in range(12)]], BEGIN_S + 10)
    times = api.times(BEGIN_S, BEGIN_S + 10)
    groups = [at for earlier, at in pairwise(times) if at - earlier > 0.5]
    assert len(groups) >= 8
    assert all(1 <= later - earlier < 1.2 for earlier, later in pairwise(groups))
    assert abs(len(times) / len(groups) - 4) < 0.5


@pytest.mark.parametrize(("workers", "least", "most"), [(20, 9.5, 10.0), (10, 4.5, 5.0)])
def test_more_workers_than_the_rate_keep_it_although_each_has_other_work(
    workers: int, least: float, most: float,
) -> None:
    api = Api(1000)
    lives = [worker(api, afterwards_s=1.95) for _ in range(workers)]
    run([operates(["PULSE CREATE ga RATE 10 PER 1"]), *lives], BEGIN_S + 10)
    assert least <= len(api.times(BEGIN_S, BEGIN_S + 10)) / 10 <= most + 0.5


def test_partial_participation_those_who_take_turns_make_room_for_those_who_take_none() -> None:
    refused = {}
    for tells in (False, True):
        api = Api(10)
        lives = [worker(api, tells=tells) for _ in range(15)]
        run([operates(["PULSE CREATE ga RATE 10 PER 1"]), others(api, 4), *lives], BEGIN_S + 20)
        refused[tells] = api.refused(BEGIN_S + 5)
    assert refused[False] > 0.2
    assert refused[True] < refused[False] / 2, refused


def test_all_slow_down_together_and_come_back() -> None:
    begin, end = BEGIN_S + 3, BEGIN_S + 15
    api = Api(10, slow=(4, begin, end))
    run([operates(["PULSE CREATE ga RATE 10 PER 1.1"]), *[worker(api) for _ in range(15)]], end + 12)
    assert api.refused(end + 2) == 0
    slow, back = api.times(end - 5, end), api.times(end + 8, end + 12)
    assert len(slow) < 5 * 6
    assert len(back) > 4 * 8


def test_who_never_says_how_it_went_holds_nobody_up() -> None:
    api = Api(1000)
    lives = [worker(api, silent=True) for _ in range(12)]
    world = run([operates(["PULSE CREATE ga RATE 5 PER 1 MAXRUN 1"]), *lives], BEGIN_S + 10)
    assert len(api.times(BEGIN_S, BEGIN_S + 10)) >= 5 * 10 * 0.95
    for node in world.nodes.values():
        pulse = node.machine.pulses["ga"]
        assert (pulse.now, pulse.pause_ms, pulse.errors) == (5, 0, 0)
        assert len(pulse.tickets) <= 2 * 5          # those of MAXRUN, and those that are given up at the next grant


def test_a_rate_is_changed_while_clients_wait() -> None:
    api, changed = Api(1000), BEGIN_S + 4

    def operator(client: GatewayClient) -> Life:
        yield changed - client.world.events.now
        yield from operates(["PULSE CONFIG ga RATE 12"])(client)
    run([operates(["PULSE CREATE ga RATE 4 PER 1"]), operator, *[worker(api) for _ in range(20)]], changed + 5)
    assert len(api.times(BEGIN_S, changed)) <= 4 * 5
    assert len(api.times(changed + 1, changed + 5)) >= 12 * 3
