"""Ends of a node that a restart can cure, and the report of an entry on which it fails."""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable
from typing import Any

import pytest

from sockpqd.cluster.errors import ApplyFailed, EntryTooNew, EntryTooOld, FailStop, LibraryMismatch, RaftViolated
from sockpqd.cluster.exit_codes import restart_cures
from sockpqd.cluster.raft.replica_check import Diverged
from sockpqd.cluster.storage.errors import JournalDamaged, JournalTooNew, SnapshotDamaged, SnapshotTooNew, StorageInUse
from sockpqd.core import Done, Operation, Put, Request, Tick
from sockpqd.core.handlers.dispatch import EXECUTE
from sockpqd.core.machine import Machine
from tests.cluster.helpers.small_cluster import SmallCluster


@pytest.mark.parametrize("error", [
    MemoryError(), OSError(errno.ENOSPC, "full"), OSError(errno.EMFILE, "files"), OSError(errno.EIO, "disk"),
    ApplyFailed("a bug"), FailStop("a listener failed"), StorageInUse("by a process that ends"), KeyError("a bug"),
])
def test_what_another_process_may_do_better_is_worth_a_restart(error: BaseException) -> None:
    assert restart_cures(error)


@pytest.mark.parametrize("kind", [
    JournalDamaged, SnapshotDamaged, JournalTooNew, SnapshotTooNew, EntryTooNew, EntryTooOld, RaftViolated,
    Diverged, LibraryMismatch,
])
def test_what_is_the_same_after_every_start_is_not(kind: type[Exception]) -> None:
    assert not restart_cures(kind("for ever"))


def fails(*_: Any) -> Any:
    raise ZeroDivisionError("secret data")


def fail_on(monkeypatch: pytest.MonkeyPatch, *kinds: type) -> None:
    for kind in kinds:
        monkeypatch.setitem(EXECUTE, kind, fails)


CASES: list[tuple[Operation, str]] = [
    (Done(1), "Done"), (Request(1, 1, bytes(16), 0, False, Put("q", 0, b"x")), "Put"),
]


@pytest.mark.parametrize(("operation", "verb"), CASES)
def test_an_entry_on_which_a_node_fails_is_named_with_its_verb_and_what_to_do(
    operation: Operation, verb: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
) -> None:
    fail_on(monkeypatch, Done, Request)
    failed_with(operation, verb, caplog)


def test_so_is_one_that_only_lets_time_pass(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    world = SmallCluster(1)
    leader = world.leader()
    monkeypatch.setattr("sockpqd.core.machine.end_due", fails)
    told(world, leader.up.journal.last_index + 1, "time", lambda: leader.propose(Tick()), caplog)


def failed_with(operation: Operation, verb: str, caplog: pytest.LogCaptureFixture) -> None:
    world = SmallCluster(1)
    leader = world.leader()
    leader.propose(Put("q", 0, b"x"))
    told(world, leader.up.journal.last_index + 1, verb, lambda: leader.propose(operation), caplog)


def told(
    world: SmallCluster, index: int, verb: str, propose: Callable[[], Any], caplog: pytest.LogCaptureFixture,
) -> None:
    propose()
    with caplog.at_level(logging.CRITICAL):
        world.run(0.1)
    node = next(iter(world))
    assert isinstance(node.failure, ApplyFailed)
    assert restart_cures(node.failure)
    (line,) = caplog.messages
    assert line.startswith(f"entry {index} ({verb}) cannot be applied: ZeroDivisionError in ")
    assert "replace the node" in line
    assert "upgrade all" in line
    assert "never skipped" in line
    assert "secret" not in line


def test_a_machine_that_did_not_fail_names_nothing() -> None:
    machine = Machine()
    machine.apply(1, 1, 1, [Tick()])
    assert machine.failed is None
