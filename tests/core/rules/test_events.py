"""The events of each operation, word by word (spec/events 2.2)."""

from __future__ import annotations

from sockpqd.core import (
    EVENT_TYPES,
    Batch,
    Change,
    CloneChunk,
    ConfigureQueue,
    Delete,
    DeleteQueue,
    Done,
    Due,
    End,
    Get,
    GetWith,
    How,
    Kick,
    Later,
    Lead,
    Machine,
    Move,
    OnDup,
    Operation,
    Purged,
    PurgeQueue,
    Put,
    PutWith,
    QueueChange,
    Return,
    Selector,
    Then,
    Tick,
)
from tests.core.helpers.logs import ask, lead, run, snapshot_of


def listening(*operations: Operation) -> Machine:
    """Return a machine that has executed these, and records everything from now on."""
    machine = Machine()
    machine.apply(1, 0, 0, operations)
    machine.record(EVENT_TYPES)
    return machine


def said(machine: Machine, *operations: Operation, now_ms: int = 0) -> list[str]:
    """Return the events of one entry with these operations."""
    events = machine.apply(machine.index + 1, now_ms, 0, operations).events
    return [" ".join(map(str, (event.type, *([event.name] if event.name else []), *event.words))) for event in events]


def test_a_job_from_put_to_done() -> None:
    machine = listening()
    assert said(machine, Put("mail", 5, b"", "order_17")) == ["PUT mail 5"]
    assert said(machine, Get(("mail",))) == ["TAKE mail 5 1"]
    assert said(machine, Later(1)) == ["LATER mail 5 1"]
    assert said(machine, Get(("mail",))) == ["TAKE mail 5 2"]
    assert said(machine, Done(2)) == ["DONE mail 5 2", "FINQ mail", "FINI order_17"]
    assert said(machine, Done(2), Get(("mail",)), Tick()) == []


def test_numbers_count_from_the_beginning() -> None:
    machine = listening(Put("q", 0, b""), Put("q", 0, b""))
    (event,) = machine.apply(2, 0, 0, [Put("q", 0, b"")]).events
    assert (event.seq, machine.event_seq) == (3, 3)


def test_later_tells_the_priority_with_which_the_job_waits() -> None:
    machine = listening(Put("q", 1, b""), Get(None))
    assert said(machine, End(1, How.LATER, priority=9)) == ["LATER q 9 1"]


def test_a_returned_hand_out_tells_nothing() -> None:
    machine = listening(Put("q", 0, b""), Get(None))
    assert said(machine, Return(1)) == []


def test_move_tells_done_and_put_and_the_end_of_the_old_queue() -> None:
    machine = listening(Put("a", 1, b"", "i"), Get(None))
    assert said(machine, Move(1, "b", 7)) == ["DONE a 1 1", "PUT b 7", "FINQ a"]


def test_last_attempt_tells_later_then_dead() -> None:
    machine = listening(ConfigureQueue("q", QueueChange(tries=1), create=True), Put("q", 3, b"", "i"), Get(None))
    assert said(machine, End(1, How.LATER, priority=9)) == ["LATER q 3 1", "DEAD q q_dead 1", "FINQ q", "FAILI i"]
    assert said(machine, Kick("q", 10)) == ["PUT q 3", "FINQ q_dead"]


def test_expiry_tells_what_follows_it_and_no_later() -> None:
    for then, rest in (("LATER", []), ("DONE", ["FINQ q"]), ("DEAD", ["DEAD q q_dead 1", "FINQ q"])):
        machine = listening(Put("q", 0, b""), Get(None, 10, Then[then]))
        assert said(machine, Tick(), now_ms=100) == [f"EXPIRED q 1 {then}", *rest]


def test_expiry_of_the_last_attempt() -> None:
    machine = listening(
        ConfigureQueue("q", QueueChange(tries=1), create=True), Put("q", 0, b""), Get(None, 10, Then.LATER),
    )
    assert said(machine, Tick(), now_ms=100) == ["EXPIRED q 1 LATER", "DEAD q q_dead 1", "FINQ q"]


def test_bury_tells_dead() -> None:
    machine = listening(Put("q", 0, b"", "i"), Get(None))
    assert said(machine, End(1, How.BURY)) == ["DEAD q q_dead 1", "FINQ q", "FAILI i"]


def test_end_of_a_ttl() -> None:
    machine = listening(PutWith(Put("q", 0, b"", "i"), ttl_ms=10))
    assert said(machine, Tick(), now_ms=100) == ["TTL q", "FINQ q", "FINI i"]


def test_delete_and_purge_tell_what_has_come_to_an_end() -> None:
    jobs = (Put("q", 0, b"", "i"), Put("q", 0, b"", "j"), PutWith(Put("p", 0, b"", "i"), key="k"))
    assert said(listening(*jobs), PurgeQueue("q", Purged.ALL)) == ["FINQ q", "FINI j"]
    assert said(listening(*jobs), Delete(Selector(queue="p", key="k"))) == ["FINQ p"]
    assert said(listening(*jobs, Get(("q",))), DeleteQueue("q", True)) == [
        "CANCEL q 1", "FINQ q", "FINI j"]


def test_deletion_of_an_empty_queue_tells_nothing() -> None:
    assert said(listening(ConfigureQueue("q", QueueChange(), create=True)), DeleteQueue("q", True)) == []


def test_an_item_that_is_given_up_has_come_to_an_end() -> None:
    machine = listening(PutWith(Put("q", 0, b"", "i"), key="k"))
    assert said(machine, Change(Selector(queue="q", key="k"), item="j")) == ["FINI i"]
    assert said(machine, PutWith(Put("q", 0, b""), key="k", on_dup=OnDup.REPLACE)) == ["FINI j"]


def test_each_job_of_several_is_an_operation_of_its_own() -> None:
    machine = listening(Put("a", 0, b"", "i"), Put("b", 0, b"", "j"))
    assert said(machine, GetWith(Get(("a", "b"), item=None), 2)) in (
        ["TAKE a 0 1", "TAKE b 0 2"], ["TAKE b 0 1", "TAKE a 0 2"],
    )
    first = machine.running()[0].queue
    assert said(machine, End((1, 2), How.DONE))[:2] == [f"DONE {first} 0 1", f"FINQ {first}"]
    machine = listening(Put("a", 0, b""), Put("b", 0, b""), Get(("a",)), Get(("b",)))
    assert said(machine, Batch((Done(1), Done(2)), atomic=True)) == ["DONE a 0 1", "FINQ a", "DONE b 0 2", "FINQ b"]


def test_a_transaction_that_is_refused_tells_nothing() -> None:
    machine = listening(Put("a", 0, b"", "i"), Get(None))
    before = machine.event_seq
    assert said(machine, Batch((Put("b", 0, b""), Done(1), Done(77)), atomic=True)) == []
    assert machine.event_seq == before
    assert said(machine, Done(1)) == ["DONE a 0 1", "FINQ a", "FINI i"]


def test_a_delayed_job_is_told_when_it_is_put_and_not_when_its_time_comes() -> None:
    machine = listening()
    assert said(machine, PutWith(Put("q", 0, b""), Due(50))) == ["PUT q 0"]
    assert said(machine, Tick(), now_ms=100) == []


def test_a_new_leader() -> None:
    machine = listening()
    assert said(machine, lead("n2")) == ["LEADER 1 n2 "]


def test_clone_tells_that_everything_is_another() -> None:
    machine = listening(lead(), Put("q", 0, b""))
    snapshot = snapshot_of(Machine())
    told = said(machine, CloneChunk(1, total_bytes=len(snapshot)), CloneChunk(1, snapshot), CloneChunk(1, last=True))
    assert told == ["GAP 3 3"]
    assert machine.event_seq == 3           # it is not set back


def alarm(count: int) -> Operation:
    """Return QUEUE CONFIG q ALARM <count>."""
    return ConfigureQueue("q", QueueChange(alarm=count))


def test_depth_is_told_at_the_alarm_and_at_half_of_it_in_turn() -> None:
    machine = listening(alarm(5), Put("q", 0, b""), Put("q", 0, b""), Put("q", 0, b""))
    assert said(machine, PutWith(Put("q", 0, b""), Due(9)), Put("q", 0, b"")) == ["PUT q 0", "PUT q 0", "DEPTH q 5"]
    assert said(machine, Put("q", 0, b""), Get(("q",)), Get(("q",))) == ["PUT q 0", "TAKE q 0 1", "TAKE q 0 2"]
    assert said(machine, GetWith(Get(("q",)), 2)) == ["TAKE q 0 3", "TAKE q 0 4", "DEPTH q 2"]
    assert said(machine, Later(1), Later(2)) == ["LATER q 0 1", "LATER q 0 2"]
    assert said(machine, Later(3)) == ["LATER q 0 3", "DEPTH q 5"]
    assert said(machine, PurgeQueue("q", Purged.ALL), Done(4)) == ["DEPTH q 2", "DONE q 0 4", "FINQ q"]


def test_an_alarm_below_the_present_depth_tells_at_once() -> None:
    machine = listening(*[Put("q", 0, b"")] * 4)
    assert said(machine, alarm(5)) == []
    assert said(machine, alarm(4)) == ["DEPTH q 4"]
    assert said(machine, alarm(3)) == ["DEPTH q 3"]
    assert said(machine, alarm(0), Put("q", 0, b""), *[Get(("q",))] * 2)[1:] == ["TAKE q 0 1", "TAKE q 0 2"]


def test_a_transaction_that_is_refused_tells_no_depth_either() -> None:
    machine = listening(alarm(2), Put("q", 0, b""))
    assert said(machine, Batch((Put("q", 0, b""), Done(77)), atomic=True)) == []
    assert said(machine, Put("q", 0, b"")) == ["PUT q 0", "DEPTH q 2"]


def test_jobs_of_a_clone_that_wait_again_count_for_the_alarm() -> None:
    """One that ran in another cluster by an id that was given here waits."""
    source = Machine()
    run(source, Lead("x1", 1, ("x1",), b"another cluster.", 0, Then.DONE))
    ask(source, ConfigureQueue("a", QueueChange(alarm=2), create=True), Put("a", 0, b""), Put("a", 0, b""), Get(("a",)))
    snapshot = snapshot_of(source)
    machine = listening(lead(), Put("q", 0, b""), Get(("q",)))
    told = said(machine, CloneChunk(1, total_bytes=len(snapshot)), CloneChunk(1, snapshot), CloneChunk(1, last=True))
    assert [line.partition(" ")[0] for line in told] == ["GAP", "DEPTH"]
    assert told[-1] == "DEPTH a 2"
