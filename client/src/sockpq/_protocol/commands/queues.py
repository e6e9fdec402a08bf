"""Whole queues, their settings, the settings of the cluster, and the whole state."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import BinaryIO, Literal, TypedDict

from sockpq._protocol import arguments
from sockpq._protocol.arguments import EXPIRE_S_MAX, Data, Direction, GroupBy, Policy, State, Then
from sockpq._protocol.command import Command, Repeat, Steps, call, single
from sockpq._protocol.commands.groups import NEEDS, rate_of
from sockpq._protocol.headers import header_name
from sockpq._protocol.reader import (
    BODY_BYTES_MAX,
    LINE,
    Reader,
    accepted,
    as_name,
    as_number,
    as_signed,
    data_block,
    expect,
    failure,
    fields_of,
    lines_of_list,
    list_of,
    number_of,
    ok,
)
from sockpq.errors import BadArguments
from sockpq.model import Binding, FairGroup, FairLevel, Moved, QueueTotals, RunningJob, Totals

COUNT_MAX = 2**63 - 1
BACKOFF_S_MAX = 86_400
PIECE_BYTES = 1 << 20       # of a snapshot that goes into a file


class QueueSettings(TypedDict, total=False):
    """The settings of a queue; a setting not given is unchanged, 0 removes a limit. Times in seconds.

    `expire`, `then`: the lease of hand-outs that name none, and the action at its end ("later", "done", "dead").
    `order`: "fifo", or "time" for the order of the jobs' times. `tries`: after that many hand-outs without DONE a job
    goes to the queue `dead` (by default the queue's name and "_dead"). `weight`: for the policy "weight". `sched`:
    "fair" shares hand-outs among the groups of its jobs, "groups" gives the first job of any group that may have one.
    With either, `group_limit`: how many jobs of one group may run at a time; `group_rate` in `group_per` seconds: how
    many jobs of one group are handed out; `group_by`: the source of each job's group, its "user", its "item", or a
    header ("head", name), instead of put(group=) ("off"). `group_order`: the jobs of a group are processed in order.
    `limit`: how many jobs may run at a time, `item_limit`: of one item. `capacity`: how many may wait; others are
    refused. `data_bytes_max`: of one job. `batch`: the maximum number for one get_many(). `portion`: how many due jobs
    are activated at once. `keep`: how long the keys of finished jobs are remembered. `ttl`: of jobs put without one.
    `idle`: the queue is deleted, with its jobs, when it was not used for this long (1 or more). `overflow`: what
    happens to a new job when the queue is full, "refuse" or "drop_oldest". `rate`: the maximum number of hand-outs in
    `per` seconds (0: no limit), with `spread` at even distances; or `pulse`: a shared pulse that limits them ("":
    none). `alarm`: subscribers to DEPTH are notified when this many jobs wait, and when half of it do. `retain`: how
    long its numbered jobs are kept after their end (0: not at all), up to `retain_max` jobs with `retain_bytes` of data
    and results. `numbered`: each of its jobs has a number. `backoff`: the pause of a job after its first attempt that
    failed, which doubles with each, and the longest ((0, 0): none). `error_bytes`: the total size of the error texts of
    its jobs; `dedup_max`: how many keys of put(dedup=) are remembered.
    """

    expire: float
    then: Then
    order: Literal["fifo", "time"]
    tries: int
    dead: str
    weight: int
    limit: int
    item_limit: int
    capacity: int
    data_bytes_max: int
    batch: int
    portion: int
    keep: float
    ttl: float
    idle: float
    overflow: Literal["refuse", "drop_oldest"]
    alarm: int
    sched: Literal["fifo", "fair", "groups"]
    group_limit: int
    group_rate: int
    group_per: float
    group_by: GroupBy
    group_order: bool
    rate: int
    per: float
    spread: bool
    pulse: str
    retain: float
    retain_max: int
    retain_bytes: int
    numbered: bool
    backoff: tuple[float, float]
    error_bytes: int
    dedup_max: int


class ClusterSettings(TypedDict, total=False):
    """The settings of the cluster; a setting not given is unchanged. Times in seconds.

    `expire_default`: the action at the end of a lease whose get() names none. `autocreate`: put() creates queues.
    `policy`: the default of get(). `grace`: how much longer leases are after a failover. `session_ttl`: of clients that
    name none. `fast_empty`: a get() that finds nothing is answered at once, without a majority.
    `retained_bytes`: the total size of the data and results of ended jobs kept by all queues.
    """

    expire_default: Literal["later", "done"]
    autocreate: bool
    policy: Policy
    grace: float
    session_ttl: float
    fast_empty: bool
    retained_bytes: int


_NUMBERS = {
    "weight": "WEIGHT", "limit": "LIMIT", "item_limit": "ITEMLIMIT", "group_limit": "GROUPLIMIT",
    "capacity": "CAPACITY", "data_bytes_max": "MAXDATA", "batch": "BATCH", "portion": "PORTION", "alarm": "ALARM",
    "retain_max": "RETAINMAX", "retain_bytes": "RETAINBYTES", "error_bytes": "ERRORBYTES", "dedup_max": "DEDUPMAX",
}
_NEEDS = {      # words of CAPS, for settings that older servers do not have
    "retain": "retain", "retain_max": "retain", "retain_bytes": "retain", "numbered": "retain", "backoff": "backoff",
    "error_bytes": "backoff", "dedup_max": "dedup", "retained_bytes": "retain", "group_limit": "groups",
    "group_rate": "groups", "group_per": "groups", "group_by": "groups", "group_order": "groups",
}
_OVERFLOW = {"refuse": "REFUSE", "drop_oldest": "DROPOLDEST"}
_CLUSTER = {
    "expire_default": "EXPIREDEFAULT", "autocreate": "AUTOCREATE", "policy": "POLICY", "grace": "GRACE",
    "session_ttl": "SESSIONTTL", "fast_empty": "FASTEMPTY",
    "retained_bytes": "RETAINEDBYTES",
}
_OF_GROUPS = {"group_rate": "GROUPRATE", "group_by": "GROUPBY", "group_order": "GROUPORDER"}
_NAMES = {word: name for name, word in {**_NUMBERS, **_CLUSTER, **_OF_GROUPS}.items()}
_UNKNOWN = "-"
_SETTING = re.compile(r"[A-Z][A-Z_]{0,31}")


# fair shares

class FairSettings(TypedDict, total=False):
    """The settings of fair shares; a setting not given is unchanged. Times in seconds.

    `levels`: the used time from which a group is in each level. `cap`: the most time of one hand-out that is charged to
    levels. `multiplier`: the ratio of a level's share to the next level's. `group_keep`: how long a group without
    unfinished jobs is remembered.
    """

    levels: Sequence[int]
    cap: float
    multiplier: int
    group_keep: float


@call("any")
def sched_levels() -> Command[list[FairLevel]]:
    """List the levels of fair shares (get(policy="fair")); a `server` that is named may lag."""
    return Command(b"SCHED SHOW\r\n", b"", _levels, Repeat.FREELY, needs=("fair",))


def _levels() -> Reader[list[FairLevel]]:
    lines = yield from lines_of_list()
    return [FairLevel(*_figures(line, ("LEVEL", "TIME", "WAITING", "SELECTED"))) for line in lines]


@call("any")
def sched_group(group: str) -> Command[FairGroup]:
    """Return the time that a group has used so far. Raises GroupNotFound; a `server` that is named may lag."""
    return single(f"SCHED GROUP {arguments.any_group(group)}", _fair_group, Repeat.FREELY, needs=("fair",))


def _fair_group(text: str) -> FairGroup:
    words = " ".join(fields_of(text))
    return FairGroup(*_figures(words, ("LEVEL", "USED", "PRIORITY", "WAITING", "RUNNING")))


def _figures(line: str, words: tuple[str, ...]) -> list[int]:
    fields = line.split(" ")
    expect(tuple(fields[::2]) == words and len(fields) == 2 * len(words), f"not the figures of a group: {line[:100]!r}")
    return [int(field) if field.isdecimal() else as_number(field) for field in fields[1::2]]


@call()
def sched_config(settings: FairSettings) -> Steps[dict[str, str]]:
    """Change the settings of fair shares (sockpq.FairSettings), or only read them. Returns all settings."""
    look: Command[dict[str, str]] = Command(
        b"SCHED CONFIG\r\n", b"", partial(_settings_list, {"GROUPKEEP": "group_keep"}), Repeat.FREELY, needs=("fair",),
    )
    if not settings:
        return Steps((), look)
    _check(settings, FairSettings)
    text = "SCHED CONFIG"
    if "levels" in settings:
        levels = [arguments.integer(level, "levels", 0, COUNT_MAX) for level in settings["levels"]]
        text += f" LEVELS {'|'.join(map(str, levels))}"
    if "cap" in settings:
        text += f" CAP {arguments.seconds(settings['cap'], 'cap', 1, 86_400)}"
    if "multiplier" in settings:
        text += f" MULTIPLIER {arguments.integer(settings['multiplier'], 'multiplier', 1, 100)}"
    if "group_keep" in settings:
        text += f" GROUPKEEP {arguments.seconds(settings['group_keep'], 'group_keep', 0, 86_400)}"
    return Steps((single(text, accepted, Repeat.HARMLESS, logged=True, needs=("fair",)),), look)


# the state of the queues

@call("any")
def total(queue: str | None = None) -> Command[Totals]:
    """Count the jobs of all queues or of one; a `server` that is named may lag behind the leader."""
    line = "TOTAL" if queue is None else f"TOTAL {_queue(queue)}"
    return single(line, _totals, Repeat.FREELY)


@call("any")
def queues(prefix: str = "") -> Command[list[QueueTotals]]:
    """List the queues whose names begin with `prefix`, in no particular order; a `server` that is named may lag."""
    line = f"QUEUE LIST {arguments.name(prefix, 'prefix')}*\r\n" if prefix != "" else "QUEUE LIST\r\n"
    return Command(line.encode(), b"", _queue_list, Repeat.FREELY)


@call("any")
def running(data: bool = False) -> Command[list[RunningJob]]:
    """List the running jobs in the order of their ids, with their data if `data`."""
    line = b"RUNLIST DATA\r\n" if arguments.switch(data, "data") else b"RUNLIST\r\n"
    return Command(line, b"", partial(_run_list, data), Repeat.FREELY)


@call("any")
def snapshot() -> Command[bytes]:
    """Return the whole state, for clone()."""
    return Command(b"SNAPSHOT\r\n", b"", data_block, Repeat.FREELY)


@call("any")
def snapshot_into(file: BinaryIO, *, users: bool = False) -> Command[int]:
    """Write the whole state into a file that can be truncated, piece by piece; returns its number of bytes.

    `users`: with the users of the cluster and their keys; clone() leaves users as they are in any case.
    """
    return Command(b"SNAPSHOT USERS\r\n" if users else b"SNAPSHOT\r\n", b"", partial(_into, file), Repeat.FREELY)


def _into(file: BinaryIO) -> Reader[int]:
    """Read a length, then that many bytes. Bytes from an earlier server whose connection was lost are dropped."""
    fields = ok((yield LINE))
    expect(len(fields) == 1, "one length expected")
    left = size = as_number(fields[0], arguments.SNAPSHOT_BYTES_MAX)
    file.seek(0)
    file.truncate()
    while left:
        left -= file.write((yield min(left, PIECE_BYTES)))
    return size


@call(retry=True)
def clone(snapshot: Data) -> Command[None]:
    """Replace the state of the whole cluster with a snapshot. Raises InvalidSnapshot; nothing is changed then.

    A read-only memoryview, for example of a mapped file, is sent without a copy.
    """
    data = arguments.large(snapshot, arguments.SNAPSHOT_BYTES_MAX)
    return single(b"CLONE %d" % len(data), accepted, Repeat.IF_ASKED, data=data, logged=True)


def _totals(text: str) -> Totals:
    fields = fields_of(text)
    expect(len(fields) == 4, "TOTAL needs four numbers")
    return Totals(*(as_number(field) for field in fields))


def _queue_list() -> Reader[list[QueueTotals]]:
    return (yield from list_of(_queue_line))


def _queue_line(line: str) -> QueueTotals:
    """Parse `<q> <ready> <delayed> <running> <dead> <buried>`."""
    fields = line.split(" ")
    expect(len(fields) == 6, "not a line of QUEUE LIST")
    ready, delayed, running, dead, buried = (as_number(field) for field in fields[1:])
    return QueueTotals(as_name(fields[0]), ready, delayed, running, dead, buried)


def _run_list(with_data: bool) -> Reader[list[RunningJob]]:
    """Read a count, the lines, then with DATA all bodies in a row."""
    if not with_data:
        return (yield from list_of(_running_job))
    jobs: list[tuple[RunningJob, int]] = yield from list_of(partial(_running_line, with_data=True))
    result = []
    for entry, length in jobs:
        body = yield length
        result.append(entry._replace(data=body))
    return result


def _running_job(line: str) -> RunningJob:
    return _running_line(line, with_data=False)[0]


def _running_line(line: str, with_data: bool) -> tuple[RunningJob, int]:
    """Parse `<id> <q> <p> [<len>] [EXPIRE <time>]`; returns the job and the length of its data."""
    fields = line.split(" ")
    expires_at = None
    if len(fields) >= 5 and fields[-2] == "EXPIRE":
        expires_at = as_number(fields[-1])
        del fields[-2:]
    expect(len(fields) == (4 if with_data else 3), "not a line of RUNLIST")
    length = as_number(fields[3], BODY_BYTES_MAX) if with_data else 0
    return RunningJob(as_number(fields[0]), as_name(fields[1]), as_signed(fields[2]), expires_at, None), length


# queues and their settings

@call()
def queue_create(queue: str, settings: QueueSettings, *, bound: bool = False) -> Command[None]:
    """Create a queue with these settings (sockpq.QueueSettings). Raises QueueExists.

    `bound`: it is deleted, with its jobs, when the session of this client ends, for example for answers to it.
    """
    last = " BOUND" if arguments.switch(bound, "bound") else ""
    made = _command(f"CREATE {_queue(queue)}{_settings(settings)}{last}", Repeat.IF_ASKED)
    return made._replace(needs=_needs(settings))


@call()
def queue_config(queue: str, settings: QueueSettings) -> Steps[dict[str, str]]:
    """Change settings of a queue (sockpq.QueueSettings), which need not exist; without any only read them.

    Returns all of them in the protocol's words: {"limit": "3", ..}. Raises QueueNotFound when it has none and none
    were given, QueueNotEmpty when it has too many jobs for another order.
    """
    look: Command[dict[str, str]] = Command(
        f"QUEUE CONFIG {_queue(queue)}\r\n".encode(), b"", partial(_settings_list, _NAMES), Repeat.FREELY
    )
    if not settings:
        return Steps((), look)
    change = _command(f"CONFIG {_queue(queue)}{_settings(settings)}", Repeat.HARMLESS)
    return Steps((change._replace(needs=_needs(settings)),), look)


@call()
def queue_delete(queue: str, *, force: bool = False, leave: bool = False) -> Command[None]:
    """Remove a queue with its settings, and with `force` also with its jobs, the running ones too.

    `leave`, with `force`: its dead jobs stay in the dead-letter queues, as if they had been put there. Raises
    QueueNotFound, QueueNotEmpty.
    """
    forced = " FORCE" if arguments.switch(force, "force") else ""
    if not arguments.switch(leave, "leave"):
        return _command(f"DELETE {_queue(queue)}{forced}", Repeat.IF_ASKED, slow=True)
    if not forced:
        raise BadArguments("leave goes with force only")
    return _command(f"DELETE {_queue(queue)} FORCE LEAVE", Repeat.IF_ASKED, slow=True)._replace(needs=("movequeue",))


_PURGE_NEEDS = {"ended": ("retain",), "running": ("movequeue",), "own": ("movequeue",)}


@call(retry=True)
def queue_purge(queue: str, state: State | Literal["all", "ended", "own"]) -> Command[int]:
    """Remove the jobs that are "ready", "delayed", "running", "dead" or "buried", or "all" but running ones.

    "own": all jobs in the queue itself, including running ones, but no dead ones. "ended": the records of ended
    jobs, which "all" removes, too. Returns how many. Raises QueueNotFound.
    """
    word = state.upper() if state in ("all", "ended", "own") else arguments.state(state)
    return single(
        f"QUEUE PURGE {_queue(queue)} {word}", number_of, Repeat.IF_ASKED, slow=True, logged=True,
        needs=_PURGE_NEEDS.get(state, ()),
    )


@call(retry=True)
def queue_move(
    queue: str, to: str, count: int | None = None, *, died: str | None = None, seq: int | None = None,
) -> Command[Moved]:
    """Move ready jobs to the end of another queue, in order: the first `count`, or all.

    `died`: only the dead ones among them that came from this queue. They keep their options, and their attempts
    start over. If `to` refuses a job, it and all later ones stay, and the result has the reason. `seq`: only the
    ready job at this place. Raises QueueNotFound if there is no `queue`, with `seq` JobNotFound if there is no such
    job, and what `to` refuses.
    """
    if queue == to:
        raise BadArguments("jobs move to another queue")
    line = f"QUEUE MOVE {_queue(queue)} {arguments.name(to, 'to')}"
    if seq is not None:
        if count is not None or died is not None:
            raise BadArguments("seq names one job: it goes with neither count nor died")
        line += f" SEQ {arguments.integer(seq, 'seq', 0, COUNT_MAX)}"
        return single(line, _moved, Repeat.HARMLESS, logged=True, needs=("movequeue",))
    if count is not None:
        line += f" COUNT {arguments.integer(count, 'count', 1, COUNT_MAX)}"
    if died is not None:
        line += f" DIED {arguments.name(died, 'died')}"
    return single(line, _moved, Repeat.IF_ASKED, slow=True, logged=True, needs=("movequeue",))


def _moved(text: str) -> Moved:
    fields = fields_of(text)
    expect(bool(fields), "a number expected")
    return Moved(as_number(fields[0]), failure(" ".join(fields[1:])) if fields[1:] else None)


@call()
def queue_pause(queue: str, direction: Direction = "all", *, seconds: float | None = None) -> Command[None]:
    """Make put() raise QueuePaused ("in"), get() find the queue empty ("out"), or both.

    `seconds`, with "out": for this long, replacing any earlier "out" pause (0 ends it).
    """
    if direction not in ("in", "out", "all"):
        raise BadArguments(f"a queue is paused 'in', 'out' or 'all', not {direction!r}")
    if seconds is not None:
        if direction != "out":
            raise BadArguments("only a pause 'out' ends by itself")
        length = arguments.seconds(seconds, "seconds", 0, EXPIRE_S_MAX)
        return _command(f"PAUSE {_queue(queue)} OUT FOR {length}", Repeat.HARMLESS)._replace(needs=("number",))
    return _command(f"PAUSE {_queue(queue)} {direction.upper()}", Repeat.HARMLESS)


@call()
def queue_resume(queue: str) -> Command[None]:
    """End the pause of a queue. Raises QueueNotFound."""
    return _command(f"RESUME {_queue(queue)}", Repeat.HARMLESS)


@call("any")
def queue_stat(queue: str) -> Command[dict[str, int]]:
    """Return the counters of a queue in the protocol's words. Raises QueueNotFound.

    `waiters`, the number of clients that wait for it by name, is known to the leader only. `on_disk` jobs with
    `on_disk_bytes` of data are not in the memory of the node that answers.
    """
    return Command(f"QUEUE STAT {_queue(queue)}\r\n".encode(), b"", _counters, Repeat.FREELY)


# topics

@call()
def topic_bind(topic: str, queue: str, pattern: str | None = None) -> Command[None]:
    """Bind `queue` to `topic`: it gets all jobs published there, or only those whose routing key matches `pattern`.

    A pattern is words with dots between them; `*` is any one word, `#` any number of words.
    """
    return single(f"TOPIC BIND {_binding(topic, queue, pattern)}", accepted, Repeat.HARMLESS, logged=True,
                  needs=("fanout",))


@call()
def topic_unbind(topic: str, queue: str, pattern: str | None = None) -> Command[None]:
    """Undo a topic_bind(). Raises TopicNotFound, BindingNotFound."""
    return single(f"TOPIC UNBIND {_binding(topic, queue, pattern)}", accepted, Repeat.IF_ASKED, logged=True,
                  needs=("fanout",))


@call()
def topic_delete(topic: str) -> Command[None]:
    """Remove all bindings of the topic; the queues stay. Raises TopicNotFound."""
    return single(f"TOPIC DELETE {arguments.name(topic, 'topic')}", accepted, Repeat.IF_ASKED, logged=True,
                  needs=("fanout",))


@call("any")
def topic_list(prefix: str = "") -> Command[list[Binding]]:
    """List the bindings of the topics whose names begin with `prefix`; a `server` that is named may lag."""
    line = f"TOPIC LIST {arguments.name(prefix, 'prefix')}*\r\n" if prefix != "" else "TOPIC LIST\r\n"
    return Command(line.encode(), b"", _bindings, Repeat.FREELY, needs=("fanout",))


def _binding(topic: str, queue: str, pattern: str | None) -> str:
    words = f"{arguments.name(topic, 'topic')} {_queue(queue)}"
    return words if pattern is None else f"{words} PATTERN {arguments.pattern(pattern)}"


def _bindings() -> Reader[list[Binding]]:
    return (yield from list_of(_binding_line))


def _binding_line(line: str) -> Binding:
    """Parse `<topic> <queue> [PATTERN <p>]`."""
    fields = line.split(" ")
    expect(len(fields) == 2 or (len(fields) == 4 and fields[2] == "PATTERN"), "not a line of TOPIC LIST")
    return Binding(as_name(fields[0]), as_name(fields[1]), fields[3] if len(fields) == 4 else None)


@call()
def config(settings: ClusterSettings) -> Steps[dict[str, str]]:
    """Change settings of the cluster (sockpq.ClusterSettings), one after the other; without any only read them.

    Returns all of them in the protocol's words.
    """
    _check(settings, ClusterSettings)
    changes = tuple(
        single(
            f"CONFIG {_CLUSTER[name]} {_cluster_value(name, value)}", accepted, Repeat.HARMLESS, logged=True,
            needs=(_NEEDS[name],) if name in _NEEDS else (),
        )
        for name, value in settings.items()
    )
    return Steps(changes, Command(b"CONFIG\r\n", b"", partial(_settings_list, _NAMES), Repeat.FREELY))


def _queue(name: str) -> str:
    return arguments.name(name, "queue")


def _command(line: str, repeat: Repeat, slow: bool = False) -> Command[None]:
    return single(f"QUEUE {line}", accepted, repeat, slow=slow, logged=True)


def _settings(settings: QueueSettings) -> str:
    """Return the settings as the end of a line: " EXPIRE 300 THEN LATER TRIES 5 DEAD mail_dead"."""
    _check(settings, QueueSettings)
    text = arguments.lease(settings.get("expire"), settings.get("then"))
    if "order" in settings:
        if settings["order"] not in ("fifo", "time"):
            raise BadArguments(f"order is 'fifo' or 'time', not {settings['order']!r}")
        text += f" ORDER {settings['order'].upper()}"
    if "tries" in settings:
        text += f" TRIES {arguments.integer(settings['tries'], 'tries', 0, COUNT_MAX)}"
    if "dead" in settings:
        if "tries" not in settings:
            raise BadArguments("dead needs tries: it says where a job goes after them")
        text += f" DEAD {_queue(settings['dead'])}"
    by_name: Mapping[str, object] = settings
    for name, word in _NUMBERS.items():
        if name in by_name:
            text += f" {word} {arguments.integer(by_name[name], name, 0, COUNT_MAX)}"
    if "keep" in settings:
        text += f" KEEP {arguments.seconds(settings['keep'], 'keep', 0, EXPIRE_S_MAX)}"
    if "ttl" in settings:
        text += f" TTL {arguments.seconds(settings['ttl'], 'ttl', 0, EXPIRE_S_MAX)}"
    if "idle" in settings:
        idle = settings["idle"]
        text += f" IDLE {arguments.seconds(idle, 'idle', 1, EXPIRE_S_MAX) if idle else 'OFF'}"
    if "overflow" in settings:
        if settings["overflow"] not in _OVERFLOW:
            raise BadArguments(f"overflow is 'refuse' or 'drop_oldest', not {settings['overflow']!r}")
        text += f" OVERFLOW {_OVERFLOW[settings['overflow']]}"
    if "sched" in settings:
        if settings["sched"] not in ("fifo", "fair", "groups"):
            raise BadArguments(f"sched is 'fifo', 'fair' or 'groups', not {settings['sched']!r}")
        text += f" SCHED {settings['sched'].upper()}"
    if "group_by" in settings:
        text += f" GROUPBY {_group_by(settings['group_by'])}"
    if "group_order" in settings:
        text += f" GROUPORDER {'ON' if arguments.switch(settings['group_order'], 'group_order') else 'OFF'}"
    if "retain" in settings:
        text += f" RETAIN {arguments.seconds(settings['retain'], 'retain', 0, EXPIRE_S_MAX)}"
    if "numbered" in settings:
        text += f" NUMBERED {int(arguments.switch(settings['numbered'], 'numbered'))}"
    if "backoff" in settings:
        text += f" BACKOFF {_backoff(settings['backoff'])}"
    return text + _rate(settings)


def _group_by(value: GroupBy) -> str:
    if isinstance(value, tuple) and len(value) == 2 and value[0] == "head":
        return f"HEAD {header_name(value[1])}"
    if value not in ("user", "item", "off"):
        raise BadArguments(f"group_by is 'user', 'item', 'off' or a pair of 'head' and a name, not {value!r}")
    return str(value).upper()


def _backoff(pauses: tuple[float, float]) -> str:
    if not isinstance(pauses, tuple) or len(pauses) != 2:
        raise TypeError("backoff is a pair of seconds: the first pause and the longest")
    first, longest = pauses
    if first == longest == 0:
        return "OFF"
    words = [arguments.seconds(pause, "backoff", 0.001, BACKOFF_S_MAX) for pause in pauses]
    if first > longest:
        raise BadArguments(f"backoff {pauses}: the first pause is longer than the longest")
    return " ".join(words)


def _needs(settings: QueueSettings) -> tuple[str, ...]:
    """Return the words of CAPS that a server must have for these settings."""
    words = [_NEEDS[name] for name in settings if name in _NEEDS]
    return tuple(dict.fromkeys([*words, *NEEDS] if settings.get("sched") == "groups" else words))


def _rate(settings: QueueSettings) -> str:
    """Return the words of the rate settings, each after a space: " RATE 10 PER 1 PULSE OFF". Raises BadArguments."""
    text = ""
    if "group_rate" in settings:
        text += f" GROUPRATE {rate_of(settings['group_rate'], settings.get('group_per'), 'group_rate', 'group_per')}"
    elif "group_per" in settings:
        raise BadArguments("group_per needs group_rate, the number of hand-outs in that time")
    if "rate" in settings:
        rate = settings["rate"]
        rate = arguments.integer(rate, "rate", 0, 100_000)
        if bool(rate) != ("per" in settings):
            raise BadArguments("rate needs per, the seconds in which that many hand-outs are allowed; rate 0 has none")
        per = arguments.seconds(settings.get("per", 1), "per", 0.01, 86_400)
        text += f" RATE {rate} PER {per}" if rate else " RATE OFF"
        if arguments.switch(settings.get("spread", False), "spread"):
            if not rate:
                raise BadArguments("spread is for a queue with a rate")
            text += " SPREAD"
    elif "spread" in settings:
        raise BadArguments("spread needs rate, and is part of it")
    elif "per" in settings:
        raise BadArguments("per needs rate, the number of hand-outs in that time")
    if "pulse" in settings:
        text += f" PULSE {arguments.name(settings['pulse'], 'pulse')}" if settings["pulse"] else " PULSE OFF"
    return text


def _check(settings: Mapping[str, object], known: type) -> None:
    for name in settings:
        if name not in known.__annotations__:
            raise TypeError(f"there is no setting {name!r}")


def _cluster_value(name: str, value: object) -> str:
    match name:
        case "autocreate" | "fast_empty":
            return "ON" if arguments.switch(value, name) else "OFF"
        case "grace":
            return arguments.seconds(value, name, 0, EXPIRE_S_MAX)
        case "session_ttl":
            return arguments.session_ttl(value)
        case "retained_bytes":
            return str(arguments.integer(value, name, 0, COUNT_MAX))
    allowed = ("later", "done") if name == "expire_default" else arguments.POLICIES
    if value not in allowed:
        raise BadArguments(f"{name} is {' or '.join(map(repr, allowed))}, not {value!r}")
    return str(value).upper()


def _settings_list(names: Mapping[str, str]) -> Reader[dict[str, str]]:
    """Read each setting with its value, which may have several words.

    `names`: maps the protocol's names to this library's, where these are not the same in lower case.
    """
    pairs = {}
    for line in (yield from lines_of_list()):
        word, _, value = line.partition(" ")
        expect(_SETTING.fullmatch(word) is not None, f"not a setting: {line[:100]!r}")
        pairs[names.get(word, word.lower())] = value
    return pairs


def _counters() -> Reader[dict[str, int]]:
    pairs = yield from _settings_list({})
    return {word: as_number(value) for word, value in pairs.items() if value != _UNKNOWN}
