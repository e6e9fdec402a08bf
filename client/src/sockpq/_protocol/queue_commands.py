"""The commands for queues and their settings, and the cluster's."""

from __future__ import annotations

from functools import partial
from typing import Literal, TypedDict

from sockpq._protocol import arguments, job_replies, replies
from sockpq._protocol.arguments import EXPIRE_S_MAX, Then
from sockpq._protocol.commands import Command, Repeat
from sockpq._protocol.job_commands import State, as_state
from sockpq.errors import BadArguments
from sockpq.options import Policy

Direction = Literal["in", "out", "all"]

COUNT_MAX = 2**63 - 1


class QueueSettings(TypedDict, total=False):
    """The settings of a queue; what is not given stays as it is, 0 takes a limit away. Times in seconds.

    `expire`, `then`: the lease of hand-outs that name none, and what follows it ("later", "done", "dead").
    `order`: "fifo", or "time" for that of the times put for. `tries`: after so many hand-outs without DONE a job goes
    to the queue `dead` (the queue's name and "_dead"). `weight`: for policies. `limit`: so many jobs run at a time,
    `item_limit` so many of one item. `capacity`: so many wait, others are refused. `data_bytes_max`: of one job.
    `batch`: so many at most are given to one get_many(). `portion`: so many due jobs are activated at once. `keep`:
    the keys of finished jobs are remembered so long.
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


class ClusterSettings(TypedDict, total=False):
    """The settings of the cluster; what is not given stays as it is. Times in seconds.

    `expire_default`: what follows a lease whose get() does not say it. `autocreate`: put() makes queues. `policy`: the
    default of get(). `grace`: leases are so much longer after a failover. `session_ttl`: of clients that name none.
    `fast_empty`: a get() that finds nothing is answered at once, without a majority.
    """

    expire_default: Literal["later", "done"]
    autocreate: bool
    policy: Policy
    grace: float
    session_ttl: float
    fast_empty: bool


_NUMBERS = {
    "weight": "WEIGHT", "limit": "LIMIT", "item_limit": "ITEMLIMIT", "capacity": "CAPACITY",
    "data_bytes_max": "MAXDATA", "batch": "BATCH", "portion": "PORTION",
}
_CLUSTER = {
    "expire_default": "EXPIREDEFAULT", "autocreate": "AUTOCREATE", "policy": "POLICY", "grace": "GRACE",
    "session_ttl": "SESSIONTTL", "fast_empty": "FASTEMPTY",
}

_TOLD = {word: name for name, word in {**_NUMBERS, **_CLUSTER}.items()}


def create(queue: str, settings: QueueSettings) -> Command[None]:
    """QUEUE CREATE."""
    return _command(f"CREATE {_queue(queue)}{_settings(settings)}", Repeat.IF_ASKED)


def configure(queue: str, settings: QueueSettings) -> Command[None]:
    """QUEUE CONFIG with settings."""
    return _command(f"CONFIG {_queue(queue)}{_settings(settings)}", Repeat.HARMLESS)


def config(queue: str) -> Command[dict[str, str]]:
    """QUEUE CONFIG without settings."""
    line = f"QUEUE CONFIG {_queue(queue)}\r\n"
    return Command(line.encode(), b"", partial(job_replies.settings, _TOLD), Repeat.FREELY)


def delete(queue: str, force: bool = False) -> Command[None]:
    """QUEUE DELETE."""
    forced = " FORCE" if arguments.switch(force, "force") else ""
    return _command(f"DELETE {_queue(queue)}{forced}", Repeat.IF_ASKED, slow=True)


def purge(queue: str, state: State | Literal["all"]) -> Command[int]:
    """QUEUE PURGE; running jobs never."""
    if state == "running":
        raise BadArguments("running jobs are not purged: delete() each by its id")
    line = f"QUEUE PURGE {_queue(queue)} {'ALL' if state == 'all' else as_state(state)}\r\n"
    return Command(line.encode(), b"", replies.number, Repeat.IF_ASKED, slow=True, logged=True)


def pause(queue: str, direction: Direction) -> Command[None]:
    """QUEUE PAUSE."""
    if direction not in ("in", "out", "all"):
        raise BadArguments(f"a queue is paused 'in', 'out' or 'all', not {direction!r}")
    return _command(f"PAUSE {_queue(queue)} {direction.upper()}", Repeat.HARMLESS)


def resume(queue: str) -> Command[None]:
    """QUEUE RESUME."""
    return _command(f"RESUME {_queue(queue)}", Repeat.HARMLESS)


def stat(queue: str) -> Command[dict[str, int]]:
    """QUEUE STAT."""
    return Command(f"QUEUE STAT {_queue(queue)}\r\n".encode(), b"", job_replies.counters, Repeat.FREELY)


def cluster_configure(settings: ClusterSettings) -> list[Command[None]]:
    """CONFIG with a setting: one command for each."""
    return [
        Command(f"CONFIG {_CLUSTER[name]} {_cluster_value(name, value)}\r\n".encode(), b"",
                replies.done, Repeat.HARMLESS, logged=True)
        for name, value in settings.items() if _known(name, _CLUSTER)
    ]


CONFIG: Command[dict[str, str]] = Command(
    b"CONFIG\r\n", b"", partial(job_replies.settings, _TOLD), Repeat.FREELY
)


def _queue(name: str) -> str:
    return arguments.name(name, "queue")


def _command(line: str, repeat: Repeat, slow: bool = False) -> Command[None]:
    return Command(f"QUEUE {line}\r\n".encode(), b"", replies.done, repeat, slow=slow, logged=True)


def _settings(settings: QueueSettings) -> str:
    """" EXPIRE 300 THEN LATER TRIES 5 DEAD mail_dead"."""
    for name in settings:
        _known(name, QueueSettings.__annotations__)
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
    for name, word in _NUMBERS.items():
        if name in settings:
            text += f" {word} {arguments.integer(settings[name], name, 0, COUNT_MAX)}"      # type: ignore[literal-required]
    if "keep" in settings:
        text += f" KEEP {arguments.seconds(settings['keep'], 'keep', 0, EXPIRE_S_MAX)}"
    return text


def _cluster_value(name: str, value: object) -> str:
    match name:
        case "autocreate" | "fast_empty":
            return "ON" if arguments.switch(value, name) else "OFF"     # type: ignore[arg-type]
        case "grace":
            return arguments.seconds(value, name, 0, EXPIRE_S_MAX)      # type: ignore[arg-type]
        case "session_ttl":
            return arguments.session_ttl(value)                         # type: ignore[arg-type]
    allowed = ("later", "done") if name == "expire_default" else ("random", "priority")
    if value not in allowed:
        raise BadArguments(f"{name} is {' or '.join(map(repr, allowed))}, not {value!r}")
    return str(value).upper()


def _known(name: str, names: object) -> bool:
    if name not in names:                                               # type: ignore[operator]
        raise TypeError(f"there is no setting {name!r}")
    return True
