"""The real journal and the real machine, which report their calls to the checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from sockpqd.cluster.journal.journal import Journal
from sockpqd.cluster.storage.fork import BackgroundTask
from sockpqd.core import Applied, Machine, Operation, PageLost, level_of
from sockpqd.core.handlers import dispatch
from sockpqd.core.levels import FIELD_LEVELS, FIRST_LEVEL
from tests.sim.world.disk import SimDisk
from tests.sim.world.trace import Violation

if TYPE_CHECKING:
    from tests.sim.world.node import SimNode

DIGEST_ENTRIES = 16             # every so many entries the states of the nodes are compared


class ObservedJournal(Journal):
    """Reports each entry that a node takes into its log."""

    node: SimNode

    def add(self, command: bytes, index: int, term: int) -> None:
        before = self.last_term if self.last_index == index - 1 else None
        super().add(command, index, term)
        node: SimNode | None = getattr(self, "node", None)
        if node is not None:
            node.world.trace.step("appends", node.name, index, term)
            node.checks.appended(node.name, command, index, term, before)

    def deleteEntriesFrom(self, position: int) -> None:  # noqa: N802
        self.node.memory.loses(self.first_index + position)
        self.node.world.trace.step("cuts", self.node.name, self.first_index + position)
        super().deleteEntriesFrom(position)

    def clear(self) -> None:
        self.node.memory.loses(1)
        self.node.world.trace.step("clears", self.node.name)
        super().clear()

    def setCurrentTerm(self, term: int, vote: str | None) -> None:  # noqa: N802
        super().setCurrentTerm(term, vote)
        self.node.world.trace.step("adopts", self.node.name, term, vote)

    def set_voter(self) -> None:
        super().set_voter()
        self.node.world.trace.step("may vote", self.node.name)

    def setRaftCommitIndex(self, index: int) -> None:  # noqa: N802
        super().setRaftCommitIndex(index)
        self.node.world.trace.step("commits", self.node.name, index)

    def _synced(self) -> None:
        super()._synced()
        state = self._synced_state
        self.node.world.trace.step("syncs", self.node.name, self.durable_index, state.term, state.vote)

    def sync(self, *, alone: bool = True) -> None:
        self._watch(partial(super().sync, alone=alone))

    def sync_in_background(self, *, alone: bool = True, from_bytes: int | None = None) -> bool:
        return bool(self._watch(partial(super().sync_in_background, alone=alone, from_bytes=from_bytes)))

    def _watch(self, sync: Callable[[], bool | None]) -> bool | None:
        """Watch a journal. `sync` returns False when not all is durable then."""
        memory = self.node.memory
        memory.syncing = memory.syncing or self.unsynced
        all_durable = sync()
        if all_durable is not False:
            memory.commit = self._commit_written
            if memory.syncing:          # else at most a new commit index: nothing more is vouched for than before
                memory.syncing = False
                self.node.synced(self)
        return all_durable

    def finish_sync(self) -> None:
        beside = self.syncing is not None
        super().finish_sync()
        if beside:
            self.node.synced_beside(self)


def newest_level() -> int:
    """Return the highest level of any operation or field."""
    return max([*dispatch.LEVELS.values(), *FIELD_LEVELS.values()], default=FIRST_LEVEL)


class ObservedMachine(Machine):
    """Reports each applied entry. `frozen`: the state as a forked child sees it while the node continues: whole,
    and by reference.
    """

    def __init__(self, node: SimNode) -> None:
        super().__init__(node.known_level, node.pager)
        self._node = node
        self.frozen: tuple[list[bytes], list[bytes]] | None = None
        self._recorded: frozenset[str] = frozenset()

    def apply(self, index: int, now_ms: int, seed: int, operations: Sequence[Operation]) -> Applied:
        known = self.known_level
        if newest_level() > known and any(level_of(operation) > known for operation in operations):
            raise Violation(f"{self._node.name} is given an operation that it does not know, at entry {index}")
        applied = super().apply(index, now_ms, seed, operations)
        node, checks = self._node, self._node.checks
        node.world.timekeeping.applied(node.name, seed)
        if checks.applied(node.name, index, now_ms, seed, list(operations), applied.replies):
            node.committed(index)
            node.world.timekeeping.committed(seed, self.clock_ms)
        checks.told(node.name, index, self._recorded, applied.events, self.event_seq)
        if index % DIGEST_ENTRIES == 0:
            checks.state(node.name, index, self.snapshot())
        return applied

    def record(self, types: Iterable[str]) -> None:
        self._recorded = frozenset(types)
        super().record(self._recorded)

    def restore(self, chunks: Iterable[bytes]) -> None:
        super().restore(chunks)
        self._node.checks.state(self._node.name, self.index, self.snapshot())

    def snapshot(self, *, by_reference: bool = False) -> Iterator[bytes]:
        if self.frozen is not None:
            return iter(self.frozen[by_reference])
        return super().snapshot(by_reference=by_reference)


class SlowChild(BackgroundTask):
    """The work of a forked child, some time later, with the state as it was at the fork."""

    def __init__(self, node: SimNode, work: Callable[[], None], ready_at: float) -> None:
        self.error = ""
        self._node = node
        self._work = work
        self.ready_at = ready_at
        self._machine = node.machine
        self._state = list(node.machine.snapshot()), list(node.machine.snapshot(by_reference=True))
        self._status: int | None = None

    def poll(self) -> int | None:
        if self._status is None and self._node.world.events.now >= self.ready_at:
            self.finish()
        return self._status

    def finish(self) -> None:
        """Do the child's work now, in no simulated time."""
        if self._status is not None:
            return
        self._machine.frozen = self._state
        disk = self._node.disk
        spent_s = disk.spent_s
        try:
            self._work()
            self._status = 0
        except (OSError, PageLost) as error:
            self.error, self._status = f"{type(error).__name__}: {error}", 1
        finally:
            self._machine.frozen = None
            disk.spent_s = spent_s          # it is the child that waits for the disk

    def kill(self) -> None:
        if self._status is None:
            self._status = -9


def open_journal(
    node: SimNode, directory: Path, disk: SimDisk, segment_bytes: int, window_bytes: int, needed: int,
) -> ObservedJournal:
    """Open the node's journal; what it finds on disk is not reported, as it was when it was written."""
    journal = ObservedJournal.open(
        directory, disk, segment_bytes=segment_bytes, window_bytes=window_bytes, needed_from=needed)
    assert isinstance(journal, ObservedJournal)
    journal.node = node
    return journal
