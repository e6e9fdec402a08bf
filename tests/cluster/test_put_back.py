"""Operations that an entry leaves out go back to their clients, who take turns with others as before."""

from __future__ import annotations

import random
import sys

import pytest

from sockpqd.cluster import limits
from sockpqd.cluster.leader.proposer import Proposer
from sockpqd.cluster.raft.pysyncobj_adapter import SUCCESS, Callback
from sockpqd.core import (
    Applied,
    Done,
    Effects,
    Fragment,
    Get,
    Operation,
    Put,
    Stored,
    decode_entry,
    decode_operation,
)
from tests.cluster.helpers.small_cluster import Outcome


class Log:
    """A proposer, and entries of which only as many operations are executed as the test sets."""

    def __init__(self) -> None:
        self.executed: list[Operation] = []
        self.entries: list[list[Operation]] = []
        self._flying: list[Callback] = []
        self._collected = (0, b"")
        self.proposer = Proposer(self._submit, lambda: 7, lambda effects: None, lambda: 0.0)
        self.proposer.accepting = True

    def _submit(self, entry: bytes, callback: Callback) -> None:
        self.entries.append(decode_entry(entry).operations)
        self._flying.append(callback)

    def send(self, client: object, operation: Operation) -> Outcome:
        outcome = Outcome()
        self.proposer.propose_for(client, operation, outcome)
        return outcome

    def entry(self, executed: int = sys.maxsize) -> list[Operation]:
        """Return the next entry, of which this many operations are executed."""
        self.proposer.flush(0.0)
        operations = self.entries[-1][:executed]
        for operation in operations:
            self._execute(operation)
        self._flying.pop()(Applied([Stored()] * len(operations), Effects()), SUCCESS)
        return self.entries[-1]

    def _execute(self, operation: Operation) -> None:
        if not isinstance(operation, Fragment):
            self.executed.append(operation)
            return
        number, data = self._collected if operation.offset else (operation.number, b"")
        assert (number, len(data)) == (operation.number, operation.offset)
        self._collected = number, data + operation.data
        if operation.last:
            self.executed.append(decode_operation(self._collected[1]))


def test_one_client_s_expensive_operations_do_not_hold_up_another_one() -> None:
    log = Log()
    for number in range(100):
        log.send("a", Done(number))
    log.entry(1)                                # each of them fills an entry
    for number in range(1000, 1010):
        mine = log.send("b", Done(number))
        assert log.entry(2)[0] == Done(number)
        assert mine.state == "applied"
    assert log.executed[:12] == [Done(0), Done(1000), Done(1), Done(1001), Done(2), Done(1002), Done(3), Done(1003),
                                 Done(4), Done(1004), Done(5), Done(1005)]


def test_a_client_that_wants_little_is_served_by_the_next_entry_though_many_have_what_is_left_out() -> None:
    """Each entry takes an operation of each of sixty clients, and executes four."""
    log = Log()
    dear = Get(tuple(f"queue{number}" for number in range(256)))
    busy = list(range(60))
    for client in busy * 20:
        log.send(client, dear)
    late = []
    for number in range(200):
        if number % 3 == 0:                     # it rests now and then, as a client does that waits for its answers
            mine = log.send("little", Done(number))
        log.entry(4)
        if mine.state != "applied":
            late.append(number)
        for client in busy[:4]:
            log.send(client, dear)
    assert len(late) <= 1, late                 # the entry that was full when it came


def test_those_who_were_left_out_are_next_though_others_have_more() -> None:
    log = Log()
    for number in range(100):
        log.send("a", Done(number))
    left = log.send("b", Done(1000))
    log.entry(1)
    assert log.entry()[0] == Done(1000)
    assert left.state == "applied"


def test_what_comes_later_stays_behind_what_was_left_out() -> None:
    log = Log()
    for number in range(4):
        log.send("a", Done(number))
    log.proposer.flush(0.0)
    log.send("a", Done(4))
    log._flying.pop()(Applied([Stored()], Effects()), SUCCESS)
    log.send("a", Done(5))
    assert log.entry() == [Done(number) for number in range(1, 6)]
    assert log.proposer.queued == 0


@pytest.mark.parametrize("seed", range(40))
def test_every_operation_is_executed_once_and_in_the_order_of_its_client(seed: int) -> None:
    dice = random.Random(seed)
    log = Log()
    outcomes: list[Outcome] = []
    sent = 0
    while sent < 300 or log.proposer.queued:
        for _ in range(dice.randrange(40) if sent < 300 else 0):
            size = limits.WHOLE_BYTES_MAX + dice.randrange(400_000) if dice.random() < 0.02 else dice.randrange(2000)
            outcomes.append(log.send(client := dice.choice("abcd"), Put(client, sent, bytes(size))))
            sent += 1
        if log.proposer.queued:
            log.entry(dice.choice((1, 1, 2, 5, 1000)))
    for client in "abcd":
        numbers = [put.priority for put in log.executed if isinstance(put, Put) and put.queue == client]
        assert numbers == sorted(numbers)
    assert len(log.executed) == sent
    assert {outcome.state for outcome in outcomes} == {"applied"}
    assert log.proposer.backlog_bytes == 0
