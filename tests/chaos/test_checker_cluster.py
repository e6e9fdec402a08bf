"""The checker's rules about nodes, and the measurement of availability."""

from __future__ import annotations

import pytest

from tests.chaos.checker import Node, availability, rate_before
from tests.chaos.histories.handwritten import REFUSED, UNKNOWN, Written, ns
from tests.chaos.workload.history import Get

# ---- stale


@pytest.mark.parametrize(("start", "end", "broken"), [
    (2.5, 2.6, ["stale"]), (1.5, 1.6, []), (0.5, 2.6, []), (4.5, 5.5, []), (6, 6.1, []),
])
def test_who_is_cut_off_falls_silent_after_a_while(start: float, end: float, broken: list[str]) -> None:
    assert Written().cut("n1", 1, 5).put("A", start, end).broken(cut_grace_ms=1000) == broken


def test_other_nodes_may_answer() -> None:
    assert Written().cut("n1", 1, 5).put("A", 3.5, 3.6, server="n2").broken() == []


def test_to_refuse_is_no_answer() -> None:
    assert Written().cut("n1", 1, 5).put("A", 3.5, 3.6, outcome=REFUSED).broken() == []


@pytest.mark.parametrize(("start", "broken"), [(1.4, ["stale"]), (1.25, [])])
def test_who_is_cut_off_falls_silent_when_another_one_took_over(start: float, broken: list[str]) -> None:
    written = Written().cut("n1", 1, 5).put("A", 1.2, 1.3, server="n2").put("B", start, start + 0.1)
    assert written.broken() == broken


def test_an_answer_of_another_leader_before_the_cut_says_nothing() -> None:
    assert Written().cut("n1", 1, 5).put("A", 0.9, 1.3, server="n2").put("B", 1.4, 1.5).broken() == []


# ---- equality

LEVEL = Node("n1", 7, "abc", (1, 1, 1, 0))


@pytest.mark.parametrize(
    ("other", "broken"),
    [
        (Node("n2", 7, "abc", (1, 1, 1, 0)), []),
        (Node("n2", 8, "abc", (1, 1, 1, 0)), ["equality"]),
        (Node("n2", 7, "abd", (1, 1, 1, 0)), ["equality"]),
        (Node("n2", 7, "abc", (1, 1, 0, 1)), ["equality"]),
    ],
)
def test_all_nodes_are_equal_in_the_end(other: Node, broken: list[str]) -> None:
    assert Written().broken(nodes=(LEVEL, other)) == broken


# ---- availability


def test_availability_is_the_longest_time_without_an_acknowledged_command() -> None:
    written = Written().put("A", 1, 1.5).put("B", 1.6, 2).put("C", 2.1, 2.4, outcome=UNKNOWN).put("D", 2.2, 3.5)
    assert availability(written.history.records) == ns(1.5)
    assert availability(written.history.records, until_ns=ns(2)) == ns(0.5)
    assert availability([]) == 0


def test_an_outage_without_end_is_seen_as_long_as_somebody_tries() -> None:
    written = Written().put("A", 1, 1.1).put("B", 1.2, 4.2, outcome=UNKNOWN)
    assert availability(written.history.records) == ns(4.2) - ns(1.1)


def test_the_rate_before_a_moment() -> None:
    written = Written()
    for number in range(10):
        written.ask(Get(("q",)), 1 + number / 10, 1.05 + number / 10)
    assert rate_before(written.history.records, ns(2)) == 10
    assert rate_before(written.history.records, ns(2), ns(0.5)) == 10
    assert rate_before(written.history.records, ns(3)) == 0
