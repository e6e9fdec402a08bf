"""Large operations rest after one of them, while other clients send small ones, and only then."""

from __future__ import annotations

import pytest

from sockpqd.cluster import limits
from sockpqd.cluster.idle import next_turn_at
from sockpqd.cluster.leader.proposer import Proposer
from sockpqd.cluster.raft.pysyncobj_adapter import SUCCESS, Callback
from sockpqd.core import Applied, Done, Effects, Get, Operation, Stored, decode_entry
from tests.cluster.helpers.small_cluster import Outcome, SmallCluster

LARGE_S, SMALL_S = 0.02, 0.0005
REST_S = limits.REST_FACTOR * LARGE_S
LARGE = Get(tuple(f"q{number}" for number in range(limits.ENTRY_WORK_MAX)))     # it fills an entry


class Leader:
    """A proposer whose entries take LARGE_S to execute if they have a large operation."""

    def __init__(self) -> None:
        self.now = 1.0
        self.large_s = LARGE_S
        self._took_s = 0.0
        self._flying: list[tuple[list[Operation], Callback]] = []
        self.proposer = Proposer(
            lambda data, callback: self._flying.append((decode_entry(data).operations, callback)), lambda: 7,
            lambda effects: None, lambda: self.now, executed_s=lambda: self._took_s)
        self.proposer.accepting = True

    def send(self, client: str, *operations: Operation) -> None:
        for operation in operations:
            self.proposer.propose_for(client, operation, Outcome())

    def entry(self) -> list[Operation]:
        """Return the next entry, executed; without operations if none is proposed now."""
        assert not self._flying
        self.proposer.flush(self.now)
        if not self._flying:
            return []
        operations, callback = self._flying.pop()
        self._took_s = self.large_s if LARGE in operations else SMALL_S
        self.now += self._took_s
        callback(Applied([Stored()] * len(operations), Effects()), SUCCESS)
        return operations


def resting() -> Leader:
    """Return a leader that has executed a large operation of client "a" after a small one of "b", with one more of "a".
    """
    leader = Leader()
    leader.send("b", Done(0))
    leader.send("a", LARGE, LARGE)
    assert leader.entry() == [Done(0)]
    assert leader.entry() == [LARGE]
    return leader


def test_small_operations_of_others_are_proposed_in_a_rest_and_large_ones_behind_it() -> None:
    leader = resting()
    end = leader.now + REST_S
    number = 0
    while leader.now < end - 0.002:
        assert not leader.proposer.ready
        assert leader.entry() == []
        number += 1
        leader.send("b", Done(number))
        assert leader.proposer.ready
        assert leader.entry() == [Done(number)]
        leader.now += 0.001
    assert number > 10
    leader.now = end
    assert leader.proposer.ready
    assert leader.entry() == [LARGE]


def test_a_client_s_operations_keep_their_order_in_a_rest() -> None:
    leader = resting()
    leader.send("a", Done(1))
    leader.send("b", Done(2))
    assert leader.entry() == [Done(2)]
    leader.now += REST_S
    assert [*leader.entry(), *leader.entry()] == [LARGE, Done(1)]


def test_many_large_operations_of_many_clients_have_their_turns() -> None:
    leader = resting()
    for client in "cdef":
        leader.send(client, LARGE)
    executed = 0
    for number in range(1000):
        leader.send("b", Done(number))
        executed += leader.entry().count(LARGE)
        leader.now += 0.001
    assert executed == 5


@pytest.mark.parametrize("second", [(), (LARGE, LARGE)])
def test_without_small_operations_of_others_there_is_no_rest(second: tuple[Operation, ...]) -> None:
    leader = Leader()
    leader.send("a", LARGE, *(() if second else (Done(1), Done(2))), LARGE)
    leader.send("b", *second)
    entries = []
    while leader.proposer.ready:
        entries.append(leader.entry())
    assert leader.proposer.queued == 0
    assert sum(entry.count(LARGE) for entry in entries) == 2 + len(second)


def test_nobody_rests_from_what_took_no_time() -> None:
    leader = Leader()
    leader.large_s = limits.REST_FROM_S / 2
    leader.send("b", Done(0))
    leader.send("a", LARGE, LARGE)
    assert [leader.entry(), leader.entry(), leader.entry()] == [[Done(0)], [LARGE], [LARGE]]


def test_clients_of_large_operations_wait_longer_for_a_turn_before_they_are_refused() -> None:
    leader = resting()
    leader.send("c", LARGE)
    leader.now += 2 * limits.CLIENT_WAIT_S_MAX
    leader.proposer.expire(leader.now)
    assert leader.proposer.queued == 2
    leader.now += limits.REST_FACTOR * limits.CLIENT_WAIT_S_MAX
    leader.proposer.expire(leader.now)
    assert leader.proposer.queued == 0


def test_a_rest_ends_with_the_leadership() -> None:
    leader = resting()
    leader.proposer.stop_accepting(leader.now, lost=True)
    leader.proposer.accepting = True
    leader.send("a", LARGE)
    assert leader.entry() == [LARGE]


@pytest.mark.parametrize("rest_s", [0.02, 0.04])
def test_a_leader_wakes_at_the_end_of_a_rest(rest_s: float) -> None:
    world = SmallCluster(3)
    driver = world.leader().up
    world.run(2.0)
    driver.proposer.rests.until = world.now + rest_s
    assert next_turn_at(driver, world.now, world.now) <= world.now + rest_s
