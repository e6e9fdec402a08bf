"""The page of fair shares: the levels, the groups, and the settings of FAIR."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from sockpqd.core import FairGroup
from sockpqd.gateway.dashboard.markup import Child, pairs, table, tag
from sockpqd.gateway.dashboard.pages.parts.listing import heads, listed, more
from sockpqd.gateway.dashboard.pages.parts.view import View, counted, duration, field, form, page, search, section
from sockpqd.gateway.protocol import listings

SORTS: dict[str, Callable[[FairGroup], int]] = {
    "group": lambda group: 0, "level": lambda group: group.level, "used": lambda group: -group.used_us,
    "waiting": lambda group: -group.waiting, "running": lambda group: -group.running,
}


async def show(view: View) -> str:
    machine = view.cluster.machine
    settings = listings.settings_of_fair(machine.fair_settings)
    return page(
        view, "Groups",
        None if machine.fair_used else tag(
            "p", "No fair shares are in use, so no group has used time: that begins with the first PUT .. GROUP, "
                 "GET .. BY FAIR or QUEUE CONFIG .. SCHED FAIR."),
        section("Levels", await table(
            ("level", "time", "groups that wait", "choices"), _levels(view),
            "A group that has used more time is on a higher level, where its share is smaller.",
        )),
        section("Groups", *await _groups(view)),
        section("Settings", pairs([(key, value) for key, value in settings]), form(
            view, "fair.config", "Change", None,
            field("settings", "As in SCHED CONFIG", required=True, placeholder="CAP 30 MULTIPLIER 2"), back="/groups",
        ) if view.visitor.admin else None),
    )


def _levels(view: View) -> Iterator[list[Child]]:
    for one in view.cluster.machine.fair_levels():
        yield [one.level, _used(one.time_us), one.waiting, one.selected]


async def _groups(view: View) -> list[Child]:
    """Return the list of all groups for administrators; others must know the name of theirs."""
    word, sort = view.word("search"), view.word("sort", "group")
    if not view.visitor.admin:
        return [search("/groups", word, "Name of a group"),
                await table(tuple(SORTS), _rows(view, [word]), "the group of this name") if word else None]
    machine, now = view.cluster.machine, view.cluster.time_ms
    rank = SORTS.get(sort, SORTS["group"])

    def found(name: str) -> int | None:
        group = machine.fair_group(name, now) if word in name else None
        return None if group is None else rank(group)

    words = {"search": word, "sort": sort}
    listing = await listed(view, machine.fair_names(), found)
    return [
        search("/groups", word, sort=sort),
        await table(heads("/groups", words, tuple(SORTS)), _rows(view, listing.names), counted(listing.count, "group")),
        more("/groups", words, listing),
    ]


def _rows(view: View, names: Sequence[str]) -> Iterator[list[Child]]:
    for name in names:
        group = view.cluster.machine.fair_group(name, view.cluster.time_ms)
        if group is not None:
            yield [name, group.level, _used(group.used_us), group.waiting, group.running]


def _used(us: int) -> str:
    return duration(us // 1000)
