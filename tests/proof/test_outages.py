"""The shapes of networks in which packets are lost."""

from __future__ import annotations

import random

import pytest

from tests.proof.network import CLIENTS
from tests.proof.outages import SHAPES, pairs_of

THREE, FIVE = ["n1", "n2", "n3"], ["n1", "n2", "n3", "n4", "n5"]


def seen_by(names: list[str], lost: set[tuple[str, str]], name: str) -> set[str]:
    """The other machines that exchange packets with this one."""
    return {other for other in (*names, CLIENTS) if other != name and not {(name, other), (other, name)} & lost}


@pytest.mark.parametrize("names", [THREE, FIVE], ids=["three", "five"])
@pytest.mark.parametrize("shape", SHAPES)
def test_packets_are_lost_between_machines_that_are_there(shape: str, names: list[str]) -> None:
    for seed in range(30):
        lost = pairs_of(shape, names, random.Random(seed))
        assert lost
        assert {name for pair in lost for name in pair} <= {*names, CLIENTS}
        assert all(a != b for a, b in lost)
        if shape != "one way":
            assert lost == {(b, a) for a, b in lost}


def test_one_is_cut_off() -> None:
    lost = pairs_of("cut off", FIVE, random.Random(1))
    assert sorted(len(seen_by(FIVE, lost, name)) for name in FIVE) == [0, 4, 4, 4, 4]


def test_halves_do_not_see_each_other() -> None:
    for seed in range(20):
        lost = pairs_of("halves", FIVE, random.Random(seed))
        groups = {frozenset({name, *seen_by(FIVE, lost, name)} - {CLIENTS}) for name in FIVE}
        assert sorted(map(len, groups)) == [2, 3]


def test_a_bridge_sees_all() -> None:
    for seed in range(20):
        lost = pairs_of("bridge", FIVE, random.Random(seed))
        seen = sorted(len(seen_by(FIVE, lost, name) - {CLIENTS}) for name in FIVE)
        assert seen == [2, 2, 2, 2, 4]


def test_in_a_ring_each_sees_two() -> None:
    lost = pairs_of("ring", FIVE, random.Random(3))
    assert [len(seen_by(FIVE, lost, name) - {CLIENTS}) for name in FIVE] == [2] * 5


def test_one_way_is_one_way() -> None:
    for seed in range(20):
        lost = pairs_of("one way", THREE, random.Random(seed))
        assert not lost & {(b, a) for a, b in lost}
