"""A node sets its damaged files aside, and remembers that however often it is interrupted."""

from __future__ import annotations

import errno
import random
from pathlib import Path

import msgspec
import pytest

from sockpqd.cluster.damage.rejoin import HOUR_S, Rejoin
from sockpqd.cluster.journal.journal import Journal
from sockpqd.cluster.settings import NodeSettings
from sockpqd.cluster.storage.errors import START_EMPTY, JournalDamaged, RejoinNeeded, StorageDamaged
from tests.cluster.helpers.faulty_disk import Crash, FaultyDisk

DATA = Path("/data")
FILES = ("/data/journal/journal-00000001", "/data/snapshots/snapshot-0000000000000007")


class Machine:
    """A disk, a clock, and a node whose files are damaged as long as they are there."""

    def __init__(self) -> None:
        self.disk = FaultyDisk()
        self.now_s = 1_700_000_000
        self.opened = 0

    def damage(self) -> None:
        for name in FILES:
            self.disk.close(self.disk.create(Path(name)))
            self.disk.sync_directory(Path(name).parent)

    def start(self, per_hour: int = 3, *, may: bool = True) -> Rejoin:
        rejoining = Rejoin(self.disk, NodeSettings(
            "n1", DATA, "", (), "test", rejoin=may, rejoins_per_hour=per_hour,
        ), lambda: self.now_s)
        rejoining.open(self.files)
        return rejoining

    def files(self) -> None:
        if any(name in self.disk.names_now for name in FILES):
            raise JournalDamaged(f"it is damaged. {START_EMPTY}")
        self.opened += 1

    def folders(self) -> set[str]:
        return {name.split("/")[2] for name in self.disk.names_now if name.startswith("/data/damaged-")}


def test_damaged_files_are_set_aside_and_the_node_has_forgotten(caplog: pytest.LogCaptureFixture) -> None:
    machine = Machine()
    machine.damage()
    rejoining = machine.start()
    assert machine.opened == 1
    assert rejoining.waiting
    assert machine.folders() == {f"damaged-{machine.now_s}"}
    assert rejoining.folder in caplog.text
    assert START_EMPTY not in caplog.text           # the node does it itself
    assert machine.start().waiting                  # also another time, when nothing is damaged


def test_a_sound_node_remembers_nothing() -> None:
    machine = Machine()
    assert not machine.start().waiting
    assert not machine.disk.names_now


def test_a_node_that_may_not_rejoin_refuses_and_touches_nothing() -> None:
    machine = Machine()
    machine.damage()
    with pytest.raises(JournalDamaged):
        machine.start(may=False)
    assert set(machine.disk.names_now) == set(FILES)


def test_too_often_within_an_hour_is_refused_and_later_allowed_again() -> None:
    machine = Machine()
    for _ in range(3):
        machine.damage()
        machine.start()
        machine.now_s += 60
    machine.damage()
    with pytest.raises(StorageDamaged, match=r"node.rejoins_per_hour = 3.*Stop it, move its data directory away"):
        machine.start()
    machine.now_s += HOUR_S
    machine.start()


def test_zero_is_no_limit_and_the_newest_two_folders_are_kept() -> None:
    machine = Machine()
    for _ in range(6):
        machine.damage()
        machine.start(per_hour=0)               # all in one second
    first = machine.now_s
    assert machine.folders() == {f"damaged-{first + 4}", f"damaged-{first + 5}"}


def test_what_was_set_aside_is_deleted_when_its_room_is_needed(caplog: pytest.LogCaptureFixture) -> None:
    machine = Machine()
    assert not machine.start().forget_damaged()             # there is none
    for _ in range(2):
        machine.damage()
        rejoining = machine.start()
    assert len(machine.folders()) == 2
    assert rejoining.forget_damaged()
    assert "are deleted" in caplog.text
    assert machine.folders() == set()
    assert rejoining.waiting                                # it is no voter for that
    assert not rejoining.forget_damaged()
    machine.damage()
    assert machine.start().folder.endswith(f"damaged-{machine.now_s}")


def test_files_that_a_next_start_is_to_set_aside_are_not_deleted() -> None:
    machine = Machine()
    machine.damage()
    rejoining = machine.start()
    rejoining.order(JournalDamaged("again"))
    assert not rejoining.forget_damaged()
    assert len(machine.folders()) == 1


def test_damaged_files_that_cannot_be_deleted_are_not_room(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
) -> None:
    machine = Machine()
    machine.damage()
    rejoining = machine.start()

    def fail(path: Path) -> None:
        raise OSError(errno.EIO, "no")
    monkeypatch.setattr(machine.disk, "unlink", fail)
    assert not rejoining.forget_damaged()
    assert "cannot be deleted" in caplog.text


@pytest.mark.parametrize("seed", range(5))
def test_a_crash_at_any_step_loses_no_file_and_the_next_start_goes_on(seed: int) -> None:
    whole = Machine()
    whole.damage()
    begun = whole.disk.steps
    whole.start()
    for step in range(begun, whole.disk.steps):
        machine = Machine()
        machine.damage()
        machine.disk.crash_at = step
        with pytest.raises(Crash):
            machine.start()
        machine.disk.crash(random.Random(seed))
        rejoining = machine.start(per_hour=2)
        assert rejoining.waiting
        assert machine.opened >= 1
        names = {Path(name).name for name in machine.disk.names_now if "/damaged-" in name}
        assert names == {Path(name).name for name in FILES}, step


def test_a_running_node_orders_it_and_the_next_start_does_it() -> None:
    machine = Machine()
    rejoining = machine.start()
    for name in FILES:
        machine.disk.close(machine.disk.create(Path(name)))
    error = rejoining.order(JournalDamaged(f"its end is missing. {START_EMPTY}"))
    assert isinstance(error, RejoinNeeded)
    assert not machine.folders()
    machine.opened = 0
    after = Rejoin(machine.disk, NodeSettings("n1", DATA, "", (), "test", rejoin=True), lambda: machine.now_s)
    after.open(machine.files)
    assert machine.opened == 1
    assert machine.folders()
    assert after.waiting


def test_an_order_that_is_refused_is_the_damage_itself() -> None:
    machine = Machine()
    rejoining = machine.start(may=False)
    error = JournalDamaged("its end is missing")
    assert rejoining.order(error) is error


def test_a_file_that_cannot_be_read_makes_the_node_a_forgetful_one() -> None:
    machine = Machine()
    file = machine.disk.create(DATA / "rejoins")
    machine.disk.write(file, [b"\x00rubbish"], 0)
    machine.disk.close(file)
    assert machine.start().waiting


def test_a_forgetful_journal_is_not_empty_and_an_admitted_one_is_not_forgetful() -> None:
    machine = Machine()
    machine.damage()
    rejoining = machine.start()
    journal = Journal.open(Path("/journal"), machine.disk)
    assert journal.empty
    rejoining.tell(journal)
    assert not journal.empty
    journal.set_voter()
    rejoining.tell(journal)
    assert not rejoining.waiting
    assert not msgspec.json.decode(machine.disk.file(DATA / "rejoins"))["waiting"]
    journal.close()


# Files that are in the way of the leader's state

WHY = "There is no room."


@pytest.mark.parametrize("call", ["sync_directory", "rename"])
def test_a_note_that_may_be_on_the_disk_ends_the_node(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that went on acknowledging would delete that at some later start."""
    machine = Machine()
    rejoining = machine.start()
    machine.damage()

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space")
    monkeypatch.setattr(machine.disk, call, fail)
    error = rejoining.delete(WHY)
    monkeypatch.undo()
    assert (error is None) == (call == "rename")
    machine.start()
    assert (machine.folders() == set()) == (call == "sync_directory")      # deleted, or set aside as they are damaged


def test_files_in_the_way_are_deleted_by_the_next_start() -> None:
    machine = Machine()
    rejoining = machine.start()
    machine.damage()                            # files, at any rate
    error = rejoining.delete(WHY)
    assert isinstance(error, RejoinNeeded)
    assert str(error).startswith(WHY)
    assert set(FILES) < set(machine.disk.names_now)     # this process still uses them
    after = machine.start()
    assert not set(FILES) & set(machine.disk.names_now)
    assert machine.folders() == set()
    assert after.waiting
    journal = Journal.open(Path("/journal"), machine.disk)
    after.tell(journal)
    assert (journal.empty, journal.forgetful, journal.deleted) == (False, True, True)
    journal.set_voter()
    after.tell(journal)
    journal.close()
    machine.damage()                            # damaged files are set aside as before
    machine.start()
    assert machine.folders() == {f"damaged-{machine.now_s}"}


@pytest.mark.parametrize("seed", range(3))
def test_a_crash_at_any_step_of_that_leaves_all_files_or_a_node_that_knows(seed: int) -> None:
    def begin() -> tuple[Machine, Rejoin]:
        machine = Machine()
        rejoining = machine.start()
        machine.damage()
        return machine, rejoining

    def go_on(machine: Machine, rejoining: Rejoin) -> None:
        rejoining.delete(WHY)
        machine.start()

    whole, rejoining = begin()
    begun = whole.disk.steps
    go_on(whole, rejoining)
    assert whole.disk.steps > begun + 5
    for step in range(begun, whole.disk.steps):
        machine, rejoining = begin()
        machine.disk.crash_at = step
        with pytest.raises(Crash):
            go_on(machine, rejoining)
        machine.disk.crash(random.Random(seed))
        there = [name in machine.disk.names_now for name in FILES]
        after = Rejoin(machine.disk, NodeSettings("n1", DATA, "", (), "test", rejoin=True), lambda: 1_700_000_000)
        after.open(lambda: None)
        assert after.waiting or all(there), step
        if after.waiting:
            assert not set(FILES) & set(machine.disk.names_now), step


@pytest.mark.parametrize("what", ["not allowed", "too often", "no room"])
def test_they_stay_where_that_may_or_can_not_be(what: str, caplog: pytest.LogCaptureFixture) -> None:
    machine = Machine()
    rejoining = machine.start(may=what != "not allowed", per_hour=1)
    if what == "too often":
        machine.damage()
        rejoining = machine.start(per_hour=1)
    machine.damage()
    if what == "no room":
        machine.disk.free_bytes = 0
    assert rejoining.delete(WHY) is None
    assert f"{WHY} The node keeps them: " in caplog.text
    machine.disk.free_bytes = None
    if what == "no room":
        assert isinstance(rejoining.delete(WHY), RejoinNeeded)      # it can, once there is some
    else:
        before = machine.folders()
        with pytest.raises(StorageDamaged):
            machine.start(may=what != "not allowed", per_hour=1)
        assert set(FILES) <= set(machine.disk.names_now)
        assert machine.folders() == before
