"""Each check can fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from sockpqd.core import Done, Finished, Get, Handed, PageLost, Put, Stored, encode_entry
from tests.sim import campaign
from tests.sim.clients.outcomes import Outcome
from tests.sim.clients.with_session import SessionClient
from tests.sim.gateway import campaign as gateways
from tests.sim.gateway.world import GatewayWorld
from tests.sim.oracles.checks import Checks
from tests.sim.oracles.configurations import Configurations
from tests.sim.world.ending import Ending
from tests.sim.world.events import Events
from tests.sim.world.trace import Trace, Violation
from tests.sim.world.world import World

PUT = Put("q", 0, b"x")


@pytest.fixture
def checks() -> Checks:
    return Checks(Trace(Events()), ("n1", "n2", "n3"))


def launched(checks: Checks, seed: int = 7) -> Outcome:
    outcome = Outcome(PUT, lambda outcome: None)
    checks.launched(encode_entry(1, seed, [PUT]), [outcome])
    return outcome


def test_an_entry_that_two_nodes_apply_differently(checks: Checks) -> None:
    checks.applied("n1", 2, 1, 7, [PUT], [Stored()])
    with pytest.raises(Violation, match="another entry 2"):
        checks.applied("n2", 2, 1, 8, [PUT], [Stored()])


def test_an_entry_that_is_applied_at_two_indexes(checks: Checks) -> None:
    checks.applied("n1", 2, 1, 7, [PUT], [Stored()])
    with pytest.raises(Violation, match="what was applied at 2"):
        checks.applied("n1", 3, 1, 7, [PUT], [Stored()])


def test_an_answer_that_the_model_does_not_give(checks: Checks) -> None:
    with pytest.raises(Violation, match="right is"):
        checks.applied("n1", 2, 1, 7, [Done(1)], [Finished()])


def test_a_job_that_is_handed_out_twice(checks: Checks) -> None:
    handed = Handed(1, "q", 0, b"x")
    checks.applied("n1", 2, 1, 7, [PUT, Get(("q",), 1000)], [Stored(), handed])
    with pytest.raises(Violation, match="right is"):
        checks.applied("n1", 3, 2, 9, [Get(("q",), 1000)], [handed])


def test_an_entry_that_overtakes_history(checks: Checks) -> None:
    checks.applied("n1", 5, 1, 7, [PUT], [Stored()])
    with pytest.raises(Violation, match="which nobody did"):
        checks.applied("n2", 4, 1, 8, [PUT], [Stored()])


@pytest.mark.parametrize(("command", "before"), [(b"other", 1), (b"same", 2)])
def test_logs_that_do_not_match(checks: Checks, command: bytes, before: int) -> None:
    checks.appended("n1", b"same", 3, 2, 1)
    with pytest.raises(Violation, match="has another entry"):
        checks.appended("n2", command, 3, 2, before)


def test_states_that_differ(checks: Checks) -> None:
    checks.state("n1", 16, [b"a", b"b"])
    checks.state("n2", 16, [b"ab"])
    with pytest.raises(Violation, match="another state"):
        checks.state("n3", 16, [b"ac"])


def test_a_refused_job_that_was_executed(checks: Checks) -> None:
    outcome = launched(checks)
    outcome.refused()
    checks.applied("n1", 2, 1, 7, [PUT], [Stored()])
    with pytest.raises(Violation, match="refused and executed"):
        checks.finish([outcome])


def test_an_acknowledged_job_that_is_in_no_log(checks: Checks) -> None:
    outcome = launched(checks)
    outcome.applied(Stored())
    with pytest.raises(Violation, match="not in the log"):
        checks.finish([outcome])


def test_an_operation_with_two_outcomes() -> None:
    outcome = Outcome(PUT, lambda outcome: None)
    outcome.refused()
    with pytest.raises(Violation, match="was refused"):
        outcome.applied(Stored())


def driver(*, serving: bool, leads: bool, applied: int = 9) -> Any:
    return SimpleNamespace(
        leadership=SimpleNamespace(serving=serving), machine=SimpleNamespace(index=applied),
        replica=SimpleNamespace(is_leader=leads, term=3), journal=SimpleNamespace(last_index=applied),
    )


def test_a_removed_node_that_serves(checks: Checks) -> None:
    checks.turned("n3", driver(serving=True, leads=False), 9)
    checks.configurations.applied(9, ("n1", "n2"))
    checks.turned("n3", driver(serving=True, leads=False), 8)       # it was removed in this very turn
    with pytest.raises(Violation, match="is no member"):
        checks.turned("n3", driver(serving=True, leads=False), 9)


def test_a_leader_that_never_had_a_vote(checks: Checks) -> None:
    with pytest.raises(Violation, match="is no voter"):
        checks.turned("n4", driver(serving=False, leads=True), 9)


def test_a_leader_without_what_was_committed(checks: Checks) -> None:
    checks.applied("n1", 10, 1, 7, [PUT], [Stored()])
    checks.terms[10] = 2
    with pytest.raises(Violation, match="without entry 10"):
        checks.turned("n1", driver(serving=False, leads=True), 9)


def test_a_leader_that_is_told_of_its_votes_when_there_is_a_newer_one(checks: Checks) -> None:
    checks.applied("n1", 10, 1, 7, [PUT], [Stored()])
    checks.terms[10] = 4
    checks.turned("n2", driver(serving=False, leads=True), 9)


def test_two_leaders_of_a_term(checks: Checks) -> None:
    checks.turned("n1", driver(serving=False, leads=True), 9)
    with pytest.raises(Violation, match="both lead"):
        checks.turned("n2", driver(serving=False, leads=True), 9)


def test_who_makes_the_majorities_of_a_leader() -> None:
    configurations = Configurations(("n1", "n2", "n3"))
    configurations.applied(5, ("n2", "n3"))
    configurations.applied(7, ("n2", "n3"))
    assert configurations.counted_by("n2", 1, 4) == ("n1", "n2", "n3")
    assert configurations.counted_by("n2", 1, 5) == ("n2", "n3")
    assert configurations.counted_by("n1", 4, 8) == ("n1", "n2", "n3")      # as before, because it leads on
    assert configurations.counted_by("n1", 5, 8) == ("n2", "n3")            # it was elected by these
    configurations.applied(9, ("n3",))
    with pytest.raises(Violation, match="two changes"):
        configurations.counted_by("n1", 4, 9)


def test_a_removed_node_that_disturbs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ending, "_leadership", lambda self: (None, object()))
    fixed: dict[str, Any] = {"nodes": 3, "weights": {"remove node": 1.0}, "fault_s": 0.5}
    assert any("has disturbed the others" in campaign.one(seed, **fixed)[1] for seed in range(5))


def test_a_client_that_is_never_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SessionClient, "_answer", lambda self, command, place, reply: None)
    assert "does not answer" in campaign.one(0, nodes=3, sessions=1.0)[1]


def test_a_page_that_is_lost_without_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read from outside of a turn it ends no run unjudged; where a fault has damaged it the node will stop."""
    node = World(0, nodes=3).nodes["n1"]

    def lost() -> Iterator[bytes]:
        raise PageLost("pages-00000001: damaged")
    assert node.state() is not None
    monkeypatch.setattr(node.machine, "snapshot", lost)
    with pytest.raises(Violation, match="has lost a page"):
        node.state()
    node._pages_damaged = True
    assert node.state() is None


@pytest.mark.parametrize("many", [lambda seeds: [*campaign.run(seeds)][-1], gateways.run])
def test_a_run_that_breaks_off(many: Callable[[range], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """It is reported as one that is red, and the others are run."""
    def breaks(world: World) -> None:
        raise PageLost(f"of {world.seed}")
    monkeypatch.setattr(World, "_trouble", breaks)
    monkeypatch.setattr(GatewayWorld, "_trouble", breaks)
    report = many(range(3))
    assert report.runs == 3
    assert all(f"PageLost: of {seed}" in report.failures[seed].splitlines()[0] for seed in range(3))
