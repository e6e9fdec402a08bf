"""`pqctl item ..`: show, retry, hold and cancel items."""

from __future__ import annotations

from typing import Literal, cast

from sockpq import ItemNotHeld, ItemStat

from sockpqd.pqctl.actions.existence import ITEM, existing
from sockpqd.pqctl.connect import cluster_of, reading
from sockpqd.pqctl.invocation import Call
from sockpqd.pqctl.output.confirm import confirm
from sockpqd.pqctl.output.exit_codes import DONE, REFUSED, Failure
from sockpqd.pqctl.output.text import counted, lasting

HOLD_S = 600            # the servers' default
STATES = ("ready", "delayed", "running", "dead", "buried")


def show_list(call: Call, prefix: str, held: bool) -> int:
    """Print a line for each item whose name begins with `prefix` (ITEM LIST)."""
    with reading(call) as (client, server):
        found = sorted(client.items(prefix, held=held, server=server))
    if call.as_json:
        call.answer("", {"items": [one._asdict() for one in found]})
        return DONE

    from sockpqd.pqctl.output.table import Column, print_rows

    if found:
        columns = [Column("item", folds=True), Column("unfinished", figures=True), Column("dead", figures=True)]
        print_rows(call, [*columns, Column("held"), Column("cancelled")], [
            (one.name, f"{one.unfinished:,}", f"{one.dead:,}", _yes(one.held), _yes(one.cancelling)) for one in found
        ])
    else:
        named = f" whose name begins with {prefix}" if prefix else ""
        call.print(f"there is no{' held' if held else ''} item{named}")
    return DONE


def show(call: Call, name: str) -> int:
    """Print the counts of one item (ITEM STAT)."""
    with reading(call) as (client, server), existing(client, ITEM, name, server):
        found = client.item_stat(name, server=server)
    call.answer(f"{name}: {_counted(found)}", {"item": name, **found._asdict()})
    return DONE


def _counted(found: ItemStat) -> str:
    states = [f"{value:,} {state}" for state in STATES if (value := getattr(found, state))]
    told = counted(found.unfinished, "unfinished job") + (f" ({', '.join(states)})" if states else "")
    told += f"; {found.done:,} done"
    told += f", {found.cancelled:,} cancelled" if found.cancelled else ""
    if found.waiters:
        told += f"; {counted(found.waiters, 'job waits', 'jobs wait')} for it"
    told += "; held" if found.held else ""
    return told + ("; it is cancelled, and ends with its running jobs" if found.cancelling else "")


def retry(call: Call, name: str) -> int:
    """Put back the dead and buried jobs of an item (ITEM RETRY)."""
    with cluster_of(call, serving=True) as (client, _), existing(client, ITEM, name):
        moved = client.item_retry(name)
    call.answer(f"{counted(moved, 'job')} of {name} put back", {"item": name, "moved": moved})
    return DONE


def hold(call: Call, name: str | None, expire: float | None, then: str | None) -> int:
    """Hold an item (ITEM HOLD), a new one without a name."""
    with cluster_of(call, serving=True) as (client, _):
        held = client.item_hold(name, expire=expire, then=cast(Literal["cancel", "release"] | None, then))
    end = "is released" if then == "release" else "is cancelled"
    call.answer(f"{held} is held until `pqctl item release {held}`; without that it {end} after "
                f"{lasting(expire or HOLD_S)}", {"item": held})
    return DONE


def release(call: Call, name: str) -> int:
    """End the hold of an item (ITEM RELEASE)."""
    with cluster_of(call, serving=True) as (client, _):
        try:
            ended = client.item_release(name)
        except ItemNotHeld:
            raise Failure(REFUSED, f"item {name} is not held (`pqctl item list --held` shows those that are)") from None
    call.answer(f"{name} is no longer held" + (", and has ended" if ended else ""), {"item": name, "ended": ended})
    return DONE


def cancel(call: Call, name: str, reason: str | None, yes: bool) -> int:
    """Remove the jobs of an item (ITEM CANCEL), after a confirmation."""
    confirm(f"Remove the jobs of item {name}, and what waits for it to be done?", yes)
    with cluster_of(call, serving=True) as (client, _), existing(client, ITEM, name):
        jobs = client.item_cancel(name, reason)
    call.answer(f"{name} is cancelled, with {counted(jobs, 'job')}", {"item": name, "jobs": jobs})
    return DONE


def _yes(condition: bool) -> str:
    return "yes" if condition else "-"
