"""Entries of the log as bytes: what stands on disks and goes between nodes of different versions."""

from __future__ import annotations

import msgspec
import pytest

from sockpqd.core import (
    AddLearner,
    Address,
    Allowance,
    AttachSession,
    Batch,
    BeatWorker,
    BindQueue,
    Change,
    CloneBegin,
    CloneChunk,
    CloneEnd,
    CloseSession,
    Configure,
    ConfigureFair,
    ConfigurePulse,
    ConfigureQueue,
    CreatePulse,
    CreateQueue,
    Delete,
    DeletePulse,
    DeleteQueue,
    DeleteTopic,
    DeleteUser,
    Done,
    Due,
    End,
    ExpireQueue,
    Feedback,
    Fragment,
    Get,
    GetWith,
    GiveResult,
    Grant,
    How,
    InTurn,
    JobState,
    Kick,
    LastFragment,
    Later,
    Lead,
    Move,
    Number,
    OldEntry,
    OnDup,
    OpenSession,
    Operation,
    Order,
    Overflow,
    PauseQueue,
    Place,
    Policy,
    PromoteLearner,
    PulseChange,
    PurgeQueue,
    Put,
    PutWith,
    QueueChange,
    RaiseLevel,
    RemoveMember,
    Request,
    Resume,
    ResumeQueue,
    Return,
    Sched,
    Selector,
    SetPulse,
    SetUser,
    SetWorker,
    SwitchService,
    TakeTurn,
    Then,
    Tick,
    ToQueues,
    ToTopic,
    Touch,
    TouchSession,
    UnbindQueue,
    WorkerState,
    continues,
    decode_entry,
    encode_entry,
    name_of,
)
from sockpqd.core.ops.entry import ENTRY_FORMAT, Entry

# What stands in an entry for each operation.
FORMS: list[tuple[Operation, list[object]]] = [
    (Put("q", -1, b"data", "x", False), [1, "q", -1, b"data", "x", False]),
    (Get(("q", "p"), 500, Then.DONE, "x", True, 12), [2, ["q", "p"], 500, 2, "x", True, 12]),
    (Get(None), [2, None, None, 0, None, False, None]),
    (Done(1), [3, 1]),
    (Later(2), [4, 2]),
    (Return(3), [5, 3]),
    (Tick(), [6]),
    (
        Lead("a", 7, ("a", "b"), b"id", 9, Then.DONE, (Address("a", "h:1", "h:2"), Address("b")), 350),
        [7, "a", 7, ["a", "b"], b"id", 9, 2, [["a", "h:1", "h:2"], ["b", "", ""]], 350],
    ),
    (CloneBegin(1, 1000), [8, 1, 1000]),
    (CloneChunk(1, b"chunk"), [9, 1, b"chunk"]),
    (CloneEnd(1), [10, 1]),
    (AddLearner("a", "h:1", "h:2"), [11, "a", "h:1", "h:2"]),
    (PromoteLearner("a", 4), [12, "a", 4]),
    (RemoveMember("a", 4), [13, "a", 4]),
    (SwitchService(False), [14, False, 0]),
    (SwitchService(True, 30), [14, True, 30]),
    (Resume(30), [42, 30]),
    (OpenSession(2**64 - 1, 900_000, "mailer"), [15, 2**64 - 1, 900_000, "mailer", "", None]),
    (OpenSession(7, 1000, "", "10.0.0.1", 10_000), [15, 7, 1000, "", "10.0.0.1", 10_000]),
    (AttachSession(12, 2**64 - 1, "mailer"), [16, 12, 2**64 - 1, "mailer"]),
    (CloseSession(12, True), [17, 12, True, False]),
    (TouchSession((1, 7)), [18, [1, 7]]),
    (TouchSession(12), [18, 12]),
    (
        Request(12, 3, b"sixteen bytes id", 0, False, Put("q", 1, b"data")),
        [19, 12, 3, b"sixteen bytes id", 0, False, [1, "q", 1, b"data", None, False], False],
    ),
    (
        Request(12, 3, b"sixteen bytes id", 1, True, Get(None, session=12), True),
        [19, 12, 3, b"sixteen bytes id", 1, True, [2, None, None, 0, None, False, 12], True],
    ),
    (Request(1, 2, b"d", 0, False, Done(7)), [19, 1, 2, b"d", 0, False, [3, 7], False]),
    (Request(1, 2, b"d", 0, False, Later(7)), [19, 1, 2, b"d", 0, False, [4, 7], False]),
    (Request(1, 2, b"d", 0, False, CloneEnd(7)), [19, 1, 2, b"d", 0, False, [10, 7], False]),
    (SetUser("mailer", "put:mail*,get", b"sixteen byte key"), [20, "mailer", "put:mail*,get", b"sixteen byte key"]),
    (DeleteUser("mailer"), [21, "mailer"]),
    (
        PutWith(Put("q", 1, b"d")),
        [22, [1, "q", 1, b"d", None, False], None, None, None, [], None, 0, None, None, False, None, None],
    ),
    (
        PutWith(Put("q", 1, b"d"), Due(5, 9), 10, 60, ("x", "y"), "key", OnDup.REPLACE, 3),
        [22, [1, "q", 1, b"d", None, False], [5, 9], 10, 60, ["x", "y"], "key", 2, 3, None, False, None, None],
    ),
    (GetWith(Get(("q",))), [23, [2, ["q"], None, 0, None, False, None], None, None, False, None, None, None]),
    (
        GetWith(Get(None), 10, Policy.PRIORITY, True),
        [23, [2, None, None, 0, None, False, None], 10, 1, True, None, None, None],
    ),
    (
        GetWith(Get(None), 10, Policy.RR, True, turn=InTurn("q")),
        [23, [2, None, None, 0, None, False, None], 10, 3, True, ["q"], None, None],
    ),
    (End((1, 2), How.DONE), [24, [1, 2], 0, None, None, False, False, False, False, None, None, None, 0]),
    (End((1, 2), How.LATER), [24, [1, 2], 1, None, None, False, False, False, False, None, None, None, 0]),
    (End(7, How.DONE, last=True), [24, 7, 0, None, None, False, False, True, False, None, None, None, 0]),
    (End(7, How.LATER), [24, 7, 1, None, None, False, False, False, False, None, None, None, 0]),
    (Touch(7), [28, 7, None, 0, None]),
    (Touch(7, 500, Then.DEAD), [28, 7, 500, 3, None]),
    (Change(Selector(7)), [29, [0, 7, "", ""], None, None, None, False, None]),
    (
        Change(Selector(0, "q", "key"), 3, Due(5), "x", True, b"d"),
        [29, [0, 0, "q", "key"], 3, [5, None], "x", True, b"d"],
    ),
    (Delete(Selector(0, "q", "key")), [30, [0, 0, "q", "key"], False]),
    (
        Change(Place("q", 2**62), 3, Due(5), "x", True, b"d"),
        [29, [1, "q", 2**62], 3, [5, None], "x", True, b"d"],
    ),
    (Delete(Place("q", 5)), [30, [1, "q", 5], False]),
    (
        PutWith(Put("q", 1, b"d"), number=True, lease_ms=500),
        [22, [1, "q", 1, b"d", None, False], None, None, None, [], None, 0, None, None, True, 500, None],
    ),
    (Change(Number(2**62), 3, Due(5), "x", True, b"d"), [29, [2, 2**62], 3, [5, None], "x", True, b"d"]),
    (Delete(Number(5)), [30, [2, 5], False]),
    (Move(7, "q"), [31, 7, "q", None, None, None]),
    (Move(7, "q", 3, Due(0, 9), b"d"), [31, 7, "q", 3, [0, 9], b"d"]),
    (End(7, How.BURY), [24, 7, 2, None, None, False, False, False, False, None, None, None, 0]),
    (Kick("q", 10), [33, "q", 10, False, None, None]),
    (Batch((Put("q", 1, b"d"), Done(7)), True), [34, [[1, "q", 1, b"d", None, False], [3, 7]], True]),
    (
        CreateQueue("q", QueueChange()),
        [35, "q", [None, 0, *[None] * 20, False], None],
    ),
    (
        ConfigureQueue("q", QueueChange(1, Then.DEAD, Order.TIME, 2, "g", 3, 4, 5, 6, 7, 8, 9, 10)),
        [36, "q", [1, 3, 1, 2, "g", 3, 4, 5, 6, 7, 8, 9, 10, *[None] * 9, False]],
    ),
    (
        CreateQueue("q", QueueChange(), 12),
        [35, "q", [None, 0, *[None] * 20, False], 12],
    ),
    (
        ConfigureQueue("q", QueueChange(
            limit=4, ttl_ms=1, idle_ms=2, overflow=Overflow.DROPOLDEST, alarm=6, rate=3, per_ms=4, pulse="p",
            pulses_max=5, sched=Sched.FAIR, spread=True,
        )),
        [36, "q", [None, 0, None, None, None, None, 4, *[None] * 6, 1, 2, 1, 6, 3, 4, "p", 5, 1, True]],
    ),
    (
        PutWith(Put("q", 1, b"d"), group="g"),
        [22, [1, "q", 1, b"d", None, False], None, None, None, [], None, 0, None, "g", False, None, None],
    ),
    (End(7, How.DONE, last=True, ran_ms=5), [24, 7, 0, None, None, False, False, True, False, None, 5, None, 0]),
    (Touch(7, ran_ms=5), [28, 7, None, 0, 5]),
    (ConfigureFair((0, 5), 1000, 3, 4), [50, [0, 5], 1000, 3, 4]),
    (ExpireQueue("q", 1000), [65, "q", 1000]),
    (Touch((1, 2), 500, Then.DEAD), [28, [1, 2], 500, 3, None]),
    (
        End(7, How.LATER, Due(5), 3, first=True, yielded=True, reason="why"),
        [24, 7, 1, [5, None], 3, True, True, False, False, "why", None, None, 0],
    ),
    (CloseSession(12, True, True), [17, 12, True, True]),
    (BeatWorker("pool", 8, 3, "10.0.0.1:4000", 12), [71, "pool", 8, 3, "10.0.0.1:4000", 12]),
    (
        PutWith(Put("", 1, b"d"), targets=ToQueues(("q", "r"))),
        [22, [1, "", 1, b"d", None, False], None, None, None, [], None, 0, None, None, False, None, [0, ["q", "r"]]],
    ),
    (
        PutWith(Put("", 1, b"d"), targets=ToTopic("t", "a.b")),
        [22, [1, "", 1, b"d", None, False], None, None, None, [], None, 0, None, None, False, None, [1, "t", "a.b"]],
    ),
    (BindQueue("t", "q", "a.#"), [75, "t", "q", "a.#"]),
    (UnbindQueue("t", "q"), [76, "t", "q", None]),
    (DeleteTopic("t"), [77, "t"]),
    (SetWorker("pool", 9, 1, WorkerState.PAUSE), [72, "pool", 9, 1, 1]),
    (DeleteQueue("q", True), [37, "q", True]),
    (PurgeQueue("q", None), [38, "q", None, None]),
    (PurgeQueue("q", JobState.DEAD, 9), [38, "q", 3, 9]),
    (PauseQueue("q", True, False), [39, "q", True, False, None]),
    (ResumeQueue("q"), [40, "q"]),
    (PauseQueue("q", False, True, 9), [39, "q", False, True, 9]),
    (GetWith(Get(None), number=7), [23, [2, None, None, 0, None, False, None], None, None, False, None, None, 7]),
    (
        GetWith(Get(None, 9, Then.DEAD, session=2), meta=True, number=7),
        [23, [2, None, 9, 3, None, False, 2], None, None, True, None, None, 7],
    ),
    (
        End(7, How.BURY, priority=-1, here=True, reason="why"),
        [24, 7, 2, None, -1, False, False, False, True, "why", None, None, 0],
    ),
    (Kick("q", 9, here=True), [33, "q", 9, True, None, None]),
    (Kick("q", 9, here=True, buried=False), [33, "q", 9, True, False, None]),
    (Kick("", 1, selector=Number(7)), [33, "", 1, False, None, [2, 7]]),
    (Delete(Number(7), unless_running=True), [30, [2, 7], True]),
    (
        GetWith(Get(("q",)), free=(Allowance("p", 3),)),
        [23, [2, ["q"], None, 0, None, False, None], None, None, False, None, [["p", 3]], None],
    ),
    (
        End(7, How.DONE, feedback=Feedback.SLEEP, sleep_ms=9),
        [24, 7, 0, None, None, False, False, False, False, None, None, 3, 9],
    ),
    (CreatePulse("p", PulseChange()), [53, "p", [None] * 7, False, None]),
    (CreatePulse("p", PulseChange(1, 2, 3, 4, 5, 6, True), True, 9), [53, "p", [1, 2, 3, 4, 5, 6, True], True, 9]),
    (ConfigurePulse("p", PulseChange(rate=7)), [54, "p", [7, *[None] * 6]]),
    (DeletePulse("p"), [55, "p"]),
    (SetPulse("p", b"d", True), [56, "p", b"d", True]),
    (Grant("p", 3), [57, "p", 3]),
    (TakeTurn("p", True), [58, "p", True]),
    (GiveResult(7, Feedback.SLEEP, 9), [59, 7, 3, 9]),
    (Request(1, 2, b"d", 0, True, TakeTurn("p", False)), [19, 1, 2, b"d", 0, True, [58, "p", False], False]),
    (RaiseLevel(2, ("n1", "n2")), [78, 2, ["n1", "n2"]]),
    (Fragment(7, 256, b"d"), [89, 7, 256, b"d"]),
    (LastFragment(7, 257, b""), [90, 7, 257, b""]),
    (Configure(), [41, None, None, None, None, None, None]),
    (Configure(Then.DONE, False, Policy.PRIORITY, 1, 2, True), [41, 2, False, 1, 1, 2, True]),
    (
        Request(1, 2, b"d", 0, False, End(7, How.DONE, last=True)),
        [19, 1, 2, b"d", 0, False, [24, 7, 0, None, None, False, False, True, False, None, None, None, 0], False],
    ),
]


def entry_of(form: list[object]) -> bytes:
    """An entry with one operation of this form."""
    return msgspec.msgpack.encode([ENTRY_FORMAT, 1_700_000_000_000, 2**64 - 1, [form]])


@pytest.mark.parametrize(("operation", "form"), FORMS)
def test_operation_is_written_and_read_as_ever(operation: Operation, form: list[object]) -> None:
    assert encode_entry(1_700_000_000_000, 2**64 - 1, [operation]) == entry_of(form)
    assert decode_entry(entry_of(form)).operations == [operation]


def test_all_operations_were_looked_at() -> None:
    assert {type(operation) for operation, _ in FORMS} == set(Operation.__args__)


def test_lead_of_an_older_version_tells_no_addresses_and_no_silence() -> None:
    form: list[object] = [7, "a", 7, ["a", "b"], b"id", 9, 2]
    assert decode_entry(entry_of(form)).operations == [Lead("a", 7, ("a", "b"), b"id", 9, Then.DONE, (), 0)]


def test_get_of_an_older_version_is_bound_to_no_session() -> None:
    form: list[object] = [2, ["q"], 500, 2, "x", True]
    assert decode_entry(entry_of(form)).operations == [Get(("q",), 500, Then.DONE, "x", True, None)]


def test_sessions_of_an_older_version_are_nobodys() -> None:
    assert decode_entry(entry_of([15, 7, 900])).operations == [OpenSession(7, 900)]
    assert decode_entry(entry_of([16, 12, 7])).operations == [AttachSession(12, 7)]


def test_fields_that_a_newer_version_adds_are_refused() -> None:
    """All of an entry, at any depth: a replica that executed it without them would differ from the others."""
    kinds: list[msgspec.inspect.StructType] = []
    waiting: list[object] = [msgspec.inspect.type_info(Entry)]
    while waiting:
        found = waiting.pop()
        if isinstance(found, msgspec.inspect.StructType):
            if found in kinds:
                continue
            kinds.append(found)
            waiting.extend(field.type for field in found.fields)
        elif isinstance(found, msgspec.inspect.UnionType):
            waiting.extend(found.types)
        elif isinstance(found, msgspec.inspect.ListType | msgspec.inspect.VarTupleType):
            waiting.append(found.item_type)
    assert {kind.cls for kind in kinds} >= {*Operation.__args__, Selector, QueueChange, Due}
    assert [kind.cls for kind in kinds if not (kind.forbid_unknown_fields and kind.array_like)] == []
    with pytest.raises(msgspec.ValidationError, match="at most length"):
        decode_entry(entry_of([12, "a", 4, "new"]))


@pytest.mark.parametrize("form", [
    [22, "a"], [20, "a"], [20, "a", "put", "key"], [21, 1], [15, 1, 1, 1],
    [11, "a"], [12, "a", "4"], [14, 1], [13, None, 1], [15, "a", 1], [16, 1], [18, None], [],
    [19, 1, 2, b"d", 0, False, [5, 1]],
    [19, 1, 2, b"d", 0, False, [19, 1, 2, b"d", 0, False, [3, 7]]],
    [19, 1, 2, "d", 0, False, [3, 7]],
])
def test_unknown_or_malformed_operation_is_refused(form: list[object]) -> None:
    with pytest.raises(msgspec.ValidationError):
        decode_entry(entry_of(form))


@pytest.mark.parametrize("number", [1, 4])
def test_an_entry_of_another_format_is_refused_with_its_number_and_ours(number: int) -> None:
    never = ", which no release ever wrote" if number == 1 else ""
    with pytest.raises(ValueError, match=rf"format {number}{never}; this version reads format 3$") as raised:
        decode_entry(msgspec.msgpack.encode([number, 2, 3, [[3, 7]]]))
    assert not isinstance(raised.value, OldEntry)


CANDIDATE = 2       # the format of 1.0.0rc1


@pytest.mark.parametrize("operation", [Tick(), Lead("a", 7, ("a",), b"id", 9), Resume(30), SwitchService(False)])
def test_what_a_cluster_logs_by_itself_is_read_of_the_release_candidate_too(operation: Operation) -> None:
    """When its nodes are stopped one after the other, the others elect leaders behind the last snapshot."""
    data = msgspec.msgpack.encode([CANDIDATE, 1, 2, [operation]])
    assert decode_entry(data).operations == [operation]
    assert decode_entry(memoryview(data)).operations == [operation]         # type: ignore[arg-type]


@pytest.mark.parametrize("operations", [[[3, 7]], [[6], [1, "q", 0, b""]], [[32, 7]], [[24, 7]]], ids=str)
def test_other_operations_of_the_release_candidate_are_refused_as_its(operations: list[list[object]]) -> None:
    """Whether this format has them, had them, or has others with these numbers."""
    data = msgspec.msgpack.encode([CANDIDATE, 1, 2, operations])
    for form in (data, memoryview(data)):
        with pytest.raises(OldEntry, match=r"format 2; this version reads format 3$"):
            decode_entry(form)          # type: ignore[arg-type]


PUT, WITH = Put("q", 0, b""), PutWith(Put("q", 0, b""), ttl_ms=5)


@pytest.mark.parametrize(("operation", "before", "expected"), [
    (Get(("o",), item_of_put=True), PUT, True),
    (Get(("o",), item="i"), WITH, True),
    (Get(("o",)), PUT, False),
    (Get(("o",), item_of_put=True), Done(1), False),
    (GetWith(Get(("o",), item_of_put=True)), PUT, False),
    (Request(1, 2, b"d", 1, True, Get(("o",), item_of_put=True)), Request(1, 2, b"d", 0, False, PUT), True),
    (Request(1, 2, b"d", 0, True, Get(("o",), item_of_put=True)), Request(1, 2, b"d", 0, False, PUT), False),
    (Request(1, 2, b"d", 1, True, Get(("o",), item_of_put=True)), PUT, False),
    (Request(1, 2, b"d", 1, True, Get(("o",), item_of_put=True)), Request(1, 2, b"d", 0, False, Done(1)), False),
    (Request(1, 3, b"d", 1, True, Get(("o",), item_of_put=True)), Request(1, 2, b"d", 0, False, PUT), False),
    (Request(4, 2, b"d", 1, True, Get(("o",), item_of_put=True)), Request(1, 2, b"d", 0, False, PUT), False),
])
def test_the_hand_out_of_a_put_wait_stands_directly_behind_its_put(
    operation: Operation, before: Operation, expected: bool,
) -> None:
    assert continues(operation, before) is expected


def test_an_operation_is_called_by_what_it_does() -> None:
    assert name_of(PUT) == name_of(Request(1, 2, b"d", 0, False, PUT)) == "Put"
