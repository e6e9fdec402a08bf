"""The journal against a plain list: any changes, any reads, closed or crashed at any point."""

from __future__ import annotations

import random
from copy import deepcopy
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from sockpqd.cluster import limits
from sockpqd.cluster.journal.journal import Journal
from tests.cluster.helpers.faulty_disk import Crash, FaultyDisk

DIRECTORY = Path("/journal")
SEGMENT_BYTES = 8192
WINDOW_BYTES = 3000
LARGE_BYTES = 1500

commands = st.one_of(
    st.binary(max_size=300),
    st.integers(0, 3000).map(bytes),
    st.integers(1, 12000).map(lambda length: random.Random(length).randbytes(length)),
)


class Model:
    """The contents that the journal should have."""

    def __init__(self) -> None:
        self.kept: list[tuple[bytes, int, int]] = []    # also what align() hides
        self.hidden = 0
        self.first = 1
        self.covered = 0
        self.term = 0
        self.vote: str | None = None
        self.commit = 0
        self.voter = False
        self.acknowledged: dict[str, int] = {}

    @property
    def log(self) -> list[tuple[bytes, int, int]]:
        return self.kept[self.hidden:]

    def reopened(self) -> Model:
        """Return the model as a new process sees it."""
        other = deepcopy(self)
        other.hidden = 0
        return other


class JournalMachine(RuleBasedStateMachine):
    @initialize(seed=st.integers(0, 2**32))
    def start(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.disk = FaultyDisk()
        self.model = Model()
        self.synced = Model()
        self.beside: Model | None = None        # what is in the frame that is being synced beside us
        self.large, limits.BACKGROUND_SYNC_BYTES = limits.BACKGROUND_SYNC_BYTES, LARGE_BYTES
        self.journal = self.open()

    def teardown(self) -> None:
        limits.BACKGROUND_SYNC_BYTES = self.large

    def open(self) -> Journal:
        return Journal.open(DIRECTORY, self.disk, segment_bytes=SEGMENT_BYTES, window_bytes=WINDOW_BYTES)

    @rule(batch=st.lists(commands, min_size=1, max_size=5), newer=st.booleans(), index=st.integers(1, 1000))
    def add(self, batch: list[bytes], newer: bool, index: int) -> None:
        kept = self.model.kept
        if not kept:
            self.model.first = index if self.model.first == 1 else self.model.first
        for command in batch:
            entry = (command, kept[-1][1] + 1 if kept else self.model.first, (kept[-1][2] if kept else 0) + newer)
            self.journal.add(*entry)
            kept.append(entry)

    @precondition(lambda self: len(self.model.log) > 0)
    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        position = data.draw(st.integers(0, len(self.model.log)))
        self.journal.deleteEntriesFrom(position)
        if position < len(self.model.log):
            self.model.covered = min(self.model.covered, self.model.log[position][1])
        del self.model.kept[self.model.hidden + position:]

    @precondition(lambda self: len(self.model.log) > 0)
    @rule(data=st.data())
    def compact(self, data: st.DataObject) -> None:
        model = self.model
        position = data.draw(st.integers(0, len(model.log) - 1))
        index = model.log[position][1]
        keep = max(model.kept[0][1], min(model.covered, index))
        self.journal.deleteEntriesTo(position)
        first_shown = max(model.log[0][1], keep)
        model.kept = [entry for entry in model.kept if entry[1] >= keep]
        model.hidden = sum(entry[1] < first_shown for entry in model.kept)
        model.first, model.covered = keep, max(model.covered, index)

    @precondition(lambda self: len(self.model.log) > 0)
    @rule(data=st.data())
    def align(self, data: st.DataObject) -> None:
        position = data.draw(st.integers(0, len(self.model.log) - 1))
        self.model.hidden += position
        self.journal.align(position)

    @rule()
    def clear(self) -> None:
        clears = self.journal.clears
        self.journal.clear()
        assert self.journal.clears == clears + 1
        self.model.kept, self.model.hidden, self.model.first, self.model.covered = [], 0, 1, 0

    @rule(vote=st.sampled_from([None, "", "n1", "node.with-a_name"]), step=st.integers(0, 3))
    def term(self, vote: str | None, step: int) -> None:
        self.model.term += step
        self.model.vote = vote
        self.journal.setCurrentTerm(self.model.term, vote)

    @rule(index=st.integers(0, 2000))
    def commit(self, index: int) -> None:
        self.journal.setRaftCommitIndex(index)
        self.model.commit = index

    @rule(name=st.sampled_from(["n1", "n2", "node.with-a_name"]), index=st.integers(0, 2000))
    def acknowledge(self, name: str, index: int) -> None:
        self.journal.acknowledge(name, index)
        if index > self.model.acknowledged.get(name, 0):
            self.model.acknowledged[name] = index

    @rule()
    def forget_acknowledged(self) -> None:
        self.journal.forget_acknowledged()
        self.model.acknowledged.clear()

    @rule()
    def voter(self) -> None:
        self.journal.set_voter()
        self.model.voter = True

    @rule()
    def second(self) -> None:
        self.journal.onOneSecondTimer()
        self.sync()

    def ended(self) -> None:
        """Count as durable what was synced meanwhile."""
        self.synced, self.beside = self.beside or self.synced, None

    @rule(slow=st.booleans())
    def sync_in_background(self, slow: bool) -> None:
        self.disk.slow = slow
        if not slow:
            self.ended()
        unsynced, due = self.journal.unsynced, self.journal._commit_due
        if self.journal.sync_in_background():
            assert not self.journal.unsynced
            self.remember(due or unsynced, due)
        elif self.beside is None:
            before = self.synced
            self.remember(True, due)
            self.synced, self.beside = before, self.synced

    @rule(length=st.integers(LARGE_BYTES, 6000), more=st.lists(commands, max_size=3))
    def go_on_beside(self, length: int, more: list[bytes]) -> None:
        self.add([bytes(length)], newer=False, index=1)
        self.sync_in_background(slow=True)
        self.add(more, newer=False, index=1)

    @rule(slow=st.booleans())
    def look(self, slow: bool) -> None:
        self.disk.slow = slow
        assert self.journal.poll_sync() is (self.beside is not None and not slow)
        if not slow:
            self.ended()

    @invariant()
    def durable(self) -> None:
        assert (self.journal.syncing is None) is (self.beside is None)
        vouched = [entry for entry in self.model.kept if entry[1] <= self.journal.durable_index]
        assert all(entry in self.synced.kept for entry in vouched)
        if not self.journal.unsynced and self.beside is None:
            assert self.journal.durable_index == self.journal.last_index

    @rule()
    def sync(self) -> None:
        self.ended()
        unsynced, due = self.journal.unsynced, self.journal._commit_due
        self.journal.sync()
        assert not self.journal.unsynced
        self.remember(due or unsynced, due)

    def remember(self, commit_written: bool, acknowledged_written: bool) -> None:
        commit = self.model.commit if commit_written else self.synced.commit
        acknowledged = (self.model if acknowledged_written else self.synced).acknowledged
        self.synced = deepcopy(self.model)
        self.synced.commit = min(commit, self.journal.last_index)
        self.synced.acknowledged = dict(acknowledged)

    @rule()
    def close_and_open(self) -> None:
        self.ended()
        self.journal.close()
        assert self.disk.open_files == 0
        self.model = self.synced.reopened()
        self.journal = self.open()

    @rule(steps=st.integers(0, 8), opening=st.integers(0, 12))
    def crash_in_sync(self, steps: int, opening: int) -> None:
        """Cut the power somewhere in sync(), and perhaps again while the journal is opened."""
        before = [self.synced, self.beside or self.synced]
        self.ended()
        unsynced, due = self.journal.unsynced, self.journal._commit_due
        self.disk.crash_at = self.disk.steps + steps
        try:
            self.journal.sync()
            self.remember(due or unsynced, due)
        except Crash:
            self.remember(True, due)
        else:
            before = [self.synced]
        self.disk.crash(self.rng)
        self.disk.crash_at = self.disk.steps + opening
        try:
            self.journal = self.open()
        except Crash:
            self.disk.crash(self.rng)
            self.journal = self.open()
        self.disk.crash_at = None
        found = [state for state in before if self.journal_is(state.reopened()) and self.goes_on_as(state)]
        self.model = (found or [self.synced])[0].reopened()
        self.synced = deepcopy(self.model)

    def journal_is(self, model: Model) -> bool:
        journal = self.journal
        return (
            list(journal[:]) == model.log
            and (journal.getCurrentTerm(), journal.getVotedForNodeId()) == (model.term, model.vote)
            and (journal.voter, journal._state.covered) == (model.voter, model.covered)
            and self.commit_is(model)
            and journal._acknowledged == model.acknowledged
        )

    def goes_on_as(self, model: Model) -> bool:
        """Return whether the journal takes the same entry next. Empty ones look the same wherever they continue."""
        return bool(model.kept) or self.journal.first_index == model.first

    def commit_is(self, model: Model) -> bool:
        return self.journal.getRaftCommitIndex() == max(1, min(model.commit, self.journal.last_index))

    @invariant()
    def same(self) -> None:
        journal, log = self.journal, self.model.log
        assert self.journal_is(self.model)
        assert len(journal) == len(log)
        assert bool(journal) == bool(log)
        if log:
            assert (journal.first_index, journal.last_index, journal.last_term) == (log[0][1], log[-1][1], log[-1][2])
            assert (journal[0], journal[-1]) == (log[0], log[-1])
            covered = self.model.covered
            assert journal.bytes_total == sum(len(entry[0]) for entry in self.model.kept if entry[1] >= covered)
        else:
            assert journal.last_term == 0

    @precondition(lambda self: len(self.model.log) > 0)
    @rule(data=st.data())
    def read(self, data: st.DataObject) -> None:
        journal, log = self.journal, self.model.log
        bounds = st.one_of(st.none(), st.integers(-len(log) - 2, len(log) + 2))
        part = slice(data.draw(bounds), data.draw(bounds), data.draw(st.sampled_from([None, None, 1, 2, -1])))
        assert list(journal[part]) == log[part]
        assert len(journal[part]) == len(log[part])
        position = data.draw(st.integers(-len(log), len(log) - 1))
        assert journal[position] == log[position]
        index = log[position][1]
        assert journal.entry(index) == log[position]
        assert journal.term_at(index) == log[position][2]
        assert journal.term_at(log[-1][1] + 1) is None
        assert journal.term_at(log[0][1] - 1) is None
        with pytest.raises(IndexError):
            journal[len(log)]


TestJournalModel = JournalMachine.TestCase
TestJournalModel.settings = settings(
    max_examples=120, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck),
)
