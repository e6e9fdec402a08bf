"""Groups of jobs as tenants, with their limits, rates and pauses; and fair shares among them."""

from __future__ import annotations

from functools import partial
from operator import attrgetter

from pydantic import Field
from starlette.responses import Response

from sockpq_http.exchange.caller import Calling, answer, given
from sockpq_http.problems.problem import Problem
from sockpq_http.routes.queues import Prefix, SettingsView
from sockpq_http.routes.running import changed_answer
from sockpq_http.values.model import Model, View
from sockpq_http.values.names import Group
from sockpq_http.values.times import Span


class GroupSettings(Model):
    """Settings of a group; one that is not given stays as it is, 0 removes a limit or a rate."""

    limit: int | None = Field(default=None, ge=0, description="How many of its jobs may run at a time.")
    rate: int | None = Field(default=None, ge=0, description="Hand-outs in `per` seconds.")
    per: Span | None = None
    weight: int | None = Field(default=None, ge=1, le=1000, description="Its share, as a multiple of that of weight 1.")


class PauseGroup(Model):
    """The length of a pause of a group."""

    seconds: Span | None = Field(default=None, description="None: until it is resumed.")


class FairSettings(Model):
    """Settings of fair shares; one that is not given stays as it is."""

    levels: list[int] | None = Field(default=None, min_length=1, max_length=100)
    cap: Span | None = None
    multiplier: int | None = Field(default=None, ge=1, le=100)
    group_keep: Span | None = None


class GroupConfigView(View):
    """The settings of a group."""

    limit: int
    rate: int
    per: float
    weight: int
    paused: bool
    pause_left: int


class GroupView(GroupConfigView):
    """A group: its jobs and its settings."""

    name: str
    ready: int
    delayed: int
    running: int


class GroupsView(View):
    """A list of groups."""

    groups: list[GroupView]


class ShareView(View):
    """The time that a group has used, and its jobs."""

    level: int
    used_us: int
    priority_us: int
    waiting: int
    running: int


class LevelView(View):
    """One level of fair shares."""

    level: int
    time_us: int
    waiting: int
    selected: int


class LevelsView(View):
    """The levels of fair shares."""

    levels: list[LevelView]


async def list_(caller: Calling, prefix: Prefix = "") -> Response:
    """List the groups that have jobs or settings, in the order of their names."""
    return await caller.listed(
        "groups", partial(caller.client.groups, prefix), lambda one: GroupView(**one._asdict()),
        key=attrgetter("name"),
    )


async def get(caller: Calling, group: Group) -> Response:
    """Return the settings of a group."""
    return answer(GroupConfigView(**(await caller.client.group_config(group))._asdict()))


async def configure(caller: Calling, group: Group, settings: GroupSettings) -> Response:
    """Change settings of a group."""
    options = given(limit=settings.limit, rate=settings.rate, per=settings.per, weight=settings.weight)
    if not options:
        raise Problem(400, "give a setting to change", "not-valid")
    return answer(GroupConfigView(**(await caller.client.group_config(group, **options))._asdict()))


async def pause(caller: Calling, group: Group, how: PauseGroup | None = None) -> Response:
    """Hand out no more jobs of a group."""
    await caller.client.group_pause(group, seconds=how.seconds if how else None)
    return changed_answer()


async def resume(caller: Calling, group: Group) -> Response:
    """End the pause of a group."""
    await caller.client.group_resume(group)
    return changed_answer()


async def delete(caller: Calling, group: Group) -> Response:
    """Remove the settings and the pause of a group; its jobs stay."""
    await caller.client.group_delete(group)
    return changed_answer()


async def share(caller: Calling, group: Group) -> Response:
    """Return the time that a group has used so far, for fair shares."""
    return answer(ShareView(**(await caller.client.sched_group(group))._asdict()))


async def levels(caller: Calling) -> Response:
    """List the levels of fair shares."""
    return answer(LevelsView(levels=[LevelView(**one._asdict()) for one in await caller.client.sched_levels()]))


async def fair_config(caller: Calling) -> Response:
    """Return the settings of fair shares."""
    return answer(SettingsView(settings=await caller.client.sched_config()))


async def configure_fair(caller: Calling, settings: FairSettings) -> Response:
    """Change settings of fair shares."""
    options = given(
        levels=settings.levels, cap=settings.cap, multiplier=settings.multiplier, group_keep=settings.group_keep
    )
    if not options:
        raise Problem(400, "give a setting to change", "not-valid")
    return answer(SettingsView(settings=await caller.client.sched_config(**options)))
