"""Groups of jobs as tenants: their limits, rates, weights and pauses in all queues that choose by groups."""

from __future__ import annotations

from typing import TypedDict

from sockpq._protocol import arguments
from sockpq._protocol.arguments import EXPIRE_S_MAX
from sockpq._protocol.command import Command, Repeat, Steps, call, single
from sockpq._protocol.reader import Reader, accepted, as_number, expect, lines_of_list, list_of
from sockpq.errors import BadArguments, ProtocolError
from sockpq.model import GroupConfig, GroupTotals

NEEDS = ("groups",)
RUNNING_MAX = 2**63 - 1
RATE_MAX = 10_000
WEIGHT_MAX = 1_000
PER_S_MIN, PER_S_MAX = 0.1, 86_400
PAUSE_LEFT = "PAUSE_LEFT_S"


class GroupSettings(TypedDict, total=False):
    """The settings of a group of jobs; a setting not given is unchanged, 0 removes a limit or a rate.

    `limit`: how many of its jobs may run at a time, in all queues together. `rate`: the maximum number of hand-outs in
    `per` seconds. `weight`: its share in fair shares, as a multiple of the share of a group with weight 1; 1 to 1000.
    """

    limit: int
    rate: int
    per: float
    weight: int


@call()
def group_config(group: str, settings: GroupSettings) -> Steps[GroupConfig]:
    """Change settings of a group of jobs (sockpq.GroupSettings); without any only read them.

    They hold in queues with `sched` "fair" or "groups" and for get(policy="fair"). Returns all of them. Raises Busy
    if the maximum number of groups has settings.
    """
    name = arguments.any_group(group)
    look = Command(f"GROUP CONFIG {name}\r\n".encode(), b"", _config, Repeat.FREELY, needs=NEEDS)
    if not settings:
        return Steps((), look)
    return Steps((_command(f"CONFIG {name}{_settings(settings)}", Repeat.HARMLESS),), look)


@call()
def group_pause(group: str, *, seconds: float | None = None) -> Command[None]:
    """Hand out no more jobs of a group until group_resume() or for some seconds; replaces an earlier pause."""
    line = f"PAUSE {arguments.any_group(group)}"
    if seconds is not None:
        line += f" FOR {arguments.seconds(arguments.span(seconds, 'seconds'), 'seconds', 0, EXPIRE_S_MAX)}"
    return _command(line, Repeat.HARMLESS)


@call()
def group_resume(group: str) -> Command[None]:
    """End the pause of a group, and its sleep in all queues. Raises GroupNotFound when it has neither."""
    return _command(f"RESUME {arguments.any_group(group)}", Repeat.IF_ASKED)


@call()
def group_delete(group: str) -> Command[None]:
    """Remove the settings and the pause of a group; its jobs stay. Raises GroupNotFound when it has none."""
    return _command(f"DELETE {arguments.any_group(group)}", Repeat.IF_ASKED)


@call("any")
def groups(prefix: str = "") -> Command[list[GroupTotals]]:
    """List the groups with settings or unfinished jobs, whose names begin with `prefix`; a named `server` may lag.

    A queue whose jobs were put without a group is listed only if there are settings for its name.
    """
    line = f"GROUP LIST {arguments.any_group(prefix)}*\r\n" if prefix != "" else "GROUP LIST\r\n"
    return Command(line.encode(), b"", _list, Repeat.FREELY, needs=NEEDS)


def rate_of(rate: int, per: object, name: str, per_name: str) -> str:
    """Return a number of hand-outs and its time: "10 PER 1"; "OFF" for 0, which has no time."""
    rate = arguments.integer(rate, name, 0, RATE_MAX)
    if bool(rate) != (per is not None):
        raise BadArguments(f"{name} needs {per_name}, the seconds in which that many hand-outs are allowed; 0 has none")
    return f"{rate} PER {arguments.seconds(per, per_name, PER_S_MIN, PER_S_MAX)}" if rate else "OFF"


def _settings(settings: GroupSettings) -> str:
    for name in settings:
        if name not in GroupSettings.__annotations__:
            raise TypeError(f"there is no setting {name!r}")
    text = ""
    if "limit" in settings:
        text += f" LIMIT {arguments.integer(settings['limit'], 'limit', 0, RUNNING_MAX)}"
    if "rate" in settings:
        text += f" RATE {rate_of(settings['rate'], settings.get('per'), 'rate', 'per')}"
    elif "per" in settings:
        raise BadArguments("per needs rate, the number of hand-outs in that time")
    if "weight" in settings:
        text += f" WEIGHT {arguments.integer(settings['weight'], 'weight', 1, WEIGHT_MAX)}"
    return text


def _command(line: str, repeat: Repeat) -> Command[None]:
    return single(f"GROUP {line}", accepted, repeat, logged=True, needs=NEEDS)


def _config() -> Reader[GroupConfig]:
    """Read the lines of GROUP CONFIG; later servers may have more of them."""
    pairs: dict[str, str] = {}
    for line in (yield from lines_of_list()):
        word, _, value = line.partition(" ")
        pairs[word] = value
    expect({"LIMIT", "RATE", "WEIGHT", "PAUSED"} <= pairs.keys(), "the answer to GROUP CONFIG")
    rate, per = (0, 0.0) if pairs["RATE"] == "OFF" else _rate(pairs["RATE"], " PER ")
    left = as_number(pairs.get(PAUSE_LEFT, "0"))
    return GroupConfig(as_number(pairs["LIMIT"]), rate, per, as_number(pairs["WEIGHT"]), pairs["PAUSED"] == "1", left)


def _list() -> Reader[list[GroupTotals]]:
    return (yield from list_of(_group_line))


def _group_line(line: str) -> GroupTotals:
    """Parse `<group> READY <n> DELAYED <n> RUNNING <n> WEIGHT <w> LIMIT <n> RATE <n>/<s> PAUSED 0|1`, perhaps more.

    A group named like a queue may have a longer name than a word of PUT's GROUP.
    """
    fields = line.split(" ")
    stats = dict(zip(fields[1::2], fields[2::2], strict=False))
    expect({"READY", "DELAYED", "RUNNING", "WEIGHT", "LIMIT", "RATE", "PAUSED"} <= stats.keys(), "a line of GROUP LIST")
    rate, per = _rate(stats["RATE"], "/")
    ready, delayed, running, weight, limit = (
        as_number(stats[word]) for word in ("READY", "DELAYED", "RUNNING", "WEIGHT", "LIMIT")
    )
    left = as_number(stats.get(PAUSE_LEFT, "0"))
    return GroupTotals(fields[0], ready, delayed, running, weight, limit, rate, per, stats["PAUSED"] == "1", left)


def _rate(text: str, between: str) -> tuple[int, float]:
    rate, _, per = text.partition(between)
    try:
        return as_number(rate), float(per)
    except ValueError:
        raise ProtocolError(f"not a rate: {text[:100]!r}") from None
