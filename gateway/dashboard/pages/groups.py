"""The page of fair shares: the levels, the groups with what holds them back, and the settings of FAIR."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from urllib.parse import urlencode

from sockpqd.core import FairGroup
from sockpqd.gateway.dashboard.markup import Child, FigureText, link, pairs, table, tag
from sockpqd.gateway.dashboard.pages import group as one_group
from sockpqd.gateway.dashboard.pages.parts.listing import heads, listed, more
from sockpqd.gateway.dashboard.pages.parts.view import View, counted, duration, field, form, page, search, section
from sockpqd.gateway.protocol import listings

SORTS: dict[str, Callable[[FairGroup], int]] = {
    "group": lambda group: 0, "level": lambda group: group.level, "used": lambda group: -group.used_us,
    "waiting": lambda group: -group.waiting, "running": lambda group: -group.running,
}
HELD_BACK = "held back"     # sorts those that are held back first, those with the most waiting jobs before others
BEFORE = 1 << 60

COLUMNS = (*SORTS, "weight", "limit", "rate", "held back by")


async def show(view: View) -> str:
    """Return the list of groups, or one group if the address names it. Raises NotAllowed and NotThere."""
    if view.word("name"):
        return await one_group.show(view)
    machine = view.cluster.machine
    settings = listings.settings_of_fair(machine.fair_settings)
    return page(
        view, "Groups",
        None if machine.fair_used else tag(
            "p", "No fair shares are in use, so no group has used time: that begins with the first PUT .. GROUP, "
                 "GET .. BY FAIR or QUEUE CONFIG .. SCHED FAIR."),
        *await _groups(view),
        section("Levels", await table(
            ("level", "time", "groups that wait", "choices"), _levels(view),
            "A group that has used more time is on a higher level, where its share is smaller.",
        )),
        section("Limit a group", form(
            view, "group.config", "Set", None, field("group", "Group", required=True), one_group.settings_field(),
            back="/groups",
        )) if view.visitor.admin else None,
        section("Settings", pairs([(key, value) for key, value in settings]), form(
            view, "fair.config", "Change", None,
            field("settings", "As in SCHED CONFIG", required=True, placeholder="CAP 30 MULTIPLIER 2"), back="/groups",
        ) if view.visitor.admin else None),
    )


def _levels(view: View) -> Iterator[list[Child]]:
    for one in view.cluster.machine.fair_levels():
        yield [one.level, _used(one.time_us), one.waiting, one.selected]


async def _groups(view: View) -> list[Child]:
    """Return the list of the groups that the visitor may see. Without any, the visitor has to know a group's name."""
    word, sort = view.word("search"), view.word("sort", HELD_BACK)
    mine = view.visitor.rights.group
    if not mine:
        return [search("/groups", word, "Name of a group"),
                await table(COLUMNS, _rows(view, [word]), "the group of this name") if word else None]
    machine, now = view.cluster.machine, view.cluster.time_ms
    rank = SORTS.get(sort, SORTS["group"])

    def found(name: str) -> int | None:
        if word not in name or not name.startswith(mine):
            return None
        group = machine.fair_group(name, now)
        counts = machine.group_counts(name)
        if group is None and counts is None:
            return None
        group = group or FairGroup(0, 0, 0, 0, 0)
        if sort != HELD_BACK:
            return rank(group)
        held = counts is not None and one_group.held_back(view, name, counts)
        return -group.waiting - (BEFORE if held else 0)

    words = {"search": word, "sort": sort}
    listing = await listed(view, list(dict.fromkeys([*machine.fair_names(), *machine.group_names()])), found)
    titles = [*heads("/groups", words, tuple(SORTS)), *COLUMNS[len(SORTS):-1],
              *heads("/groups", words, (HELD_BACK,))]
    return [
        search("/groups", word, sort=sort),
        await table(titles, _rows(view, listing.names), counted(listing.count, "group"),
                    empty="There is no such group."),
        more("/groups", words, listing),
    ]


def _rows(view: View, names: Sequence[str]) -> Iterator[list[Child]]:
    machine = view.cluster.machine
    for name in names:
        used = machine.fair_group(name, view.cluster.time_ms)
        counts = machine.group_counts(name) if one_group.may_see(view, name) else None
        if used is None and counts is None:
            continue
        known: list[Child] = [0, FigureText(), FigureText("0"), 0]
        if used is not None:
            known = [used.level, _used(used.used_us), FigureText(f"{used.waiting:,}"), used.running]
        if counts is None:
            yield [[name, _of_queue(view, name)], *known, "", "", "", ""]
        else:
            its, rate = counts.settings, dict(listings.settings_of_group(counts.settings, view.cluster.time_ms))["RATE"]
            yield [
                link(f"/groups?{urlencode({'name': name})}", name), *known, FigureText(its.weight),
                FigureText(its.limit or ""), rate.lower() if its.rate else "",
                tag("strong", reasons, class_="mark") if (reasons := ", ".join(one_group.held_back(view, name, counts)))
                else "",
            ]


def _of_queue(view: View, name: str) -> Child:
    """Return a remark for the jobs of a queue that have no group: they share under the queue's name."""
    known = view.visitor.sees(name) and view.cluster.machine.counts(name) is not None
    return [" ", tag("small", "the queue's own group")] if known else None


def _used(us: int) -> FigureText:
    return FigureText(duration(us // 1000))
