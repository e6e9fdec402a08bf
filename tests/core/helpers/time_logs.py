"""Logs with all options of jobs and queues: strategies for Hypothesis, and long random logs from a seed."""

from __future__ import annotations

from functools import cache
from random import Random
from typing import Any

from hypothesis import strategies as st
from msgspec import structs

from sockpqd.core import (
    Atomic,
    Await,
    Batch,
    BeatWorker,
    BindQueue,
    CancelItem,
    Change,
    CloseSession,
    Configure,
    ConfigureGroup,
    ConfigureQueue,
    Dedup,
    Delete,
    DeleteGroup,
    DeleteQueue,
    Done,
    Due,
    End,
    FairChange,
    Feedback,
    Get,
    GetWith,
    Handed,
    HandedMany,
    HoldItem,
    How,
    InTurn,
    JobState,
    Kick,
    Later,
    Machine,
    Move,
    MoveJobs,
    Number,
    OnDup,
    OpenSession,
    Operation,
    Order,
    Overflow,
    PauseQueue,
    Place,
    Policy,
    Purged,
    PurgeQueue,
    Put,
    PutWith,
    QueueChange,
    Request,
    Requested,
    RetryItem,
    Return,
    Sched,
    Selector,
    SetWorker,
    Then,
    ToQueues,
    ToTopic,
    Touch,
    UnbindQueue,
    Until,
)
from tests import samples
from tests.core.helpers.logs import LogEntry, lead, operations
from tests.core.helpers.session_logs import KINDS
from tests.samples import drawn, ends

QUEUES = ("a", "b", "a_dead")
ITEMS = ("x", "y", "i1")
KEYS = ("k", "l")
GROUPS = ("g", "h", "a", "a_dead")      # the last two are also those of queues
RAN_MS = (0, 7, 999, 1000, 12_000, 400_000)

# --- for Hypothesis: little of everything, so that operations meet each other

def often(*strategies: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return a strategy for one of them, each as often as it is named: one_of would look into nested ones."""
    return st.sampled_from(strategies).flatmap(lambda strategy: strategy)



_queue = st.sampled_from(samples.QUEUES)
_id = st.sampled_from(samples.IDS)
_number = st.sampled_from(samples.NUMBERS)
_put = drawn(Put)
put_with = drawn(PutWith, targets=None)
_numbered = drawn(PutWith, targets=None, number=True)
_get = drawn(Get)
pick = drawn(GetWith, turn=None, free=None, number=None)
pick_in_turn = drawn(
    GetWith, policy=st.sampled_from([None, Policy.RR, Policy.RR, Policy.PRIORITY, *Policy]), turn=drawn(InTurn),
    free=None, number=None,
)
_get_number = drawn(
    GetWith, get=drawn(Get, queues=None, item=None, item_of_put=False), count=None, policy=None, turn=None, free=None,
    number=_number,
)
# By id, or by queue and key.
_selector = drawn(Selector, id=_id, queue="", key="") | drawn(
    Selector, id=0, queue=_queue, key=st.sampled_from(samples.KEYS),
)
_change: st.SearchStrategy[Atomic] = drawn(Change, selector=_selector)
_delete: st.SearchStrategy[Atomic] = drawn(Delete, selector=_selector, unless_running=False)
_on_place: st.SearchStrategy[Atomic] = often(
    drawn(Change, selector=drawn(Place)), drawn(Delete, selector=drawn(Place), unless_running=False),
    drawn(Kick, queue="", count=1, here=False, buried=None, selector=drawn(Place), ended=False),
)
_on_numbered: st.SearchStrategy[Atomic] = often(
    drawn(Change, selector=drawn(Number)), drawn(Delete, selector=drawn(Number)),
    drawn(Kick, queue="", count=1, here=False, buried=None, selector=drawn(Number)),
)
_on_running: st.SearchStrategy[Atomic] = often(
    drawn(Done), drawn(Later), drawn(Move), drawn(Touch, ids=_id), drawn(Touch, ids=_id),
    ends(How.DONE), ends(How.DONE), ends(How.LATER), ends(How.LATER), ends(How.LATER), ends(How.BURY), ends(How.BURY),
)
_atomic: st.SearchStrategy[Atomic] = often(
    put_with, put_with, put_with, _numbered, _on_running, _on_running, _change, _delete, _on_place, _on_numbered,
)
_user = st.sampled_from([None, None, *samples.USERS])
batch = st.builds(Batch, st.lists(_atomic, max_size=5).map(tuple), st.booleans(), _user)
_ids = st.lists(_id, max_size=4).map(tuple)
_many = often(
    st.builds(End, _ids, st.just(How.DONE)), st.builds(End, _ids, st.just(How.LATER), first=st.booleans()),
    drawn(Touch, ids=_ids, ran_ms=None), drawn(Kick, here=False, buried=None, selector=None),
    drawn(Kick, here=True, selector=None),
)
queue_change = drawn(
    QueueChange, rate=None, per_ms=None, pulse=None, pulses_max=None, spread=False, group_limit=None, group_rate=None,
    group_per_ms=None,
)
_on_worker = drawn(BeatWorker, address="h:1", session=st.sampled_from([1, 1, 2])) | drawn(SetWorker)
spread: st.SearchStrategy[Atomic] = st.builds(
    structs.replace,
    st.builds(
        PutWith, drawn(Put, queue="", data=st.sampled_from([b"", b"s" * 40]), new_item=False),
        key=st.sampled_from([None, None, *samples.KEYS]),
    ),
    targets=drawn(ToQueues) | drawn(ToTopic),
)
RESUMED = drawn(PauseQueue, incoming=False, outgoing=False, pause_ms=None)
_on_topic: st.SearchStrategy[Requested] = often(drawn(BindQueue), drawn(UnbindQueue))
_rarer: st.SearchStrategy[Requested] = often(spread, _on_topic, _on_topic, _on_worker)
_on_group: tuple[st.SearchStrategy[Requested], ...] = (
    drawn(ConfigureGroup, rate=None, paused=None), drawn(ConfigureGroup, rate=None, paused=True, pause_ms=None),
    drawn(ConfigureGroup, paused=False), drawn(DeleteGroup),
)
on_queue: st.SearchStrategy[Requested] = often(
    *[drawn(ConfigureQueue, change=queue_change)] * 4, *[drawn(ConfigureQueue, change=queue_change, create=True)] * 2,
    drawn(DeleteQueue), drawn(PurgeQueue), drawn(PurgeQueue),
    drawn(RetryItem), drawn(HoldItem), drawn(HoldItem), drawn(CancelItem),
    drawn(MoveJobs), drawn(MoveJobs, left=None, behind=None),
    drawn(PauseQueue, pause_ms=None),
    drawn(PauseQueue, incoming=False, outgoing=True), RESUMED, RESUMED,
    drawn(Configure, fair=drawn(FairChange)),
    *_on_group,
    drawn(Configure),
)
requested: st.SearchStrategy[Requested] = often(
    put_with, put_with, put_with, _numbered, _get, pick, pick_in_turn, _on_running, _change, _delete, _on_place,
    _on_numbered, _get_number, _many, batch, on_queue, _rarer,
)
_await = st.builds(
    Await, st.builds(Selector, st.just(0), _queue, st.sampled_from(samples.KEYS)) | drawn(Number),
)
time_operations: st.SearchStrategy[Operation] = often(
    put_with, put_with, put_with, _put, _numbered, _numbered, pick, pick, _get, _on_running, _on_running,
    _on_running, _change, _many, batch, _delete, _on_place, _on_numbered, _get_number, on_queue,
    _rarer, drawn(Return), drawn(DeleteQueue, force=True, idle_since_ms=st.sampled_from((0, 50, 100, 200, 1000))),
    _await, _await,
    often(
        operations, operations, st.builds(CloseSession, st.just(1), st.booleans()),
        st.builds(CloseSession, st.just(1), st.just(True), st.just(True)),
    ),
)
_step_ms = st.sampled_from([0, 0, 1, 7, 20, 50, 100, 500])
_bits = st.integers(0, 2**64 - 1)
time_entries = st.builds(LogEntry, _step_ms, _bits, st.lists(time_operations, max_size=6))
_asked = st.builds(
    lambda number, kind, operation: Request(1, number, b"%016d" % number, kind[0], kind[1], operation, kind[2]),
    st.integers(1, 8),
    st.sampled_from(KINDS),
    requested,
)
_asked_entries = st.builds(LogEntry, _step_ms, _bits, st.lists(often(_asked, _asked, time_operations), max_size=6))


def places(machine: Machine) -> list[Place]:
    """Return those of all jobs that are READY or DELAYED, or one that is none's."""
    found = []
    for queue in machine.queue_names(""):
        for state in (JobState.READY, JobState.DELAYED, JobState.BURIED):
            found += [Place(queue, job.seq) for job in machine.peek_queue(queue, state, 20)]
    return found or [Place("a", 0)]


@cache
def _names_of_fields(kind: type) -> tuple[str, ...]:
    """Return the names of the fields: msgspec evaluates all annotations of a class each time."""
    return tuple(field.name for field in structs.fields(kind))


def aimed(operation: Any, ids: list[int], found: list[Place]) -> Any:
    """Return the operation with the n-th of these ids for each n that it names as an id, and the n-th of these places.
    """
    changes: dict[str, Any] = {}
    if isinstance(operation, Number):
        return Number(found[operation.number % len(found)].seq) if operation.number else operation
    if isinstance(operation, Place):
        return found[operation.seq % len(found)] if operation.seq else operation
    for name in _names_of_fields(type(operation)):
        value = getattr(operation, name)
        if name == "id" and 0 < value < 8:
            changes["id"] = ids[value % len(ids)]
        elif name == "ids":
            if isinstance(value, tuple):
                changes["ids"] = tuple(ids[number % len(ids)] for number in value)
            elif 0 < value < 8:
                changes["ids"] = ids[value % len(ids)]
        elif name == "number" and isinstance(operation, GetWith) and value:
            changes["number"] = found[value % len(found)].seq
        elif name == "operations":
            changes["operations"] = tuple(aimed(one, ids, found) for one in value)
        elif name in ("selector", "operation") and value is not None:
            changes[name] = aimed(value, ids, found)
    return structs.replace(operation, **changes)


def played(entries: list[LogEntry]) -> list[LogEntry]:
    """Return the log of these entries, whose clocks are the time between them, and whose ids mostly hit a running job.
    """
    machine = Machine()
    log: list[LogEntry] = []
    now_ms = 0
    for entry in entries:
        now_ms += entry.now_ms
        ids = [job.id for job in machine.running()] or [0]
        found = places(machine)
        log.append(LogEntry(now_ms, entry.seed, [aimed(operation, ids, found) for operation in entry.operations]))
        machine.apply(len(log), *log[-1])
    return log


_begin = st.builds(
    lambda ttl_ms, changes, puts, count: [
        LogEntry(0, 0, [OpenSession(7, ttl_ms), *changes, *puts]), LogEntry(0, 0, [GetWith(Get(None), count)])
    ],
    st.sampled_from([1000, 60_000]),
    st.lists(st.builds(ConfigureQueue, _queue, queue_change), max_size=2),
    st.lists(put_with | _put, max_size=6),
    st.integers(0, 4),
)
time_logs = st.builds(lambda begin, entries: played([*begin, *entries]), _begin, st.lists(time_entries, max_size=25))
# In which the same requests come several times.
asked_time_logs = st.builds(
    lambda begin, entries: played([*begin, *entries]), _begin, st.lists(_asked_entries, max_size=20)
)


# --- long ones

def random_time_log(seed: int, length: int) -> list[LogEntry]:
    """Return a log of `length` entries in which most operations have an effect: a machine that applies it gives the
    ids.
    """
    random = Random(seed)
    machine = Machine()
    now_ms = 1_700_000_000_000
    log = [LogEntry(now_ms, 0, [lead()])]
    machine.apply(1, *log[0])
    ids: list[int] = []
    while len(log) < length:
        now_ms += random.choice([-20, 0, 1, 5, 30, 200])
        found = [random_time_operation(random, ids, now_ms) for _ in range(random.randrange(8))]
        if random.random() < 0.2:
            place = random.choice(places(machine))
            found.append(random.choice([
                Delete(place),
                Change(place, random.randrange(-1, 2), _random_when(random, now_ms)),
                Batch((Change(place, item="x"), Done(0)), random.random() < 0.7),
                GetWith(Get(None), number=place.seq), GetWith(Get(None, 30, Then.DEFAULT), meta=True, number=place.seq),
                Kick("", 1, selector=place), Kick("", 1, selector=Number(place.seq)),
                Change(Number(place.seq), 0, _random_when(random, now_ms)),
                Batch((Kick("", 1, selector=Number(place.seq)), Done(0)), random.random() < 0.7),
                Await(Number(place.seq)), Await(Selector(0, place.queue, random.choice(KEYS))),
                Await(Selector(0, place.queue, random.choice(KEYS))),
            ]))
        if random.random() < 0.02:
            found.insert(0, lead("n2", machine.term + 1, random.choice([0, 50])))
        log.append(LogEntry(now_ms, random.getrandbits(64), found))
        for reply in machine.apply(len(log), *log[-1]).replies:
            jobs = reply.jobs if isinstance(reply, HandedMany) else [reply] if isinstance(reply, Handed) else []
            ids += [job.id for job in jobs]
        ids = ids[-20:]
    return log


def random_time_operation(random: Random, ids: list[int], now_ms: int) -> Operation:
    """Return any operation that a client can request, mostly on jobs that run."""
    kind = random.random()
    queue = random.choice(QUEUES)
    number = random.choice(ids) if ids else 0
    if kind < 0.3:
        return _random_put(random, now_ms)
    if kind < 0.55:
        queues = random.choice([None, (queue,), QUEUES])
        get = Get(queues, random.choice([None, None, 30, 300]), random.choice(list(Then)), random.choice(
            [None, None, None, *ITEMS]))
        count, policy, meta = random.choice([None, 1, 3]), random.choice([None, *Policy]), random.random() < 0.5
        if random.random() < 0.4:
            return GetWith(get, count, policy, meta, turn=InTurn(random.choice([None, *QUEUES])))
        return GetWith(get, count, policy, meta)
    if kind < 0.9:
        when = _random_when(random, now_ms)
        one: list[Atomic] = [
            Done(number), End(number, How.DONE, last=True), Later(number), End(number, How.LATER, when), End(
                number, How.LATER, first=True,
            ),
            End(number, How.LATER, priority=1, yielded=True), End(number, How.BURY), End(number, How.BURY, here=True),
            End(number, How.BURY, priority=random.choice([None, 1]), here=True, reason=random.choice([None, "broken"])),
            Touch(number, random.choice([None, 100])),
            Move(number, queue, None, when), Change(Selector(number), 1, when, random.choice(ITEMS)),
            Change(Selector(0, queue, random.choice(KEYS)), -1, when, data=b"changed"),
            Delete(Selector(0, queue, random.choice(KEYS))), _random_put(random, now_ms),
            PutWith(Put(queue, 0, b"of a group", random.choice([None, *ITEMS])), group=random.choice(GROUPS)),
            End(number, How.DONE, ran_ms=random.choice(RAN_MS)), Touch(number, ran_ms=random.choice(RAN_MS)),
            End(number, How.LATER, when, yielded=True, ran_ms=random.choice(RAN_MS)),
            End(number, random.choice([How.DONE, How.LATER]), feedback=Feedback.SLEEP, sleep_ms=60),
        ]
        if kind < 0.8:
            return random.choice(one)
        if kind < 0.86:
            return Batch(tuple(random.choices(one, k=3)), random.random() < 0.7)
        return random.choice([
            End(tuple(random.choices(ids, k=2)) if ids else (), How.DONE), End((number, 0), How.LATER), Return(number),
            Kick(queue, 2), RetryItem(random.choice(ITEMS)), Later(number),
            HoldItem(random.choice([None, *ITEMS]), random.choice([30, 300])), HoldItem(random.choice(ITEMS), None),
            CancelItem(random.choice(ITEMS), random.choice([None, "late"])),
            Kick(queue, random.choice([1, 9]), here=True),
        ])
    return _random_on_queue(random, queue)


def _random_when(random: Random, now_ms: int) -> Due | None:
    return random.choice([None, None, Due(random.randrange(300)), Due(0, now_ms + random.randrange(-300, 300))])


def _random_put(random: Random, now_ms: int) -> Put | PutWith:
    item = random.choice([None, *ITEMS])
    put = Put(random.choice(QUEUES), random.randrange(-1, 2), random.randbytes(3), item, random.random() < 0.1)
    if random.random() < 0.3:
        return put
    wish = PutWith(
        put,
        _random_when(random, now_ms),
        random.choice([None, None, 400]),
        random.choice([None, None, None, 100]),
        random.choice([(), (), ("x",), ITEMS]),
        random.choice([None, None, *KEYS]),
        random.choice(list(OnDup)),
        random.choice([None, None, 2]),
        until=random.choice(list(Until)),
    )
    if random.random() < 0.15:
        wish = structs.replace(wish, dedup=Dedup(random.choice(KEYS), random.choice([50, 400])))
    return wish if random.random() < 0.6 else structs.replace(wish, number=True, lease_ms=random.choice([None, 40]))


def _random_on_queue(random: Random, queue: str) -> Operation:
    change = QueueChange(
        order=random.choice([None, *Order]),
        tries=random.choice([None, 0, 3]),
        limit=random.choice([None, 0, 3]),
        item_limit=random.choice([None, 0, 1]),
        capacity=random.choice([None, 0, 30]),
        keep_ms=random.choice([None, 0, 200]),
        portion=random.choice([None, 2, 1000]),
    )
    states = [Purged.READY, Purged.DELAYED, Purged.DEAD, Purged.BURIED, Purged.ALL]
    return random.choice([
        ConfigureQueue(queue, change), ConfigureQueue(queue, change),
        ConfigureQueue(queue, structs.replace(
            change,
            ttl_ms=random.choice([None, 0, 300]),
            idle_ms=random.choice([None, 0, 1000]),
            overflow=random.choice([None, *Overflow]),
            alarm=random.choice([None, 0, 1, 4]),
            sched=random.choice([None, *Sched]),
            backoff_ms=random.choice([None, 0, 40]),
            backoff_max_ms=random.choice([None, 40, 300]),
            error_bytes=random.choice([None, 0, 9, 30]),
            dedup_max=random.choice([None, None, 0, 1, 2]),
        )),
        ConfigureQueue(queue, QueueChange(
            sched=random.choice([Sched.FAIR, Sched.GROUPS]), group_limit=random.choice([None, 0, 1]),
            group_rate=random.choice([None, 0, 2]), group_per_ms=random.choice([100, 700]),
        )),
        ConfigureGroup(random.choice(GROUPS), random.choice([0, 1, 2])),
        ConfigureGroup(random.choice(GROUPS), paused=True),
        ConfigureGroup(random.choice(GROUPS), rate=random.choice([0, 1, 2]), per_ms=random.choice([100, 500])),
        ConfigureGroup(random.choice(GROUPS), paused=True, pause_ms=random.choice([20, 100])),
        ConfigureGroup(random.choice(GROUPS), paused=False), DeleteGroup(random.choice(GROUPS)),
        Configure(fair=FairChange(multiplier=random.choice([None, 1, 3]), keep_ms=random.choice([None, 0, 300]))),
        PauseQueue(queue, random.random() < 0.2, random.random() < 0.3), PauseQueue(queue, False, False),
        PauseQueue(queue, False, True, random.choice([0, 20, 100, 100, 400])), PauseQueue(queue, False, False),
        DeleteQueue(queue, random.random() < 0.1), PurgeQueue(queue, random.choice(states)),
        DeleteQueue(queue, force=True, leave=True), PurgeQueue(queue, random.choice([Purged.RUNNING, Purged.OWN])),
        MoveJobs(queue, random.choice(["a", "b", "c"]), random.choice([1, 3, 2**31])),
        MoveJobs(f"{queue}_dead", random.choice(["a", "b"]), 3, queue),
        MoveJobs(queue, random.choice(["a", "b", "c"]), 1, seq=random.randint(1, 60)),
        Configure(policy=random.choice(list(Policy))),
    ])
