"""Rounds of `pqctl map move`, as `make moves` runs more of them; and with one cure taken out."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sockpq import ClusterMap

from sockpqd.pqctl.actions.maps.clusters import Clusters
from tests.sim.clusters import __main__ as program
from tests.sim.clusters import moves_campaign as campaign
from tests.sim.clusters.moves import Moves
from tests.sim.clusters.operator import Operator
from tests.sim.clusters.programs import Link
from tests.sim.world.trace import Violation

ROUNDS = 3
SEEDS = (0, 5)
SEARCHED = range(20)            # for a run that is red without a cure


def test_no_promise_is_broken() -> None:
    total = campaign.one(SEEDS[0], ROUNDS)
    for seed in SEEDS[1:]:
        total = campaign.add(total, campaign.one(seed, ROUNDS))
    assert total.failures == {}
    assert total.seen["rounds"] == ROUNDS * len(SEEDS)
    for word in ("leaders killed", "pqctl killed", "elsewhere", "jobs"):
        assert total.seen[word] > 1, (word, total.seen)
    counts, times = campaign.lines(total)
    assert counts.startswith("6 rounds, ")
    assert "times a name had no owner" in times


def wait_between_the_versions(patch: pytest.MonkeyPatch) -> None:
    """Let pqctl pause between the two versions of a change."""
    write = Clusters._write

    def write_late(found: Clusters, before: ClusterMap) -> None:
        write(found, before)
        if None in found.map.rules.values():
            operator: Operator = found._call._operator          # type: ignore[attr-defined]
            operator._pair.pass_time(5.0)
    patch.setattr(Clusters, "_write", write_late)


def repeat_as_something_new(patch: pytest.MonkeyPatch) -> None:
    """Let a program whose answer was lost repeat its request under another number."""
    again = Link._again

    def other_number(link: Link) -> None:
        link._number += 1
        again(link)
    patch.setattr(Link, "_again", other_number)


def wait_without_looking_at_the_map(patch: pytest.MonkeyPatch) -> None:
    """Let pqctl ignore that another operator died between two versions: no worker looks for the jobs it waits for."""
    patch.setattr(Clusters, "must_go_on_with", lambda found, prefix: None)


Remove = Callable[[pytest.MonkeyPatch], None]
CURES: dict[Remove, tuple[int, int, str]] = {       # the seed, rounds, and what goes wrong
    wait_between_the_versions: (0, ROUNDS, "is accepted by no cluster for"),
    repeat_as_something_new: (0, ROUNDS, "was done by these"),
    wait_without_looking_at_the_map: (108, 10, "is accepted by no cluster for"),
}


@pytest.mark.parametrize("remove", CURES, ids=lambda remove: remove.__name__)
def test_a_removed_cure_breaks_a_promise(remove: Remove, monkeypatch: pytest.MonkeyPatch) -> None:
    remove(monkeypatch)
    red, rounds, what = CURES[remove]
    failed = (found.failures for found in campaign.sums((red, *SEARCHED), rounds, jobs=1))
    ((seed, failure),) = next(failures for failures in failed if failures).items()
    assert what in failure
    if seed != red:
        print(f"{remove.__name__}: seed {red} is not red any more; record {seed}, which saves the search")


def test_a_campaign_reports_its_failures(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(run: Moves) -> None:
        raise Violation(f"seed {run.seed} is broken")
    monkeypatch.setattr(Moves, "run", broken)
    assert program.main(["--rounds", "20", "--first", "7"]) == 1
    out = capsys.readouterr().out
    assert "seed 7: seed 7 is broken" in out
    assert "repeat with: make moves ROUNDS=10 FIRST=8" in out
    assert "0 rounds" in out
    assert "2 runs failed" in out
