"""The page of dead jobs: their numbers by queue and reason, when they died, and buttons that put them back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from heapq import nlargest
from itertools import islice
from urllib.parse import urlencode

from msgspec import Struct

from sockpqd.core import SEQ_BITS, JobState, Place
from sockpqd.gateway.dashboard.markup import Child, FigureText, link, table, tag
from sockpqd.gateway.dashboard.pages.parts.timeline import when
from sockpqd.gateway.dashboard.pages.parts.view import View, counted, form, page, search

QUEUES_MAX = 50             # shown: those with the most dead jobs
REASONS_MAX = 20            # of a queue, those of which most died
LOOKED_MAX = 20_000         # dead jobs of a page whose reasons are looked at
NAMES_PER_PORTION = 200     # queues looked at before others have a turn,
JOBS_PER_PORTION = 300      # and jobs
NO_REASON = "no reason given"
ERROR_BYTES = 300           # the end of an error in which its last line is looked for


class Deaths(Struct):
    """The dead jobs of one queue that have one reason. Times are replicated milliseconds."""

    queue: str
    reason: str
    first_ms: int
    last_ms: int
    example: tuple[str, int]        # the place of the last one: queue and seq
    count: int = 0


async def show(view: View) -> str:
    word = view.word("search")
    total, count, shown = await _queues(view, word)
    rows: list[list[Child]] = []
    left = LOOKED_MAX
    for dead, name in shown:
        causes, looked = await _causes(view, name, left)
        left -= looked
        await asyncio.sleep(0)
        for row in _rows(view, name, dead, causes, complete=looked >= dead):
            rows.append(row)
            await asyncio.sleep(0)
    return page(
        view, "Dead jobs",
        tag("p", "Jobs whose last attempt failed, or that a worker buried. They wait in the dead-letter queue of their "
                 "queue until somebody puts them back, those first that died first."),
        search("/dead", word, "Queue has"),
        await table(("queue", "died of", "jobs", "first", "last", "example", ""), rows,
                    f"{counted(total, 'dead job')} of {counted(count, 'queue')}"
                    + (f"; the {QUEUES_MAX} with the most are shown" if count > len(shown) else ""),
                    empty="No job is dead."),
    )


async def _queues(view: View, word: str) -> tuple[int, int, list[tuple[int, str]]]:
    """Return the numbers of dead jobs and of queues that the visitor sees and whose names contain `word`.

    Also returns the queues to show, with the number of their dead jobs.
    """
    machine, total, queues = view.cluster.machine, 0, 0
    most: list[tuple[int, str]] = []
    names = iter(machine.names_with_dead())
    while portion := list(islice(names, NAMES_PER_PORTION)):
        found = [
            (counts.dead, name) for name in portion
            if word in name and view.visitor.sees(name) and (counts := machine.counts(name)) is not None and counts.dead
        ]
        total += sum(dead for dead, _ in found)
        queues += len(found)
        most = nlargest(QUEUES_MAX, most + found)
        await asyncio.sleep(0)
    return total, queues, most


async def _causes(view: View, queue: str, most: int) -> tuple[list[Deaths], int]:
    """Group the dead jobs of the queue by their reason; also returns how many were inspected, at most `most`."""
    found: dict[tuple[str, str], Deaths] = {}      # by the reason, and where they lie
    jobs = view.cluster.machine.next_jobs(queue, JobState.DEAD, most, [])
    for at, job in enumerate(jobs, start=1):
        reason = (None if job.extras is None else job.extras.reason) or NO_REASON
        died_ms = job.seq >> SEQ_BITS           # with its place in the dead-letter queue it got the time
        one = found.get((reason, job.queue))
        if one is None:
            one = found[reason, job.queue] = Deaths(queue, reason, died_ms, died_ms, (job.queue, job.seq))
        one.count += 1
        one.first_ms = min(one.first_ms, died_ms)
        if died_ms >= one.last_ms:
            one.last_ms, one.example = died_ms, (job.queue, job.seq)
        if at % JOBS_PER_PORTION == 0:
            await asyncio.sleep(0)
    return sorted(found.values(), key=lambda one: -one.count), len(jobs)


def _rows(view: View, queue: str, count: int, causes: Sequence[Deaths], *, complete: bool) -> Iterator[list[Child]]:
    """Return a row for each reason; the first one has the queue, and the button for all its dead jobs."""
    manages = view.visitor.manages(queue)
    kick = form(
        view, "job.kick", f"Retry all {count:,} of {queue}" if count > 1 else "Retry it",
        {"queue": queue, "count": str(count)}, back="/dead",
    ) if manages else ""
    named: Child = link(f"/queue?{urlencode({'name': queue})}", queue)
    if not causes:              # of so many jobs that there was no time for these
        yield [named, "not looked at", FigureText(f"{count:,}"), "", "", "", kick]
    for at, one in enumerate(causes[:REASONS_MAX]):
        place = urlencode({"queue": one.example[0], "seq": one.example[1]})
        retry = form(view, "jobs.retry", f"Retry {'' if complete else 'at least '}{one.count:,}", {
            "queues": one.example[0], "states": "DEAD", "died_in": queue,
            **({"unreasoned": "yes"} if one.reason == NO_REASON else {"reason": one.reason}),
        }, back="/background") if manages and len(causes) > 1 else ""
        yield [
            named if at == 0 else "", [tag("strong", one.reason), _last_line(view, one)],
            FigureText(f"{'' if complete else 'at least '}{one.count:,}"),
            when(view, one.first_ms), when(view, one.last_ms),
            tag("span", link(f"/job?{place}", "the last one"), class_="whole")
            if view.visitor.manages(one.example[0]) else "",
            [retry, kick if at == 0 else None],
        ]
    if len(causes) > REASONS_MAX:
        rest = sum(one.count for one in causes[REASONS_MAX:])
        yield ["", counted(len(causes) - REASONS_MAX, "other reason"), FigureText(f"{rest:,}"), "", "", "", ""]


def _last_line(view: View, one: Deaths) -> Child:
    """Return the last line of the example's error, which says most in a traceback, if the visitor may see the job."""
    error = view.cluster.machine.error(Place(*one.example)) if view.visitor.manages(one.example[0]) else None
    if not isinstance(error, bytes):            # there is none, or it is on the disk
        return None
    lines = error[-ERROR_BYTES:].decode("utf-8", "replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), None)
    return tag("small", last, class_="cause") if last else None
