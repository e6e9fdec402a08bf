"""The events that a node remembers, and the positions from which a subscriber may continue."""

from __future__ import annotations

import pytest

from sockpqd.core import Event
from sockpqd.gateway.events import history
from sockpqd.gateway.events.history import EventHistory


def put(number: int) -> Event:
    return Event(number, "PUT", "q", (0,))


def heard_of(events: EventHistory, after: int) -> list[int]:
    return [event.seq for event, _ in events.after(after)]


def test_nothing_is_known_from_before_the_type_was_recorded() -> None:
    events = EventHistory(4)
    events.record(["PUT"], 4)
    events.add([put(5)])
    events.newest = 5
    assert [events.reaches_back_to(seq, ["PUT"]) for seq in (3, 4, 5)] == [False, True, True]
    assert [events.reaches_back_to(seq, ["DONE"]) for seq in (4, 5)] == [False, True]
    assert not events.reaches_back_to(4, ["PUT", "DONE"])
    events.record(["PUT", "DONE"], 5)           # PUT is recorded as before
    events.newest = 7
    assert [events.reaches_back_to(seq, ["PUT"]) for seq in (3, 4, 6)] == [False, True, True]
    assert [events.reaches_back_to(seq, ["PUT", "DONE"]) for seq in (4, 5, 6)] == [False, True, True]


def test_a_type_that_was_not_recorded_for_a_while_begins_anew() -> None:
    events = EventHistory()
    events.record(["PUT"], 0)
    events.record([], 3)
    events.record(["PUT"], 6)
    events.newest = 8
    assert [events.reaches_back_to(seq, ["PUT"]) for seq in (0, 5, 6)] == [False, False, True]


@pytest.mark.parametrize(("name", "most"), [
    ("EVENT_HISTORY_MAX", 3), ("EVENT_HISTORY_BYTES", 3 * len(b"250 7 PUT q 0\r\n")),
])
def test_the_oldest_are_forgotten(monkeypatch: pytest.MonkeyPatch, name: str, most: int) -> None:
    monkeypatch.setattr(history, name, most)
    events = EventHistory()
    events.record(["PUT"], 0)
    for number in range(1, 8):
        events.add([put(number)])
    events.newest = 9
    assert [events.reaches_back_to(seq, ["PUT"]) for seq in (3, 4)] == [False, True]
    assert (heard_of(events, 4), heard_of(events, 6), heard_of(events, 7)) == ([5, 6, 7], [7], [])


def test_after_another_state_only_the_newest_number_is_known() -> None:
    events = EventHistory()
    events.record(["PUT"], 0)
    events.add([put(1), put(2)])
    events.replace(9)
    assert [events.reaches_back_to(seq, ["PUT"]) for seq in (1, 2, 8, 9)] == [False, False, False, True]
    assert heard_of(events, 0) == []
