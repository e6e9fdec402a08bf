"""CLONE: a snapshot that comes through the log (spec/cluster 8.6)."""

from __future__ import annotations

import pytest

from sockpqd.core import (
    Accepted,
    CloneChunk,
    Done,
    Finished,
    Get,
    Handed,
    InvalidSnapshot,
    JobTotals,
    Lead,
    Machine,
    NotFound,
    Operation,
    Put,
    Stored,
    Then,
    Tick,
)
from tests.core.helpers.forge import forged
from tests.core.helpers.forged_frames import END, HEAD, RUNNING, WAITING, changed, running, waiting
from tests.core.helpers.logs import ask, data_of, lead, restored, run, snapshot_of

OTHER = b"another cluster."


def clone_of(snapshot: bytes, clone: int = 1, chunk_bytes: int = 100) -> list[Operation]:
    """Return the operations of a whole CLONE."""
    chunks = [CloneChunk(clone, snapshot[at : at + chunk_bytes]) for at in range(0, len(snapshot), chunk_bytes)]
    return [CloneChunk(clone, total_bytes=len(snapshot)), *chunks, CloneChunk(clone, last=True)]


@pytest.fixture
def machine() -> Machine:
    """Return a machine of the cluster "sixteen bytes id", with two jobs running and one waiting."""
    machine = Machine()
    run(machine, lead(), now_ms=1000)
    ask(machine, *[Put("mine", 0, b"%d" % number) for number in range(3)], Get(("mine",)), Get(("mine",)))
    return machine


def source(cluster_id: bytes, hand_outs: int = 0) -> Machine:
    """Return another machine: its job `running` got the id hand_outs + 1, its job `waiting` waits."""
    machine = Machine()
    run(machine, Lead("x1", 1, ("x1", "x2"), cluster_id, 0, Then.DONE), now_ms=50_000)
    ask(machine, Put("q", 0, b"running", "x"), Put("q", 0, b"waiting"))
    for number in range(1, hand_outs + 1):
        ask(machine, Put("tmp", 0, b"", None, True), Get(("tmp",)), Done(number))
    ask(machine, Get(("q",), 100_000, Then.LATER))
    return machine


def test_clone_replaces_the_jobs_at_its_end(machine: Machine) -> None:
    *begin, end = clone_of(snapshot_of(source(OTHER)))
    applied = run(machine, *begin)
    assert set(applied.replies) == {Accepted()}
    assert not applied.effects.restored
    assert machine.total("mine").queues == 1
    applied = run(machine, end)
    assert applied.replies == [Accepted()]
    assert applied.effects.restored
    assert machine.total("mine").queues == 0
    assert machine.total("q").queues == 1


def test_running_jobs_of_our_own_snapshot_keep_their_ids(machine: Machine) -> None:
    snapshot = snapshot_of(machine)
    ask(machine, Done(1), Done(2))
    ask(machine, *clone_of(snapshot))
    assert [job.id for job in machine.running()] == [1, 2]
    assert ask(machine, Done(1)) == [Finished()]


def test_running_jobs_of_another_cluster_whose_id_was_issued_here_wait(machine: Machine) -> None:
    ask(machine, *clone_of(snapshot_of(source(OTHER))))     # its running job has id 1, which was given here
    assert ask(machine, Done(1)) == [NotFound()]
    assert machine.next_due_ms() is None
    assert machine.ready_of_item("q", "x") == 1
    assert data_of(ask(machine, Get(("q",)), Get(("q",)))) == [b"running", b"waiting"]     # at its old place


def test_running_jobs_of_another_cluster_with_a_new_id_keep_it(machine: Machine) -> None:
    ask(machine, *clone_of(snapshot_of(source(OTHER, hand_outs=5))))
    assert [(job.id, job.deadline_ms) for job in machine.running()] == [(6, 150_000)]
    assert ask(machine, Done(6)) == [Finished(item_done=True)]


@pytest.mark.parametrize(("hand_outs", "next_id"), [(0, 3), (5, 7)])
def test_ids_go_on_from_the_greater_counter(machine: Machine, hand_outs: int, next_id: int) -> None:
    ask(machine, *clone_of(snapshot_of(source(OTHER, hand_outs))))
    (reply,) = ask(machine, Get(("q",)))
    assert isinstance(reply, Handed)
    assert reply.id == next_id


@pytest.mark.parametrize(("here", "there", "name"), [(1, 4, "i5"), (4, 1, "i5")])
def test_item_names_go_on_from_the_greater_counter(machine: Machine, here: int, there: int, name: str) -> None:
    ask(machine, *[Put("mine", 0, b"", None, True)] * here)
    ask(machine, *clone_of(snapshot_of(source(OTHER, there))))
    assert ask(machine, Put("q", 0, b"", None, True)) == [Stored(name)]


def test_new_jobs_come_behind_the_restored_ones(machine: Machine) -> None:
    ask(machine, *clone_of(snapshot_of(source(OTHER, hand_outs=20))), Put("q", 0, b"new"))
    assert data_of(ask(machine, Get(("q",)), Get(("q",)))) == [b"waiting", b"new"]


def test_what_belongs_to_the_cluster_is_not_taken(machine: Machine) -> None:
    ask(machine, *clone_of(snapshot_of(source(OTHER))))
    assert machine.cluster_id == b"sixteen bytes id"
    assert machine.server_ids == {"n1": 1, "n2": 2, "n3": 3}
    assert (machine.leader, machine.term, machine.index) == ("n1", 1, 3)
    assert machine.clock_ms == 1000
    ask(machine, Get(("q",), 1))                            # our default is LATER, theirs was DONE
    run(machine, Tick(), now_ms=2000)
    assert machine.total("q").jobs == 2


def test_leases_of_our_own_snapshot_go_on(machine: Machine) -> None:
    ask(machine, Put("p", 0, b""), Get(("p",), 500))
    snapshot = snapshot_of(machine)
    ask(machine, Done(3), *clone_of(snapshot))
    assert machine.next_due_ms() is not None
    run(machine, Tick(), now_ms=1600)
    assert machine.ready("p") == 1


@pytest.mark.parametrize("dropping", [CloneChunk(2, total_bytes=5), lead("n2", 2)])
def test_unfinished_clone_is_dropped_by_the_next_one_and_by_a_lead(machine: Machine, dropping: Operation) -> None:
    *begin, end = clone_of(snapshot_of(source(OTHER)))
    ask(machine, *begin, dropping)
    assert ask(machine, end) == [InvalidSnapshot()]
    assert machine.total("mine").queues == 1


def test_chunks_of_a_dropped_clone_do_not_get_into_the_next(machine: Machine) -> None:
    one = clone_of(snapshot_of(source(OTHER)), clone=1)
    two = clone_of(snapshot_of(source(OTHER)), clone=2)
    replies = ask(machine, *one[:2], two[0], one[2], *two[1:])
    assert replies == [Accepted()] * 3 + [InvalidSnapshot()] + [Accepted()] * (len(two) - 1)
    assert machine.total("q").queues == 1


def test_clone_without_begin_is_invalid(machine: Machine) -> None:
    assert ask(machine, CloneChunk(1, b"x"), CloneChunk(1, last=True)) == [InvalidSnapshot()] * 2


@pytest.mark.parametrize("missing", [0, 1, 2])
def test_clone_with_a_piece_missing_is_invalid_and_changes_nothing(machine: Machine, missing: int) -> None:
    operations = clone_of(snapshot_of(source(OTHER)), chunk_bytes=50)
    del operations[1 + missing]
    before = machine.total(None)
    assert ask(machine, *operations)[-1] == InvalidSnapshot()
    assert machine.total(None) == before


@pytest.mark.parametrize("announced", [-1, 0, 10, 10**9, 10**40])
def test_clone_of_another_size_than_announced_is_invalid(machine: Machine, announced: int) -> None:
    operations = clone_of(snapshot_of(source(OTHER)))
    replies = ask(machine, CloneChunk(1, total_bytes=announced), *operations[1:])
    assert replies[-1] == InvalidSnapshot()
    assert machine.total("mine").queues == 1


def test_damaged_clone_is_invalid_and_leaves_no_chunk_behind(machine: Machine) -> None:
    snapshot = bytearray(snapshot_of(source(OTHER)))
    snapshot[-40] ^= 1
    before = machine.running(), machine.total(None)
    applied = run(machine, *clone_of(bytes(snapshot)))
    assert applied.replies[-1] == InvalidSnapshot()
    assert not applied.effects.restored
    assert (machine.running(), machine.total(None)) == before
    assert b"clone" not in snapshot_of(machine)


def test_bad_chunk_drops_the_clone_at_once(machine: Machine) -> None:
    ask(machine, CloneChunk(1, total_bytes=1000), CloneChunk(1, b"PQR"))
    assert b"clone" in snapshot_of(machine)
    assert ask(machine, CloneChunk(1, b"this is no snapshot")) == [InvalidSnapshot()]
    assert b"clone" not in snapshot_of(machine)


def test_pending_clone_survives_a_snapshot(machine: Machine) -> None:
    *begin, end = clone_of(snapshot_of(source(OTHER)), chunk_bytes=7)
    for length in range(1, len(begin) + 1):
        first = restored(snapshot_of(machine))
        ask(first, *begin[:length])
        copy = restored(snapshot_of(first))
        assert ask(copy, *begin[length:], end)[-1] == Accepted()
        assert data_of(ask(copy, Get(("q",)))) == [b"running"]


def test_clone_of_a_snapshot_with_a_pending_clone_takes_the_jobs_only(machine: Machine) -> None:
    other = source(OTHER)
    ask(other, *clone_of(snapshot_of(source(OTHER)))[:2])
    assert ask(machine, *clone_of(snapshot_of(other)))[-1] == Accepted()
    assert machine.total("q") == JobTotals(1, 1, 2, 0)
    assert b"clone" not in snapshot_of(machine)


def test_snapshots_inside_each_other_do_not_exhaust_the_stack(machine: Machine) -> None:
    snapshot = b"x"
    for _ in range(1500):
        snapshot = forged(HEAD, ["clone", 1, len(snapshot)], ["chunk", snapshot], ["end", 0, 0])
    assert ask(machine, *clone_of(snapshot, chunk_bytes=1 << 20))[-1] == Accepted()
    assert machine.total(None) == JobTotals(0, 0, 0, 0)


@pytest.mark.parametrize("name", ["", "a b", "a\r\nDONE 1", "-a", "ä", "x" * 256])
def test_names_the_protocol_does_not_know_are_invalid(machine: Machine, name: str) -> None:
    for frames in (
        (HEAD, waiting([0, 3, None, b""], queue=name), ["end", 1, 0]),
        (HEAD, waiting([0, 3, name, b""]), ["end", 1, 0]),
        (HEAD, running(1, name), ["end", 0, 1]),
        (HEAD, running(4, name), ["end", 0, 1]),
    ):
        assert ask(machine, *clone_of(forged(*frames)))[-1] == InvalidSnapshot()
        restored(forged(*frames))       # as a snapshot of our own it is readable, whatever the rules have become


@pytest.mark.parametrize("at", [9, 10, 11])
def test_counters_near_their_end_are_invalid(machine: Machine, at: int) -> None:
    snapshot = forged(changed(HEAD, at, 2**62 + 1), WAITING, RUNNING, END)
    assert ask(machine, *clone_of(snapshot))[-1] == InvalidSnapshot()
    ask(machine, *clone_of(forged(changed(HEAD, at, 2**62), WAITING, RUNNING, END)))
    ask(machine, *[Put("q", 0, b"", None, True)] * 3, *[Get(None, 10**40)] * 3)
    assert snapshot_of(restored(snapshot_of(machine))) == snapshot_of(machine)
