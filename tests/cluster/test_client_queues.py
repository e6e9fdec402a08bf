"""Turns among clients when more is queued than one entry holds."""

from __future__ import annotations

import sys
from collections import deque

import pytest

from sockpqd.cluster.leader.client_queues import ClientQueues, charge_of
from sockpqd.cluster.leader.fragments import Queued
from sockpqd.cluster.leader.proposer import Proposer
from sockpqd.cluster.limits import (
    AWAITED_WORK_MAX,
    CLIENT_QUANTUM_BYTES,
    CLIENT_WAIT_S_MAX,
    CLIENT_WORK_BYTES,
    CLIENTS_LOOK_S,
    ENTRY_BYTES_MAX,
    ENTRY_OPERATIONS_MAX,
    ENTRY_WORK_MAX,
    QUEUED_BYTES_MAX,
    QUEUED_OPERATIONS_MAX,
    SMALL_SEEN_S,
)
from sockpqd.core import FEATURE_LEVEL, Done, Get, Operation, Put, cost, decode_entry
from tests.cluster.helpers.small_cluster import Outcome

BYTES = 128                     # that each of these operations costs
HELD = 512                      # of memory, for each of them
TURN = CLIENT_QUANTUM_BYTES // BYTES   # such operations of one client


class Queue:
    """A proposer, and the entries that it would hand to Raft."""

    def __init__(self) -> None:
        self.now = 0.0
        self.entries: list[list[Operation]] = []
        self._land: list[object] = []
        self.proposer = Proposer(self._submit, lambda: 7, lambda effects: None, lambda: self.now)
        self.proposer.accepting = True

    def _submit(self, entry: bytes, callback: object) -> None:
        self.entries.append(decode_entry(entry).operations)
        self._land.append(callback)

    def send(self, client: str, count: int, first: int = 0, *, uneven: int = 0) -> list[Outcome]:
        """Propose this many operations of the client, with numbers that show whose they are."""
        outcomes = [Outcome() for _ in range(count)]
        data = bytes(BYTES + uneven - cost(Put(client, 0, b""))[0])
        for number, outcome in enumerate(outcomes, first):
            self.proposer.propose_for(client, Put(client, number, data), outcome)
        return outcomes

    def entry(self) -> list[tuple[str, int]]:
        """Return the next entry: the clients of its operations, and their numbers."""
        for callback in self._land:
            callback(None, -1)      # type: ignore[operator]
        self._land.clear()
        self.proposer.flush(self.now)
        return self.puts(-1)

    def puts(self, entry: int) -> list[tuple[str, int]]:
        """Return the Puts of an entry."""
        return [(put.queue, put.priority) for put in self.entries[entry] if isinstance(put, Put)]

    def rest(self) -> list[tuple[str, int]]:
        """Return all entries until nothing is queued."""
        operations = []
        while self.proposer.queued:
            operations += self.entry()
        return operations


def test_what_one_entry_holds_keeps_the_order_in_which_it_came() -> None:
    queue = Queue()
    for number in range(ENTRY_OPERATIONS_MAX // 2):
        queue.send("a", 1, number)
        queue.send("b", 1, number)
    assert queue.entry() == [(name, number) for number in range(ENTRY_OPERATIONS_MAX // 2) for name in "ab"]


@pytest.mark.parametrize("uneven", [0, 1, 77, -62])      # bytes by which a turn is not a whole number of operations
def test_a_client_that_comes_is_served_by_the_next_entry_however_much_others_pipeline(uneven: int) -> None:
    queue = Queue()
    for name in ("g1", "g2", "g3"):
        queue.send(name, 4000, uneven=uneven)
    queue.entry()
    queue.entry()
    queue.send("ordinary", 1)
    assert queue.entry().index(("ordinary", 0)) <= 2 * TURN     # behind what did not fit before


def test_a_client_that_comes_waits_for_no_operation_that_fills_an_entry_but_that_in_flight() -> None:
    queue = Queue()
    names = tuple(f"q{number}" for number in range(ENTRY_WORK_MAX))
    for _ in range(4):
        for client in ("g1", "g2", "g3"):
            queue.proposer.propose_for(client, Get(names), Outcome())
    for _ in range(4):
        queue.entry()
        assert [type(operation) for operation in queue.entries[-1]] == [Get]
    queue.send("ordinary", 1)
    assert queue.entry() == [("ordinary", 0)]
    assert len(queue.entries[-1]) == 1


def test_clients_take_turns_and_each_keeps_its_order() -> None:
    queue = Queue()
    names = ("a", "b", "c", "d")
    for name in names:
        queue.send(name, 2000)
    queue.entry()                                   # what the first one had queued before others came
    rest = queue.entry()
    assert [rest[at][0] for at in range(0, len(rest), TURN)][:4] == ["a", "b", "c", "d"]
    shares = [sum(name == mine for name, _ in rest) for mine in names]
    assert max(shares) - min(shares) <= TURN
    rest += queue.rest()
    for name in names:
        numbers = [number for other, number in rest if other == name]
        assert numbers == sorted(numbers)


def test_who_always_comes_anew_does_not_starve_those_that_pipeline() -> None:
    queue = Queue()
    queue.send("greedy", 10_000)
    queue.entry()
    for number in range(20):
        for client in range(ENTRY_OPERATIONS_MAX):
            queue.send(f"single{client}", 1, number)
        queue.entry()
    assert sum(put.queue == "greedy" for entry in queue.entries[1:] for put in entry if isinstance(put, Put)) >= TURN


def test_large_operations_pay_with_the_turns_behind_them() -> None:
    queue = Queue()
    for number in range(4):
        queue.proposer.propose_for("large", Put("large", number, bytes(ENTRY_BYTES_MAX // 2)), Outcome())
    queue.send("small", 3000)
    served = [name for name, _ in queue.rest()]
    assert served.index("small") < 4
    between = [at for at, name in enumerate(served) if name == "large"][2:]
    assert all(at > 2000 for at in between)


def test_a_small_operation_does_not_wait_for_the_turns_of_dear_ones() -> None:
    queue = Queue()
    dear = Get(tuple(f"q{number}" for number in range(12_000)))
    for client in range(40):
        for _ in range(3):
            queue.proposer.propose_for(f"greedy{client}", dear, Outcome())
    queue.entry()
    for number in range(5):                 # one after the other, each at once when the one before was answered
        queue.send("ordinary", 1, number)
        queue.entry()
        assert ("ordinary", number) in [*queue.puts(-1), *queue.puts(-2), *queue.entry()], number


def test_what_stands_behind_an_operation_goes_with_it() -> None:
    queue = Queue()
    queue.send("a", ENTRY_OPERATIONS_MAX - 1)
    for number in range(200):                       # the first one is the last that fits beside the others
        if number == 1:
            queue.send("b", 1, 1000)                # an odd one, so that a turn may end between two
        queue.send("b", 1, number)
        queue.proposer.propose_for("b", Get((f"w{number}",)), Outcome(), behind=True)
        queue.send("c", 5, number * 5)
    queue.rest()
    operations = [operation for entry in queue.entries for operation in entry]
    for at, operation in enumerate(operations):
        if isinstance(operation, Get):
            put = operations[at - 1]
            assert isinstance(put, Put)
            assert (put.queue, operation.queues) == ("b", (f"w{put.priority}",))
    assert sum(isinstance(operation, Get) for operation in operations) == 200


def test_what_is_nobodys_goes_first() -> None:
    queue = Queue()
    queue.send("a", 3000)
    queue.entry()
    queue.proposer.propose(Done(5), Outcome())
    queue.entry()
    assert queue.entries[-1].index(Done(5)) <= TURN


def test_who_had_no_turn_for_too_long_is_refused_and_who_has_turns_is_not() -> None:
    queue = Queue()
    queue.send("a", 3000)
    late = queue.send("late", 2)
    queue.proposer.propose_for("late", Get(("w",)), Outcome(), behind=True)
    backlog = queue.proposer.backlog_bytes
    queue.now = CLIENT_WAIT_S_MAX + CLIENTS_LOOK_S
    queue.proposer.expire(queue.now)
    assert [outcome.state for outcome in late] == ["overdue"] * 2
    queue.send("late", 1)
    assert queue.proposer.backlog_bytes < backlog
    assert ("late", 0) in queue.rest()
    slow = queue.send("slow", 5000)
    while queue.proposer.queued:                    # a quarter of a second for each entry: two seconds for all
        queue.now += CLIENT_WAIT_S_MAX / 4
        queue.proposer.expire(queue.now)
        queue.entry()
    assert all(outcome.state != "overdue" for outcome in slow)
    assert queue.proposer.backlog_bytes == HELD * queue.proposer.in_flight


def test_all_that_waits_for_a_turn_is_refused_when_this_node_serves_no_more() -> None:
    queue = Queue()
    outcomes = queue.send("a", 2000) + queue.send("b", 2000)
    queue.proposer.stop_accepting(0.0, lost=False)
    assert {outcome.state for outcome in outcomes} == {"refused"}
    assert queue.proposer.idle
    assert queue.proposer.backlog_bytes == 0


def test_the_more_clients_wait_the_less_each_may_queue() -> None:
    queue = Queue()
    assert queue.proposer.share == QUEUED_OPERATIONS_MAX
    for client in range(100):
        queue.send(f"c{client}", 20)
    assert QUEUED_OPERATIONS_MAX // 100 <= queue.proposer.share <= QUEUED_OPERATIONS_MAX // 50
    queue.rest()
    assert queue.proposer.share == QUEUED_OPERATIONS_MAX


def test_what_a_client_has_waiting_can_be_withdrawn() -> None:
    queue = Queue()
    queue.send("a", 1000)
    outcomes = queue.send("gone", 10)
    queue.proposer.withdraw("gone")
    queue.proposer.withdraw("nobody")
    assert {outcome.state for outcome in outcomes} == {"overdue"}
    assert ("gone", 0) not in queue.rest()
    queue.send("gone", 1)
    assert queue.rest() == [("gone", 0)]


def test_a_crowd_whose_clients_leave_when_they_are_served_does_not_precede_an_ordinary_client() -> None:
    clients = ClientQueues(lambda: 0.0, lambda: FEATURE_LEVEL)
    large = ENTRY_WORK_MAX

    def add(client: str, work: int) -> None:
        clients.add(client, (Done(1), Outcome(), BYTES, work, HELD, False, charge_of(BYTES, work), client))

    def give() -> str:
        turn: deque[Queued] = deque()
        clients.give(turn, 0.0)
        assert len(turn) == 1
        return str(turn[0][-1])

    add("ahead", 10 * large)
    add("last", 20 * large)
    assert give() == "ahead"            # far ahead of the clock from now on, and others are forgotten only after it
    unserved = {f"g{number}": 2 for number in range(200)}
    for client in list(unserved) * 2:
        add(client, large)
    while any(unserved.values()):
        client = give()
        assert client in unserved
        unserved[client] -= 1
        if not unserved[client]:
            clients.withdraw(client)    # so the clock runs faster for the others
        add("ordinary", 1)
        assert give() == "ordinary"


def test_what_is_much_work_makes_others_wait_no_longer() -> None:
    queue = Queue()
    for number in range(100):
        names = tuple(f"{number}q{at}" for at in range(2000))
        queue.proposer.propose_for("greedy", Get(names), Outcome())
    queue.send("ordinary", 1)
    entries = 0
    while ("ordinary", 0) not in queue.entry():
        entries += 1
    assert entries <= 1


def test_of_those_that_come_whoever_wants_little_goes_first() -> None:
    queue = Queue()
    names = tuple(f"q{at}" for at in range(2000))
    for number in range(200):
        queue.proposer.propose_for(f"heavy{number}", Get(names), Outcome())
    queue.send("ordinary", 1)
    entries = 0
    while ("ordinary", 0) not in queue.entry():
        entries += 1
    assert entries <= 1


def _names(client: int, number: int) -> tuple[str, ...]:
    return tuple(f"{at:04x}.{client}.{number}" for at in range(5000))


def test_clients_that_do_not_exceed_their_shares_hold_little_memory_together() -> None:
    queue = Queue()
    queue.send("first", ENTRY_OPERATIONS_MAX)
    waiting = set(range(50))
    number = 0
    while waiting:                      # each goes on until it is told that it has its share
        waiting = {
            client for client in waiting
            if not queue.proposer.propose_for(f"client{client}", Get(_names(client, number)), Outcome())
        }
        number += 1
        assert number < 100
    one = 5000 * sys.getsizeof("0000.0.0")
    assert QUEUED_BYTES_MAX // 2 < queue.proposer.backlog_bytes < QUEUED_BYTES_MAX + 51 * 2 * one
    queue.rest()
    queue.entry()                       # so that the last one lands
    assert queue.proposer.backlog_bytes == 0


def test_memory_is_told_by_what_names_take_there() -> None:
    queue = Queue()
    names = _names(1, 1)
    queue.proposer.propose_for("client", Get(names), Outcome())
    real = sys.getsizeof(names) + sum(map(sys.getsizeof, names))
    assert real * 0.7 < queue.proposer.backlog_bytes < real * 1.5


def test_who_has_its_share_may_go_on_when_it_was_served() -> None:
    queue = Queue()
    queue.send("first", ENTRY_OPERATIONS_MAX)
    while not queue.proposer.propose_for("large", Put("large", 0, bytes(1 << 20)), Outcome()):
        pass
    assert not queue.proposer.propose_for("small", Put("small", 0, b""), Outcome())
    queue.rest()
    queue.send("first", ENTRY_OPERATIONS_MAX)
    assert not queue.proposer.propose_for("large", Put("large", 0, bytes(1 << 20)), Outcome())


def entry_work(queue: Queue) -> int:
    """Propose the next entry; returns the work of its operations."""
    queue.entry()
    return sum(cost(operation)[1] for operation in queue.entries[-1])


def pipeline_expensive(queue: Queue) -> None:
    """Let three clients pipeline operations of a hundred names each, none of which is large."""
    for client in ("g1", "g2", "g3"):
        for _ in range(1000):
            queue.proposer.propose_for(client, Get(tuple(f"q{number}" for number in range(100))), Outcome())


def test_while_somebody_waits_for_each_command_expensive_ones_of_others_do_not_fill_entries() -> None:
    queue = Queue()
    pipeline_expensive(queue)
    turn = CLIENT_QUANTUM_BYTES // CLIENT_WORK_BYTES
    for _ in range(3):
        assert entry_work(queue) > ENTRY_WORK_MAX - turn         # nobody waits
    queue.send("ordinary", 1)
    assert entry_work(queue) > ENTRY_WORK_MAX - turn
    assert ("ordinary", 0) in queue.puts(-1)
    for number in range(1, 4):
        queue.now += 0.01
        queue.send("ordinary", 1, number)
        assert AWAITED_WORK_MAX - turn < entry_work(queue) <= AWAITED_WORK_MAX + turn
        assert ("ordinary", number) in queue.puts(-1)
        assert AWAITED_WORK_MAX - turn < entry_work(queue) <= AWAITED_WORK_MAX + turn      # it is about to come
    queue.now += SMALL_SEEN_S
    assert entry_work(queue) > ENTRY_WORK_MAX - turn


def test_plain_commands_fill_entries_whoever_waits() -> None:
    queue = Queue()
    for client in ("g1", "g2"):
        for number in range(4000):
            queue.proposer.propose_for(client, Put(client, number, b"x"), Outcome())
    for number in range(4):
        queue.send("ordinary", 1, number)
        queue.entry()
        assert len(queue.entries[-1]) == ENTRY_OPERATIONS_MAX
