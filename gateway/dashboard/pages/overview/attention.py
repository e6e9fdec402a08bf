"""Finds the problems of all that the visitor may see, for the first page."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator
from heapq import nlargest
from urllib.parse import urlencode

from sockpqd.cluster import Figures, NodeStatus
from sockpqd.core import OWN_PREFIX, SEQ_BITS, RunningJob
from sockpqd.gateway.auth.permissions import owner_of
from sockpqd.gateway.dashboard.markup import link
from sockpqd.gateway.dashboard.pages.group import held_back
from sockpqd.gateway.dashboard.pages.parts.growth import growth
from sockpqd.gateway.dashboard.pages.parts.nodes import NEAR
from sockpqd.gateway.dashboard.pages.parts.trouble import (
    Concern,
    backlog,
    dead_jobs,
    died_elsewhere,
    paused,
    queue_link,
)
from sockpqd.gateway.dashboard.pages.parts.view import View, counted, duration, size

NAMED_MAX = 5               # of each kind; the others are a number
GROUPS_PER_PORTION = 50     # groups whose jobs are counted, and
NAMES_PER_PORTION = 200     # queues, groups or pulses looked at before others have a turn
COURSES_PER_PORTION = 5
JOBS_PER_PORTION = 2000
UNLEASED_MS = 3_600_000     # so is one without a lease that was put before that
SILENT_MS = 6_000           # workers are heard every two seconds
CLOCK_MS = 1_000            # clocks that differ by more
LAG_MAX = 1_000             # entries
NEAR_DISK = 2               # times what it needs: a node with less disk left is near that
EXPIRY_S = 14 * 86_400      # certificates that expire sooner


async def concerns(view: View, nodes: list[NodeStatus], figures: Figures) -> list[Concern]:
    """Return the problems that the visitor may see, severe ones first."""
    found = [*_nodes(view, nodes, figures), *await _backlogs(view), *await _dead(view), *await _paused(view),
             *await _groups(view), *await _pulses(view), *_workers(view), *await _unleased(view), *_certificates(view)]
    return sorted(found, key=lambda concern: not concern.severe)


def _nodes(view: View, nodes: list[NodeStatus], figures: Figures) -> Iterator[Concern]:
    for node in nodes:
        if node.role == "DOWN":
            yield Concern("down", [link("/cluster", node.name), " does not answer"], severe=True)
        elif node.online is False:
            yield Concern("offline", [link("/cluster", node.name), " is switched offline"])
        elif (node.lag or 0) > LAG_MAX:
            yield Concern("behind", [link("/cluster", node.name), f" is {node.lag:,} entries behind"])
        if node.ahead_ms is not None and abs(node.ahead_ms) > CLOCK_MS:
            yield Concern("clock", [f"the clock of {node.name} is {duration(abs(node.ahead_ms))} "
                                    f"{'ahead' if node.ahead_ms > 0 else 'behind'}"])
        yield from _room(node)
    if figures.full:
        yield Concern("full", "no jobs are taken: memory or disks are full", severe=True)
    if figures.rejoining:
        yield Concern("rejoining", f"{view.cluster.name} has set damaged files aside and does not vote yet")


def _room(node: NodeStatus) -> Iterator[Concern]:
    """Find a node, of all that answer, that is beyond its limit of memory or disk, or will be soon."""
    its = None if node.role == "DOWN" else node.host
    if its is None:
        return
    name, used, mark = link("/cluster", node.name), its.memory_used_bytes, its.memory_mark_bytes
    if mark and used > mark * NEAR:
        over = f"more than its mark, {size(mark)}" if used > mark else f"near its mark, {size(mark)}"
        yield Concern("memory", [name, f" uses {size(used)} of memory, {over}"], severe=used > mark)
    left, least = its.disk_free_bytes, its.disk_free_bytes_min
    if left < least * NEAR_DISK:
        yield Concern("disk", [name, f" has only {size(left)} of disk left and needs {size(least)}"],
                      severe=left < least)


async def _dead(view: View) -> list[Concern]:
    machine = view.cluster.machine
    found: list[tuple[int, str]] = []
    for at, name in enumerate(machine.names_with_dead(), start=1):
        counts = machine.counts(name)
        if counts is not None and counts.dead and view.visitor.sees(name):
            found.append((counts.dead, name))
        if at % NAMES_PER_PORTION == 0:
            await asyncio.sleep(0)
    shown = nlargest(NAMED_MAX, found)
    lines = list[Concern]()
    for count, name in shown:
        lines.append(await dead_jobs(view, name, count))
    if len(found) > len(shown):
        rest = sum(count for count, _ in found) - sum(count for count, _ in shown)
        lines.append(Concern("dead", [link("/dead", counted(rest, "dead job")), " of ",
                                      counted(len(found) - len(shown), "other queue")], severe=True))
    return lines


async def _backlogs(view: View) -> list[Concern]:
    """Find queues whose backlog grows, as far as their course is known, and others whose oldest job is old.

    The worst are those whose jobs nobody takes.
    """
    growing: list[tuple[int, str]] = []
    for at, name in enumerate(list(view.samples.queues.courses), start=1):
        grew = growth(view, name) if view.visitor.sees(name) else None
        if grew is not None and died_elsewhere(view, name) is None:
            growing.append((grew.jobs, name))
        if at % COURSES_PER_PORTION == 0:
            await asyncio.sleep(0)
    fastest = await _waiting(view, [name for _, name in sorted(growing, reverse=True)])
    oldest = [name for _, name in view.samples.oldest.longest if name not in fastest and view.visitor.sees(name)]
    return [*fastest.values(), *(await _waiting(view, oldest)).values()]


async def _waiting(view: View, names: Iterable[str]) -> dict[str, Concern]:
    """Return the problems of the first of these queues that have one; paused queues have a line of their own."""
    machine, found = view.cluster.machine, dict[str, Concern]()
    for at, name in enumerate(names, start=1):
        now_ms = view.cluster.time_ms
        settings, figures = machine.queue_settings(name), machine.stat(name, now_ms)
        if figures is not None and not (settings is not None and settings.paused_out):
            concern = backlog(view, name, dict(figures), machine.history(name, now_ms).oldest_ms)
            if concern is not None:
                found[name] = concern
        if len(found) == NAMED_MAX:
            break
        if at % COURSES_PER_PORTION == 0:
            await asyncio.sleep(0)
    return found


async def _paused(view: View) -> list[Concern]:
    machine, found = view.cluster.machine, []
    for at, name in enumerate(machine.all_queue_names(), start=1):
        settings = machine.queue_settings(name)
        if settings is not None and (settings.paused_in or settings.paused_out) and view.visitor.sees(name):
            found.append((name, settings.paused_in, settings.paused_out))
        if at % NAMES_PER_PORTION == 0:
            await asyncio.sleep(0)
    found = list(dict.fromkeys(found))
    lines = [paused(view, name, into=into, out=out) for name, into, out in found[:NAMED_MAX]]
    if len(found) > NAMED_MAX:
        lines.append(Concern("paused", [link("/queues?state=paused", counted(len(found) - NAMED_MAX, "other queue"))]))
    return lines


async def _groups(view: View) -> list[Concern]:
    machine, found = view.cluster.machine, list[tuple[int, str, str]]()
    for at, name in enumerate(list(machine.groups_with_settings()), start=1):
        counts = machine.group_counts(name) if name.startswith(view.visitor.rights.group) else None
        if counts is not None:
            reasons = held_back(view, name, counts)
            if reasons and (counts.settings.paused or counts.ready):
                found.append((counts.ready, name, ", and ".join(reasons)))
        if at % GROUPS_PER_PORTION == 0:
            await asyncio.sleep(0)
    shown = nlargest(NAMED_MAX, found)
    lines = [Concern("held back", ["the group ", link(f"/groups?{urlencode({'name': name})}", name), f" by {reason}; ",
                                   f"{counted(waiting, 'job')} of it {'waits' if waiting == 1 else 'wait'}"])
             for waiting, name, reason in shown]
    if len(found) > NAMED_MAX:
        rest = counted(len(found) - NAMED_MAX, "other group")
        lines.append(Concern("held back", [link("/groups?sort=held+back", rest)]))
    return lines


async def _pulses(view: View) -> list[Concern]:
    lines: list[Concern] = []
    now_ms = view.cluster.time_ms
    for at, (name, pulse) in enumerate(list(view.cluster.machine.pulses.items()), start=1):
        if pulse.sleep_until_ms > now_ms and view.visitor.sees(name.removeprefix(OWN_PREFIX)):
            shown = name.replace(OWN_PREFIX, "of queue ", 1)
            lines.append(Concern("asleep", [
                "the pulse ", link("/pulses", shown), f" gives no grants for {duration(pulse.sleep_until_ms - now_ms)}",
            ]))
        if at % NAMES_PER_PORTION == 0:
            await asyncio.sleep(0)
    return lines[:NAMED_MAX]


def _workers(view: View) -> Iterator[Concern]:
    machine, now_ms = view.cluster.machine, view.cluster.time_ms
    silent = [
        one for one in machine.workers()
        if now_ms - one.beat_ms > SILENT_MS and (view.visitor.admin or owner_of(machine, one) == view.visitor.user)
    ]
    for one in silent[:NAMED_MAX]:
        yield Concern("silent", ["the worker ", link("/workers", one.name),
                                 f" was last heard {duration(now_ms - one.beat_ms)} ago"])


async def _unleased(view: View) -> list[Concern]:
    """Find jobs that run without a lease and were put long ago: if their workers are dead, nothing puts them back."""
    machine = view.cluster.machine
    before_ms = view.cluster.time_ms - UNLEASED_MS
    found: dict[str, int] = {}
    jobs: list[RunningJob] = machine.running()
    for at, job in enumerate(jobs, start=1):
        if job.deadline_ms is None and job.session is None and job.seq >> SEQ_BITS < before_ms \
                and view.visitor.sees(job.queue):
            found[job.queue] = found.get(job.queue, 0) + 1
        if at % JOBS_PER_PORTION == 0:
            await asyncio.sleep(0)
    return [
        Concern("no lease", [counted(count, "job"), " of ", queue_link(name, tab="RUNNING"),
                             f" put over an hour ago {'runs' if count == 1 else 'run'} without a lease: "
                             f"a dead worker would keep {'it' if count == 1 else 'them'}"])
        for name, count in nlargest(NAMED_MAX, found.items(), key=lambda item: item[1])
    ]


def _certificates(view: View) -> Iterator[Concern]:
    now_s = time.time()
    for name, expires_s in view.certificates():
        if expires_s - now_s < EXPIRY_S:
            left_s = expires_s - now_s
            yield Concern("expires", f"the certificate {name} of {view.cluster.name} " + (
                "has expired" if left_s <= 0 else f"expires in {counted(round(left_s / 86_400), 'day')}"
            ), severe=left_s <= 0)
