"""Leaders hand over to preferred nodes, rarely and not to nodes that failed (spec/cluster 4.3)."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from sockpqd.cluster import limits
from sockpqd.cluster.metrics.histogram import Histogram
from sockpqd.cluster.metrics.recent_mean import HALF_S, RecentMean
from tests.cluster.helpers.small_cluster import SmallCluster, SmallNode

REST_S = 6.0                    # in the place of a minute,
LOSS_S = 20.0                   # of ten, and
LOSS_S_MAX = 320.0              # of a day
MARGIN_S = 2.0                  # for an election and the next look


@pytest.fixture(autouse=True)
def short_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PREFERENCE_REST_S", REST_S)
    monkeypatch.setattr(limits, "LOSS_S", LOSS_S)
    monkeypatch.setattr(limits, "LOSS_S_MAX", LOSS_S_MAX)


def cluster(*prefer: int) -> SmallCluster:
    """Return a serving cluster of nodes n1, n2, .. with these preferences, in which n1 leads."""
    world = SmallCluster(len(prefer))
    leader = world.leader()
    if leader.name != "n1":
        give(world, "n1", by="nobody")
    for node, its in zip(world, prefer, strict=True):
        set_prefer(node, its)
    return world


def set_prefer(node: SmallNode, prefer: int) -> None:
    """Give a node a preference, as its configuration would."""
    node.prefer = node.up.leadership.preference._own = prefer


def give(world: SmallCluster, name: str, *, by: str = "operator") -> None:
    """Hand leadership to a node, as `CLUSTER TRANSFER` does."""
    leader = world.leader()
    assert leader.up.leadership.handover.begin(name) is None
    world.run_until(lambda: world.serving() is world[name])
    leader.up.leadership.handover.end()
    if by == "operator":
        leader.up.leadership.preference.send_away()


def leads_for(world: SmallCluster, name: str, seconds: float) -> bool:
    """Return whether this node serves all the time."""
    for _ in range(int(seconds)):
        world.run(1)
        if world.serving() is not world[name]:
            return False
    return True


def follows(world: SmallCluster, name: str) -> float:
    """Wait until this node serves; returns the seconds."""
    began = world.now
    world.run_until(lambda: world.serving() is world[name], 2 * REST_S)
    return world.now - began


def test_the_preferred_node_leads_after_a_minute() -> None:
    world = cluster(50, 50, 80)
    assert leads_for(world, "n1", REST_S - MARGIN_S)
    assert follows(world, "n3") < 2 * MARGIN_S
    world.put_now()
    assert leads_for(world, "n3", 3 * REST_S)


def test_of_several_the_most_preferred_leads() -> None:
    world = cluster(50, 70, 90)
    follows(world, "n3")


@pytest.mark.parametrize("prefer", [(50, 50, 50), (80, 50, 50), (50, 0, 0)])
def test_nobody_hands_over_to_a_node_without_more_preference(prefer: tuple[int, ...]) -> None:
    assert leads_for(cluster(*prefer), "n1", 3 * REST_S)


def test_a_new_leader_leads_for_a_minute() -> None:
    world = cluster(50, 50, 80)
    world.run(REST_S - 2 * MARGIN_S)
    give(world, "n2")
    assert leads_for(world, "n2", REST_S - MARGIN_S)
    follows(world, "n3")


def test_a_node_that_lost_a_leadership_waits_and_each_time_twice_as_long() -> None:
    world = cluster(50, 50, 80)
    follows(world, "n3")
    for span_s in (LOSS_S, 2 * LOSS_S):
        world.kill("n3")
        after = world.leader().name
        world.start("n3")
        assert leads_for(world, after, span_s - MARGIN_S)
        assert follows(world, "n3") < 2 * MARGIN_S


def test_the_loss_is_known_to_the_leader_after_the_next() -> None:
    world = cluster(50, 50, 80)
    follows(world, "n3")
    world.kill("n3")
    second = world.leader().name
    world.run(2)
    world.start("n3")
    world.run_until(world.settled)
    (third,) = {"n1", "n2"} - {second}
    give(world, third)
    assert leads_for(world, third, LOSS_S - 3 * MARGIN_S - REST_S)
    assert world.serving() is world[third]


def test_a_loss_is_forgiven_after_a_day() -> None:
    world = cluster(50, 50, 80)
    preference = world.leader().up.leadership.preference
    spans = []
    for at_s in (0, 1, 2, 3 + 2 * LOSS_S_MAX):
        preference.began(at_s, "n3", handed_over=False)
        ((_, _, span_s),) = preference.losses(at_s)
        spans.append(span_s)
    assert spans == [20, 40, 80, 20]
    for _ in range(20):
        preference.began(at_s, "n3", handed_over=False)
    assert preference.losses(at_s) == (("n3", 320, 320),)
    preference.began(at_s, "n2", handed_over=True)
    assert [name for name, *_ in preference.losses(at_s)] == ["n3"]


def test_what_an_operator_took_away_does_not_come_back_by_itself() -> None:
    world = cluster(80, 50, 50)
    give(world, "n2")
    assert leads_for(world, "n2", 2 * REST_S)
    give(world, "n1")
    give(world, "n2", by="nobody")
    follows(world, "n1")


@pytest.mark.parametrize(("own_s", "its_s", "leads"), [
    (0.002, 0.003, True), (0.002, 0.005, False), (0.0, 0.005, False), (0.0001, 0.0009, True), (0.0, 0.0, True),
])
def test_a_node_with_a_much_slower_disk_does_not_lead(own_s: float, its_s: float, *, leads: bool) -> None:
    world = cluster(50, 50, 80)
    measured(world, ["n1", "n2"], own_s)
    measured(world, ["n3"], its_s)
    assert leads_for(world, "n1", REST_S + MARGIN_S) is not leads


def measured(world: SmallCluster, names: Iterable[str], sync_s: float) -> None:
    """Let these nodes find that a sync takes this long."""
    for name in names:
        world[name].up.leadership.preference.mean_sync_s = lambda now: sync_s


@pytest.mark.parametrize("trouble", ["offline", "down"])
def test_a_node_that_cannot_lead_now_is_not_waited_for(trouble: str) -> None:
    world = cluster(50, 50, 80)
    if trouble == "down":
        world.kill("n3")
    else:
        world["n3"].up.leadership.online = False
    assert leads_for(world, "n1", 2 * REST_S)
    if trouble == "down":
        world.start("n3")
    else:
        world["n3"].up.leadership.online = True
    follows(world, "n3")


def test_a_handover_that_fails_is_given_up() -> None:
    world = cluster(50, 50, 80)
    world["n3"].up.transport.elections.timeout_now = lambda peer, message: None   # type: ignore[method-assign]
    from sockpqd.cluster.wire.messages import TimeoutNow

    world.filter = lambda source, target, message: not isinstance(message, TimeoutNow)
    world.run(REST_S + MARGIN_S + limits.TRANSFER_S)
    world.run_until(lambda: world.serving() is world["n1"])
    assert leads_for(world, "n1", REST_S - 4 * MARGIN_S)


def test_a_mean_forgets() -> None:
    histogram = Histogram()
    mean = RecentMean(histogram)
    assert mean(0.0) == 0.0
    histogram.observe(0.004)
    assert mean(1.0) == pytest.approx(0.004)
    assert mean(2.0) == pytest.approx(0.004)
    histogram.observe(0.001)
    assert mean(1.0 + HALF_S) == pytest.approx((0.004 / 2 + 0.001) / 1.5)
