"""The settings of a queue in words: the effect of each, set or not set."""

from __future__ import annotations

from collections.abc import Iterator

from sockpqd.core import OWN_PREFIX, Order, Overflow, Pulse, QueueSettings, Sched, Then, dead_queue_of
from sockpqd.gateway.dashboard.markup import Child, Markup, pairs
from sockpqd.gateway.dashboard.pages.parts.view import View, counted, duration, size


def settings_in_words(view: View, name: str, settings: QueueSettings) -> Markup:
    """Return what the settings of a queue mean, with its rate."""
    pulse = None if settings.pulse is None else view.cluster.machine.pulses.get(settings.pulse)
    return pairs([
        *_of_attempts(view, name, settings), *_of_limits(settings), ("rate", _rate(pulse)), *_of_order(settings),
        *_of_ends(settings),
    ])


def _rate(pulse: Pulse | None) -> str:
    if pulse is None:
        return "any number of jobs a second"
    shared = "" if pulse.name.startswith(OWN_PREFIX) else f", by the pulse {pulse.name}, which others share"
    return f"at most {counted(pulse.rate, 'job')} in {duration(pulse.per_ms)}{', evenly' * pulse.spread}{shared}"


def _of_attempts(view: View, name: str, its: QueueSettings) -> Iterator[tuple[str, Child]]:
    then = view.cluster.machine.settings.expire_default if its.then is Then.DEFAULT else its.then
    ends = {Then.LATER: "the job waits again", Then.DONE: "the job counts as done", Then.DEAD: "the job is dead"}
    yield "lease", (
        f"{duration(its.expire_ms)} for a GET that names none; then {ends[then]}" if its.expire_ms
        else "none, unless a GET or the job names one: the job of a dead worker stays with it")
    yield "attempts", (
        f"{counted(its.tries, 'attempt')}, then the job lies dead in {its.dead or dead_queue_of(name)}" if its.tries
        else "as many as it takes: no job dies, unless its own TRIES say so or a worker buries it")
    yield "after a failed attempt", (
        f"it waits for {duration(its.backoff_ms)}, each time twice as long, at most {duration(its.backoff_max_ms)}"
        if its.backoff_ms else "it waits again at once, unless its worker says for how long")


def _of_limits(its: QueueSettings) -> Iterator[tuple[str, Child]]:
    yield "running", f"at most {counted(its.limit, 'job')} at a time" if its.limit else "any number of jobs at a time"
    if its.item_limit:
        yield "running of one item", f"at most {counted(its.item_limit, 'job')} at a time"
    full = "a PUT is refused" if its.overflow is Overflow.REFUSE else "the first job of the least priority makes room"
    yield "waiting", (
        f"at most {counted(its.capacity, 'job')}; beyond that {full}" if its.capacity else "any number of jobs")
    yield "size of a job", f"at most {size(its.data_bytes_max)}" if its.data_bytes_max else "what the server allows"
    if its.batch:
        yield "for one GET .. COUNT", f"at most {counted(its.batch, 'job')}"
    if its.alarm:
        yield "alarm", f"the event DEPTH when {counted(its.alarm, 'job')} wait, and when half of them do again"
    if its.error_bytes:
        yield "texts of errors", f"{size(its.error_bytes)} together; beyond that the oldest are dropped"


def _of_order(its: QueueSettings) -> Iterator[tuple[str, Child]]:
    yield "order of one priority", "as they came" if its.order is Order.FIFO else "by the time for which they were put"
    yield "next job", {
        Sched.FIFO: "the first one", Sched.FAIR: "of the group whose turn it is",
        Sched.GROUPS: "the first one whose group is not held back",
    }[its.sched]
    if its.group_limit:
        yield "running of one group", f"at most {counted(its.group_limit, 'job')} at a time in this queue"
    if its.group_rate:
        yield "rate of one group", f"{counted(its.group_rate, 'job')} in {duration(its.group_per_ms)}"
    if its.group_by:
        yield "group of a job", {"HEAD": f"its header {its.group_header}"}.get(
            its.group_by.name, f"its {its.group_by.name.lower()}")
    if its.group_order:
        yield "order of a group", "one after the other: a job that fails holds up those behind it"
    if its.weight != 1:
        yield "weight", f"{its.weight}, for the policy WEIGHT"


def _of_ends(its: QueueSettings) -> Iterator[tuple[str, Child]]:
    yield "jobs that nobody takes", f"expire after {duration(its.ttl_ms)}" if its.ttl_ms else "wait for ever"
    yield "records of ended jobs", (
        f"kept for {duration(its.retain_ms)}, at most {counted(its.retain_max, 'record')} "
        f"and {size(its.retain_bytes)}" if its.retain_ms else "none: what is done is gone")
    if its.numbered:
        yield "numbers", "each job gets one, by which it is found"
    if its.keep_ms:
        yield "keys of jobs that are done", f"taken for {duration(its.keep_ms)} more"
    if its.idle_ms:
        yield "when nobody uses it", f"the queue is deleted after {duration(its.idle_ms)}"
    if its.bound:
        yield "bound", "deleted with its jobs when the session of its client ends"
