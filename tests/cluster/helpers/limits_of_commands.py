"""Every kind of command at its limits, on a hundred thousand queues and a million jobs: what does an entry cost?

The test counts steps. How long the entries take on this machine:

    .venv/bin/python -m tests.cluster.helpers.limits_of_commands
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any

from msgspec.structs import replace

from sockpqd.cluster.leader.proposer import Proposer
from sockpqd.cluster.limits import WHOLE_BYTES_MAX
from sockpqd.cluster.raft.pysyncobj_adapter import SUCCESS, Callback
from sockpqd.core import (
    Allowance,
    AttachSession,
    Await,
    Batch,
    BeatWorker,
    BindQueue,
    CancelItem,
    Change,
    ChangeMember,
    CloneChunk,
    CloseSession,
    Configure,
    ConfigureGroup,
    ConfigurePulse,
    ConfigureQueue,
    Delete,
    DeleteGroup,
    DeletePulse,
    DeleteQueue,
    Done,
    Due,
    End,
    FairChange,
    Feedback,
    Fence,
    Fragment,
    Get,
    GetWith,
    GiveResult,
    Grant,
    HandedMany,
    HoldItem,
    How,
    InTurn,
    Kick,
    Later,
    Lead,
    Machine,
    MemberChange,
    MirrorChunk,
    MirrorEntries,
    MirrorFrame,
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
    Promote,
    PulseChange,
    Purged,
    PurgeQueue,
    Put,
    PutWith,
    QueueChange,
    RaiseLevel,
    Request,
    Resume,
    RetryItem,
    Return,
    Sched,
    Selector,
    SetMap,
    SetPulse,
    SetUser,
    SetWorker,
    SwitchService,
    TakeTurn,
    Tick,
    ToQueues,
    ToTopic,
    Touch,
    TouchSession,
    UnbindQueue,
    User,
    decode_entry,
    encode_operation,
)
from sockpqd.core.limits import ROUTE_STEPS_MAX, SPREAD_MARKED_MAX
from sockpqd.gateway.commands.context.splitting import split

QUEUES = 100_000
JOBS = 1_000_000
COPIES = 700                # of a command, from as many connections
ENTRIES = 2                 # that are looked at for each
MANY = 10_000               # jobs of one command
NAMES = 17_000              # as many as a line of 65,536 bytes has
NOW_MS = 1_700_000_000_000
LEASE_MS = 60_000


class World:
    """A machine in that state, with whatever else a case needs."""

    def __init__(self) -> None:
        self.machine = Machine()
        self.now_ms = NOW_MS
        self._fresh = 0
        self.apply(Lead("n1", 1, ("n1", "n2", "n3"), b"sixteen bytes id", 0))
        waiting = (Put(f"q{number % QUEUES}", number % 5, b"x", "wide" if number < QUEUES else None)
                   for number in range(JOBS))
        self.apply_many(waiting)
        self.apply(*[SetUser(f"u{number}", User("put", b"k" * 16)) for number in range(9_999)])

    def apply(self, *operations: Operation) -> list[Any]:
        """Apply one entry whose cost is not measured. Returns the replies."""
        return self.machine.apply(self.machine.index + 1, self.now_ms, 12345, operations).replies

    def apply_many(self, puts: Iterator[Put | PutWith] | Sequence[Put | PutWith]) -> None:
        """Apply these Puts, in batches of MANY."""
        portion: list[Put | PutWith] = []
        for put in puts:
            portion.append(put)
            if len(portion) == MANY:
                self.apply(Batch(tuple(portion), False))
                portion = []
        self.apply(Batch(tuple(portion), False))

    def name(self) -> str:
        """Return a name that was not used before."""
        self._fresh += 1
        return f"fresh{self._fresh}"

    def large_map(self) -> bytes:
        """Return a map of clusters with as many rules as possible, and this cluster as home."""
        cluster_id = self.machine.cluster_id
        assert cluster_id is not None
        lines = [f"CLUSTER a {cluster_id[:8].hex()} h:1", *[f"RULE other{number} -" for number in range(3300)]]
        return "".join(f"{line}\n" for line in lines).encode()

    def queue_of(self, count: int, **options: Any) -> str:
        """Return a new queue with this many jobs, with everything that a job can have, or with these options."""
        queue = self.name()
        if not options:
            self.apply_many([
                PutWith(Put(queue, number % 50, b"x", f"{queue}_{number}"), ttl_ms=10**9, key=f"k{number}", tries=5)
                for number in range(count)
            ])
        else:
            self.apply_many([PutWith(Put(queue, 0, b"x"), **options) for _ in range(count)])
        return queue

    def taken(
        self, count: int, queue: str | None = None, session: int | None = None, lease_ms: int = LEASE_MS,
    ) -> list[int]:
        """Return the ids of this many running jobs."""
        name = self.queue_of(count) if queue is None else queue
        ids: list[int] = []
        while len(ids) < count:
            (reply,) = self.apply(GetWith(Get((name,), lease_ms, session=session), count - len(ids)))
            assert isinstance(reply, HandedMany), reply
            ids += [job.id for job in reply.jobs]
        return ids

    def use_groups(self) -> None:
        """Count groups from now on, those of all queues."""
        self.apply(Configure(fair=FairChange(cap_ms=30_000)))
        self.settle()

    def settle(self) -> None:
        """Let time do what is due."""
        while (due_ms := self.machine.next_due_ms()) is not None and due_ms <= self.now_ms:
            self.apply(Tick())

    def session(self) -> int:
        """Open a session, and return its number."""
        (opened,) = self.apply(OpenSession(1, 86_400_000))
        return int(opened.sid.partition("_")[0])


Case = Callable[[World], list[Operation]]


def _names(number: int) -> tuple[str, ...]:
    """Return queues that have jobs, others each time."""
    return tuple(f"q{(number * 7919 + at) % QUEUES}" for at in range(NAMES))


def _puts(world: World) -> list[Operation]:
    return [Put(world.name(), 0, b"x", new_item=True) for _ in range(COPIES)]


def _puts_with_everything(world: World) -> list[Operation]:
    return [
        PutWith(Put("with", number % 100, b"x", f"i{number}"), Due(10**6 + number), 10**6, 10**6,
                tuple(f"q_{at}" for at in range(100)), f"k{number}", OnDup.REPLACE, 3)
        for number in range(COPIES)
    ]


def _jobs_that_wait(world: World) -> list[Operation]:
    """Yield PUTS of jobs that wait for a hundred existing items each."""
    queue = world.queue_of(100)
    after = tuple(f"{queue}_{number}" for number in range(100))
    return [*split(Batch(tuple(PutWith(Put("waits", 0, b"x"), after=after) for _ in range(1000)), False),
                    world.machine.known_work)]


def _puts_of_many(world: World) -> list[Operation]:
    puts = [Put(f"q{number * 7 % QUEUES}", 0, b"x", f"y{number}") for number in range(MANY)]
    return [*split(Batch(tuple(puts), False), world.machine.known_work)]


def _puts_in_fragments(world: World) -> list[Operation]:
    """Yield as many jobs as an operation has, larger than one that goes into the log as a whole."""
    puts = [Put(f"q{number * 7 % QUEUES}", 0, bytes(8_000_000 // MANY), f"w{number}") for number in range(MANY)]
    data = encode_operation(next(iter(split(Batch(tuple(puts), False), world.machine.known_work))))
    assert len(data) > WHOLE_BYTES_MAX
    half = len(data) // 2
    return [Fragment(1, 0, data[:half]), Fragment(1, half, data[half:], last=True)]


def _puts_of_many_with_everything(world: World) -> list[Operation]:
    queue = world.name()
    return [*split(Batch(tuple(
        PutWith(Put(queue, number % 100, b"x", f"z{number}"), ttl_ms=10**9, key=f"k{number}", tries=4)
        for number in range(MANY)
    ), False), world.machine.known_work)]


def _transaction(world: World) -> list[Operation]:
    ids = world.taken(500)
    return [Batch((*map(Done, ids), *[Put("q7", 0, b"x", "t")] * 500), True)] * 2


def _aborted_transactions(world: World) -> list[Operation]:
    ids = world.taken(MANY, session=world.session())
    return [Batch((*map(Done, ids[at:at + 10]), Done(0)), True) for at in range(COPIES)]


def _picks(get: Callable[[int], Get], policy: Policy, count: int | None = MANY, copies: int = 3) -> Case:
    return lambda world: [GetWith(get(number), count, policy, meta=True) for number in range(copies)]


def _picks_with_batch(world: World) -> list[Operation]:
    world.apply(*[ConfigureQueue(f"q{number}", QueueChange(batch=1)) for number in range(5000)])
    names = tuple(f"q{number}" for number in range(5000))
    return [GetWith(Get(None), MANY, Policy.RANDOM), *[GetWith(Get(names), MANY, policy) for policy in Policy]]


def _picks_of_all_that_jobs_can_have(world: World) -> list[Operation]:
    return [GetWith(Get((world.queue_of(MANY),), LEASE_MS), MANY)] * 2


def _repeated_picks(world: World) -> list[Operation]:
    number, queue = world.session(), world.queue_of(4096)
    pick = GetWith(Get((queue,), LEASE_MS, session=number), 4096, meta=True)
    return [Request(number, 1, b"sixteen bytes id", 0, False, pick)] * 20


def _parents(world: World) -> list[Operation]:
    """Yield DONE of parents, each of which lets one job go, and the Ticks after it."""
    queue = world.queue_of(2 * MANY)
    world.apply_many([PutWith(Put("children", 0, b"x"), after=(f"{queue}_{at}",)) for at in range(2 * MANY)])
    ids = world.taken(2 * MANY, queue)
    return [*[End(tuple(ids[at:at + 3000]), How.DONE) for at in range(0, 2 * MANY, 3000)], *[Tick()] * COPIES]


def _one_parent(world: World) -> list[Operation]:
    """Yield the same where thousands wait for one item, and for many others."""
    queue = world.queue_of(100)
    after = tuple(f"{queue}_{number}" for number in range(100))
    world.apply_many([PutWith(Put("transferees", 0, b"x"), after=after) for _ in range(3000)])
    return [*map(Done, world.taken(100, queue)), *[Tick()] * COPIES]


def _keyed(operation: Callable[[Selector], Operation], count: int = COPIES) -> Case:
    """Yield operations by key, on jobs that wait for a hundred items each."""
    def case(world: World) -> list[Operation]:
        parents, queue = world.queue_of(100), world.name()
        after = tuple(f"{parents}_{number}" for number in range(100))
        world.apply_many([PutWith(Put(queue, 0, b"x"), after=after, key=f"k{at}") for at in range(count)])
        return [operation(Selector(queue=queue, key=f"k{at}")) for at in range(count)]
    return case


def _deletes_in_a_transaction(world: World) -> list[Operation]:
    found = _keyed(Delete, 1000)(world)
    return [Batch(tuple(found), True)]          # type: ignore[arg-type]


def _each(operation: Callable[[int], Operation]) -> Case:
    return lambda world: [operation(number) for number in world.taken(COPIES)]


def _many(operation: Callable[[tuple[int, ...]], End | Touch]) -> Case:
    return lambda world: [*split(operation(tuple(world.taken(MANY))), world.machine.known_work)]


def _kick(world: World) -> list[Operation]:
    queue = world.queue_of(MANY // 2)
    world.apply(*[End(number, How.BURY) for number in world.taken(MANY // 2, queue)])
    return [Kick(queue, MANY)] * 5


def _kick_here(world: World) -> list[Operation]:
    queue = world.queue_of(MANY // 2)
    world.apply(*[End(number, How.BURY, here=True) for number in world.taken(MANY // 2, queue)])
    return [Kick(queue, MANY, here=True)] * 5


def _retry_item(world: World) -> list[Operation]:
    queue = world.queue_of(MANY // 2)
    taken = world.taken(MANY // 2, queue)
    world.apply(*[Change(Selector(number), item="item") for number in taken])
    world.apply(*[End(number, How.BURY) for number in taken])
    return [RetryItem("item")] * 5


def _cancel_item(world: World) -> list[Operation]:
    queue = world.queue_of(MANY)
    taken = world.taken(MANY, queue)
    world.apply(*[Change(Selector(number), item="item") for number in taken])
    return [CancelItem("item", "r" * 64)] + [Later(number) for number in taken[:500]]


def _move_jobs(died: bool) -> Case:
    def case(world: World) -> list[Operation]:
        queue = world.queue_of(5000)
        if not died:
            return [MoveJobs(queue, "q1", 5000)] * 5
        world.apply(*[End(number, How.BURY) for number in world.taken(5000, queue)])
        return [MoveJobs(f"{queue}_dead", "q1", 5000, queue)] * 5
    return case


def _resort(world: World) -> list[Operation]:
    queue = world.queue_of(2000)
    orders = [ConfigureQueue(queue, QueueChange(order=order)) for order in (Order.TIME, Order.FIFO)]
    return [*orders, *[ConfigureQueue(queue, QueueChange(item_limit=limit)) for limit in (1, 0)]]


def _purge(world: World) -> list[Operation]:
    return [PurgeQueue(world.queue_of(5000), Purged.ALL)] * 5


def _purge_running(world: World) -> list[Operation]:
    queue = world.queue_of(5000)
    world.taken(3000, queue)
    return [*[PurgeQueue(queue, Purged.RUNNING)] * 2, *[PurgeQueue(queue, Purged.OWN)] * 3]


def _delete_queue(world: World) -> list[Operation]:
    queue = world.queue_of(3000)
    world.taken(3000, queue)
    world.apply_many([Put(queue, 0, b"x") for _ in range(3000)])
    return [DeleteQueue(queue, True)] * 8


def _delete_queue_leave(world: World) -> list[Operation]:
    queue = world.queue_of(3000)
    world.apply(*[End(number, How.BURY) for number in world.taken(3000, queue)])
    return [DeleteQueue(queue, force=True, leave=True)] * 4


def _close_session(release: bool) -> Case:
    def case(world: World) -> list[Operation]:
        number = world.session()
        world.taken(5 * MANY // 2, session=number)
        return [CloseSession(number, release)] * 4
    return case


def _sessions(world: World) -> list[Operation]:
    number = world.session()
    uses: list[Operation] = [AttachSession(number, 1), TouchSession(number), OpenSession(2, 1000)]
    return uses * 200


def _sessions_kept(world: World) -> list[Operation]:
    """Return the sessions of a node, as many as one command may name."""
    numbers = tuple(world.session() for _ in range(1000))
    return [TouchSession(numbers)] * 5


def _spread(job: PutWith, count: int) -> Case:
    """Yield PUT to as many queues as one operation may name."""
    return lambda world: [replace(job, targets=ToQueues(_names(number)[:count])) for number in range(4)]


def _topic(job: PutWith, patterns: bool, bindings: int = MANY) -> Case:
    """Yield PUT to a topic with this many bindings, all of which match, or none after as many comparisons as possible.
    """
    key = ".".join(["a"] * (ROUTE_STEPS_MAX // bindings if patterns else 4))

    def case(world: World) -> list[Operation]:
        topic = world.name()
        world.apply(*[BindQueue(topic, f"q{at}", f"#.a.#.no{at}.#" if patterns else None) for at in range(bindings)])
        return [replace(job, targets=ToTopic(topic, key))] * 3
    return case


def _delete_topic(world: World) -> list[Operation]:
    topics = [world.name() for _ in range(2)]
    world.apply(*[BindQueue(topic, f"{topic}_{at}") for topic in topics for at in range(MANY)])
    return [UnbindQueue(topic, None) for topic in topics]


def _places(operation: Callable[[Place], Operation]) -> Case:
    """Yield commands by place, in a queue with fifty priorities."""
    def case(world: World) -> list[Operation]:
        first = world.machine.next_seq
        queue = world.queue_of(2000)
        return [operation(Place(queue, first + 2 * number)) for number in range(COPIES)]
    return case


def _numbered(operation: Callable[[Number], Operation]) -> Case:
    """Yield commands on numbered jobs of a queue with many of them."""
    def case(world: World) -> list[Operation]:
        first, queue = world.machine.next_seq, world.name()
        put = PutWith(Put(queue, 0, b"x"), number=True)
        world.apply_many([put] * COPIES)
        return [operation(Number(first + number)) for number in range(COPIES)]
    return case


def _buried(operation: Callable[[Number], Operation]) -> Case:
    """Yield commands on a queue in which many jobs are buried."""
    def case(world: World) -> list[Operation]:
        first, queue = world.machine.next_seq, world.name()
        put = PutWith(Put(queue, 0, b"x"), number=True)
        world.apply_many([put] * COPIES)
        world.apply(*[End(number, How.BURY, here=True) for number in world.taken(COPIES, queue)])
        return [operation(Number(first + number)) for number in range(COPIES)]
    return case


def _dead_jobs(world: World) -> list[Operation]:
    """Yield commands that put each dead job back into its queue by its place."""
    queue = world.name()
    world.apply_many([Put(queue, 0, b"x")] * COPIES)
    first = world.machine.next_seq
    world.apply(*[End(number, How.BURY) for number in world.taken(COPIES, queue)])
    return [Kick("", 1, selector=Place(f"{queue}_dead", first + number)) for number in range(COPIES)]


def _with_pulse(world: World, queues: int, jobs: int) -> tuple[str, list[str]]:
    """Make a fast pulse, and this many queues that share it, with this many jobs each."""
    pulse, names = world.name(), [world.name() for _ in range(queues)]
    world.apply(ConfigurePulse(pulse, PulseChange(rate=100_000, per_ms=10), create=True))
    more = QueueChange(pulse=pulse)
    world.apply(*[ConfigureQueue(name, more) for name in names])
    world.apply_many([Put(name, 0, b"x") for name in names for _ in range(jobs)])
    return pulse, names


def _gets_of_pulses(world: World) -> list[Operation]:
    pulse, names = _with_pulse(world, 1000, 10)
    free = (Allowance(pulse, MANY),)
    return [
        GetWith(Get(tuple(names)), MANY, Policy.PRIORITY, free=free), GetWith(Get(None), MANY, free=free),
        *[GetWith(Get(tuple(names)), free=free)] * 20,
    ]


def _ends_with_results(world: World) -> list[Operation]:
    """Yield ends of hand-outs that were granted by a pulse."""
    pulse, (queue,) = _with_pulse(world, 1, COPIES)
    (reply,) = world.apply(GetWith(Get((queue,), LEASE_MS), COPIES, free=(Allowance(pulse, COPIES),)))
    return [End(job.id, How.LATER, Due(10**6), 3, feedback=Feedback.SLOW) for job in reply.jobs]


def _pulses(world: World) -> list[Operation]:
    names = [world.name() for _ in range(200)]
    change = PulseChange(1000, 1000, 1000, 1000, 1000)
    return [
        *[ConfigurePulse(name, change, create=True) for name in names],
        *[ConfigurePulse(name, change) for name in names],
        *[SetPulse(name, bytes(1000)) for name in names], *[TakeTurn(name, True) for name in names],
    ]


def _tickets(world: World) -> list[Operation]:
    """Yield grants, results and the end of a pulse, while there are as many tickets as possible."""
    name = world.name()
    world.apply(ConfigurePulse(name, PulseChange(max_run_ms=86_400_000), create=True))
    grants = [Grant(name, MANY)] * 100
    for grant in grants:
        world.apply(grant)
    first = world.machine.next_ticket - COPIES
    return [
        *grants[:2], *[GiveResult(first + number, Feedback.SLOW) for number in range(COPIES)],
    ]


def _delete_pulse(world: World) -> list[Operation]:
    """Yield the deletion of a pulse with as many tickets as possible."""
    name = world.name()
    world.apply(ConfigurePulse(name, PulseChange(max_run_ms=86_400_000), create=True))
    for _ in range(100):
        world.apply(Grant(name, MANY))
    return [DeletePulse(name)]


def _queues_with_everything(world: World) -> list[Operation]:
    number = world.session()
    change = QueueChange(ttl_ms=10**6, idle_ms=10**6, overflow=Overflow.DROPOLDEST, alarm=10, rate=10, per_ms=10)
    names = [world.name() for _ in range(350)]
    return [
        *[ConfigureQueue(name, replace(change, weight=2), create=True, session=number) for name in names],
        *[ConfigureQueue(name, replace(change, weight=3)) for name in names],
    ]


def _unused_queues(world: World) -> list[Operation]:
    queues = [world.queue_of(3000) for _ in range(4)]
    world.apply(*[ConfigureQueue(queue, QueueChange(idle_ms=1)) for queue in queues])
    since_ms = world.now_ms
    world.now_ms += 1000
    return [DeleteQueue(queue, force=True, idle_since_ms=since_ms) for queue in queues]


def _workers(world: World) -> list[Operation]:
    sessions, names = [world.session() for _ in range(2)], [world.name() for _ in range(350)]
    return [
        *[BeatWorker(name, 10, 5, "127.0.0.1", sessions[at % 2]) for at, name in enumerate(names)],
        *[SetWorker(name, 10, 5) for name in names],
    ]


def _close_session_first(world: World) -> list[Operation]:
    number = world.session()
    world.taken(MANY // 2, session=number)
    return [CloseSession(number, True, True)] * 4


def _puts_of_groups(world: World) -> list[Operation]:
    """Yield Puts of as many groups as jobs, into a queue that hands out by FAIR."""
    queue = world.name()
    world.apply(ConfigureQueue(queue, QueueChange(sched=Sched.FAIR)))
    return [*split(Batch(tuple(
        PutWith(
            Put(queue, number % 100, b"x", f"f{number}"), ttl_ms=10**9, key=f"k{number}", tries=4, group=f"g{number}",
        )
        for number in range(MANY)
    ), False), world.machine.known_work)]


def _of_groups(operation: Callable[[str], Operation]) -> Case:
    """Yield operations on groups that have jobs, READY ones and some for later, in a thousand queues."""
    def case(world: World) -> list[Operation]:
        names = [f"g{number}" for number in range(COPIES)]
        world.apply_many([
            PutWith(Put(f"q{at}", 0, b"x"), Due(10**6) if at % 2 else None, group=name)
            for at, name in enumerate(names * 10)
        ])
        world.use_groups()
        return [operation(name) for name in names]
    return case


def _of_paused_groups(operation: Callable[[str], Operation]) -> Case:
    """Yield operations on such groups that have settings and are paused."""
    def case(world: World) -> list[Operation]:
        operations = _of_groups(operation)(world)
        for number in range(COPIES):
            world.apply(ConfigureGroup(f"g{number}", 10**6, 10**4, 10**6, 10**3))
            world.apply(ConfigureGroup(f"g{number}", paused=True, pause_ms=10**6))
        return operations
    return case


def _first_use_of_groups(world: World) -> list[Operation]:
    """Yield the first use of groups and the Ticks after it. No earlier case may have used groups."""
    return [Configure(fair=FairChange(cap_ms=30_000)), *[Tick()] * COPIES]


def _with_groups(name: str) -> Case:
    """Yield a case from above while groups are in use."""
    def case(world: World) -> list[Operation]:
        world.use_groups()
        return CASES[name](world)
    return case


def _gets_by_fair(queues: Callable[[int], tuple[str, ...] | None], count: int | None) -> Case:
    """Yield GETs BY FAIR while the queues have groups of their own, and those asked for a few more."""
    def case(world: World) -> list[Operation]:
        world.use_groups()
        names = [f"q{number}" for number in range(1000)]
        world.apply_many([PutWith(Put(name, 9, b"x"), group=f"h{at}") for name in names for at in range(10)])
        return [GetWith(Get(queues(number), LEASE_MS), count, Policy.FAIR) for number in range(20)]
    return case


def _gets_past_groups_kept_back(world: World) -> list[Operation]:
    """Yield GETs while a LIMIT keeps back the next groups, and a queue is paused: each choice checks them."""
    limited, paused = [world.name() for _ in range(200)], world.name()
    world.apply(*[ConfigureQueue(name, QueueChange(limit=1)) for name in limited])
    world.apply_many([Put(name, 0, b"x") for name in limited for _ in range(2)])
    world.apply(*[Get((name,)) for name in limited])
    world.apply(Put(paused, 0, b"x"), PauseQueue(paused, False, True))
    world.use_groups()              # in the order of their names, so that those are next
    names = [f"q{number}" for number in range(1000)]
    world.apply_many([PutWith(Put(name, 9, b"x"), group=f"h{at}") for name in names for at in range(10)])
    return [*[GetWith(Get(None, LEASE_MS), MANY, Policy.FAIR)] * 20, PauseQueue(paused, False, False)]


def _group_in_many_queues(groups: int, queues: int) -> Case:
    """Yield ends of jobs of a group that changes its level with each, in queues with this many other groups."""
    def case(world: World) -> list[Operation]:
        group, names = world.name(), [world.name() for _ in range(queues)]
        world.apply_many([PutWith(Put(name, 0, b"x"), group=f"{group}_{at}") for name in names for at in range(groups)])
        world.apply_many([PutWith(Put(name, 9, b"x"), group=group) for name in names])
        world.settle()
        (given,) = world.apply(GetWith(Get(tuple(names[:5])), 5))
        return [End(job.id, How.DONE, ran_ms=10 ** (number + 2)) for number, job in enumerate(given.jobs)]
    return case


def _resume_of_many_groups(world: World) -> list[Operation]:
    """Yield the resumption of many groups that have not left their level, and of one behind all others."""
    queue = world.name()
    world.apply_many([PutWith(Put(queue, 0, b"x"), group=f"{queue}_{number:05}") for number in range(3 * MANY)])
    world.apply(PauseQueue(queue, False, True), PutWith(Put(queue, 0, b"x"), group=f"{queue}_z"))
    return [PauseQueue(queue, False, False), *[Tick()] * COPIES]


def _everything_due(world: World) -> list[Operation]:
    """Yield leases, TTLs, activations and releases due at once, and as many commands as an entry takes."""
    parents = world.queue_of(1)
    world.queue_of(3000, ttl_ms=1000)
    world.queue_of(3000, when=Due(1000))
    world.queue_of(3000, after=(f"{parents}_0",))
    world.taken(3000, lease_ms=1000)
    world.apply(Done(world.taken(1, parents)[0]))
    world.now_ms += 5000
    return [*[Tick()] * COPIES, *_puts_of_many(world)]


def _grace(operation: Operation) -> Case:
    def case(world: World) -> list[Operation]:
        world.taken(6 * MANY, lease_ms=5000)
        world.apply(SwitchService(False))
        return [operation]
    return case


CASES: dict[str, Case] = {
    "PUT": _puts,
    "PUT with everything": _puts_with_everything,
    "PUTS": _puts_of_many,
    "PUTS in fragments": _puts_in_fragments,
    "PUTS with everything": _puts_of_many_with_everything,
    "PUTS AFTER": _jobs_that_wait,
    "PUT to many queues": _spread(PutWith(Put("", 0, b"x" * 40)), 3747),
    "PUT to many queues, with everything": _spread(
        PutWith(Put("", 3, b"x" * 40, "i"), Due(10**6), key="to many"), 1250,
    ),
    "PUT to a topic": _topic(PutWith(Put("", 0, b"x" * 40)), patterns=False),
    "PUT to a topic, with everything": _topic(
        PutWith(Put("", 3, b"x" * 40, "i"), Due(10**6), key="to a topic", tries=3), patterns=False,
        bindings=SPREAD_MARKED_MAX,
    ),
    "PUT to a topic, no pattern matches": _topic(PutWith(Put("", 0, b"x")), patterns=True),
    "COMMIT": _transaction,
    "COMMIT, aborted": _aborted_transactions,
    "COMMIT of DELETE by key": _deletes_in_a_transaction,
    "GET *": lambda world: [Get(None, LEASE_MS)] * COPIES,
    "GET of many names": lambda world: [Get(_names(number)) for number in range(20)],
    "GET of many names that there are not": lambda world: [
        Get(tuple(f"no{at}" for at in range(NAMES)), item=item) for item in (None, "wide") for _ in range(5)
    ],
    "GET * IS": lambda world: [Get(None, item="wide")] * COPIES,
    "GET * BY PRIORITY": _picks(lambda number: Get(None), Policy.PRIORITY, None, COPIES),
    "GET * COUNT": _picks(lambda number: Get(None, LEASE_MS), Policy.RANDOM),
    "GET * BY PRIORITY COUNT": _picks(lambda number: Get(None), Policy.PRIORITY),
    "GET * IS COUNT": _picks(lambda number: Get(None, item="wide"), Policy.RANDOM),
    "GET * IS BY PRIORITY COUNT": _picks(lambda number: Get(None, item="wide"), Policy.PRIORITY),
    "GET * IS BY PRIORITY": _picks(lambda number: Get(None, item="wide"), Policy.PRIORITY, None, COPIES),
    "GET of many names COUNT": _picks(lambda number: Get(_names(number)), Policy.RANDOM),
    "GET of many names BY PRIORITY": _picks(lambda number: Get(_names(number)), Policy.PRIORITY, None, 20),
    "GET of many names BY PRIORITY COUNT": _picks(lambda number: Get(_names(number)), Policy.PRIORITY),
    "GET COUNT with BATCH": _picks_with_batch,
    "GET in turn": lambda world: [
        GetWith(Get(names), count, policy, turn=InTurn(after))
        for names, after in ((None, "q5"), (_names(1), None)) for policy in (Policy.RR, Policy.PRIORITY)
        for count in (MANY, None)
    ],
    "GET with a rate": _gets_of_pulses,
    "GET COUNT of all that jobs can have": _picks_of_all_that_jobs_can_have,
    "REQ GET COUNT, repeated": _repeated_picks,
    "DONE": _each(Done),
    "DONE LAST": _each(lambda number: End(number, How.DONE, last=True)),
    "DONE of many": _many(lambda number: End(number, How.DONE)),
    "DONE with a result": _ends_with_results,
    "DONE of parents": _parents,
    "DONE of one parent of many": _one_parent,
    "LATER": _each(Later),
    "LATER with options": _each(lambda number: End(number, How.LATER, Due(10**6), 3)),
    "LATER of many": _many(lambda number: End(number, How.LATER)),
    "LATER FIRST of many": _many(lambda number: End(number, How.LATER, first=True)),
    "LATER REASON": _each(lambda number: End(number, How.LATER, Due(10**6), 3, reason="r" * 255)),
    "RETURN": _each(Return),
    "TOUCH": _each(Touch),
    "TOUCH of many": _many(lambda ids: Touch(ids, 10**6)),
    "BURY": _each(lambda number: End(number, How.BURY)),
    "BURY REASON": _each(lambda number: End(number, How.BURY, reason="r" * 255)),
    "MOVE": _each(lambda number: Move(number, "q1", 3)),
    "CHANGE": _keyed(lambda selector: Change(selector, 7, None, "q", False, b"y")),
    "DELETE": _keyed(Delete),
    "CHANGE of a place": _places(lambda place: Change(place, 7, None, "q", False, b"y")),
    "DELETE of a place": _places(Delete),
    "CHANGE of a number": _numbered(lambda number: Change(number, 7, None, "q", False, b"y")),
    "DELETE of a number": _numbered(Delete),
    "DELETE of a number, UNTAKEN": _numbered(lambda number: Delete(number, unless_running=True)),
    "GET of a number": _numbered(lambda number: GetWith(Get(None, 10**6), meta=True, number=number.number)),
    "AWAIT of a number": _numbered(Await),
    "AWAIT of a key": _keyed(Await),
    "PUT NUMBER": lambda world: [
        PutWith(Put(f"q{number}", 0, b"x", f"f{number}"), Due(10**6), number=True, lease_ms=10**6)
        for number in range(COPIES)
    ],
    "KICK": _kick,
    "BURY HERE": _each(lambda number: End(number, How.BURY, priority=7, here=True, reason="r" * 255)),
    "KICK HERE": _kick_here,
    "ITEM HOLD, RELEASE": lambda world: [
        one for number in range(COPIES) for one in (HoldItem(f"h{number}", 600_000), HoldItem(f"h{number}", None))
    ],
    "ITEM HOLD NEW": lambda world: [HoldItem(None, 600_000, user="u" * 64) for _ in range(COPIES)],
    "ITEM RETRY": _retry_item,
    "ITEM CANCEL": _cancel_item,
    "KICK HERE of delayed jobs": lambda world: [Kick(world.queue_of(5000, when=Due(10**6)), MANY, here=True)] * 5,
    "KICK of a number": _buried(lambda number: Kick("", 1, selector=number)),
    "KICK of a place": _dead_jobs,
    "QUEUE CREATE": lambda world: [
        ConfigureQueue(world.name(), QueueChange(weight=2), create=True) for _ in range(COPIES)
    ],
    "QUEUE CREATE, CONFIG with everything": _queues_with_everything,
    "QUEUE IDLE": _unused_queues,
    "QUEUE CONFIG": _resort,
    "QUEUE PAUSE, RESUME": lambda world: [
        one for number in range(350)
        for one in (PauseQueue(f"q{number}", True, True), PauseQueue(f"q{number}", False, False))
    ],
    "QUEUE PAUSE FOR": lambda world: [
        PauseQueue(f"q{number}", False, True, length_ms) for number in range(350) for length_ms in (10**6, 0)
    ],
    "QUEUE PURGE": _purge,
    "QUEUE PURGE of one state": lambda world: [
        PurgeQueue(world.queue_of(2500, when=Due(10**6)), Purged.DELAYED),
    ] * 3,
    "QUEUE PURGE RUNNING, OWN": _purge_running,
    "QUEUE MOVE": _move_jobs(False),
    "QUEUE MOVE DIED": _move_jobs(True),
    "QUEUE DELETE FORCE": _delete_queue,
    "QUEUE DELETE FORCE LEAVE": _delete_queue_leave,
    "TOPIC BIND, UNBIND": lambda world: [
        one for number in range(350) for one in (BindQueue("bound", f"q{number}", "a.*.#"),
                                                 UnbindQueue("bound", f"q{number}", "a.*.#"))
    ],
    "TOPIC DELETE": _delete_topic,
    "PULSE": _pulses,
    "PULSE GRANT, RESULT": _tickets,
    "PULSE DELETE": _delete_pulse,
    "WORKER": _workers,
    "CONFIG": lambda world: [Configure(policy=policy) for policy in (*Policy, Policy.RANDOM)],
    "SESSION": _sessions,
    "SESSION KEEP": _sessions_kept,
    "SESSION CLOSE": _close_session(False),
    "SESSION CLOSE RELEASE": _close_session(True),
    "SESSION CLOSE FIRST": _close_session_first,
    "USER": lambda world: [SetUser("u1", User("get", b"k" * 16)), SetUser("u2", None)] * 300,
    "CLUSTER ADD, REMOVE": lambda world: [
        ChangeMember("n4", MemberChange.JOIN, peer="h:1", client="h:2"), ChangeMember("n4", MemberChange.PROMOTE, 0),
        ChangeMember("n4", MemberChange.REMOVE, 1),
        RaiseLevel(2, ("n1", "n2", "n3")),
    ],
    "CLONE": lambda world: [CloneChunk(1, total_bytes=1 << 20), *[CloneChunk(1, bytes(48 << 10))] * 21],
    "all that time does": _everything_due,
    "a new leader": _grace(Lead("n2", 2, ("n1", "n2", "n3"), b"", 10_000)),
    "after full disks": _grace(Resume(10_000)),
    "CLUSTER ONLINE": _grace(SwitchService(True, 10_000)),
    "first use of groups": _first_use_of_groups,
    "PUT GROUP": lambda world: [
        PutWith(Put(f"q{number}", 0, b"x", f"f{number}"), Due(10**6), group=f"g{number}") for number in range(COPIES)
    ],
    "PUTS GROUP": _puts_of_groups,
    "DONE RAN": _each(lambda number: End(number, How.DONE, ran_ms=10**6)),
    "LATER RAN": _each(lambda number: End(number, How.LATER, Due(10**6), 3, ran_ms=10**6)),
    "TOUCH RAN": _each(lambda number: Touch(number, 10**6, ran_ms=10**6)),
    "SCHED CONFIG": lambda world: [Configure(fair=FairChange((*range(16),), 10**6, 100, 10**6))] * COPIES,
    "GROUP CONFIG": _of_groups(lambda name: ConfigureGroup(name, 10**6, 10**4, 10**6, 10**3)),
    "GROUP PAUSE": _of_groups(lambda name: ConfigureGroup(name, paused=True, pause_ms=10**6)),
    "GROUP RESUME": _of_paused_groups(lambda name: ConfigureGroup(name, paused=False)),
    "GROUP DELETE": _of_paused_groups(DeleteGroup),
    "GET * BY FAIR": _gets_by_fair(lambda number: None, None),
    "GET * BY FAIR COUNT": _gets_by_fair(lambda number: None, MANY),
    "GET of many names BY FAIR": _gets_by_fair(_names, None),
    "GET of one name BY FAIR COUNT": _gets_by_fair(lambda number: ("q1",), MANY),
    "GET * BY FAIR COUNT past groups kept back": _gets_past_groups_kept_back,
    "a group in many queues": _group_in_many_queues(1, 10_000),
    "a group in many queues with many groups": _group_in_many_queues(9, 1000),
    "QUEUE RESUME of many groups": _resume_of_many_groups,
}
# What takes the most steps of its kind, or many more with groups.
CASES |= {f"{name}, with groups": _with_groups(name) for name in (
    "PUTS", "PUT to many queues", "PUT to a topic", "PUT to a topic, with everything", "COMMIT of DELETE by key",
    "GET * IS BY PRIORITY", "GET * COUNT", "GET of many names BY PRIORITY COUNT", "GET COUNT with BATCH", "GET in turn",
    "GET with a rate", "GET COUNT of all that jobs can have", "REQ GET COUNT, repeated", "DONE of parents",
    "LATER of many", "LATER FIRST of many", "KICK", "QUEUE CONFIG", "QUEUE PURGE", "QUEUE MOVE", "QUEUE IDLE",
    "SESSION CLOSE FIRST", "all that time does",
)}
# What a replica takes in is its origin's entries, which have these limits there; any other cluster refuses it.
CASES["of a replica"] = lambda world: [
    MirrorEntries(0, (MirrorFrame(1, bytes(200 << 10)),)),
    MirrorEntries(0, (MirrorFrame(1, bytes(256 << 10)),), 256, True),
    MirrorChunk(1, 0, b"", 1 << 40), MirrorChunk(1, 0, bytes(256 << 10)), Promote(0),
]
# The last two, in this order for those who execute all in one world: a map stays, and a fence ends the service.
CASES["MAP"] = lambda world: [SetMap(1, world.large_map()), *[Put(f"q{number}", 0, b"x") for number in range(MANY)]]
CASES["CLUSTER FENCED"] = lambda world: [Fence("0011223344556677")]


class _Ignored:
    def applied(self, reply: object) -> None:
        pass

    def refused(self) -> None:
        raise AssertionError("refused")

    def unknown(self) -> None:
        raise AssertionError("unknown")


def entries(world: World, operations: list[Operation], measure: Callable[[Callable[[], None]], int]) -> Iterator[int]:
    """Yield the costs of the first entries of these commands, as `measure` has them of the call that applies one."""
    launched: list[tuple[bytes, Callback]] = []
    proposer = Proposer(lambda data, callback: launched.append((data, callback)), lambda: world.now_ms,
                        lambda effects: None, time.monotonic, world.machine.known_work)
    proposer.accepting = True
    for operation in operations:
        proposer.propose(operation, _Ignored())
    for _ in range(ENTRIES):
        proposer.flush(0.0)
        if not launched:
            return
        data, callback = launched.pop()
        entry, applied = decode_entry(data), []

        def apply(entry: Any = entry, applied: list[Any] = applied) -> None:
            machine = world.machine
            applied.append(machine.apply(machine.index + 1, entry.now_ms, entry.seed, entry.operations))
        yield measure(apply)
        callback(applied[0], SUCCESS)


def steps(call: Callable[[], None]) -> int:
    """Return executed lines of Python and calls, including those of comprehensions and sortedcontainers."""
    count = 0

    def step(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += 1

    def enter(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        count += 1
        return step
    sys.settrace(enter)
    try:
        call()
    finally:
        sys.settrace(None)
    return count


def microseconds(call: Callable[[], None]) -> int:
    """Return the time that it took."""
    begun = time.process_time()
    call()
    return round((time.process_time() - begun) * 1e6)


def main() -> None:
    """Print a line for each case: the longest of its entries in milliseconds."""
    import gc
    world = World()
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)      # as the daemon does
    chosen = sys.argv[1:]
    for name, case in CASES.items():
        if chosen and name not in chosen:
            continue
        world.settle()
        operations = case(world)
        took = list(entries(world, operations, microseconds))
        print(f"{name:45s} {max(took) / 1000:8.1f} ms   {len(took)} entries", flush=True)


if __name__ == "__main__":
    main()
