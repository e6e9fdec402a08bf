"""Logs to feed machines with: strategies for Hypothesis, and long random ones from a seed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import NamedTuple

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from sockpqd.core import (
    Address,
    Applied,
    ChangeMember,
    Done,
    Get,
    Handed,
    Later,
    Lead,
    Machine,
    MemberChange,
    Operation,
    Put,
    RaiseLevel,
    Reply,
    Resume,
    Return,
    SetUser,
    SwitchService,
    Then,
    Tick,
    User,
)

QUEUES = ("a", "b", "c")
ITEMS = ("x", "y", "i1", "i3")      # NEW makes names like the last two
KNOWN_LEVEL = 3                     # of machines that are restored
MEMBERS = ("n1", "n2", "n3")
USERS = ("mailer", "printer", "x")
NODES = ("n0", *MEMBERS, "n4")      # may join or leave
CLUSTER = b"sixteen bytes id"


class LogEntry(NamedTuple):
    """The arguments of apply, without the index."""

    now_ms: int
    seed: int
    operations: list[Operation]


def lead(
    node: str = "n1", term: int = 1, grace_ms: int = 0, expire_default: Then = Then.LATER, silence_ms: int = 0,
) -> Lead:
    """Return a Lead of the three members."""
    return Lead(node, term, MEMBERS, CLUSTER, grace_ms, expire_default, silence_ms=silence_ms)


def run(machine: Machine, *operations: Operation, now_ms: int = 0, seed: int = 0) -> Applied:
    """Apply these operations as the next entry of the log."""
    return machine.apply(machine.index + 1, now_ms, seed, operations)


def ask(machine: Machine, *operations: Operation, now_ms: int = 0, seed: int = 0) -> list[Reply]:
    """Apply an entry and return its replies."""
    return run(machine, *operations, now_ms=now_ms, seed=seed).replies


def data_of(replies: Sequence[Reply]) -> list[bytes]:
    """Return the data of the jobs handed out."""
    return [reply.data for reply in replies if isinstance(reply, Handed)]


def play(machine: Machine, log: list[LogEntry]) -> Iterator[list[Reply]]:
    """Apply the entries after those that the machine has; yields the replies of each."""
    for entry in log:
        yield machine.apply(machine.index + 1, *entry).replies


def snapshot_of(machine: Machine) -> bytes:
    """Return the whole snapshot in one piece."""
    return b"".join(machine.snapshot())


def restored(snapshot: bytes) -> Machine:
    """Return a new machine with this state."""
    machine = Machine(KNOWN_LEVEL)
    machine.restore([snapshot])
    return machine


# --- for Hypothesis

# A slow or busy machine is no finding. The examples are the same in each run; more and others are drawn by `make laws`.
# Each log of the laws of clones is compared with the reference model as well: 300 more of each kind.
LAW = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])

_queue = st.sampled_from(QUEUES)
_item = st.none() | st.sampled_from(ITEMS)
_priority = st.integers(-1, 1) | st.sampled_from([-(2**63), 2**63 - 1])
# Ids are given from 1 on, so small numbers often hit a running job.
_id = st.integers(1, 20) | st.sampled_from([0, -1, 2**63, 2**64, 10**40])
_node = st.sampled_from(NODES)
_host = st.sampled_from(["", "h:1", "h:2"])
_configuration = st.integers(-1, 3)
_expire = st.sampled_from([None, None, 0, 1, 15, 16, 17, 40, 100, 10**30])

_put = st.builds(Put, _queue, _priority, st.binary(max_size=3), _item, st.booleans())
_get = st.builds(
    Get,
    st.none() | st.lists(_queue, max_size=3).map(tuple),
    _expire,
    st.sampled_from(Then),
    _item,
    st.booleans(),
)
_end = st.builds(Done, _id) | st.builds(Later, _id) | st.builds(Return, _id)
_lead = st.builds(
    Lead,
    st.sampled_from(MEMBERS),
    st.integers(1, 5),
    st.just(MEMBERS),
    st.just(CLUSTER),
    st.sampled_from([0, 30, 1000]),
    st.sampled_from([Then.LATER, Then.DONE]),
    st.lists(st.builds(Address, _node, _host, _host), max_size=3).map(tuple),
)
_change = (
    st.builds(ChangeMember, _node, st.just(MemberChange.JOIN), st.just(0), _host, _host)
    | st.builds(ChangeMember, _node, st.sampled_from((MemberChange.PROMOTE, MemberChange.REMOVE)), _configuration)
    | st.builds(RaiseLevel, st.integers(0, 1), st.sampled_from([MEMBERS, (*MEMBERS, "n4"), ()]))
    | st.builds(SwitchService, st.booleans(), st.sampled_from([0, 30, 1000]))
    | st.builds(Resume, st.sampled_from([0, 30, 1000]))
)
_user = st.builds(
    SetUser, st.sampled_from(USERS),
    st.none() | st.builds(User, st.sampled_from(["-", "put", "get:a*"]), st.binary(max_size=3)),
)
operations = st.one_of(_put, _put, _get, _get, _end, _end, st.builds(Tick), _lead, _change | _user)
entries = st.builds(
    LogEntry,
    st.integers(0, 300),
    st.integers(0, 2**64 - 1),
    st.lists(operations, max_size=6),
)
logs = st.lists(entries, max_size=25)


# --- long ones

def random_log(seed: int, length: int) -> list[LogEntry]:
    """Return a log of `length` entries in which most operations have an effect: a machine that applies it gives the
    ids.
    """
    random = Random(seed)
    machine = Machine()
    now_ms = 1_700_000_000_000
    log = [LogEntry(now_ms, 0, [lead(expire_default=random.choice([Then.LATER, Then.DONE]))])]
    machine.apply(1, *log[0])
    ids: list[int] = []
    while len(log) < length:
        now_ms += random.choice([-20, 0, 1, 5, 30, 200])
        operations = [random_operation(random, ids) for _ in range(random.randrange(8))]
        if random.random() < 0.02:
            operations.insert(0, lead(random.choice(MEMBERS), machine.term + 1, random.choice([0, 50])))
        if random.random() < 0.1:
            operations.append(_random_change(random, machine.membership.configuration))
        if random.random() < 0.05:
            operations.append(_random_user(random))
        log.append(LogEntry(now_ms, random.getrandbits(64), operations))
        applied = machine.apply(len(log), *log[-1])
        ids += [reply.id for reply in applied.replies if isinstance(reply, Handed)]
        ids = ids[-30:]
    return log


def _random_change(random: Random, configuration: int) -> Operation:
    node = random.choice(NODES)
    kind = random.random()
    if kind < 0.4:
        return ChangeMember(node, MemberChange.JOIN, peer=f"{node}:1", client=random.choice(["", f"{node}:2"]))
    if kind < 0.7:
        return ChangeMember(node, MemberChange.PROMOTE, configuration)
    return ChangeMember(node, MemberChange.REMOVE, configuration - (random.random() < 0.2))


def _random_user(random: Random) -> Operation:
    name = random.choice(USERS)
    return SetUser(name, User("put", random.randbytes(16)) if random.random() < 0.7 else None)


def random_operation(random: Random, ids: list[int]) -> Operation:
    """Return an operation on jobs, mostly one of those with these ids."""
    queues = [f"queue_{number}" for number in range(6)]
    items = [f"item_{number}" for number in range(4)]
    kind = random.random()
    if kind < 0.4:
        data = random.randbytes(random.randrange(20))
        item = random.choice([None, None, *items])
        return Put(random.choice(queues), random.randrange(-2, 3), data, item, random.random() < 0.1)
    if kind < 0.75:
        asked = random.choice([None, tuple(random.sample(queues, 1)), tuple(random.sample(queues, 3))])
        item = random.choice([None, None, None, *items])
        expire_ms = random.choice([None, 10, 100, 1000])
        return Get(asked, expire_ms, random.choice(list(Then)), item, random.random() < 0.1)
    endings: list[Callable[[int], Operation]] = [Done, Done, Later, Return]
    ending = random.choice(endings)
    return ending(random.choice(ids) if ids else 0)
