"""Campaigns draw runs, count them, and continue in another sitting; no process is started."""

from __future__ import annotations

import random
import time
from collections import Counter
from itertools import islice
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.chaos import __main__ as campaigns
from tests.chaos import runner
from tests.chaos.all_scenarios import ALL
from tests.chaos.runner import Result
from tests.chaos.scenarios import SCENARIOS, Scenario
from tests.chaos.sums import Sums
from tests.chaos.torture_scenarios import TORTURE
from tests.chaos.variants import VARIANTS, drawn
from tests.chaos.workload.load import NotDrained

BROKEN = Result("a", 2, ("tls",), violations=("lost: A",), fault_s=30.0)
NOTHING = Result("a", 3, void="the fault did not fire", fault_s=40.0)
GOOD = Result("a", 1, fault_s=60.0, commands=10)


def words(scenario: Scenario, seeds: range) -> Counter[str]:
    return Counter(word for seed in seeds for word in drawn(scenario, seed).variants)


def told(scenario: Scenario) -> tuple[object, ...]:
    return scenario.variants, scenario.lasts_s, scenario.load, scenario.config, scenario.nodes, scenario.tls


def test_a_seed_draws_the_same_variants_and_length_each_time() -> None:
    one = TORTURE[0]
    assert [told(drawn(one, seed)) for seed in range(50)] == [told(drawn(one, seed)) for seed in range(50)]
    assert len({drawn(one, seed).lasts_s for seed in range(50)}) > 40


def test_all_variants_are_drawn_and_each_changes_what_it_says() -> None:
    assert set(words(TORTURE[0], range(200))) == set(VARIANTS)
    for word, (_, change) in VARIANTS.items():
        changed = change(TORTURE[0])
        assert changed != TORTURE[0], word
    every = [drawn(TORTURE[0], seed) for seed in range(200)]
    assert all(one.tls == ("tls" in one.variants) for one in every)
    assert all((one.nodes == 5) == ("five" in one.variants) for one in every)
    assert all((one.config["limits"]["hot_bytes"] == 1) if "paged" in one.variants else not one.small_pages
               for one in every)
    assert all(one.config["node"] == TORTURE[0].config["node"] for one in every)
    assert all((one.load.large > 0) == ("fragments" in one.variants) for one in every)
    assert all(one.load.plain != ("sessions" in one.variants) for one in every)


def test_a_scenario_has_no_variant_that_it_excludes_and_the_older_ones_have_none() -> None:
    excluding = next(scenario for scenario in TORTURE if "five" in scenario.without)
    assert "five" not in words(excluding, range(200))
    assert not words(SCENARIOS[0], range(50))
    assert len({scenario.name for scenario in ALL}) == len(ALL)


def test_sums_are_kept_for_another_sitting_and_what_proves_nothing_takes_no_time(tmp_path: Path) -> None:
    file = tmp_path / "sums.json"
    first = Sums(file)
    for result in (GOOD, BROKEN, NOTHING):
        first.add(result)
    again = Sums(file)
    assert again.by_name == first.by_name
    total = again.by_name["a"]
    assert (total.passed, total.failed, total.void, total.fault_s, total.commands) == (1, 1, 1, 90.0, 10)
    assert total.failures == ["seed 2 (tls): lost: A"]
    assert "| a | 1.5 | 1 | 1 | 1 | 10 |" in again.table()


def test_each_scenario_gets_its_minutes_and_those_with_the_fewest_are_next(tmp_path: Path) -> None:
    chosen, sums = list(TORTURE[:3]), Sums(tmp_path / "sums.json")
    sums.add(Result(chosen[0].name, 0, fault_s=250.0))
    played = []
    for scenario, seed in campaigns._each(chosen, sums, 300.0, None, random.Random(1)):
        played.append(scenario.name)
        sums.add(Result(scenario.name, seed, fault_s=100.0))
    assert Counter(played) == {chosen[0].name: 1, chosen[1].name: 3, chosen[2].name: 3}
    assert played[-1] in {chosen[1].name, chosen[2].name, chosen[0].name}
    assert played[:2] == [chosen[1].name, chosen[2].name]
    assert not list(campaigns._each(chosen, sums, 300.0, None, random.Random(1)))
    assert not list(islice(campaigns._each(chosen, sums, 900.0, time.monotonic(), random.Random(1)), 1))


def test_what_is_always_void_does_not_keep_the_others_waiting(tmp_path: Path) -> None:
    chosen, sums = list(TORTURE[:2]), Sums(tmp_path / "sums.json")
    for _ in range(2):                  # sittings
        played: Counter[str] = Counter()
        for scenario, seed in campaigns._each(chosen, sums, 300.0, None, random.Random(1)):
            played[scenario.name] += 1
            void = "nothing happened" if scenario.name == chosen[0].name else ""
            sums.add(Result(scenario.name, seed, void=void, fault_s=100.0))
        assert played[chosen[0].name] == campaigns.VOID_MAX
    assert sums.seconds(chosen[1].name) == 300.0


@pytest.mark.parametrize(
    ("results", "code", "line"),
    [
        ([GOOD], 0, "1 runs: 1 passed, 0 failed, 0 void; 10 commands"),
        ([GOOD, NOTHING], 2, "2 runs: 1 passed, 0 failed, 1 void;"),
        ([GOOD, NOTHING, BROKEN], 1, "3 runs: 1 passed, 1 failed, 1 void;"),
        ([Result("a", 1, void="not drained", violations=("lost: A",))], 1, "1 runs: 0 passed, 1 failed, 0 void;"),
    ],
)
def test_what_is_void_is_not_green(
    results: list[Result], code: int, line: str, capsys: pytest.CaptureFixture[str],
) -> None:
    assert campaigns._summary(results) == code
    assert line in capsys.readouterr().out


def test_names_are_chosen_by_patterns_and_a_run_is_repeated_by_its_seed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
) -> None:
    played: list[tuple[Scenario, int]] = []

    def play(scenario: Scenario, seed: int, keep: Path) -> Result:
        played.append((scenario, seed))
        return Result(scenario.name, seed, scenario.variants)

    monkeypatch.setattr(campaigns, "run", play)
    monkeypatch.setattr(campaigns, "lacks", lambda scenario: "")
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(campaigns.main, ["--only", "torture: o*", "--again", "4711"])
    assert result.exit_code == 0, result.output
    assert [(one.name, seed) for one, seed in played] == [
        (one.name, 4711) for one in TORTURE if one.name.startswith("torture: o")]
    assert all(told(one) == told(drawn(next(s for s in TORTURE if s.name == one.name), 4711)) for one, _ in played)
    assert "void" in result.output
    assert CliRunner().invoke(campaigns.main, ["--only", "nothing is called so"]).exit_code == 2


def test_a_run_that_cannot_be_drained_is_void_and_says_why() -> None:
    class Full:
        def drain(self, also: object) -> None:
            raise NotDrained("not empty 60 s after the end: Total(jobs=3)")

    class Empty:
        def drain(self, also: object) -> None:
            """Drain the cluster: nothing is left."""

    class Swept:
        def sweep(self) -> bool:
            return True

    results = [Result("a", 1), Result("b", 1)]
    assert not runner._drain(Full(), Swept(), results)      # type: ignore[arg-type]
    assert [result.void for result in results] == ["not empty 60 s after the end: Total(jobs=3)"] * 2
    assert not any(result.passed for result in results)
    assert runner._drain(Empty(), Swept(), results)         # type: ignore[arg-type]


def test_a_run_in_which_little_was_done_is_void() -> None:
    result = Result("a", 1, rate=200.0)
    runner._judge(SCENARIOS[0], result, [], {1}, runner.DONE_MIN - 1)
    assert "49 commands" in result.void
    enough = Result("a", 1, rate=200.0)
    runner._judge(SCENARIOS[0], enough, [], {1}, runner.DONE_MIN)
    assert not enough.void
