"""The page of one group of jobs: its jobs and settings, the limits that hold it back, and actions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from urllib.parse import urlencode

from sockpqd.core import GroupCounts, GroupSettings
from sockpqd.gateway.dashboard.markup import Child, Markup, link, pairs, tag
from sockpqd.gateway.dashboard.pages.parts.view import (
    NotAllowed,
    NotThere,
    View,
    counted,
    details,
    duration,
    field,
    form,
    page,
    section,
)

QUEUES = 50                 # that are named of those in which the group has jobs


async def show(view: View) -> str:
    """Return the page. Raises NotThere and NotAllowed."""
    name, cluster = view.word("name"), view.cluster
    if not may_see(view, name):
        raise NotAllowed
    counts, used = cluster.machine.group_counts(name), cluster.machine.fair_group(name, cluster.time_ms)
    if counts is None and used is None:
        raise NotThere(f"There is no group {name}.", ("/groups", "Groups"))
    known: list[tuple[str, Child]] = []
    if used is not None:
        known = [("level", used.level), ("used", duration(used.used_us // 1000)), ("waiting", used.waiting),
                 ("running", used.running)]
    reasons = [] if counts is None else held_back(view, name, counts)
    return page(
        view, f"Group {name}",
        section("Held back by", tag("p", ", ".join(reasons) or "nothing that is a setting of this group")),
        section("Jobs", pairs(known), tag("p", "In the queues ", list(_queues(view, name)))) if known else None,
        section("Settings", pairs(_settings(cluster.machine.group_settings(name)))),
        section("Actions", list(_actions(view, name))) if view.visitor.admin else None, above=("/groups", "Groups"),
    )


def _settings(its: GroupSettings) -> Iterator[tuple[str, Child]]:
    """Yield the settings in words, including what it means that one is not set."""
    yield "running", f"at most {counted(its.limit, 'job')} at a time" if its.limit else "any number of jobs at a time"
    yield "rate", f"{counted(its.rate, 'job')} in {duration(its.per_ms)}" if its.rate else "any number of jobs a second"
    yield "weight", f"{its.weight}, so large is its share beside others" if its.weight != 1 else "1, an ordinary share"
    yield "paused", "no" if not its.paused else "for a time" if its.pause_ends_ms else "until it is resumed"


def may_see(view: View, name: str) -> bool:
    """Return whether the visitor may see jobs and settings of the group."""
    return name.startswith(view.visitor.rights.group)


def held_back(view: View, name: str, counts: GroupCounts) -> list[str]:
    """Return, in words, which settings hold the group back at present, and for how long."""
    its, now, reasons = counts.settings, view.cluster.time_ms, []
    if its.paused:
        reasons.append(f"a pause, {duration(max(0, its.pause_ends_ms - now))} more" if its.pause_ends_ms else "a pause")
    if 0 < its.limit <= counts.running:
        reasons.append(f"its limit, as {counts.running} run")
    opens_ms = view.cluster.machine.group_rate_opens_ms(name)
    if opens_ms is not None:
        reasons.append(f"its rate, {duration(max(0, opens_ms - now))} more")
    return reasons


def _queues(view: View, name: str) -> Iterator[Child]:
    queues = view.cluster.machine.queues_of_group(name)
    for queue in islice((one for one in queues if view.visitor.sees(one)), QUEUES):
        yield [link(f"/queue?{urlencode({'name': queue})}", queue), " "]


def _actions(view: View, name: str) -> Iterator[Markup]:
    back, its = f"/groups?{urlencode({'name': name})}", {"group": name}
    yield details("Pause and resume", form(
        view, "group.pause", "Pause", its, field("seconds", "For seconds, empty: until it is resumed"), back=back,
    ), form(view, "group.resume", "Resume", its, back=back))
    yield details("Change settings", form(
        view, "group.config", "Change", its, settings_field(), back=back,
    ))
    yield details("Delete settings and pause", form(view, "group.delete", "Delete", its, back="/groups"))


def settings_field() -> Markup:
    """Return the field for the settings of a group."""
    return field("settings", "Settings, as in GROUP CONFIG", required=True, placeholder="LIMIT 5 RATE 100 PER 60")
