"""The state that a journal's records add up to."""

from __future__ import annotations

import pytest

from sockpqd.cluster.journal.journal_state import JournalState


def state_of(places: list[int], covered: int) -> JournalState:
    """Return a state with entries from 1 on in these segments, up to `covered` in the newest snapshot."""
    state = JournalState()
    for index, segment in enumerate(places, 1):
        state.table.append(index, 1, 10, 0)
        state.table.put(index, segment, 0)
    state.covered = covered
    return state


@pytest.mark.parametrize(("places", "covered", "several"), [
    ([1, 1, 2], 3, True), ([1, 2, 2], 2, True),
    ([1, 2, 2], 1, False),              # the only covered entry
    ([1, 1, 2], 2, False),              # all of them in one segment
    ([1, 1, 2], 0, False),              # no snapshot
    ([1, 1, 2], 4, False),              # a snapshot of what is not in the journal
    ([], 1, False),
])
def test_whether_covered_entries_begin_in_an_older_segment_than_they_end(
    places: list[int], covered: int, several: bool,
) -> None:
    assert state_of(places, covered).several_segments_covered() is several
