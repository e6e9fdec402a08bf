"""Formats the lines of long answers: RUNLIST, TAKEN, PEEK, SESSION LIST, QUEUE LIST, QUEUE STAT and settings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import astuple

from sockpqd.core import (
    OWN_PREFIX,
    ClusterSettings,
    FairLevel,
    FairSettings,
    GroupCounts,
    GroupSettings,
    ItemCounts,
    ItemSummary,
    JobCounts,
    JobState,
    JobView,
    Pulse,
    QueueCounts,
    QueueSettings,
    RunningJob,
    Session,
    Then,
    WorkerPool,
    head_of,
)
from sockpqd.gateway.limits import SESSION_TTL_MS_DEFAULT
from sockpqd.gateway.protocol.responses import UNKNOWN
from sockpqd.gateway.protocol.tokens import meta, of_life, seconds, unix


def queue_lines(queues: Iterable[tuple[str, QueueCounts | None]]) -> bytes:
    """Format lines of QUEUE LIST: `<q> <ready> <delayed> <running> <dead> <buried>`; None: a queue gone by now."""
    lines = []
    for name, counts in queues:
        figures = (0,) * 5 if counts is None else astuple(counts)
        lines.append(" ".join((name, *map(str, figures))) + "\r\n")
    return "".join(lines).encode()


def item_lines(items: Iterable[tuple[str, ItemSummary | None]]) -> bytes:
    """Format lines of ITEM LIST: `<item> <unfinished> <dead> <held> <cancelling>`; None: it has ended by now."""
    lines = []
    for name, one in items:
        figures = (0, 0, 0, 0) if one is None else (one.unfinished, one.dead, int(one.held), int(one.cancelling))
        lines.append(" ".join((name, *map(str, figures))) + "\r\n")
    return "".join(lines).encode()


def of_item(counts: ItemCounts) -> list[tuple[str, object]]:
    """Return the figures of ITEM STAT."""
    return [
        ("READY", counts.ready),
        ("DELAYED", counts.delayed),
        ("RUNNING", counts.running),
        ("DEAD", counts.dead),
        ("BURIED", counts.buried),
        ("DONE", counts.done),
        ("CANCELLED", counts.cancelled),
        ("HELD", int(counts.held)),
        ("CANCELLING", int(counts.cancelling)),
        ("WAITERS", counts.waiters),
    ]


def group_lines(groups: Iterable[tuple[str, GroupCounts | None]], now_ms: int) -> bytes:
    """Format lines of GROUP LIST; None: a group that has ended by now."""
    lines = []
    for name, counts in groups:
        known = counts or GroupCounts(0, 0, 0, GroupSettings())
        its = known.settings
        lines.append(
            f"{name} READY {known.ready} DELAYED {known.delayed} RUNNING {known.running} WEIGHT {its.weight} "
            f"LIMIT {its.limit} RATE {its.rate}/{seconds(its.per_ms)} PAUSED {int(its.paused)} "
            f"PAUSE_LEFT_S {_pause_left_s(its, now_ms)}\r\n"
        )
    return "".join(lines).encode()


def _pause_left_s(settings: GroupSettings, now_ms: int) -> int:
    """Return the rest of the pause in whole seconds, rounded up; 0: it has no end, or there is no pause."""
    return max(0, -((now_ms - settings.pause_ends_ms) // 1000)) if settings.pause_ends_ms else 0


def settings_of_group(settings: GroupSettings, now_ms: int) -> list[tuple[str, str]]:
    """Return the settings of a group as GROUP CONFIG shows them."""
    return [
        ("LIMIT", str(settings.limit)),
        ("RATE", f"{settings.rate} PER {seconds(settings.per_ms)}" if settings.rate else "OFF"),
        ("WEIGHT", str(settings.weight)),
        ("PAUSED", str(int(settings.paused))),
        ("PAUSE_LEFT_S", str(_pause_left_s(settings, now_ms))),
    ]


def session_lines(sessions: Iterable[Session], now_ms: int) -> bytes:
    """Format lines of SESSION LIST: `<number> <user|-> <address|-> <ttl> <idle> <bound>`; never the secret."""
    return "".join(
        f"{one.number} {one.user or '-'} {one.address or '-'} {seconds(one.ttl_ms)} "
        f"{max(0, now_ms - one.used_ms) // 1000} {len(one.taken)}\r\n"
        for one in sessions
    ).encode()


def binding_lines(bindings: Iterable[tuple[str, str, str | None]]) -> bytes:
    """Format lines of TOPIC LIST: `<topic> <queue> [PATTERN <p>]`."""
    return "".join(
        f"{topic} {queue}\r\n" if pattern is None else f"{topic} {queue} PATTERN {pattern}\r\n"
        for topic, queue, pattern in bindings
    ).encode()


def worker_lines(workers: Sequence[WorkerPool], now_ms: int) -> bytes:
    """Format lines of WORKER LIST: `<name> <addr> <slots> <busy> <age> <state>`."""
    lines = []
    for one in workers:
        age_s = max(0, now_ms - one.beat_ms) // 1000
        lines.append(f"{one.name} {one.address or '-'} {one.slots} {one.busy} {age_s} {one.state.name}\r\n")
    return "".join(lines).encode()


def run_lines(jobs: Sequence[RunningJob], with_data: bool) -> bytes:
    """Format lines of RUNLIST; the expiry is Unix time in whole seconds, rounded up."""
    lines = []
    for job in jobs:
        length = f" {len(job.data) - head_of(job)}" if with_data else ""
        expire = "" if job.deadline_ms is None else f" EXPIRE {unix(job.deadline_ms)}"
        lines.append(f"{job.id} {job.queue} {job.priority}{length}{expire}\r\n")
    return "".join(lines).encode()


def fair_levels(levels: Sequence[FairLevel]) -> bytes:
    """Format the answer to SCHED SHOW."""
    lines = [
        f"LEVEL {one.level} TIME {one.time_us} WAITING {one.waiting} SELECTED {one.selected}\r\n" for one in levels
    ]
    return "".join((f"200 OK {len(lines)}\r\n", *lines)).encode()


def settings_of_fair(settings: FairSettings) -> list[tuple[str, str]]:
    """Return the settings of FAIR and their values, in the form SCHED CONFIG takes."""
    return [
        ("LEVELS", "|".join(map(str, settings.thresholds_s))),
        ("CAP", seconds(settings.cap_ms)),
        ("MULTIPLIER", str(settings.multiplier)),
        ("GROUPKEEP", seconds(settings.keep_ms)),
    ]


def seen(job: JobView, places: bool = False, head: bool = False, life: bool = False) -> str:
    """Format the line of PEEK for a job, `<q> <id|-> <p> <len> <state> [meta] [life] [SEQ <n>] [HEAD <h>]`, with all
    its meta tokens. `head`: the length is that of headers and body.
    """
    number = "-" if job.id is None else str(job.id)
    tokens = meta(
        job.item, job.key, job.attempts, job.reason, job.at_ms, job.deadline_ms, job.group, job.number, job.progress,
        job.ended_ms,
    )
    if life and job.life is not None:
        tokens += of_life(job.life)
    last = f" SEQ {job.seq}" if places else ""
    length = job.body_bytes
    if head:
        last, length = f"{last} HEAD {job.head}", len(job.data)
    return f"{job.queue} {number} {job.priority} {length} {job.state.name}{tokens}{last}\r\n"


def of_job(job: JobView, now_ms: int) -> list[tuple[str, object]]:
    """Return the figures of JOB STAT for a numbered job. `now_ms`: replicated time."""
    counts = job.counts or JobCounts()
    ends_ms = job.deadline_ms if job.state is JobState.RUNNING else job.due_ms
    return [
        ("QUEUE", job.queue),
        ("STATE", job.state.name),
        ("PRI", job.priority),
        ("LENGTH", job.body_bytes),
        ("CREATED", job.created_ms // 1000),
        ("AGE_S", max(0, now_ms - job.created_ms) // 1000),
        ("LEASE", UNKNOWN if job.own_lease_ms is None else seconds(job.own_lease_ms)),
        ("DELAY", seconds(counts.delay_ms)),
        ("LEFT_S", 0 if ends_ms is None else max(0, ends_ms - now_ms) // 1000),
        ("ATTEMPTS", job.attempts),
        ("RESERVES", counts.reserves),
        ("TIMEOUTS", counts.timeouts),
        ("RELEASES", counts.releases),
        ("BURIES", counts.buries),
        ("KICKS", counts.kicks),
        ("ERROR_LENGTH", job.error_bytes),
        ("DIED", counts.died_ms // 1000 if counts.died_ms else UNKNOWN),
    ]


def seen_lines(
    jobs: Iterable[JobView], places: bool = False, head: bool = False, life: bool = False,
) -> bytes:
    """Format the lines of PEEK; `places`: with the numbers of their places; `head`: as for data with headers; `life`:
    with the history of the numbered ones.
    """
    return "".join([seen(job, places, head, life) for job in jobs]).encode()


def names(names: Sequence[str]) -> bytes:
    """Format a line per name."""
    return "".join(f"{name}\r\n" for name in names).encode()


def user_lines(users: Iterable[tuple[str, str, str]]) -> bytes:
    """Format lines of USER LIST: name, rights and source of each user."""
    return "".join(f"{name} {rights} {source}\r\n" for name, rights, source in users).encode()


def pulse(pulse: Pulse, waiting: int | None, now_ms: int) -> list[tuple[str, str]]:
    """Return the figures of PULSE STAT. `waiting`: None on a node that does not know; `now_ms`: replicated time."""
    figures = [
        ("RATE", str(pulse.rate)),
        ("NOW", str(pulse.now)),
        ("PAUSE", seconds(pulse.pause_ms)),
        ("SLEEPUNTIL", str(unix(pulse.sleep_until_ms) if pulse.sleep_until_ms > now_ms else 0)),
        ("WAITING", "-" if waiting is None else str(waiting)),
        ("GRANTED", str(pulse.granted)),
        ("ERRORS", str(pulse.errors)),
        ("PER", seconds(pulse.per_ms)),
        ("STEP", seconds(pulse.step_ms)),
        ("MAXPAUSE", seconds(pulse.max_pause_ms)),
        ("MAXRUN", seconds(pulse.max_run_ms)),
        ("DENY", str(int(pulse.deny))),
        ("OPEN", str(sum(map(now_ms.__lt__, pulse.tickets.values())))),
    ]
    if pulse.together:
        figures += [("TOGETHER", "1"), ("MAXWAIT", seconds(pulse.max_wait_ms))]
    return [*figures, ("SPREAD", "1")] if pulse.spread else figures


def settings_of_queue(settings: QueueSettings) -> list[tuple[str, str]]:
    """Return a queue's settings and values, in the form QUEUE CREATE takes; 0 means no limit."""
    then = "" if settings.then is Then.DEFAULT else f" THEN {settings.then.name}"
    expire = f"{seconds(settings.expire_ms)}{then}" if settings.expire_ms else "0"
    dead = "" if settings.dead is None else f" DEAD {settings.dead}"
    backoff = f"{seconds(settings.backoff_ms)} {seconds(settings.backoff_max_ms)}" if settings.backoff_ms else "OFF"
    return [
        ("EXPIRE", expire),
        ("ORDER", settings.order.name),
        ("TRIES", f"{settings.tries}{dead}"),
        ("WEIGHT", str(settings.weight)),
        ("LIMIT", str(settings.limit)),
        ("ITEMLIMIT", str(settings.item_limit)),
        ("CAPACITY", str(settings.capacity)),
        ("MAXDATA", str(settings.data_bytes_max)),
        ("BATCH", str(settings.batch)),
        ("PORTION", str(settings.portion)),
        ("KEEP", seconds(settings.keep_ms)),
        ("TTL", seconds(settings.ttl_ms)),
        ("IDLE", seconds(settings.idle_ms)),
        ("OVERFLOW", settings.overflow.name),
        ("ALARM", str(settings.alarm)),
        ("BOUND", str(int(settings.bound > 0))),
        ("SCHED", settings.sched.name),
        ("BACKOFF", backoff),
        ("ERRORBYTES", str(settings.error_bytes)),
        ("DEDUPMAX", str(settings.dedup_max)),
        ("RETAIN", seconds(settings.retain_ms)),
        ("RETAINMAX", str(settings.retain_max)),
        ("RETAINBYTES", str(settings.retain_bytes)),
        ("NUMBERED", str(int(settings.numbered))),
        *_of_groups(settings),
    ]


def _of_groups(settings: QueueSettings) -> list[tuple[str, str]]:
    """Return the settings of a queue for its groups that are set."""
    shown = []
    if settings.group_limit:
        shown.append(("GROUPLIMIT", str(settings.group_limit)))
    if settings.group_rate:
        shown.append(("GROUPRATE", f"{settings.group_rate} PER {seconds(settings.group_per_ms)}"))
    if settings.group_by:
        shown.append(("GROUPBY", f"{settings.group_by.name} {settings.group_header}".rstrip()))
    if settings.group_order:
        shown.append(("GROUPORDER", "ON"))
    return shown


def rate_of_queue(pulse: Pulse | None) -> list[tuple[str, str]]:
    """Return the settings of a queue that has a rate: its own rate, or the pulse it shares."""
    if pulse is None:
        return []
    if pulse.name.startswith(OWN_PREFIX):
        return [("RATE", f"{pulse.rate} PER {seconds(pulse.per_ms)}" + " SPREAD" * pulse.spread)]
    return [("PULSE", pulse.name)]


def settings_of_cluster(settings: ClusterSettings) -> list[tuple[str, str]]:
    """Return the cluster's settings and values, in the form CONFIG takes; `-`: each node uses its own configuration."""
    session_ttl_ms = SESSION_TTL_MS_DEFAULT if settings.session_ttl_ms is None else settings.session_ttl_ms
    return [
        ("EXPIREDEFAULT", settings.expire_default.name),
        ("AUTOCREATE", _switch(settings.autocreate)),
        ("POLICY", settings.policy.name),
        ("GRACE", "-" if settings.grace_ms is None else seconds(settings.grace_ms)),
        ("SESSIONTTL", seconds(session_ttl_ms)),
        ("FASTEMPTY", _switch(settings.fast_empty)),
        ("RETAINEDBYTES", str(settings.retained_bytes)),
    ]


def pairs(values: Sequence[tuple[str, object]]) -> bytes:
    """Format `200 OK <k>` and a line per name and value."""
    return "".join((f"200 OK {len(values)}\r\n", *(f"{name} {value}\r\n" for name, value in values))).encode()


def _switch(on: bool) -> str:
    return "ON" if on else "OFF"
