"""Snapshots that older programs left on disks."""

from __future__ import annotations

from pathlib import Path

import pytest

from core import (
    Accepted,
    Address,
    CloneChunk,
    CloneEnd,
    Get,
    Handed,
    JobState,
    Lead,
    Machine,
    Membership,
    Put,
    Stored,
    Then,
    Totals,
)
from tests.core.forged_frames import FORMAT_1
from tests.core.format1_log import MEMBERS, START_MS, log
from tests.core.logs import ask, data_of, restored
from tests.core.test_clone import clone_of

SNAPSHOT = (Path(__file__).parent / "data" / "format1.snapshot").read_bytes()


@pytest.fixture
def machine() -> Machine:
    """Restored from the snapshot of format 1."""
    return restored(SNAPSHOT)


def test_waiting_jobs_of_format_1_are_there_in_their_order(machine: Machine) -> None:
    assert machine.total(None) == Totals(queues=3, priorities=5, jobs=8, running=4)
    assert list(machine.nonempty()) == ["mail", "print", "scan"]
    assert data_of(ask(machine, *[Get(("mail",))] * 7)) == [
        b"mail 5", b"mail 4", b"mail 7", b"mail 0", b"mail 3", b"mail 6",
    ]
    assert machine.ready_of_item("scan", "i2") == 1
    assert data_of(ask(machine, Get(("scan",), item="i2"), Get(("print",)))) == [b"newer", b"x" * 300]


def test_running_jobs_of_format_1_run_on(machine: Machine) -> None:
    assert [
        (job.id, job.queue, job.priority, job.data, job.item, job.deadline_ms, job.then, job.graced)
        for job in machine.running()
    ] == [
        (3, "mail", 1, b"mail 1", None, START_MS + 10_700, Then.DONE, True),
        (4, "print", 2**63 - 1, b"", "order", START_MS + 90_500, Then.DONE, False),
        (5, "scan", 0, b"new", "i1", START_MS + 50_600, Then.DONE, False),
        (6, "mail", -5, b"\0\xff\r\n", "order", None, Then.LATER, False),
    ]


def test_counters_of_format_1_go_on(machine: Machine) -> None:
    assert (machine.index, machine.term, machine.leader) == (8, 4, "n2")
    assert (machine.clock_ms, machine.cluster_id) == (START_MS + 800, b"sixteen bytes id")
    replies = ask(machine, Get(("print",)), Put("scan", 0, b"", None, True))
    assert replies == [Handed(7, "print", -(2**63), b"x" * 300), Stored("i3")]


def test_members_of_format_1_are_those_with_a_server_id(machine: Machine) -> None:
    assert (machine.server_ids, machine.max_id) == ({"n2": 2, "n3": 3, "n1": 4}, 4)
    assert machine.membership == Membership({name: Address(name) for name in MEMBERS}, learner=None, configuration=0)
    assert machine.membership.voters == MEMBERS
    assert machine.online


def test_addresses_missing_in_format_1_are_told_by_the_next_leader(machine: Machine) -> None:
    told = tuple(Address(name, f"{name}:1", f"{name}:2") for name in MEMBERS)
    ask(machine, Lead("n1", 5, MEMBERS, b"", 0, addresses=told))
    assert list(machine.membership.addresses.values()) == list(told)


def test_clone_under_way_in_format_1_goes_on(machine: Machine) -> None:
    assert ask(machine, CloneChunk(7, FORMAT_1[100:]), CloneEnd(7)) == [Accepted()] * 2
    assert machine.total(None) == Totals(2, 2, 4, 0)        # jobs that ran in another cluster wait


def test_clone_of_a_snapshot_of_format_1_is_taken() -> None:
    machine = Machine()
    assert ask(machine, *clone_of(SNAPSHOT))[-1] == Accepted()
    assert machine.total(None) == Totals(3, 5, 8, 4)
    assert machine.membership == Membership()


def jobs_of(machine: Machine) -> list[tuple[object, ...]]:
    """All jobs in their order, but for what no older format knew: attempts."""
    return [
        (job.queue, job.id, job.priority, job.data, job.state, job.item, job.deadline_ms)
        for queue in sorted(machine.queue_names(""))
        for state in JobState
        for job in machine.peek_queue(queue, state, 1000)
    ]


def test_restored_format_1_has_the_jobs_of_its_log_executed_today(machine: Machine) -> None:
    today = Machine()
    for index, operations in enumerate(log(FORMAT_1), start=1):
        today.apply(index, START_MS + 100 * index, index, operations)
    assert jobs_of(machine) == jobs_of(today)
    assert [job.attempts for job in machine.running()] == [1] * 4       # the hand-out that goes on is the first known
    gets = [Get(None, session=None)] * 9
    assert ask(machine, *gets) == ask(today, *gets)
