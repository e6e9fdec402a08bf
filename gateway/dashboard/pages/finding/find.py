"""The page of the search field: jobs with this number, id or key, and queues whose names have the word."""

from __future__ import annotations

import asyncio
from heapq import nsmallest
from itertools import islice
from urllib.parse import urlencode

from sockpqd.core import JobView, Number, Selector
from sockpqd.gateway.dashboard.markup import Child, link, table, tag
from sockpqd.gateway.dashboard.pages.parts.badge import badge
from sockpqd.gateway.dashboard.pages.parts.body import preview
from sockpqd.gateway.dashboard.pages.parts.trouble import queue_link
from sockpqd.gateway.dashboard.pages.parts.view import Redirect, View, counted, page, section
from sockpqd.gateway.dashboard.pages.queue import address, label, named, state_of

NAMES_PER_PORTION = 100     # queues in which a key is looked for before others have a turn
QUEUES_MAX = JOBS_MAX = 50  # shown
NUMBER_DIGITS_MAX = 19


async def show(view: View) -> str:
    """Return the page. Raises Redirect if a single job is all that is found."""
    word = view.word("search").strip()
    count, queues, jobs = await _matches(view, word) if word else (0, [], [])
    jobs = [*_numbered(view, word), *jobs]
    if len(jobs) == 1 and not queues and named(jobs[0]):
        raise Redirect(f"/job?{address(jobs[0])}")
    await asyncio.sleep(0)
    nothing = None if queues or jobs or not word else tag(
        "p", f"No job that you may see has the number, id or key {word}, and no queue has it in its name.",
        class_="empty")
    in_table = link(f"/queues?{urlencode({'search': word})}", f"All {count:,} in the table of queues")
    listed = section("Queues", tag("ul", [tag("li", queue_link(name)) for name in queues]), tag("p", in_table)) \
        if queues else None
    await asyncio.sleep(0)
    return page(
        view, "Find",
        nothing if word else tag("p", "Type the number, id or key of a job, or a part of a queue's name."),
        section("Jobs", await table(
            ("job", "queue", "state", "reason", "body"), [_row(job) for job in jobs[:JOBS_MAX]],
            f"the first {JOBS_MAX} jobs" if len(jobs) >= JOBS_MAX else counted(len(jobs), "job"), sparse=True,
        )) if jobs else None,
        listed,
    )


def _numbered(view: View, word: str) -> list[JobView]:
    """Return the job with this number, even if it has ended, and the job with this id."""
    if not (word.isascii() and word.isdigit() and len(word) <= NUMBER_DIGITS_MAX):
        return []
    machine, number = view.cluster.machine, int(word)
    found = [machine.peek(Number(number)) or machine.ended(number), machine.peek(Selector(id=number))]
    return [job for job in found if job is not None and view.visitor.manages(job.queue)]


async def _matches(view: View, word: str) -> tuple[int, list[str], list[JobView]]:
    """Return the queues whose names contain the word, and the jobs that have it as their key.

    For queues: their number, and the first names, with an exact match before the others. For jobs: as many as are
    shown.
    """
    machine = view.cluster.machine
    seen: set[str] = set()
    count, queues, jobs = 0, list[str](), list[JobView]()
    left = machine.all_queue_names()        # some perhaps twice
    while portion := list(islice(left, NAMES_PER_PORTION)):
        names = [name for name in dict.fromkeys(portion) if name not in seen]
        seen.update(names)
        found = [name for name in names if word in name and view.visitor.sees(name)]
        count += len(found)
        queues = nsmallest(QUEUES_MAX, [*queues, *found], key=lambda name: (name != word, name))
        for name in names:
            if len(jobs) < JOBS_MAX and view.visitor.manages(name):
                job = machine.peek(Selector(queue=name, key=word))
                if job is not None:
                    jobs.append(job)
        await asyncio.sleep(0)
    return count, queues, jobs


def _row(job: JobView) -> list[Child]:
    return [
        link(f"/job?{address(job)}", label(job)), queue_link(job.queue), badge(state_of(job)), job.reason,
        preview(job.body()),
    ]
