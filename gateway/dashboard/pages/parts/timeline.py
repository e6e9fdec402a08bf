"""The events of a job that the cluster keeps: nearly all for numbered jobs, only the place for others."""

from __future__ import annotations

from collections.abc import Iterator

from sockpqd.core import SEQ_BITS, EndState, JobState, JobView
from sockpqd.gateway.dashboard.markup import Child, Markup, tag
from sockpqd.gateway.dashboard.pages.parts.view import View, counted, duration


def timeline(view: View, job: JobView) -> Markup:
    """Return the dated events of a job in order, and the counts of its other events."""
    moments = sorted(_moments(job), key=lambda moment: moment[0])
    often = list(_often(job))
    return tag(
        "div", tag("ol", [tag("li", when(view, at_ms), ": ", what) for at_ms, what in moments], class_="timeline"),
        tag("p", ", ".join(often), _of_last_only(job)) if often else None,
    )


def _of_last_only(job: JobView) -> str | None:
    """Describe what is not kept of the job's earlier attempts, if it had any."""
    if job.reason is not None and job.attempts > 1:
        return ". The reason and the error are from the last attempt that gave any; earlier ones are not kept."
    retried = job.counts is not None and job.counts.kicks and job.counts.buries and not job.counts.died_ms
    return ". A retry starts it over: when and of what it died before is not kept." if retried else None


def when(view: View, time_ms: int) -> Markup:
    """Return how long ago, or in how long, that is; the script adds the time in the zone of the visitor."""
    since_ms = view.cluster.time_ms - time_ms
    said = f"in {duration(-since_ms)}" if since_ms < 0 else f"{duration(since_ms)} ago" if since_ms else "just now"
    return tag("time", said, data_ms=time_ms)


def _moments(job: JobView) -> Iterator[tuple[int, Child]]:
    life, counts = job.life, job.counts
    if life is not None:
        yield life.created_ms, "put"
        if life.first_ms is not None and life.first_ms != life.started_ms:
            yield life.first_ms, "handed out for the first time"
        if life.started_ms is not None:
            yield life.started_ms, "handed out" + ("" if life.taken == 1 else f" for the last time, of {life.taken}")
        if job.state is JobState.READY and job.seq >> SEQ_BITS > life.created_ms and job.origin is None:
            yield job.seq >> SEQ_BITS, "took its place in the queue again"
    elif job.seq and job.state not in EndState:
        yield job.seq >> SEQ_BITS, "died" if job.state is JobState.DEAD else "took its place in the queue"
    if counts is not None and counts.died_ms:
        yield counts.died_ms, ["died", f" of {job.reason}" if job.reason else ""]
    if job.ended_ms is not None:
        yield job.ended_ms, f"ended: {job.state.name.lower()}"
    if job.deadline_ms is not None:
        yield job.deadline_ms, "its lease ends"
    if job.due_ms is not None:
        yield job.due_ms, "it becomes ready"


def _often(job: JobView) -> Iterator[str]:
    counts, taken = job.counts, 0 if job.life is None else job.life.taken
    again = counts is not None and counts.kicks > 0
    yield counted(job.attempts, "attempt") + (f" since it was retried, {taken} in all" if again and taken else "")
    if counts is not None:
        for number, what in ((counts.timeouts, "lease ended"), (counts.releases, "put back"),
                             (counts.buries, "buried"), (counts.kicks, "retried")):
            if number:
                yield f"{what} {'once' if number == 1 else f'{number} times'}"
