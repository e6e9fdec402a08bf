"""The mixing function."""

from __future__ import annotations

from sockpqd.core.store.policies.choice import draw, splitmix64


def test_splitmix64_gives_the_published_numbers() -> None:
    # The first outputs of the reference implementation for the seed 1234567: its state grows by the golden gamma.
    gamma = 0x9E3779B97F4A7C15
    assert [splitmix64(1234567 + step * gamma) for step in range(5)] == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


def test_choice_is_even_also_for_seeds_in_a_row() -> None:
    counts = [0] * 7
    for seed in range(7000):
        counts[draw(7, seed)] += 1
    assert all(900 < count < 1100 for count in counts), counts


def test_any_integer_is_a_seed() -> None:
    assert draw(1, 2**64 + 5) == 0
    assert draw(2, -1) in (0, 1)
