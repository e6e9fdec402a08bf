"""After a failed sync nothing on the disk is believed: Linux shows bytes that are not there, and syncs them no more."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from cluster import limits
from cluster.journal.journal import Journal
from core import Put
from tests.cluster.helpers.faulty_disk import FaultyDisk
from tests.cluster.helpers.memory_disk import MemoryDisk
from tests.cluster.helpers.small_cluster import SmallCluster

JOURNAL = Path("/journal")


def opened(disk: MemoryDisk | FaultyDisk) -> Journal:
    return Journal.open(JOURNAL, disk, segment_bytes=1 << 16)


def failed_journal(disk: MemoryDisk, lengths: tuple[int, ...] = (10,)) -> None:
    """A process that acknowledged entry 1, could not sync a frame with the entries from 2 on, and ended."""
    journal = opened(disk)
    journal.add(b"acknowledged", 1, 1)
    journal.setCurrentTerm(1, "n2")
    journal.sync()
    for index, length in enumerate(lengths, 2):
        journal.add(b"x" * length, index, 1)
    disk.failing_syncs = 1
    with pytest.raises(OSError, match="Input/output error"):
        journal.sync()
    disk.end_process()


@pytest.mark.parametrize("lengths", [(10,), (3000,), (5000, 9000)], ids=["sector", "pages", "entries"])
def test_a_restarted_node_vouches_for_nothing_that_is_not_on_its_disk(lengths: tuple[int, ...]) -> None:
    disk = MemoryDisk()
    failed_journal(disk, lengths)
    journal = opened(disk)
    assert (journal.last_index, journal.durable_index) == (1, 1)
    journal.close()
    disk.crash()
    journal = opened(disk)
    assert (journal.last_index, journal.getCurrentTerm(), journal.getVotedForNodeId()) == (1, 1, "n2")


def test_its_journal_goes_on_from_there() -> None:
    disk = MemoryDisk()
    failed_journal(disk, (5000, 9000))
    journal = opened(disk)
    journal.add(b"another", 2, 3)
    journal.sync()
    disk.crash()
    journal = opened(disk)
    assert (journal.last_index, journal.entry(2)) == (2, (b"another", 2, 3))


def test_a_vote_that_could_not_be_synced_is_not_remembered_as_one() -> None:
    disk = MemoryDisk()
    opened(disk).close()
    journal = opened(disk)
    journal.setCurrentTerm(5, "n3")
    disk.failing_syncs = 1
    with pytest.raises(OSError, match="Input/output error"):
        journal.sync()
    disk.end_process()
    assert opened(disk).getCurrentTerm() == 0


def test_a_disk_that_still_fails_is_not_believed() -> None:
    disk = MemoryDisk()
    failed_journal(disk)
    disk.failing = OSError(errno.EIO, "Input/output error")
    with pytest.raises(OSError, match="Input/output error"):
        opened(disk)


class LosesProcesses(SmallCluster):
    """A node that fails ends, but its machine goes on."""

    def kill(self, name: str, *, power: bool = False) -> None:
        disk = self.nodes[name].disk
        crash = disk.crash
        disk.crash = crash if power else disk.end_process     # type: ignore[method-assign]
        super().kill(name)
        disk.crash = crash                                     # type: ignore[method-assign]


def lose_power(world: LosesProcesses, back: list[str]) -> None:
    """The power fails at the whole site; only these machines come back."""
    for name in world.nodes:
        if world[name].driver is not None:
            world.kill(name, power=True)
        else:
            world[name].disk.crash()
    world.heal()
    for name in back:
        world.start(name)


def test_what_a_client_was_answered_survives_a_failed_sync_and_a_loss_of_power_and_of_a_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "REENTRY_S", 0.1)       # it counts again before the leader gives up
    world = LosesProcesses()
    leader = world.leader().name
    world.put_now(b"first")
    world.run(1)
    failing, away = (node.name for node in world.followers())
    world.cut(away, f"{leader} {failing}")
    world.run(0.05)
    world[failing].disk.failing_syncs = 1
    outcome = world[leader].propose(Put("q", 0, b"precious"))
    world.run(0.05)
    assert isinstance(world[failing].failure, OSError)
    assert outcome.state == "open"
    world.start(failing)
    world.run_until(lambda: outcome.state != "open", 3)
    assert outcome.state == "applied"
    lose_power(world, [failing, away])
    world.run_until(world.serving)
    assert world.bodies(world.leader().name) == [b"first", b"precious"]
