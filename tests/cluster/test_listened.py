"""The number of subscribers of a channel is found by its name."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sockpqd.cluster.api import Channels
from sockpqd.cluster.forwarding.listened import Listened

NAMES = st.lists(st.text("ab", max_size=3), max_size=3)


@given(st.lists(st.tuples(NAMES, NAMES, st.integers(1, 5)), max_size=6), st.text("ab", max_size=4))
def test_each_group_that_wants_the_channel_counts_once(channels: list[Channels], channel: str) -> None:
    wanted = [
        count for names, prefixes, count in channels if channel in names or channel.startswith(tuple(prefixes))
    ]
    assert Listened(channels).listening(channel) == sum(wanted)


def test_a_channel_costs_looks_by_the_lengths_of_prefixes_and_not_by_their_number() -> None:
    prefixes, names = [f"c{number:04}" for number in range(5000)], [f"n{number}" for number in range(5000)]
    listened = Listened([([], prefixes, 1), (names, [], 2)])
    assert listened.looks() == 2
    assert [listened.listening(channel) for channel in ("c0007.x", "n7", "c7")] == [1, 2, 0]
