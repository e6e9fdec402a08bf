"""Problems, as pages list them: a word, a sentence, and a link to a page with a remedy; and those of one queue."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import urlencode

from msgspec import Struct

from sockpqd.core import SEQ_BITS, JobState, QueueSettings
from sockpqd.gateway.dashboard.markup import Child, Markup, link, tag
from sockpqd.gateway.dashboard.pages.parts.growth import GROWS_MINUTES, growth
from sockpqd.gateway.dashboard.pages.parts.picture import amount
from sockpqd.gateway.dashboard.pages.parts.timeline import when
from sockpqd.gateway.dashboard.pages.parts.view import View, counted, duration

OLD_MS = 5 * 60_000         # a job that has been waiting longer is worth a line
DEAD_LOOKED = 1000          # dead jobs of a queue whose reasons are counted,
JOBS_PER_PORTION = 200      # and how many of them before others have a turn
REASONS_MAX = 2             # that are named
RECORDS_LOOKED = 8          # jobs of a queue, by which it is judged whether they are records


class Concern(Struct, frozen=True):
    """Something that needs attention. `severe`: work is held up or lost for somebody."""

    word: str
    sentence: Child
    severe: bool = False


def listed(found: Sequence[Concern]) -> Markup | None:
    """Return the list of these problems; None if there are none."""
    return tag("ul", [
        tag("li", tag("span", one.word, class_="word"), tag("span", one.sentence),
            class_="bad" if one.severe else "warn") for one in found
    ], class_="attention") if found else None


def queue_link(name: str, label: Child = None, **words: str) -> Markup:
    """Return a link to the page of a queue."""
    return link(f"/queue?{urlencode({'name': name, **words})}", name if label is None else label)


async def of_queue(view: View, name: str, figures: Mapping[str, int], settings: QueueSettings) -> list[Concern]:
    """Return the problems of one queue. `figures`: of QUEUE STAT."""
    found: list[Concern] = []
    if figures["DEAD"]:
        found.append(await dead_jobs(view, name, figures["DEAD"]))
    oldest_ms = view.cluster.machine.history(name, view.cluster.time_ms).oldest_ms
    waits = None
    if not settings.paused_out and died_elsewhere(view, name) is None:
        waits = backlog(view, name, figures, oldest_ms)
    found += [] if waits is None else [waits]
    if settings.paused_in or settings.paused_out:
        found.append(paused(view, name, into=settings.paused_in, out=settings.paused_out))
    return sorted(found, key=lambda concern: not concern.severe)


def died_elsewhere(view: View, name: str) -> str | None:
    """Return the queue whose dead jobs are in this one, by its first job; None if it is not a dead-letter queue."""
    first = view.cluster.machine.next_jobs(name, JobState.READY, 1, [])
    return first[0].extras.origin if first and first[0].extras is not None else None


async def dead_jobs(view: View, name: str, count: int) -> Concern:
    """Return how many jobs died in a queue, when the first of them did, and of what."""
    first = view.cluster.machine.next_jobs(name, JobState.DEAD, DEAD_LOOKED, [])
    await asyncio.sleep(0)
    # The place of a dead job dates from its death.
    since: Child = [", the first died ", when(view, first[0].seq >> SEQ_BITS)] if first else None
    reasons = Counter[str]()
    for at in range(0, len(first), JOBS_PER_PORTION):
        reasons.update(reason for job in first[at:at + JOBS_PER_PORTION]
                       if job.extras is not None and (reason := job.extras.reason))
        await asyncio.sleep(0)
    return Concern("dead", [
        link(f"/dead?{urlencode({'search': name})}", counted(count, "dead job")), " of ", queue_link(name), since,
        list(_of_what(reasons, count, len(first))),
    ], severe=True)


def _of_what(reasons: Counter[str], count: int, looked: int) -> Iterator[Child]:
    """Yield the most frequent reasons: with numbers, if all jobs that died were inspected."""
    most = reasons.most_common(REASONS_MAX)
    if not most:
        return
    if looked < count:
        yield [", mostly of ", tag("strong", most[0][0])]
    elif most[0][1] == count:
        yield [", of ", tag("strong", most[0][0])]
    else:
        yield [": ", [[", " * (at > 0), f"{number:,} of ", tag("strong", reason)]
                      for at, (reason, number) in enumerate(most)]]


def backlog(view: View, name: str, figures: Mapping[str, int], oldest_ms: int) -> Concern | None:
    """Return the problem of a queue whose jobs wait long or grow in number; None if it has none.

    `figures`: of QUEUE STAT; `oldest_ms`: the time for which its oldest job has been waiting.
    """
    ready, withheld, running = figures["READY"], figures["WITHHELD"], figures["RUNNING"]
    grew, old = growth(view, name), oldest_ms > OLD_MS
    taken = running > 0 or (grew is not None and grew.taken > 0)
    if old and ready > withheld and not taken:
        return None if _are_records(view, name) else Concern("no worker", [
            "nobody takes the jobs of ", queue_link(name), f": {_wait(ready)}, ", _oldest(view, oldest_ms),
            ", and none runs"], severe=True)
    held = f", {withheld:,} of them held back" if withheld else ""
    runs = f"; {counted(running, 'job')} {'runs' if running == 1 else 'run'}"
    if grew is not None and taken:
        return Concern("growing", [
            "in ", queue_link(name), f" {_wait(ready)}, {grew.jobs:,} more than {GROWS_MINUTES - 1} minutes ago, ",
            _oldest(view, oldest_ms), held, f"; {amount(grew.came, 'rate')} came and {amount(grew.taken, 'rate')} were "
            f"handed out{runs if running else ''}"])
    return Concern("waiting", [
        "in ", queue_link(name), f" {_wait(ready)}, ", _oldest(view, oldest_ms), held, runs]) if old else None


def _are_records(view: View, name: str) -> bool:
    """Return whether the first jobs of a queue are there to be looked up: each has a key, and goes by its TTL.

    Results of Celery and Django and what the inbox remembers are such jobs; nobody is to take them.
    """
    first = view.cluster.machine.next_jobs(name, JobState.READY, RECORDS_LOOKED, [])
    return all(job.extras is not None and job.extras.key is not None and job.extras.expires_at_ms is not None
               for job in first)


def paused(view: View, name: str, *, into: bool, out: bool) -> Concern:
    """Describe a paused queue: what it does not do, and how many jobs wait for the end of the pause."""
    stopped = "takes no jobs and hands none out" if into and out else "takes no jobs" if into else "hands out no jobs"
    machine = view.cluster.machine
    counts, oldest_ms = machine.counts(name), machine.history(name, view.cluster.time_ms).oldest_ms
    waiting = 0 if counts is None or not out else counts.ready
    return Concern("paused", [queue_link(name), f" {stopped}", [
        f": {_wait(waiting)}, ", _oldest(view, oldest_ms)] if waiting else None])


def _wait(count: int) -> str:
    return f"{counted(count, 'job')} {'waits' if count == 1 else 'wait'}"


def _oldest(view: View, oldest_ms: int) -> Child:
    since_ms = view.cluster.time_ms - oldest_ms
    return ["the oldest for ", tag("time", duration(oldest_ms), data_ms=since_ms, data_since="yes")]
