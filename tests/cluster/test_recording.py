"""Which types of events a node records."""

from __future__ import annotations

from cluster.limits import RECORDED_S
from cluster.recording import Recording
from core import Machine, Put


def test_a_type_is_recorded_while_it_is_subscribed_anywhere_and_for_a_while_after() -> None:
    machine = Machine()
    changes: list[set[str]] = []
    recording = Recording(machine, lambda types: changes.append({*types}))
    recording.subscribed({"PUT"}, 0.0)
    recording.heard(("FINQ",), 10.0)
    recording.heard((), 11.0)
    recording.subscribed(frozenset(), 20.0)
    recording.update(10.0 + RECORDED_S - 1)
    assert changes == [{"PUT"}, {"PUT", "FINQ"}]
    assert len(machine.apply(1, 0, 0, [Put("q", 0, b"")]).events) == 1
    recording.update(10.0 + RECORDED_S)
    recording.update(20.0 + RECORDED_S)
    assert changes[2:] == [{"PUT"}, set()]
    assert machine.apply(2, 0, 0, [Put("q", 0, b"")]).events == []


def test_what_is_subscribed_here_is_recorded_for_ever() -> None:
    changes: list[set[str]] = []
    recording = Recording(Machine(), lambda types: changes.append({*types}))
    recording.subscribed({"PUT"}, 0.0)
    for now in (100.0, 1000.0):
        recording.update(now)
    assert changes == [{"PUT"}]
