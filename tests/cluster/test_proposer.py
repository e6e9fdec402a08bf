"""Group commit and the three outcomes, without Raft."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sockpqd.cluster.leader.proposer import Proposer
from sockpqd.cluster.limits import (
    BATCH_BYTES_MAX,
    ENTRIES_IN_FLIGHT_MAX,
    ENTRY_BYTES_MAX,
    ENTRY_OPERATIONS_MAX,
    MESSAGE_BYTES_MAX,
    OUTCOME_AFTER_LOSS_S,
    OUTCOME_S,
    OVERLAP_OPERATIONS_MIN,
)
from sockpqd.cluster.raft.pysyncobj_adapter import FAIL_REASON, NOT_EXECUTED, SUCCESS, Callback
from sockpqd.core import (
    OPERATION_BYTES_MAX,
    Applied,
    Batch,
    Change,
    Done,
    Effects,
    End,
    Finished,
    Get,
    GetWith,
    How,
    Kick,
    Move,
    Operation,
    Purged,
    PurgeQueue,
    Put,
    PutWith,
    Request,
    Selector,
    Stored,
    cost,
    decode_entry,
)
from tests.cluster.helpers.small_cluster import Outcome

CALL_BYTES = 64                 # around an entry: how the library calls it, and its place in a message


class Log:
    """Stands in for Raft: keeps what was proposed until the test decides."""

    def __init__(self) -> None:
        self.entries: list[tuple[bytes, Callback]] = []
        self.effects: list[Effects] = []
        self.now = 0.0
        self.proposer = Proposer(lambda data, callback: self.entries.append((data, callback)), lambda: 7,
                                 self.effects.append, lambda: self.now)
        self.proposer.accepting = True

    def land(self, *replies: object, reason: int = SUCCESS) -> None:
        _, callback = self.entries.pop(0)
        callback(Applied(list(replies), Effects()) if reason == SUCCESS else None, reason)  # type: ignore[arg-type]

    def put(self, size: int = 1) -> Outcome:
        outcome = Outcome()
        self.proposer.propose(Put("q", 0, bytes(size)), outcome)
        return outcome


def test_operations_of_one_turn_share_one_entry_and_keep_their_order() -> None:
    log = Log()
    first, second = log.put(), Outcome()
    log.proposer.propose(Done(3), second)
    log.proposer.flush(0.0)
    entry = decode_entry(log.entries[0][0])
    assert entry.operations == [Put("q", 0, b"\0"), Done(3)]
    assert entry.now_ms == 7
    log.land(Stored(), Finished())
    assert (first.reply, second.reply) == (Stored(), Finished())
    assert len(log.effects) == 1
    assert log.proposer.idle
    assert log.proposer.backlog_bytes == 0


def test_what_is_proposed_while_one_entry_is_collected_is_in_that_entry() -> None:
    log = Log()
    first, second = log.proposer.collecting, object()
    log.put()
    assert log.proposer.collecting == first
    log.proposer.flush(0.0)
    log.put()
    log.proposer.flush(0.0)         # one is in flight
    assert log.proposer.collecting == first + 1
    for _ in range(ENTRY_OPERATIONS_MAX):
        log.proposer.propose_for(second, Done(1), Outcome())
    assert log.proposer.collecting == 0, "now they take turns"


def many(log: Log, count: int = OVERLAP_OPERATIONS_MIN) -> list[Outcome]:
    return [log.put() for _ in range(count)]


def overlapping() -> Log:
    """Propose a large entry of Puts, in addition to which a second one would pay."""
    log = Log()
    log.proposer.overlaps = True
    many(log)
    log.proposer.flush(0.0)
    return log


def test_a_second_large_entry_follows_a_large_one_if_that_pays() -> None:
    log = overlapping()
    many(log, OVERLAP_OPERATIONS_MIN - 1)
    assert not log.proposer.ready
    log.proposer.flush(0.0)
    assert len(log.entries) == 1
    log.put()
    log.proposer.overlaps = False
    assert not log.proposer.ready
    log.proposer.overlaps = True
    assert log.proposer.ready
    log.proposer.flush(0.0)
    assert len(log.entries) == 2
    many(log)
    assert not log.proposer.ready, "and no third one"


def test_a_small_entry_is_followed_by_none() -> None:
    log = Log()
    log.proposer.overlaps = True
    many(log, OVERLAP_OPERATIONS_MIN - 1)
    log.proposer.flush(0.0)
    many(log)
    assert not log.proposer.ready


def test_a_turn_proposes_no_more_than_one_of_them() -> None:
    log = Log()
    log.proposer.overlaps = True
    many(log, ENTRY_OPERATIONS_MAX + OVERLAP_OPERATIONS_MIN)
    log.proposer.flush(0.0)
    assert len(log.entries) == 1
    assert log.proposer.ready
    log.proposer.flush(0.0)
    assert len(log.entries) == 2


def test_an_entry_that_may_leave_operations_out_is_followed_by_none() -> None:
    log = Log()
    log.proposer.overlaps = True
    many(log)
    log.proposer.propose(Get(("q",)), Outcome())
    log.proposer.flush(0.0)
    many(log)
    assert not log.proposer.ready


def test_what_was_left_out_all_the_same_is_not_executed_behind_what_followed() -> None:
    log = Log()
    log.proposer.overlaps = True
    first = many(log)
    log.proposer.flush(0.0)
    second = many(log)
    log.proposer.flush(0.0)
    log.land(*[Stored()] * (OVERLAP_OPERATIONS_MIN - 2))
    assert [outcome.state for outcome in first[-3:]] == ["applied", "refused", "refused"]
    assert log.proposer.queued == 0
    log.land(*[Stored()] * (OVERLAP_OPERATIONS_MIN - 1))
    assert second[-1].state == "open", "nothing had followed the second one, so what it left out comes next"
    assert log.proposer.queued == 1
    log.proposer.flush(0.0)
    log.land(Stored())
    assert second[-1].state == "applied"
    assert log.proposer.backlog_bytes == 0


def test_only_so_many_entries_are_in_flight() -> None:
    log = Log()
    for k in range(ENTRIES_IN_FLIGHT_MAX + 3):
        log.put()
        log.proposer.flush(k)
    assert len(log.entries) == ENTRIES_IN_FLIGHT_MAX
    assert log.proposer.ready is False
    log.land(Stored())
    assert log.proposer.ready
    log.proposer.flush(9)
    assert len(decode_entry(log.entries[-1][0]).operations) == 3


def test_an_entry_is_closed_by_size_and_a_larger_operation_travels_alone() -> None:
    log = Log()
    log.put(ENTRY_BYTES_MAX - 1000)
    log.put(900)
    log.put(3 * ENTRY_BYTES_MAX)
    sizes = []
    while not log.proposer.idle:
        log.proposer.flush(0.0)
        sizes.append(len(log.entries[0][0]) // ENTRY_BYTES_MAX)
        log.land(Stored())
    assert sizes == [0, 0, 3]


@pytest.mark.parametrize("operation", [
    PutWith(Put("q", 0, bytes(ENTRY_BYTES_MAX - 500))),
    Change(Selector(1), data=bytes(ENTRY_BYTES_MAX - 500)),
    Move(1, "q", data=bytes(ENTRY_BYTES_MAX - 500)),
    Batch((Put("q", 0, bytes(ENTRY_BYTES_MAX // 2)), PutWith(Put("q", 0, bytes(ENTRY_BYTES_MAX // 2 - 500)))), False),
    Request(1, 1, bytes(16), 0, False, Batch((Put("q", 0, bytes(ENTRY_BYTES_MAX - 500)),), True)),
    End(tuple(range(ENTRY_BYTES_MAX // 8 - 50)), How.LATER),
    End(tuple(range(ENTRY_BYTES_MAX // 8 - 50)), How.DONE),
])
def test_data_are_counted_in_whatever_operation_they_are(operation: Operation) -> None:
    log = Log()
    log.proposer.propose(operation, Outcome())
    log.put(1000)
    log.proposer.flush(0.0)
    assert len(decode_entry(log.entries[0][0]).operations) == 1
    assert log.proposer.backlog_bytes > ENTRY_BYTES_MAX - 1000


@pytest.mark.parametrize("operation", [
    Batch((Put("q", 0, b""),) * 800, False), GetWith(Get(None), 800), End(tuple(range(800)), How.DONE),
    End(tuple(range(800)), How.LATER), Kick("q", 800), PurgeQueue("q", Purged.READY),
    Request(1, 1, bytes(16), 0, False, GetWith(Get(None), 800)),
], ids=lambda operation: type(operation).__name__)
def test_an_entry_has_two_thousand_jobs_at_most(operation: Operation) -> None:
    log = Log()
    for _ in range(3):
        log.proposer.propose(operation, Outcome())
    log.proposer.flush(0.0)
    assert len(decode_entry(log.entries[0][0]).operations) == 2


# What a client may say that makes an operation long, without any data.
LONG = [
    Get(tuple(f"{number:0254}" for number in range(256))),
    GetWith(Get(tuple(f"{number:0254}" for number in range(256))), 10_000),
    Request(1, 1, bytes(16), 0, False, Get(tuple(f"{number:0254}" for number in range(256)))),
    Get(tuple(f"{number:03x}" for number in range(4096))),
    PutWith(Put("q" * 255, 0, b"", "i" * 255), after=tuple(f"{number:0255}" for number in range(100)), key="k" * 128),
    End((2**64 - 1,) * 3000, How.DONE),
    Change(Selector(0, "q" * 255, "k" * 128), item="i" * 255),
]


@pytest.mark.parametrize("operation", LONG, ids=lambda operation: type(operation).__name__)
def test_no_number_of_legal_commands_makes_an_entry_too_large(operation: Operation) -> None:
    log = Log()
    for _ in range(2000):
        log.proposer.propose(operation, Outcome())
    carried = 0
    while log.proposer.ready:
        log.proposer.flush(0.0)
        data, callback = log.entries.pop()
        assert len(data) <= ENTRY_BYTES_MAX
        count = len(decode_entry(data).operations)
        callback(Applied([Stored()] * count, Effects()), SUCCESS)
        carried += count
    assert carried == 2000
    assert log.proposer.backlog_bytes == 0


_data = st.sampled_from([b"", bytes(1000), bytes(ENTRY_BYTES_MAX // 2), bytes(ENTRY_BYTES_MAX), bytes(8 << 20)])
_puts = st.builds(Put, st.just("q" * 255), st.just(0), _data, st.just("i" * 255))
_wait = st.builds(Get, st.just(("q" * 255,)), item=st.just("i" * 255))
_waits = st.builds(Get, st.just(tuple(f"{number:0254}" for number in range(256))), item=st.just("i" * 255))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.one_of(_puts, st.sampled_from(LONG), _wait, _waits, st.builds(Put, st.just("q"), st.just(0), _data)),
                max_size=60))
def test_no_sequence_of_commands_makes_an_entry_that_cannot_be_sent(operations: list[Operation]) -> None:
    log = Log()
    for operation in operations:
        log.proposer.propose(operation, Outcome())
    carried: list[Operation] = []
    while log.proposer.ready:
        log.proposer.flush(0.0)
        data, callback = log.entries.pop()
        assert len(data) < BATCH_BYTES_MAX - CALL_BYTES
        found = decode_entry(data).operations
        callback(Applied([Stored()] * len(found), Effects()), SUCCESS)
        carried += found
    assert carried == operations


def test_the_largest_operation_and_the_hand_out_behind_it_can_be_sent() -> None:
    longest = max(cost(operation)[0] for operation in LONG)
    assert OPERATION_BYTES_MAX + longest + CALL_BYTES < BATCH_BYTES_MAX
    assert 2 * BATCH_BYTES_MAX < MESSAGE_BYTES_MAX


def test_an_operation_that_no_node_could_send_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    log = Log()
    outcome, other = Outcome(), Outcome()
    log.proposer.propose(Put("q", 0, bytes(OPERATION_BYTES_MAX)), outcome)
    log.proposer.propose(Done(1), other)
    log.proposer.flush(0.0)
    assert outcome.state == "refused"
    assert "is refused" in caplog.text
    assert decode_entry(log.entries[0][0]).operations == [Done(1)]
    log.land(Finished())
    assert log.proposer.backlog_bytes == 0


def test_what_an_entry_leaves_out_is_the_beginning_of_the_next_one() -> None:
    log = Log()
    outcomes = [Outcome() for _ in range(5)]
    for number, outcome in enumerate(outcomes[:4]):
        log.proposer.propose(Done(number), outcome)
    log.proposer.flush(0.0)
    log.proposer.propose(Done(4), outcomes[4])
    backlog_bytes = log.proposer.backlog_bytes
    log.land(Finished(), Finished())
    assert [outcome.state for outcome in outcomes] == ["applied", "applied", "open", "open", "open"]
    assert log.proposer.backlog_bytes == backlog_bytes * 3 // 5
    assert log.proposer.answered is not None
    assert (log.proposer.answered.operations, log.proposer.answered.queued) == (2, 3)
    log.proposer.flush(0.0)
    assert decode_entry(log.entries[0][0]).operations == [Done(2), Done(3), Done(4)]
    log.land(Finished(), Finished(), Finished())
    assert {outcome.state for outcome in outcomes} == {"applied"}
    assert log.proposer.backlog_bytes == 0


def test_what_is_left_out_when_nobody_serves_any_more_is_refused() -> None:
    log = Log()
    first, second = log.put(), log.put()
    log.proposer.flush(0.0)
    log.proposer.stop_accepting(0.0, lost=False)
    log.land(Stored())
    assert (first.state, second.state) == ("applied", "refused")
    assert log.proposer.idle


def test_what_is_left_out_of_an_entry_that_came_too_late_stays_unknown() -> None:
    log = Log()
    first, second = log.put(), log.put()
    log.proposer.flush(0.0)
    log.proposer.expire(OUTCOME_S)
    log.land(Stored())
    assert (first.state, second.state) == ("unknown", "unknown")
    assert log.proposer.idle


def test_what_is_asked_for_takes_no_memory() -> None:
    log = Log()
    log.proposer.propose(GetWith(Get(None), 10_000), Outcome())
    assert log.proposer.backlog_bytes < 1000


@pytest.mark.parametrize("get", [Get(("q",), item="i"), Request(1, 1, bytes(16), 1, True, Get(("q",), item="i"))])
def test_gets_of_an_item_do_not_make_an_entry_longer(get: Operation) -> None:
    log = Log()
    for _ in range(ENTRY_OPERATIONS_MAX + 1):
        log.proposer.propose(get, Outcome())
    log.proposer.flush(0.0)
    assert len(decode_entry(log.entries[0][0]).operations) == ENTRY_OPERATIONS_MAX


@pytest.mark.parametrize("size", [10, ENTRY_BYTES_MAX - 100, 2 * ENTRY_BYTES_MAX])
@pytest.mark.parametrize("hand_out", [
    Get(("q",), item_of_put=True), Get(("q",), item="i"),
])
def test_the_hand_out_of_a_put_with_wait_is_in_the_entry_of_its_put(size: int, hand_out: Get) -> None:
    log = Log()
    log.proposer.propose(Put("q", 0, bytes(size), None, True), Outcome())
    log.proposer.propose(hand_out, Outcome())
    log.proposer.flush(0.0)
    put, behind = decode_entry(log.entries[0][0]).operations
    assert isinstance(put, Put)
    assert behind == hand_out


LARGE = Put("q", 0, bytes(2 * ENTRY_BYTES_MAX))


@pytest.mark.parametrize("put", [LARGE, PutWith(LARGE)])
def test_that_of_a_numbered_one_as_well(put: Put | PutWith) -> None:
    log = Log()
    log.proposer.propose(Request(1, 1, bytes(16), 0, False, put), Outcome())
    hand_out = Request(1, 1, bytes(16), 1, True, Get(("q",), item="i"))
    log.proposer.propose(hand_out, Outcome())
    log.proposer.flush(0.0)
    assert decode_entry(log.entries[0][0]).operations[1] == hand_out


def test_it_is_there_also_when_the_put_is_the_last_that_fits() -> None:
    log = Log()
    for _ in range(ENTRY_OPERATIONS_MAX - 1):
        log.put()
    log.proposer.propose(Put("q", 0, b"", None, True), Outcome())
    log.proposer.propose(Get(("q",), item_of_put=True), Outcome())
    log.put()
    log.proposer.flush(0.0)
    operations = decode_entry(log.entries[0][0]).operations
    assert len(operations) == ENTRY_OPERATIONS_MAX + 1
    assert type(operations[-1]) is Get


def test_nothing_is_taken_while_not_accepting() -> None:
    log = Log()
    log.proposer.accepting = False
    assert log.put().state == "refused"
    assert log.proposer.idle


@pytest.mark.parametrize("reason", sorted(NOT_EXECUTED))
def test_what_the_library_surely_dropped_is_refused(reason: int) -> None:
    log = Log()
    outcome = log.put()
    log.proposer.flush(0.0)
    log.land(reason=reason)
    assert outcome.state == "refused"


@pytest.mark.parametrize("reason", [FAIL_REASON.LEADER_CHANGED, FAIL_REASON.UNKNOWN_OUTCOME, 99])
def test_everything_else_is_unknown(reason: int) -> None:
    log = Log()
    outcome = log.put()
    log.proposer.flush(0.0)
    log.land(reason=reason)
    assert outcome.state == "unknown"


def test_a_silent_library_means_unknown_and_a_late_answer_changes_nothing() -> None:
    log = Log()
    outcome = log.put()
    log.proposer.flush(10.0)
    log.proposer.expire(10.0 + OUTCOME_S - 0.001)
    assert outcome.state == "open"
    log.proposer.expire(10.0 + OUTCOME_S)
    assert outcome.state == "unknown"
    assert log.proposer.idle
    log.land(Stored())
    assert outcome.state == "unknown"
    assert len(log.effects) == 1, "waiters still learn what the entry brought about"


def test_ceasing_to_serve_refuses_what_raft_has_not_seen_and_shortens_the_rest() -> None:
    log = Log()
    flying = log.put()
    log.proposer.flush(10.0)
    queued = log.put()
    log.proposer.stop_accepting(11.0, lost=True)
    assert (flying.state, queued.state) == ("open", "refused")
    log.proposer.expire(11.0 + OUTCOME_AFTER_LOSS_S)
    assert flying.state == "unknown"
    assert log.proposer.backlog_bytes == 0


def test_an_exception_of_a_listener_is_kept_and_not_raised_into_the_library() -> None:
    class Rude(Outcome):
        def applied(self, reply: object) -> None:
            raise KeyError("rude")

    log = Log()
    log.proposer.propose(Done(1), Rude())
    log.proposer.flush(0.0)
    log.land(Finished())
    assert isinstance(log.proposer.failure, KeyError)


def test_limits_fit_together() -> None:
    assert ENTRY_BYTES_MAX < 16 << 20
    assert OUTCOME_AFTER_LOSS_S < OUTCOME_S


def test_the_latency_of_an_entry_counts_from_its_first_operation_until_it_is_applied() -> None:
    log = Log()
    log.now = 10.0
    log.put()
    log.now = 10.02
    log.put()
    log.proposer.flush(log.now)
    assert log.proposer.in_flight == 2
    log.now = 10.2
    log.put()                       # waits for the entry in flight
    log.now = 10.04
    log.land(Stored(), Stored())
    log.proposer.flush(log.now)
    log.now = 11.2
    log.land(Stored())
    latencies = log.proposer.latencies
    seen = dict(zip(latencies.bounds, latencies.counts, strict=False))
    assert {bound: count for bound, count in seen.items() if count} == {0.05: 1, 1.0: 1}
    assert latencies.total == pytest.approx(1.04)
    assert log.proposer.in_flight == 0


def test_what_was_not_applied_has_no_latency() -> None:
    log = Log()
    log.put()
    log.proposer.flush(0.0)
    log.land(reason=FAIL_REASON.NOT_LEADER)
    log.put()
    log.proposer.flush(0.0)
    log.proposer.expire(OUTCOME_S)
    log.land(Stored())              # too late, its clients were told that nobody knows
    assert sum(log.proposer.latencies.counts) == 0
