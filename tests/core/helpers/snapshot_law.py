"""The law of snapshots: from one at any prefix of a log, or cloned from another machine, the rest leads to the same."""

from __future__ import annotations

from sockpqd.core import CloneChunk, Lead, Machine
from tests.core.helpers.agreement import assert_equal_to_model
from tests.core.helpers.logs import CLUSTER, MEMBERS, LogEntry, lead, play, restored, snapshot_of
from tests.core.model.model import Model


def assert_snapshots_continue(log: list[LogEntry]) -> None:
    """Assert that from a snapshot at every prefix the rest of the log leads to the same replies, work and bytes.

    By the work of an entry it ends, and portions in it: it must not depend on what was before the snapshot.
    """
    whole = Machine()
    prefixes = [snapshot_of(whole)]
    outcomes = []
    for answered in play(whole, log):
        outcomes.append((answered, whole._own.spent))
        prefixes.append(snapshot_of(whole))
    for length, prefix in enumerate(prefixes):
        machine = restored(prefix)
        assert snapshot_of(machine) == prefix
        assert [(answered, machine._own.spent) for answered in play(machine, log[length:])] == outcomes[length:]
        assert snapshot_of(machine) == prefixes[-1]


def assert_some_snapshots_continue(log: list[LogEntry], every: int) -> None:
    """Assert the same for a long log: from a snapshot after each `every` entries, and of the bytes at the end only.

    Between two entries the whole run is asked when the next thing is due, as a leader is: nothing depends on that.
    """
    whole = Machine()
    prefixes = {}
    outcomes = []
    for length, answered in enumerate(play(whole, log), start=1):
        outcomes.append((answered, whole._own.spent))
        if length % every == 0:
            prefixes[length] = snapshot_of(whole)
        whole.next_due_ms()
    for length, prefix in prefixes.items():
        machine = restored(prefix)
        assert [(answered, machine._own.spent) for answered in play(machine, log[length:])] == outcomes[length:]
        assert snapshot_of(machine) == snapshot_of(whole)


def before_clone(
    source: list[LogEntry], target: list[LogEntry], chunk_bytes: int, same_cluster: bool
) -> tuple[Machine, Model, LogEntry]:
    """A machine and a model after `target`, and the upload of the snapshot of another one after `source`.

    Only its end is missing. Source and target agree with the model at their ends; on the way only in what is
    answered, as the law of the model alone looks at every entry.
    """
    machine, model = Machine(), Model()
    other, other_model = Machine(), Model()
    for replica in (machine, model):
        replica.apply(1, 0, 0, [lead()])
    for replica in (other, other_model):
        replica.apply(1, 0, 0, [Lead("n1", 1, MEMBERS, CLUSTER if same_cluster else b"another clusters", 0)])
    assert_equal_to_model(source, other, other_model, every=len(source) + 1)
    assert_equal_to_model(target, machine, model, every=len(target) + 1)
    assert other_model.level <= model.level         # no draw raises it; what is refused: core/handlers/test_levels.py
    snapshot = snapshot_of(other)
    model.known_bytes[snapshot] = other_model
    chunks = [CloneChunk(1, snapshot[start : start + chunk_bytes]) for start in range(0, len(snapshot), chunk_bytes)]
    return machine, model, LogEntry(0, 0, [CloneChunk(1, total_bytes=len(snapshot)), *chunks])
