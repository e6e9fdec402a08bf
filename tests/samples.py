"""Samples of every operation of the log: the values that tests give its fields, a line for each field.

What is a list of all operations, or of all options of one, is made from these: the logs of the laws (core/helpers), the
bytes that are recorded for later releases (upgrade/formats.py), the costs (core/handlers/test_table.py). Few values, so
that operations meet each other; the first one is the usual one, and what comes several times is drawn more often.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, get_args

from hypothesis import strategies as st
from msgspec import NODEFAULT
from msgspec.structs import fields

from sockpqd import core
from sockpqd.core import (
    DURATION_MS_MAX,
    Feedback,
    GroupBy,
    How,
    OnDup,
    Order,
    Overflow,
    Policy,
    Sched,
    Then,
    Until,
)

QUEUES = ("a", "a", "b", "a_dead")
ITEMS = (None, None, "x", "y", "i1")
KEYS = ("k", "l")
USERS = ("u", "g", "no group")
GROUPS = ("g", "h", "a", "a_dead")      # the last two are also those of queues
PRIORITIES = (0, 1, -1)
DATA = (b"1", b"", b"22", b"333")
HEADERS = (b"", b"h: 1\n")
IDS = tuple(range(1, 9))
NUMBERS = tuple(range(9))
TOPICS = ("t", "t", "u")
PATTERNS = (None, "a", "*", "a.#", "#", "#.b", "*.#.b")
NODES = ("n1", "n2", "n3", "n4")
POOLS = ("p", "r")
PLACES = (1, 2, 0)
LARGEST = 2**64 - 1             # of what goes into the log: larger ones are only asked for
LIMITS = (None, None, None, 0, 1, 2)


class Made(tuple[type, ...]):
    """Values that are structs: samples of these kinds. `maybe`: None as often as each kind."""

    maybe = False

    def __new__(cls, *kinds: type, maybe: bool = False) -> Made:
        made = super().__new__(cls, kinds)
        made.maybe = maybe
        return made


class Some(tuple[Any, ...]):
    """Tuples of up to `most` of these values."""

    most = 3

    def __new__(cls, values: Sequence[Any], most: int = 3) -> Some:
        some = super().__new__(cls, values)
        some.most = most
        return some


WHEN = Made(core.Due, maybe=True)
PUT = Made(core.Put)
GET = Made(core.Get)
SELECTED = Made(core.Selector, core.Place, core.Number)
Values = Sequence[Any]
SAMPLES: dict[Any, dict[str, Values]] = {
    # ---- jobs
    core.Put: {
        "queue": QUEUES, "priority": PRIORITIES, "data": DATA, "item": ITEMS, "new_item": (False, True),
    },
    core.Due: {"delay_ms": (0, 1, 30, 100), "at_ms": (None, None, 0, 50, 100, 150, 200, 250, -5, 2**70)},
    core.ToQueues: {"queues": Some(QUEUES)},
    core.ToTopic: {"topic": TOPICS, "route": ("", "a", "a.b", "a.x.b", "b")},
    core.PutWith: {
        "put": PUT,
        "when": WHEN,
        "ttl_ms": (None, None, 1, 50, DURATION_MS_MAX),
        "every_ms": (None, None, None, 7, 50),
        "after": ((), (), ("x",), ("x", "y"), ("x", "x")),
        "key": (None, *KEYS),
        "on_dup": tuple(OnDup),
        "tries": (None, None, 0, 1, 2),
        "group": (*[None] * 6, *GROUPS),
        "number": (False, False, False, False, True),
        "lease_ms": (None, None, None, 0, 20, 10**30),
        "targets": Made(core.ToQueues, core.ToTopic, maybe=True),
        "head": (0, 0, 0, 1, 3),
        "dedup": Made(core.Dedup, maybe=True),
        "until": (Until.DONE, *Until),
        "user": (None, None, *USERS),
    },
    core.Dedup: {"key": KEYS, "duration_ms": (100, 30, 90_000_000, 0)},
    core.Get: {
        "queues": (None, None, ("a",), ("b", "a"), ("a", "a_dead", "a"), ()),
        "expire_ms": (None, None, None, 0, 20, 60),
        "then": tuple(Then),
        "item": (*[None] * 6, "x", "y", "i1"),
        "item_of_put": (*[False] * 7, True),
        "session": (*[None] * 5, 1),
    },
    core.InTurn: {"after": (None, "", "a", "b", "zz")},
    core.Allowance: {"pulse": POOLS, "count": (3, 1)},
    core.GetWith: {
        "get": GET,
        "count": (None, 1, 2, 3, 10),
        "policy": (None, *Policy),
        "meta": (False, True),
        "turn": Made(core.InTurn, maybe=True),
        "free": (None, (), (core.Allowance("p", 3),)),
        "number": (None, *NUMBERS),
        "head": (False, True),
        "life": (False, False, True),
    },
    core.Done: {"id": IDS},
    core.Later: {"id": IDS},
    core.Return: {"id": IDS},
    core.End: {
        "ids": (*IDS, (1, 2), ()),
        "how": tuple(How),
        "when": WHEN,
        "priority": (None, *PRIORITIES),
        "first": (False, False, True),
        "yielded": (False, True),
        "last": (False, True),
        "here": (False, True),
        "reason": (None, None, "slow", "broken"),
        "ran_ms": (None, None, None, 0, 7, 999, 1000, 12_000, 400_000),
        "feedback": (None, *Feedback),
        "sleep_ms": (0, 9),
        "text": (None, None, b"why", b"", b"because of that"),
        "dropped": (False, False, True),
    },
    core.Touch: {
        "ids": (*IDS, (1, 2), ()), "expire_ms": (None, None, 0, 20, 10**30), "then": tuple(Then),
        "ran_ms": (None, None, 0, 7, 12_000),
        "progress": (None, None, 0, 40, 100),
    },
    core.Selector: {"id": (*IDS, 0, 0), "queue": ("", *QUEUES), "key": ("", *KEYS)},
    core.Place: {"queue": QUEUES, "seq": NUMBERS},
    core.Number: {"number": NUMBERS},
    core.Change: {
        "selector": SELECTED, "priority": (None, *PRIORITIES), "when": WHEN, "item": ITEMS,
        "no_item": (False, False, True), "data": (None, *DATA), "headers": (None, None, *HEADERS),
    },
    core.Delete: {
        "selector": SELECTED, "unless_running": (False, False, True), "own": (False, False, True),
        "ended": (False, False, True),
    },
    core.Move: {
        "id": IDS, "queue": QUEUES, "priority": (None, *PRIORITIES), "when": WHEN, "data": (None, *DATA),
        "headers": (None, None, *HEADERS),
    },
    core.Kick: {
        "queue": QUEUES, "count": (0, 1, 2, 10), "here": (False, True), "buried": (None, None, None, True, False),
        "selector": Made(core.Number, core.Place, maybe=True), "ended": (False, False, True),
    },
    core.Await: {"selector": Made(core.Selector, core.Number)},
    core.Batch: {
        "operations": Some((core.Done(7), core.Put("a", 0, b"1")), 2), "atomic": (False, True), "user": (None, *USERS),
    },
    # ---- queues, and time shared among groups
    core.QueueChange: {
        "expire_ms": (None, None, None, 0, 20, 50),
        "then": tuple(Then),
        "order": (None, None, *Order),
        "tries": (None, None, 0, 1, 2),
        "dead": (None, None, "b", "a"),
        "weight": (None, None, 5),
        "limit": LIMITS,
        "item_limit": LIMITS,
        "capacity": (None, None, None, 0, 1, 3),
        "data_bytes_max": LIMITS,
        "batch": LIMITS,
        "portion": (None, None, 1, 2),
        "keep_ms": (None, None, 0, 30, 100),
        "ttl_ms": (None, None, None, 0, 30),
        "idle_ms": (None, None, None, 0, 50, 100),
        "overflow": (None, None, *Overflow),
        "alarm": (None, None, 0, 1, 2, 3),
        "rate": (None, 3),
        "per_ms": (None, 4),
        "pulse": (None, "p", ""),
        "pulses_max": (None, 5),
        "sched": (None, None, *Sched),
        "spread": (False, True),
        "backoff_ms": (None, None, 0, 20, 60),
        "backoff_max_ms": (None, 30, 1000),
        "error_bytes": (None, None, 0, 5, 20),
        "dedup_max": (None, None, 0, 1, 2),
        "retain_ms": (None, None, None, 0, 50, 200),
        "retain_max": (None, None, 0, 2, 3),
        "retain_bytes": (None, None, 0, 4, 2**63 - 1),
        "numbered": (None, None, False, True, True),
        "group_limit": (None, None, 0, 1, 2),
        "group_rate": (None, None, 0, 1, 3),
        "group_per_ms": (None, 100, 200),
        "group_by": (*[None] * 8, *GroupBy, *GroupBy),
        "group_header": (None, "h", "h", "other"),
        "group_order": (*[None] * 6, False, True, True),
    },
    core.ConfigureQueue: {
        "queue": QUEUES, "change": Made(core.QueueChange), "create": (False, False, True), "session": (None, 1),
    },
    core.DeleteQueue: {
        "queue": QUEUES, "force": (False, True), "leave": (False, False, True),
        "idle_since_ms": (None, None, 0, 50, 100, 200, 1000),
    },
    core.PurgeQueue: {
        "queue": QUEUES, "purged": (core.Purged.ALL, *core.Purged), "before_seq": (None, None, 5),
        "before_id": (None, None, 3),
    },
    core.MoveJobs: {
        "queue": QUEUES, "to": ("b", "a", "c"), "count": (2**31, 1, 2, 0), "died": (None, None, None, "a", "b"),
        "left": (None, None, None, 2, 0), "behind": (None, None, None, (0, 0, 3), (-1, 0, 0)),
        "seq": (None, None, None, None, 3, 8),
    },
    core.HoldItem: {
        "item": ("x", "y", "i1", None), "expire_ms": (10, 60, 600_000, 10**30, None), "then": tuple(core.HoldThen),
        "user": ("", "", "ann"),
    },
    core.CancelItem: {"item": ("x", "y", "i1"), "reason": (None, "late")},
    core.RetryItem: {"item": ("x", "y", "i1"), "left": (None, None, None, 1, 0)},
    core.PauseQueue: {
        "queue": QUEUES, "incoming": (False, False, True), "outgoing": (False, True),
        "pause_ms": (None, 0, 10, 60, 10**30),
    },
    core.Configure: {
        "expire_default": (None, Then.DONE, Then.LATER), "autocreate": (None, None, True, False),
        "policy": (None, *Policy), "grace_ms": (None, 0, 40), "session_ttl_ms": (None, 5000),
        "fast_empty": (None, True, False), "retained_bytes": (None, None, 4, 2**63 - 1),
        "fair": Made(core.FairChange, maybe=True),
    },
    core.FairChange: {
        "thresholds_s": (None, None, (0, 1), (0, 1, 2, 7, 13), (0, 0)), "cap_ms": (None, 1000, 5000, 10),
        "multiplier": (None, 0, 1, 2, 5), "keep_ms": (None, 0, 40),
    },
    core.ConfigureGroup: {
        "group": QUEUES, "limit": (None, None, 0, 1, 2), "rate": (None, None, 0, 1, 3), "per_ms": (None, 100, 200),
        "weight": (None, None, 1, 3), "paused": (None, None, True, False), "pause_ms": (None, 10, 60),
    },
    core.DeleteGroup: {"group": QUEUES},
    core.BindQueue: {"topic": TOPICS, "queue": QUEUES, "pattern": PATTERNS},
    core.UnbindQueue: {"topic": TOPICS, "queue": (*QUEUES, None), "pattern": PATTERNS},
    # ---- pulses
    core.PulseChange: {
        "rate": (None, 1), "per_ms": (None, 2), "step_ms": (None, 3), "max_pause_ms": (None, 4),
        "max_run_ms": (None, 5), "max_wait_ms": (None, 6), "spread": (None, True, False),
    },
    core.ConfigurePulse: {
        "pulse": POOLS, "change": Made(core.PulseChange), "create": (False, True), "together": (False, True),
        "pulses_max": (None, 9),
    },
    core.DeletePulse: {"pulse": POOLS},
    core.SetPulse: {"pulse": POOLS, "data": DATA, "deny": (False, True)},
    core.Grant: {"pulse": POOLS, "count": (3, 1)},
    core.TakeTurn: {"pulse": POOLS, "free": (False, True)},
    core.GiveResult: {"ticket": IDS, "result": tuple(Feedback), "sleep_ms": (0, 9)},
    # ---- sessions, users, workers
    core.OpenSession: {
        "secret": (7, 2**64 - 1), "ttl_ms": (1000, 60_000), "user": ("", "mailer"), "address": ("", "10.0.0.1"),
        "owner_max": (None, 0, 3),
    },
    core.AttachSession: {"session": (1, 12), "secret": (7, 2**64 - 1), "user": ("", "mailer")},
    core.CloseSession: {"session": (1, 12), "release": (False, True), "first": (False, True)},
    core.TouchSession: {"session": (1, 12, (1, 7))},
    core.Request: {
        "session": (1, 12), "number": (1, 70), "digest": (b"sixteen bytes id", b""), "part": (0, 1),
        "keep_waiting": (False, True), "operation": Made(core.Done, core.Put, core.Get, core.CloneChunk),
        "until_finished": (False, True),
    },
    core.User: {"rights": ("put:mail*,get", "-"), "key": (b"sixteen byte key",)},
    core.SetUser: {"name": ("mailer", "x"), "user": Made(core.User, maybe=True)},
    core.BeatWorker: {"name": POOLS, "slots": PLACES, "busy": PLACES, "address": ("h:1", ""), "session": (1, 1, 2, 0)},
    core.SetWorker: {
        "name": POOLS, "most": (None, 0, 2, 9), "least": (None, 0, 2, 9), "state": (None, *core.WorkerState),
    },
    # ---- the cluster
    core.Tick: {},
    core.Address: {"name": NODES, "peer": ("", "h:1"), "client": ("", "h:2")},
    core.Lead: {
        "node": NODES, "term": (1, 7), "members": Some(NODES), "cluster_id": (b"sixteen bytes id",),
        "grace_ms": (0, 1000), "expire_default": (Then.LATER, Then.DONE),
        "addresses": ((), (core.Address("n1", "h:1", "h:2"), core.Address("n2"))), "silence_ms": (0, 350),
    },
    core.Resume: {"grace_ms": (0, 30)},
    core.CloneChunk: {
        "clone": (1, 2), "data": (b"", b"chunk"), "total_bytes": (None, 1000), "last": (False, True),
    },
    core.ChangeMember: {
        "node": NODES, "change": tuple(core.MemberChange), "configuration": (4, 0), "peer": ("h:1", ""),
        "client": ("h:2", ""),
    },
    core.SwitchService: {"online": (False, True), "grace_ms": (0, 30)},
    core.RaiseLevel: {"level": (2, 1), "members": Some(NODES)},
    core.SetMap: {"version": (1, 2), "text": (b"CLUSTER a 7369787465656e20 h:1\n",)},
    core.Fragment: {"number": (7,), "offset": (0, 256), "data": DATA, "last": (False, True)},
    # ---- a replica, and its origin
    core.MirrorFrame: {"index": (1, 300), "data": (core.encode_entry(7, 8, [core.Tick()], 1),)},
    core.MirrorEntries: {
        "after": (0, 299), "frames": ((core.MirrorFrame(300, b"entry"),), ()), "offset": (0, 256),
        "last": (True, False),
    },
    core.MirrorChunk: {
        "index": (300,), "offset": (0, 256), "data": DATA, "total_bytes": (None, 1000),
        "hash": (b"", b"sixteen byte hash"),
    },
    core.Promote: {"grace_ms": (60_000, 0)},
    core.Fence: {"replica": ("7369787465656e20",)},
}
OPERATIONS: tuple[Any, ...] = get_args(core.Operation)

# The options of End that go with each end; one job's, as several have only `first`.
OPTIONS_OF_END = {
    How.DONE: ("last", "ran_ms", "text", "dropped"),
    How.LATER: ("when", "priority", "first", "yielded", "reason", "ran_ms", "text", "dropped"),
    How.BURY: ("priority", "here", "reason", "text", "dropped"),
}


def drawn(kind: Any, **given: Any) -> st.SearchStrategy[Any]:
    """Samples of this kind; `given`: other strategies for some of its fields, or values."""
    chosen = {
        name: given[name] if name in given else _strategy(values) for name, values in SAMPLES[kind].items()
    }
    return st.builds(kind, **{
        name: value if isinstance(value, st.SearchStrategy) else st.just(value) for name, value in chosen.items()
    })


def _strategy(values: Values) -> st.SearchStrategy[Any]:
    if isinstance(values, Made):
        kinds: list[st.SearchStrategy[Any]] = [st.none()] * values.maybe + [drawn(kind) for kind in values]
        return st.sampled_from(kinds).flatmap(lambda strategy: strategy)
    if isinstance(values, Some):
        return st.lists(st.sampled_from(tuple(values)), max_size=values.most).map(tuple)
    return st.sampled_from(values)


def ends(how: How) -> st.SearchStrategy[Any]:
    """Ends of one job in this way, with the options that go with it."""
    rest = {field.name: field.default for field in fields(core.End) if field.default is not NODEFAULT}
    fixed = {name: value for name, value in rest.items() if name not in OPTIONS_OF_END[how]}
    return drawn(core.End, ids=st.sampled_from(IDS), how=how, **fixed)


def forms(kind: Any) -> Iterator[Any]:
    """The plain form of an operation, and others that differ in one field, so that each value is in one of them."""
    first = {field.name: _values(kind, field.name)[0] for field in fields(kind) if field.default is NODEFAULT}
    yield kind(**first)
    for field in fields(kind):
        seen = [first.get(field.name, field.default)]
        for value in _values(kind, field.name):
            if value not in seen or type(value) not in map(type, seen):
                seen.append(value)
                yield kind(**{**first, field.name: value})


def _values(kind: type, name: str) -> list[Any]:
    values = SAMPLES[kind][name]
    if isinstance(values, Made):
        return [*[None] * values.maybe, *[form for one in values for form in forms(one)]]
    if isinstance(values, Some):
        return [(), tuple(values[:1]), tuple(values[:values.most])]
    return [value for value in values if not isinstance(value, int) or value <= LARGEST]
