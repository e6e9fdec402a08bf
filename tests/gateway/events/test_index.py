"""The subscribers of an event are found by its name, however many names are subscribed to."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from sockpqd.gateway.events.filters import CompiledFilter, Filter
from sockpqd.gateway.events.index import SETS_MAX, Index

NAMES = st.text("ab", max_size=4)
TYPES = ("PUT", "FINQ", "LEADER", "MSG")
FILTERS = st.builds(
    Filter, st.lists(st.sampled_from(TYPES), min_size=1, unique=True).map(tuple),
    st.lists(NAMES, max_size=3).map(tuple), st.lists(NAMES, max_size=3).map(tuple),
)


class Who(Struct, frozen=True, eq=False):
    """A subscriber with its filter."""

    wish: Filter
    wanted: CompiledFilter


def wants(wish: Filter, event_type: str, name: str) -> bool:
    """Return whether the subscription matches, by its definition."""
    return event_type in wish.types and (
        event_type == "LEADER" or wish.everything or name in wish.names or name.startswith(wish.prefixes))


@given(st.lists(FILTERS, max_size=8), st.randoms(use_true_random=False), st.sampled_from(TYPES), NAMES)
def test_those_are_found_who_want_it_and_each_once(
    filters: list[Filter], random: Random, event_type: str, name: str
) -> None:
    index: Index[Who] = Index()
    everybody = [Who(wish, CompiledFilter(wish)) for wish in filters]
    for who in everybody:
        index.add(who)
    gone = random.sample(everybody, len(everybody) // 2)
    for who in gone:
        index.remove(who)
    expected = [who for who in everybody if who not in gone and wants(who.wish, event_type, name)]
    found = index.hearers(event_type, name)
    assert sorted(map(id, found)) == sorted(map(id, expected))
    assert all(who.wanted.wants(event_type, name) for who in expected)
    for who in everybody:
        if who not in gone:
            index.remove(who)
    assert index.looks() == 0


def test_an_event_costs_looks_by_the_lengths_of_prefixes_and_not_by_their_number() -> None:
    index: Index[Who] = Index()
    for number in range(100):
        wish = Filter(("PUT",), (), tuple(f"q{number:03}_{one:03}_" for one in range(1000)))
        index.add(Who(wish, CompiledFilter(wish)))
    assert index.looks() == 2
    assert [who.wish.prefixes[0] for who in index.hearers("PUT", "q007_999_x")] == ["q007_000_"]


def test_many_different_sets_of_types_do_not_cost_looks() -> None:
    index: Index[Who] = Index()
    for number in range(200):
        types = ("PUT", *(f"T{bit}" for bit in range(8) if number >> bit & 1))
        index.add(Who(Filter(types, ("q",)), CompiledFilter(Filter(types, ("q",)))))
    assert index.looks() <= SETS_MAX + 1
    assert len(index.hearers("PUT", "q")) == 200
    assert len(index.hearers("T7", "q")) == 200 - 128
