"""`pqctl group ..`: show, change and pause groups of jobs."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from sockpq import FairGroup, GroupConfig, GroupNotFound, GroupTotals

from sockpqd.pqctl.actions.existence import GROUP, existing, missing
from sockpqd.pqctl.actions.queues.settings import show_settings
from sockpqd.pqctl.connect import cluster_of, reading
from sockpqd.pqctl.invocation import Call
from sockpqd.pqctl.output.exit_codes import DONE, REFUSED, Failure
from sockpqd.pqctl.output.text import counted, lasting

SECOND_US = 1_000_000
NO_SETTINGS = GroupConfig(0, 0, 0, 1, False)


def show_list(call: Call, prefix: str) -> int:
    """Print a line for each group whose name begins with `prefix` (GROUP LIST)."""
    with reading(call) as (client, server):
        found = sorted(client.groups(prefix, server=server))
    if call.as_json:
        call.answer("", {"groups": [one._asdict() for one in found]})
        return DONE

    from sockpqd.pqctl.output.table import Column, print_rows

    if found:
        columns = [Column("group", folds=True)]
        columns += [Column(title, figures=True) for title in ("ready", "delayed", "running", "weight", "limit", "rate")]
        print_rows(call, [*columns, Column("paused")], [
            (one.name, f"{one.ready:,}", f"{one.delayed:,}", f"{one.running:,}", str(one.weight), _limit(one),
             _rate(one), _paused(one)) for one in found
        ])
    else:
        call.print(f"there is no group whose name begins with {prefix}" if prefix else "there is no group")
    return DONE


def show(call: Call, name: str) -> int:
    """Print settings and jobs of one group, and the limits that hold it back (GROUP CONFIG, SCHED GROUP)."""
    used: FairGroup | None = None
    with cluster_of(call, serving=True) as (client, _):
        settings = client.group_config(name)
        with suppress(GroupNotFound):
            used = client.sched_group(name)
        if used is None and settings == NO_SETTINGS:
            raise missing(client, GROUP, name)
    sentence = f"{name}: "
    if used is not None:
        sentence += f"{counted(used.waiting, 'job')} waiting, {used.running:,} running, "
        sentence += f"{used.used_us / SECOND_US:.3f} s used; "
    limit = f"limit {_limit(settings)}" if settings.limit else "no limit"
    rate = f"rate {_rate(settings)}" if settings.rate else "no rate"
    sentence += f"{limit}, {rate}, weight {settings.weight}"
    held = [word for word, holds in (
        (f"it is paused{_rest(settings)}", settings.paused),
        ("its limit is reached", used is not None and 0 < settings.limit <= used.running),
    ) if holds]
    call.answer(sentence + "".join(f"; {word}" for word in held), {
        "group": name, **settings._asdict(), **(
            dict.fromkeys(FairGroup._fields) if used is None else used._asdict()
        ),
    })
    return DONE


def config(call: Call, name: str, settings: Mapping[str, Any]) -> int:
    """Change settings of a group and show them all (GROUP CONFIG)."""
    with cluster_of(call, serving=True) as (client, _):
        told = client.group_config(name, **settings)
    if call.as_json:
        call.answer("", {"group": name, "settings": told._asdict()})
        return DONE
    return show_settings(call, {}, {
        "limit": _limit(told), "rate": _rate(told), "weight": str(told.weight),
        "paused": f"yes{_rest(told)}" if told.paused else "no",
    })


def pause(call: Call, name: str, seconds: float | None) -> int:
    """Pause a group (GROUP PAUSE), for a time if one is given."""
    with cluster_of(call, serving=True) as (client, _):
        client.group_pause(name, seconds=seconds)
    end = f"until `pqctl group resume {name}`" if seconds is None else f"for {lasting(seconds)}"
    call.answer(f"{name} gets no jobs {end}", {
        "group": name, "paused": True, **({} if seconds is None else {"seconds": seconds}),
    })
    return DONE


def resume(call: Call, name: str) -> int:
    """Resume a group that is paused or asleep (GROUP RESUME)."""
    with cluster_of(call, serving=True) as (client, _):
        try:
            client.group_resume(name)
        except GroupNotFound:
            raise Failure(
                REFUSED, f"group {name} is neither paused nor asleep (`pqctl group list` shows those that are paused)",
            ) from None
    call.answer(f"{name} gets jobs", {"group": name, "paused": False})
    return DONE


def delete(call: Call, name: str) -> int:
    """Remove the settings of a group (GROUP DELETE)."""
    with cluster_of(call, serving=True) as (client, _), existing(client, GROUP, name):
        client.group_delete(name)
    call.answer(f"{name} has no settings any more", {"group": name})
    return DONE


def _limit(settings: GroupConfig | GroupTotals) -> str:
    return f"{settings.limit:,}" if settings.limit else "-"


def _rate(settings: GroupConfig | GroupTotals) -> str:
    return f"{settings.rate:,} per {settings.per:g} s" if settings.rate else "-"


def _paused(one: GroupTotals) -> str:
    if not one.paused:
        return "-"
    return lasting(one.pause_left) if one.pause_left else "yes"


def _rest(settings: GroupConfig) -> str:
    """The rest of the pause, for people."""
    return f", {lasting(settings.pause_left)} more" if settings.pause_left else ""
