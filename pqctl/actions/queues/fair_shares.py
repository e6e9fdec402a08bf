"""`pqctl sched ..`: shows levels and groups of fair shares, and changes how they are computed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sockpq import GroupNotFound

from sockpqd.pqctl.actions.queues.settings import show_settings
from sockpqd.pqctl.connect import cluster_of, reading
from sockpqd.pqctl.invocation import Call
from sockpqd.pqctl.output.exit_codes import DONE, REFUSED, Failure
from sockpqd.pqctl.output.text import counted

SECOND_US = 1_000_000


def show(call: Call) -> int:
    """Print a line for each level (SCHED SHOW)."""
    with reading(call) as (client, server):
        levels = client.sched_levels(server)
    if call.as_json:
        call.answer("", {"levels": [level._asdict() for level in levels]})
        return DONE

    from sockpqd.pqctl.output.table import Column, print_rows

    total_us = sum(one.time_us for one in levels) or 1
    titles = ("scheduled s", "share", "groups waiting", "chosen")
    print_rows(call, [Column("level"), *[Column(title, figures=True) for title in titles]], [
        (
            str(one.level), f"{one.time_us / SECOND_US:.3f}", f"{100 * one.time_us / total_us:.1f}%", str(one.waiting),
            str(one.selected),
        ) for one in levels
    ])
    return DONE


def show_group(call: Call, name: str) -> int:
    """Print the time that a group has used (SCHED GROUP)."""
    with reading(call) as (client, server):
        try:
            found = client.sched_group(name, server=server)
        except GroupNotFound:
            raise Failure(REFUSED, f"no group {name} has jobs, or had some lately: group_keep of `pqctl sched config` "
                          "says how many seconds it is remembered") from None
    call.answer(
        f"{name}: level {found.level}, {found.used_us / SECOND_US:.3f} s used, "
        f"{counted(found.waiting, 'job')} waiting, {found.running} running",
        {"group": name, **found._asdict()},
    )
    return DONE


def config(call: Call, settings: Mapping[str, Any]) -> int:
    """Change settings and show them all (SCHED CONFIG)."""
    with cluster_of(call, serving=True) as (client, _):
        told = client.sched_config(**settings)
    return show_settings(call, {}, told)
