"""Large operations go into the log in fragments, with those of others between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sockpqd.cluster import limits
from sockpqd.cluster.leader.proposer import Proposer
from sockpqd.cluster.raft.pysyncobj_adapter import SUCCESS
from sockpqd.core import (
    Accepted,
    Applied,
    Done,
    Effects,
    Fragment,
    FragmentsMissing,
    Get,
    Machine,
    Operation,
    Put,
    Reply,
    Stored,
    decode_entry,
)
from tests.cluster.helpers.small_cluster import Outcome

LARGE = Put("large", 0, bytes(range(256)) * 8)


@pytest.fixture(autouse=True)
def _small_fragments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "WHOLE_BYTES_MAX", 1024)
    monkeypatch.setattr(limits, "FRAGMENT_BYTES", 512)


class Log:
    """A proposer whose entries a machine executes."""

    def __init__(self) -> None:
        self.now = 0.0
        self.entries: list[list[Operation]] = []
        self.machine = Machine()
        self.answers: Callable[[list[Operation], list[Reply]], list[Reply]] = lambda operations, replies: replies
        self._land: list[tuple[list[Operation], Any]] = []
        self.proposer = Proposer(self._submit, lambda: 7, lambda effects: None, lambda: self.now)
        self.proposer.accepting = True

    def _submit(self, entry: bytes, callback: Any) -> None:
        self.entries.append(decode_entry(entry).operations)
        self._land.append((self.entries[-1], callback))

    def send(self, client: object, operation: Operation, *, behind: bool = False) -> Outcome:
        """Propose an operation of the client."""
        outcome = Outcome()
        self.proposer.propose_for(client, operation, outcome, behind)
        return outcome

    def entry(self) -> list[Operation]:
        """Execute the proposed entry and propose the next one; returns its operations."""
        for operations, callback in self._land:
            replies = self.machine.apply(self.machine.index + 1, 7, 0, operations).replies
            callback(Applied(self.answers(operations, replies), Effects()), SUCCESS)
        self._land.clear()
        before = len(self.entries)
        self.proposer.flush(self.now)
        return self.entries[-1] if len(self.entries) > before else []

    def run(self) -> None:
        """Propose and execute all that is queued."""
        while self.entry():
            pass


def ends(operation: Operation) -> bool:
    """Return whether it is the last fragment of an operation."""
    return isinstance(operation, Fragment) and operation.last


def test_others_go_between_the_fragments() -> None:
    log = Log()
    large = log.send("a", LARGE)
    lasts = []
    for number in range(5):
        small = log.send("b", Done(number))
        operations = log.entry()
        assert Done(number) in operations
        assert sum(len(one.data) for one in operations if isinstance(one, Fragment)) <= 512
        lasts += [one.last for one in operations if isinstance(one, Fragment)]
        assert small.state == "open"
    log.run()
    assert lasts == [False, False, False, False, True]
    assert large.reply == Stored()
    assert log.machine.ready("large") == 1
    assert log.proposer.backlog_bytes == 0


def test_fragments_grow_where_entries_take_long() -> None:
    log = Log()
    large = log.send("a", LARGE)
    lengths = []
    for took_s in (0.0, limits.FRAGMENT_S / 2, limits.FRAGMENT_S * 2, 1.0):
        log.now += took_s
        lengths += [len(one.data) for one in log.entry() if isinstance(one, Fragment)]
    assert lengths[:3] == [512, 512, 1024]
    log.run()
    assert large.reply == Stored()
    assert len(log.entries) == 4


def test_whole_operations_share_an_entry_however_large() -> None:
    log = Log()
    log.send("a", LARGE)
    middling = Put("middling", 0, bytes(700))
    for client in "bc":
        log.send(client, middling)
    log.run()
    assert [entry.count(middling) for entry in log.entries if middling in entry] == [2]


def test_a_client_keeps_the_order_of_its_operations() -> None:
    log = Log()
    log.send("a", Done(1))
    log.send("a", LARGE)
    log.send("a", Done(2))
    log.run()
    flat = [operation for entry in log.entries for operation in entry]
    assert flat[0] == Done(1)
    assert ends(flat[-2])
    assert flat[-1] == Done(2)


def test_one_large_operation_after_the_other() -> None:
    log = Log()
    outcomes = [log.send(client, LARGE) for client in "abc"]
    log.run()
    assert [outcome.reply for outcome in outcomes] == [Stored()] * 3
    numbers = [one.number for entry in log.entries for one in entry if isinstance(one, Fragment)]
    assert numbers == sorted(numbers)


def test_a_hand_out_stays_behind_its_put() -> None:
    log = Log()
    put = Put("large", 0, LARGE.data, "", True)
    log.send("a", put)
    log.send("a", Get(("large",), item_of_put=True), behind=True)
    log.send("b", LARGE)
    log.run()
    flat = [operation for entry in log.entries for operation in entry]
    at = flat.index(Get(("large",), item_of_put=True))
    assert ends(flat[at - 1])
    assert any(entry[:2] == flat[at - 1:at + 1] for entry in log.entries)


@pytest.mark.parametrize("entries", [1, 3, 4])
def test_what_a_client_leaves_behind_is_never_executed(entries: int) -> None:
    log = Log()
    large = log.send("a", LARGE)
    for _ in range(entries):
        log.entry()
    other = log.send("b", LARGE)
    log.proposer.withdraw("a")
    assert large.state == "overdue"
    log.run()
    assert other.reply == Stored()
    assert log.machine.ready("large") == 1
    assert log.proposer.backlog_bytes == 0


def test_an_overdue_one_is_never_executed() -> None:
    log = Log()
    large = log.send("a", LARGE)
    log.entry()
    log.now = limits.CLIENT_WAIT_S_MAX + 0.1
    log.proposer.expire(log.now)
    assert large.state == "overdue"
    log.run()
    log.send("b", LARGE)
    log.run()
    assert log.machine.ready("large") == 1


def test_who_leads_no_more_executes_nothing_of_it_later() -> None:
    log = Log()
    large = log.send("a", LARGE)
    log.entry()
    log.proposer.stop_accepting(log.now, lost=True)
    assert large.state == "refused"
    log.proposer.accepting = True
    log.entry()
    other = log.send("a", LARGE)
    log.run()
    assert other.reply == Stored()
    assert log.machine.ready("large") == 1


def test_an_operation_that_is_not_complete_is_refused() -> None:
    log = Log()
    log.answers = lambda operations, replies: [
        FragmentsMissing() if ends(one) else Accepted() for one in operations
    ]
    large = log.send("a", LARGE)
    log.run()
    assert large.state == "refused"


def test_what_an_entry_leaves_out_is_put_back_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log()
    apply, cuts = log.machine.apply, []

    def cut_short(index: int, now_ms: int, seed: int, operations: list[Operation]) -> Applied:
        if len(operations) > 1 and len(cuts) < 2:
            cuts.append(operations[-1])
            operations = operations[:-1]
        return apply(index, now_ms, seed, operations)
    monkeypatch.setattr(log.machine, "apply", cut_short)
    large = log.send("a", LARGE)
    for number in range(3):
        log.send("b", Done(number))
        log.entry()
    log.run()
    assert any(isinstance(one, Fragment) for one in cuts)
    assert large.reply == Stored()
