"""Every scenario, once, short and under a light load; see __main__.py for campaigns.

Those that need the same cluster and load are played in turn, some of them by one cluster: its start, the first seconds
of its clients and its end cost more than a fault. One that has a twin with listeners is played by the twin alone, as
the faults are the same. Some are for campaigns only.

A scenario that proves nothing is void, and is repeated once with another seed: one such run may be the fault of the
machine, which does other things as well. Two in a row are a fault that does not happen, or a machine on which nothing
can be shown, and then the test fails and says so. What a good run is judged by is in runner.py.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from pathlib import Path

import pytest
from msgspec import structs

from tests.chaos.all_scenarios import ALL, lacks
from tests.chaos.runner import Result, run_in_turn, table
from tests.chaos.scenarios import Scenario

pytestmark = pytest.mark.usefixtures("toxiproxy_server")

AT_ONCE = 2             # most of a run is waiting
IN_TURN = 5             # a defect is easier to find in a short history
ATTEMPTS = 2
PAUSE_S = 0.06          # of producers: a few hundred commands a second are enough, and a lane has not the time for more
SHORT_S = 3.0
GAP_MAX_S = 30.0        # a safety limit: how long gaps really are is measured by campaigns, on machines that are quiet
KEEP = os.environ.get("CHAOS_KEEP")

NAMES = [scenario.name for scenario in ALL]
ONCE = [scenario for scenario in ALL
        if f"heard: {scenario.name}" not in NAMES and not scenario.campaigns_only]

Runs = dict[str, Future[list[Result]]]


def in_turn(scenarios: Iterable[Scenario]) -> list[list[Scenario]]:
    """Return the scenarios that one cluster plays together; first those in which nothing happens to the leader."""
    alike: dict[str, list[Scenario]] = {}
    for scenario in scenarios:
        needs = structs.replace(
            scenario, name="", faults=list, lasts_s=0, after_s=0, goal_s=None, same_term=False, bystander=False,
            without=())
        alike.setdefault(repr(needs), []).append(scenario)
    groups = [sorted(group, key=lambda scenario: not scenario.same_term) for group in alike.values()]
    return [group[at:at + IN_TURN] for group in groups for at in range(0, len(group), IN_TURN)]


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest) -> Iterator[Runs]:
    """All requested scenarios, running: the tests wait for theirs."""
    asked = [item.callspec.params.get("scenario") for item in request.session.items if hasattr(item, "callspec")]
    possible = [one for one in asked if isinstance(one, Scenario) and not lacks(one)]
    pool = ThreadPoolExecutor(AT_ONCE)
    try:
        played = [(some, pool.submit(_attempts, some)) for some in in_turn(possible)]
        yield {scenario.name: future for some, future in played for scenario in some}
    finally:
        pool.shutdown(cancel_futures=True)


def _attempts(scenarios: list[Scenario]) -> list[Result]:
    """Return the results of all attempts."""
    left = [_light(one) for one in scenarios]
    results: list[Result] = []
    for seed in range(ATTEMPTS):
        new = run_in_turn(left, seed, keep=Path(KEEP) if KEEP else None)
        results += new
        left = [one for one, result in zip(left, new, strict=True) if result.void]
        if not left:
            break
    return results


def _light(scenario: Scenario) -> Scenario:
    """With less load; behind a fault all wait until the nodes are level in any case."""
    if scenario.small_pages:        # queues that are not deep leave no memory, and prove nothing
        return structs.replace(scenario, load=structs.replace(scenario.load, pause_s=PAUSE_S / 2))
    if scenario.varied:             # a fault that comes again and again: campaigns have the time for it
        return structs.replace(scenario, lasts_s=SHORT_S)
    return structs.replace(
        scenario, load=structs.replace(scenario.load, pause_s=PAUSE_S), after_s=scenario.after_s / 2)


@pytest.mark.parametrize("scenario", [*chain(*in_turn(ONCE))], ids=lambda scenario: scenario.name.replace(" ", "-"))
def test_scenario(scenario: Scenario, runs: Runs) -> None:
    if lacking := lacks(scenario):
        pytest.skip(lacking)
    results = [result for result in runs[scenario.name].result() if result.scenario == scenario.name]
    last = results[-1]
    print(table(results, {scenario.name: scenario.goal_s}))
    assert last.violations == (), last.report
    assert not last.void, f"void: {'; '.join(result.void for result in results)}"
    assert last.gap_s < GAP_MAX_S


def test_each_scenario_is_played_once_and_some_by_one_cluster() -> None:
    played = in_turn(ONCE)
    assert sorted(scenario.name for scenario in chain(*played)) == sorted(scenario.name for scenario in ONCE)
    assert all(len(some) <= IN_TURN for some in played)
    assert len(played) < len(ONCE) / 3
    for some in played:
        assert len({(one.nodes, one.listeners, one.beanstalkd, one.small_pages, one.disk_mb) for one in some}) == 1


def test_only_what_proves_nothing_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    plays: list[list[str]] = []

    def play(scenarios: list[Scenario], seed: int, keep: Path | None) -> list[Result]:
        plays.append([scenario.name for scenario in scenarios])
        return [Result(scenario.name, seed, void="nothing happened" if index == 1 and seed == 0 else "")
                for index, scenario in enumerate(scenarios)]

    monkeypatch.setattr("tests.chaos.test_scenarios.run_in_turn", play)
    first, second, third = ONCE[:3]
    results = _attempts([first, second, third])
    assert plays == [[first.name, second.name, third.name], [second.name]]
    assert [(result.scenario, bool(result.void)) for result in results] == [
        (first.name, False), (second.name, True), (third.name, False), (second.name, False)]


def test_what_proves_nothing_twice_stays_void(monkeypatch: pytest.MonkeyPatch) -> None:
    def play(scenarios: list[Scenario], seed: int, keep: Path | None) -> list[Result]:
        return [Result(scenario.name, seed, void=f"nothing happened with seed {seed}") for scenario in scenarios]

    monkeypatch.setattr("tests.chaos.test_scenarios.run_in_turn", play)
    voids = [result.void for result in _attempts(ONCE[:1])]
    assert voids == ["nothing happened with seed 0", "nothing happened with seed 1"]
