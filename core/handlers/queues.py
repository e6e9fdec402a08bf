"""Handlers of the operations on queues (spec/state-machine 10)."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from sockpqd.core import limits
from sockpqd.core.handlers.cost import BASE_BYTES, CHANGE_BYTES, JOB, NAMED, RELISTED, Cost, of_names
from sockpqd.core.handlers.groups import rate_of
from sockpqd.core.handlers.pulses import bounded
from sockpqd.core.ops import queues as ops
from sockpqd.core.ops import replies
from sockpqd.core.ops.pulses import PulseChange
from sockpqd.core.ops.queues import Order, Purged
from sockpqd.core.ops.replies import Removed, Reply
from sockpqd.core.ops.settings import QueueSettings
from sockpqd.core.pulse.pulse import OWN_PREFIX, Pulse
from sockpqd.core.rules.pause import end_pause
from sockpqd.core.rules.pulses import drop_own_pulse
from sockpqd.core.rules.remove_queue import drop_running, exists, has_jobs, not_running, remove_queue
from sockpqd.core.state import State
from sockpqd.core.store.job import time_in_order
from sockpqd.core.store.queues import PAUSES, Queue

FORGETTING = frozenset({Purged.ALL, Purged.OWN, Purged.READY})  # a QUEUE PURGE of these forgets the keys of DEDUP


def configure_queue(state: State, operation: ops.ConfigureQueue, seed: int) -> Reply:
    """Change settings of a queue, or create one by its settings, if it does not exist yet.

    A new one may be bound to a session, which counts as used.
    """
    name, change = operation.queue, operation.change
    if not operation.create:
        return _use(state, name, _changed(state.queues.settings.get(name, QueueSettings()), change), change)
    session = operation.session
    if session is not None and state.sessions.use(session, state.clock_ms) is None:
        return replies.SESSION_NOT_FOUND
    if state.queues.find(name) is not None:
        return replies.QUEUE_EXISTS
    return _use(state, name, replace(_changed(QueueSettings(), change), bound=session or 0), change)


def _use(state: State, name: str, settings: QueueSettings, change: ops.QueueChange) -> Reply:
    """Apply the changed settings to the queue. A SCHED turns groups on."""
    before = state.queues.settings.get(name, QueueSettings())
    of_groups = settings.group_limit or settings.group_rate or settings.group_by or settings.group_order
    if of_groups and not settings.by_groups:
        return replies.BAD_SETTING
    taken = queue.taken if settings.group_order and (queue := state.queues.by_name.get(name)) is not None else ()
    if _of_groups(settings) != _of_groups(before):
        many = state.fair is not None and state.fair.has_many(name)
        if many or len(taken) > limits.GROUPS_RELISTED_MAX:
            return replies.QUEUE_NOT_EMPTY
    if change.rate is None and change.pulse is None:
        reply = _configure(state, name, settings)
    else:
        reply = _configure_rate(state, name, settings, change)
    if change.sched is not None and reply is replies.ACCEPTED:
        state.use_fair()
    if reply is replies.ACCEPTED and state.fair is not None and _of_groups(settings) != _of_groups(before):
        state.spent += limits.STEP * RELISTED * (state.fair.relisted(name) + len(taken))
        state.fair.configured(name, [state.running[number] for number in taken])
    return reply


def _of_groups(settings: QueueSettings) -> tuple[object, ...]:
    order = settings.order if settings.group_order else None
    return settings.sched, settings.group_limit, settings.group_rate, settings.group_per_ms, order


def settings_cost(operation: ops.ConfigureQueue) -> Cost:
    """Return the bytes and work of a ConfigureQueue: some changes re-sort the READY jobs.

    What lists the groups of the queue again is more than plain work, so that the leader asks how much (known_work.py).
    """
    change = operation.change
    resorts = change.order is not None or change.item_limit is not None
    return BASE_BYTES + 2 * CHANGE_BYTES + of_names(
        operation.queue, change.dead, change.pulse,
    ), JOB * limits.RESORTED_JOBS_MAX if resorts else NAMED if regroups(change) else JOB


def regroups(change: ops.QueueChange) -> bool:
    """Return whether the change may let the groups of the queue be listed again."""
    asked = change.sched, change.group_limit, change.group_rate, change.group_order, change.order
    return any(one is not None for one in asked)


def settings_bring(state: State, operation: ops.ConfigureQueue) -> Iterator[str]:
    """Yield the queue, if it does not exist yet, and the dead-letter queue that it gets."""
    yield from _created(state, operation.queue)
    if operation.change.dead is not None:
        yield operation.change.dead


def _created(state: State, name: str) -> tuple[str, ...]:
    """Return the name, if there is no such queue yet."""
    return () if exists(state, name) else (name,)


def pause_brings(state: State, operation: ops.PauseQueue) -> tuple[str, ...]:
    """Return the queue, if it does not exist yet and is paused."""
    return () if operation.resumes else _created(state, operation.queue)


def pause_queue(state: State, operation: ops.PauseQueue, seed: int) -> Reply:
    """Refuse Puts, hand out nothing, or both, until RESUME; pauses already in force remain.

    With `pause_ms` hand out nothing for this time (0: no longer). RESUME ends all pauses.
    """
    if operation.resumes:
        return _resume(state, operation.queue)
    if operation.pause_ms is not None:
        return _pause_for(state, operation.queue, min(max(operation.pause_ms, 0), limits.DURATION_MS_MAX))
    settings = state.queues.settings.get(operation.queue, QueueSettings())
    reply = _configure(state, operation.queue, replace(
        settings, paused_in=settings.paused_in or operation.incoming,
        paused_out=settings.paused_out or operation.outgoing, passing=False,
        pause_ms=0 if operation.outgoing else settings.pause_ms,
        pause_ends_ms=0 if operation.outgoing else settings.pause_ends_ms,
    ))
    if reply is replies.ACCEPTED and operation.outgoing:
        _count_pause(state, operation.queue)
    return reply


def _pause_for(state: State, name: str, pause_ms: int) -> Reply:
    """Pause hand-outs of the queue for this long; settings created only for the pause end with it."""
    if not pause_ms:
        _end_pauses(state, name)
        _count_pause(state, name)
        return replies.ACCEPTED
    before = state.queues.settings.get(name)
    settings = replace(before or QueueSettings(), passing=before is None or before.passing)
    reply = _configure(state, name, replace(
        settings, paused_out=True, pause_ms=pause_ms, pause_ends_ms=state.clock_ms + pause_ms,
    ))
    if reply is replies.ACCEPTED:
        _count_pause(state, name)
    return reply


def _count_pause(state: State, name: str) -> None:
    queue = state.queues.find(name)
    if queue is not None:
        queue.counters[PAUSES] += 1


def _end_pauses(state: State, name: str) -> None:
    """Let the queue hand out jobs again."""
    queue = state.queues.find(name)
    if queue is not None and queue.settings is not None:
        queue.used_ms = state.clock_ms
        end_pause(state, queue)


def _resume(state: State, name: str) -> Reply:
    """End all pauses of the queue."""
    settings = state.queues.settings.get(name)
    if settings is None:
        return replies.QUEUE_NOT_FOUND if state.queues.find(name) is None else replies.ACCEPTED
    if settings.paused_in:
        _configure(state, name, replace(settings, paused_in=False))
    _end_pauses(state, name)
    return replies.ACCEPTED


def _changed(settings: QueueSettings, change: ops.QueueChange) -> QueueSettings:
    """Return the settings with the change applied; a value out of range is replaced by the nearest in range."""
    values: dict[str, object] = {
        name: min(max(value, 0), limits.DURATION_MS_MAX if name.endswith("_ms") else limits.NUMBER_MAX)
        for name in (
            "expire_ms", "tries", "limit", "item_limit", "capacity", "data_bytes_max", "batch", "keep_ms", "ttl_ms",
            "idle_ms", "dedup_max", "retain_ms", "retain_max", "group_limit",
        )
        if (value := getattr(change, name)) is not None
    }
    if change.expire_ms is not None:
        values["then"] = change.then
    if change.tries is not None:
        values["dead"] = change.dead
    if change.backoff_ms is not None:
        first_ms = min(max(change.backoff_ms, 0), limits.BACKOFF_MS_MAX)
        values["backoff_ms"] = first_ms
        values["backoff_max_ms"] = min(max(change.backoff_max_ms or 0, first_ms), limits.BACKOFF_MS_MAX)
    if change.error_bytes is not None:
        values["error_bytes"] = min(max(change.error_bytes, 0), limits.COUNTER_MAX)
    if change.retain_bytes is not None:
        values["retain_bytes"] = min(max(change.retain_bytes, 0), limits.COUNTER_MAX)
    if change.order is not None:
        values["order"] = change.order
    if change.weight is not None:
        values["weight"] = min(max(change.weight, 1), limits.NUMBER_MAX)
    if change.portion is not None:
        values["portion"] = min(max(change.portion, 1), limits.PORTION_MAX)
    if change.overflow is not None:
        values["overflow"] = ops.Overflow(change.overflow)
    if change.alarm is not None:
        values["alarm"], values["alarmed"] = min(max(change.alarm, 0), limits.NUMBER_MAX), False
    if change.sched is not None:
        values["sched"] = ops.Sched(change.sched)
    if change.group_rate is not None:
        values |= {f"group_{name}": value for name, value in rate_of(change.group_rate, change.group_per_ms).items()}
    if change.group_by is not None:
        values["group_by"] = ops.GroupBy(change.group_by)
        by_header = change.group_by is ops.GroupBy.HEAD
        values["group_header"] = (change.group_header or "")[: limits.HEADER_NAME_BYTES_MAX] if by_header else ""
    if change.group_order is not None:
        values["group_order"] = change.group_order
    if change.numbered is not None:
        values["numbered"] = change.numbered
    return replace(settings, passing=False, **values)


def _configure(state: State, name: str, settings: QueueSettings) -> Reply:
    queues = state.queues
    before = queues.settings.get(name)
    if before is None and len(queues.settings) >= limits.QUEUES_MAX:
        return replies.TOO_MANY_QUEUES
    queue = queues.by_name.get(name)
    old = before or QueueSettings()
    if queue is not None and (old.order, old.item_limit) != (settings.order, settings.item_limit):
        if queue.ready_count > limits.RESORTED_JOBS_MAX:
            return replies.QUEUE_NOT_EMPTY
        _resort(state, queue, old, settings)
    else:
        queues.configure(name, settings)
    configured = queues.find(name)
    if configured is not None:
        configured.used_ms = state.clock_ms
    state.watch(name, settings)
    if old.error_bytes != settings.error_bytes:
        state.errors.look_at(name)
    if not settings.keep_ms:
        state.retained_keys.drop(name)
    state.records.configured(name, old, settings, state.clock_ms)
    if queue is not None and queue.ready.size and not queue.closed:
        state.effects.reopened[name] = None
    return replies.ACCEPTED


def _configure_rate(state: State, name: str, settings: QueueSettings, change: ops.QueueChange) -> Reply:
    """Apply the change and its RATE or PULSE; the queue's own pulse is created or removed accordingly."""
    own, before = OWN_PREFIX + name, settings.pulse
    pulses, pulse = state.pulses.by_name, _pulse_asked(before, own, change)
    if pulse is not None and not isinstance(pulse, str):
        return pulse
    if pulse not in (None, own) and pulse not in pulses:
        return replies.PULSE_NOT_FOUND
    if pulse == own and own not in pulses and change.pulses_max is not None and len(pulses) >= change.pulses_max:
        return replies.TOO_MANY_PULSES
    reply = _configure(state, name, replace(settings, pulse=pulse))
    if reply is not replies.ACCEPTED:
        return reply
    if before == own and pulse != own:
        drop_own_pulse(state, name)
    elif pulse == own and change.rate:
        pulse_change = bounded(PulseChange(change.rate, change.per_ms, spread=change.spread))
        if own not in pulses:
            state.pulses.add(Pulse(own))
        else:
            state.pulses.end_period(pulses[own])
        pulses[own].change(pulse_change)
    if pulse is not None:
        state.effects.pulse_changed(pulse)
    return reply


def _pulse_asked(before: str | None, own: str, change: ops.QueueChange) -> str | Reply | None:
    """Return the pulse that the queue will have; RATE and PULSE exclude each other."""
    pulse = before
    if (change.rate == 0 and pulse == own) or (change.pulse == "" and pulse != own):
        pulse = None
    if change.rate and change.pulse:
        return replies.BAD_SETTING
    asked = own if change.rate else change.pulse or None
    if asked is None:
        return pulse
    return replies.BAD_SETTING if pulse not in (None, asked) and own in (pulse, asked) else asked


def _resort(state: State, queue: Queue, old: QueueSettings, settings: QueueSettings) -> None:
    """Reinsert all READY jobs, because their places, or which of them are blocked, change."""
    jobs = list(queue.all_ready())
    state.replace_ready(begins=True)
    for job in jobs:
        state.remove(queue, job)
    state.queues.configure(queue.name, settings)
    for job in jobs:
        if old.order is not settings.order:
            job = replace(job, when=time_in_order(job, job.at_ms or 0) if settings.order is Order.TIME else 0)
        state.add(queue, job)
    state.replace_ready(begins=False)


def purge_queue(state: State, operation: ops.PurgeQueue, seed: int) -> Reply:
    """Remove jobs of the queue, without marking them as done."""
    name, purged = operation.queue, operation.purged
    if not exists(state, name):
        return replies.QUEUE_NOT_FOUND
    if purged is Purged.ENDED:
        return Removed(state.records.purge(name, state.clock_ms), more=False)
    if purged in FORGETTING and operation.before_seq is None:       # the first portion
        state.remembered_keys.drop(name)
    removed, more = 0, False
    if purged is not Purged.RUNNING:
        its_state = ops.JobState(purged) if purged <= Purged.BURIED else None
        chosen = not_running(
            state, name, its_state, operation.before_seq, limits.PORTION_MAX, own=purged is Purged.OWN)
        chosen.drop()
        removed, more = chosen.size, chosen.more
    if not more and purged is Purged.ALL:
        removed += state.records.purge(name, state.clock_ms)
    elif not more and purged in (Purged.OWN, Purged.RUNNING):
        running, more = drop_running(state, name, limits.PORTION_MAX - removed, operation.before_id)
        removed += running
    return Removed(removed, more)


def purge_cost(operation: ops.DeleteQueue | ops.PurgeQueue) -> Cost:
    """Return the bytes and work of an operation that removes jobs."""
    return BASE_BYTES + of_names(operation.queue), JOB * limits.PORTION_MAX


def delete_queue(state: State, operation: ops.DeleteQueue, seed: int) -> Reply:
    """Remove the settings of the queue and, with `force`, its jobs, up to the limit of one entry.

    A queue that is to be deleted because it is IDLE stays if it was used; only the leader knows of waiting clients.
    """
    name, idle_since_ms = operation.queue, operation.idle_since_ms
    if idle_since_ms is not None and not _is_idle(state, name, idle_since_ms):
        return replies.ACCEPTED
    if not exists(state, name):
        return replies.QUEUE_NOT_FOUND
    if not operation.force and has_jobs(state, name):
        return replies.QUEUE_NOT_EMPTY
    removed, gone = remove_queue(state, name, limits.PORTION_MAX, leave=operation.leave)
    if not gone:
        return Removed(removed, more=True)
    if idle_since_ms is not None:
        state.events.tell("IDLE", name)
    return replies.ACCEPTED


def _is_idle(state: State, name: str, since_ms: int) -> bool:
    """Return whether the IDLE time of the queue has passed since then, and it was not used."""
    queue = state.queues.expiring.get(name)
    if queue is None or queue.settings is None or queue.taken or queue.used_ms > since_ms:
        return False
    return state.clock_ms - since_ms >= queue.settings.idle_ms
