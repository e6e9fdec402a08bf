"""The adapter puts the same into the log as the library itself would."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgpack
import pytest
from pysyncobj import FAIL_REASON

from sockpqd.cluster.raft import pysyncobj_adapter

METHOD = 3


@pytest.mark.parametrize("length", [0, 1, 255, 256, 65_535, 65_536, 1 << 20])
def test_a_call_is_written_and_read_as_msgpack_does(length: int) -> None:
    data = bytes(range(256)) * (length // 256) + bytes(length % 256)
    call = pysyncobj_adapter._call_head(METHOD, length) + data
    assert call == msgpack.packb([METHOD, [data]])
    method, (argument,) = pysyncobj_adapter._loads(call)
    assert (method, argument) == (METHOD, data)
    assert type(argument) is memoryview         # not a copy


@pytest.mark.parametrize("value", [
    None, 7, (7, (b"data",), {}), (7, ("text",)), (7, (b"data", b"more")), "", (7, 8), (300, (b"",)),
])
def test_whatever_else_the_library_keeps_comes_back(value: object) -> None:
    assert pysyncobj_adapter._loads(pysyncobj_adapter._dumps(value)) == value


@pytest.mark.parametrize("length", [1, 300, 70_000])
def test_a_call_that_was_cut_or_made_longer_is_no_call(length: int) -> None:
    call = pysyncobj_adapter._call_head(METHOD, length) + bytes(length)
    with pytest.raises(ValueError, match="incomplete"):
        pysyncobj_adapter._loads(call[:-1])
    with pytest.raises(ValueError, match="extra"):
        pysyncobj_adapter._loads(call + b"\0")


class Log:
    """A journal of entries from `first` to 5, which cannot be asked for others."""

    def __init__(self, first: int) -> None:
        self.first_index = first
        self.last_index = 5
        self.committed = 0

    def entry(self, index: int) -> tuple[bytes, int, int]:
        assert self.first_index <= index <= self.last_index
        return b"\0" + pysyncobj_adapter._call_head(METHOD, 1) + b"%d" % index, index, 7

    def setRaftCommitIndex(self, index: int) -> None:    # noqa: N802  # the library's name
        self.committed = index


class Bare(pysyncobj_adapter.Replica):
    """The fields of the library that the steps of the lane use, without a library behind them."""

    def __init__(self, first: int = 1, *, commit: int = 2, leads: bool = False, enough: bool = False) -> None:
        self.is_leader = leads
        self.enough = lambda: enough
        self._SyncObj__raftLog = Log(first)
        self._SyncObj__commandsWaitingCommit: dict[int, list[Any]] = {}
        self._SyncObj__raftCommitIndex = commit
        self._SyncObj__raftLastApplied = 2
        self._SyncObj__raftState = pysyncobj_adapter._FOLLOWER
        self._SyncObj__raftLeader = LEADER
        self._SyncObj__raftCurrentTerm = 7
        self._SyncObj__transferInProgress = False
        self._entry_id = METHOD
        self.seen: list[tuple[int, bytes]] = []
        self._apply = lambda index, data: self.seen.append((index, bytes(data)))


LEADER = pysyncobj_adapter.PeerNode("p")


def test_what_is_committed_is_applied_as_far_as_it_is_there() -> None:
    replica = Bare(3, commit=4)
    replica.apply_committed()
    assert replica.seen == [(3, b"3"), (4, b"4")]
    assert replica.applied_index == 4
    behind = Bare(4, commit=5)
    behind.apply_committed()                # only a snapshot has entry 3
    assert (behind.seen, behind.applied_index) == ([], 2)


@pytest.mark.parametrize(("leads", "applied"), [(False, 3), (True, 5)])
def test_a_follower_that_has_applied_enough_goes_on_in_its_next_turn(leads: bool, applied: int) -> None:
    replica = Bare(3, commit=5, leads=leads, enough=True)
    replica.apply_committed()
    assert (replica.applied_index, replica.behind) == (applied, not leads)
    replica.apply_committed()
    replica.apply_committed()
    assert (replica.applied_index, replica.behind) == (5, False)


def test_who_proposed_hears_whether_it_was_this_proposal() -> None:
    replica, heard = Bare(commit=4), []
    replica._SyncObj__commandsWaitingCommit[4] = [
        (term, lambda _result, reason, term=term: heard.append((term, reason))) for term in (6, 7)]
    replica.apply_committed()
    assert heard == [(6, FAIL_REASON.DISCARDED), (7, FAIL_REASON.SUCCESS)]


@pytest.mark.parametrize("length", [1, 300, 70_000])
def test_the_data_of_a_proposal_is_recognized_and_not_copied(length: int) -> None:
    data = Bare().argument(b"\0" + pysyncobj_adapter._call_head(METHOD, length) + bytes(length))
    assert (type(data), data) == (memoryview, bytes(length))


@pytest.mark.parametrize("command", [
    b"\1", b"\0", b"\0abc", b"\0abcd", b"\0" + pysyncobj_adapter._call_head(METHOD + 1, 1) + b"x",
    b"\0" + pysyncobj_adapter._call_head(METHOD, 2) + b"x", b"\1" + pysyncobj_adapter._call_head(METHOD, 1) + b"x",
])
def test_any_other_entry_is_left_to_the_library(command: bytes) -> None:
    assert Bare().argument(command) is None


@pytest.mark.parametrize(("field", "value"), [
    ("raftState", pysyncobj_adapter._FOLLOWER + 1), ("raftLeader", None), ("raftCurrentTerm", 8),
    ("transferInProgress", True),
])
def test_a_leader_is_followed_in_its_term_and_not_during_a_transfer(field: str, value: object) -> None:
    replica = Bare()
    assert replica.follows(LEADER, 7)
    setattr(replica, f"_SyncObj__{field}", value)
    assert not replica.follows(LEADER, 7)


@pytest.mark.parametrize(("commit", "after"), [(1, 2), (2, 2), (4, 4), (9, 5)])
def test_the_commit_index_rises_up_to_the_end_of_the_log(commit: int, after: int) -> None:
    replica = Bare()
    replica.extend([], commit)
    assert (replica.commit_index, replica._SyncObj__raftLog.committed) == (after, after)


def test_the_private_names_of_the_library_that_are_used_are_documented() -> None:
    root = Path(__file__).parents[2]
    used = {
        path.name: set(re.findall(r"(?:_SyncObj|_field\(\")__(\w+)", path.read_text()))
        for path in sorted((root / "cluster").rglob("*.py"))
    }
    (row,) = [line for line in (root / "docs/ARCHITECTURE.md").read_text().splitlines()
              if line.startswith("| nothing it offers does a single step")]
    assert {name for name, names in used.items() if names} == {"pysyncobj_adapter.py"}
    assert {name for name in used["pysyncobj_adapter.py"] if f"`{name}`" not in row} == set()
