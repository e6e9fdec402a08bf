"""Laws of the events of every log; the reference model judges whether they are right."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sockpqd.core import EVENT_TYPES, Event, Machine
from tests.core.helpers.logs import LAW, LogEntry, random_log, restored, snapshot_of
from tests.core.helpers.time_logs import time_logs

TYPES = st.sets(st.sampled_from(EVENT_TYPES))


def heard(machine: Machine, log: list[LogEntry]) -> list[list[Event]]:
    """Return the events of each entry."""
    return [machine.apply(machine.index + 1, *entry).events for entry in log]


@LAW
@given(time_logs, TYPES)
def test_events_are_the_same_whoever_listens_and_from_every_snapshot_on(log: list[LogEntry], types: set[str]) -> None:
    deaf, all_ears, picky = Machine(), Machine(), Machine()
    all_ears.record(EVENT_TYPES)
    picky.record(types)
    seqs = []
    for entry in log:
        assert heard(deaf, [entry]) == [[]]
        (every,) = heard(all_ears, [entry])
        seqs += [event.seq for event in every]
        (some,) = heard(picky, [entry])
        assert some == [event for event in every if event.type in types]
        assert deaf.event_seq == picky.event_seq == all_ears.event_seq
    assert seqs == list(range(1, all_ears.event_seq + 1))        # with all types recorded there is no gap
    assert snapshot_of(deaf) == snapshot_of(all_ears)
    assert_events_from_every_snapshot_on_are_those_of_the_whole_log(log)


def assert_events_from_every_snapshot_on_are_those_of_the_whole_log(log: list[LogEntry]) -> None:
    """Assert that a node which begins with a snapshot has the events that the others have."""
    whole = Machine()
    whole.record(EVENT_TYPES)
    prefixes = [snapshot_of(whole)]
    every = []
    for entry in log:
        every += heard(whole, [entry])
        prefixes.append(snapshot_of(whole))
    for length, prefix in enumerate(prefixes):
        machine = restored(prefix)
        machine.record(EVENT_TYPES)
        assert heard(machine, log[length:]) == every[length:]


def test_a_node_that_restores_a_snapshot_goes_on_recording() -> None:
    log = random_log(3, 200)
    whole, away = Machine(), Machine()
    whole.record(["TAKE"])
    away.record(["TAKE"])
    heard(whole, log[:150])
    away.restore(whole.snapshot())
    rest = heard(whole, log[150:])
    assert heard(away, log[150:]) == rest
    assert any(rest)
