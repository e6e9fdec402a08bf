"""Asserts that machine and reference model agree: on every reply and effect, and on everything that can be read."""

from __future__ import annotations

from itertools import groupby

from msgspec.structs import astuple

from sockpqd.core import EVENT_TYPES, Address, Event, ItemSummary, JobAwaited, JobState, Machine, Number, Selector
from sockpqd.core.store.queues import URGENT_RANK
from tests.core.helpers.logs import LogEntry, restored, snapshot_of
from tests.core.model.model import Model

PEEKED = 1000


def assert_equal_to_model(log: list[LogEntry], machine: Machine, model: Model, every: int = 1) -> None:
    """Assert that machine and model answer each entry equally, and agree in everything after each `every` entries and
    the last.
    """
    machine.record(EVENT_TYPES)
    for place, entry in enumerate(log, start=1):
        index = machine.index + 1
        applied = machine.apply(index, *entry)
        expected = model.apply(index, *entry)
        assert applied.replies == expected.replies
        assert lines_of(applied.events) == lines_of(expected.events)
        effects = applied.effects
        assert (effects.outcomes or {}) == expected.outcomes
        for reply in applied.replies:
            if isinstance(reply, JobAwaited):
                machine.keep_watch(reply.job)
        assert effects.restored == expected.restored
        if not effects.restored:        # then everybody asks again
            # A client notified too often asks in vain and waits again; one notified too rarely waits for ever.
            assert not {*expected.ready} - {*effects.ready, *effects.reopened}
            told = {(queue, item) for queue, item in expected.ready_items if queue in effects.reopened}
            assert not {*expected.ready_items} - {*effects.ready_items} - told
            assert not {*expected.ended} - {*effects.ended}
            assert not {*expected.ended_items} - {*effects.ended_items}
        if place % every == 0 or place == len(log):
            assert_same(machine, model)
    due_ms, right_ms = restored(snapshot_of(machine)).next_due_ms(), model.next_due_ms()
    assert (due_ms is None) == (right_ms is None)
    assert model.rates.known or max(model.clock_ms, due_ms or 0) == max(model.clock_ms, right_ms or 0)


def lines_of(events: list[Event]) -> list[tuple[int, str, str, tuple[int | str, ...]]]:
    """Return the events in order; those of jobs that one operation ended are sorted by kind."""
    lines: list[tuple[int, str, str, tuple[int | str, ...]]] = []
    for kind, run in groupby(events, key=lambda event: event.type):
        known = list(run)
        names = [(event.name, event.words) for event in known]
        if kind in ("FINQ", "FINI", "FAILI", "DEPTH"):
            names.sort()
        lines += [(event.seq, kind, *name) for event, name in zip(known, names, strict=True)]
    return lines


def assert_same(machine: Machine, model: Model) -> None:
    """Assert that everything that can be read is equal."""
    assert machine.clock_ms == model.clock_ms
    assert machine.next_id == model.next_id
    assert machine.next_seq == model.next_seq
    assert machine.event_seq == model.event_seq
    _assert_same_cluster(machine, model)
    _assert_same_running(machine, model)
    _assert_same_groups(machine, model)
    names = model.queue_names("") | {"unknown"}
    assert {*machine.queue_names("")} == model.queue_names("")
    assert {*machine.queue_names("a")} == model.queue_names("a")
    for queue in names:
        _assert_same_queue(machine, model, queue)
    _assert_same_items(machine, model)
    _assert_sums_are_right(machine)
    assert list(machine.nonempty()) == model.nonempty()
    for name in (None, *sorted(names)):
        total = machine.total(name)
        assert (total.queues, total.priorities, total.jobs, total.running) == model.total(name)
        assert machine.unfinished(name) == model.unfinished(name)
    due_ms, right_ms = machine.next_due_ms(), model.next_due_ms()
    assert (due_ms is None) == (right_ms is None)
    assert (due_ms or 0) <= max(model.clock_ms, right_ms or 0)
    if not model.sessions.all and not model.rates.known:        # these may be looked at too early
        assert max(model.clock_ms, due_ms or 0) == max(model.clock_ms, right_ms or 0)


def _assert_same_items(machine: Machine, model: Model) -> None:
    names = {*model.holds, *[job.item for job in [*model.jobs, *model.buried] if job.item is not None]}
    assert {*machine.item_names()} == names
    for name in (*names, "unknown"):
        figures = model.item(name)
        assert machine.item(name) == figures
        assert machine.item_summary(name) == (None if figures is None else ItemSummary(
            name, figures.ready + figures.delayed + figures.running + figures.dead + figures.buried,
            figures.dead + figures.buried, figures.done, figures.held, figures.cancelling))
        assert machine.owner_of_item(name) == model.owners.get(name)


def _assert_sums_are_right(machine: Machine) -> None:
    """Assert that the sums kept of all queues are what counting finds."""
    names = machine.queue_names("")
    found = {name: machine.counts(name) for name in names}
    counts = [one for one in found.values() if one is not None]
    ready = [job for name in names for job in machine.peek_queue(name, JobState.READY, PEEKED)]
    assert astuple(machine.sums()) == (
        sum(one.ready for one in counts), sum(one.delayed for one in counts), sum(one.running for one in counts),
        sum(one.buried for one in counts), sum(job.priority > -URGENT_RANK for job in ready),
        sum(one.ready + one.delayed + one.running > 0 for one in counts),
    )
    assert {*machine.names_with_buried()} == {name for name, one in found.items() if one is not None and one.buried}
    assert {*machine.all_queue_names()} == {*names}


def _assert_same_cluster(machine: Machine, model: Model) -> None:
    assert (machine.term, machine.leader, machine.cluster_id) == (model.term, model.leader, model.cluster_id)
    assert machine.level == model.level
    assert (machine.server_ids, machine.max_id) == (model.server_ids, model.max_id)
    membership = machine.membership
    assert (membership.voters, membership.learner) == (tuple(model.voters), model.learner)
    assert (membership.configuration, machine.online) == (model.configuration, model.online)
    assert list(membership.addresses.items()) == [
        (name, Address(name, *model.addresses[name])) for name in sorted(model.addresses)
    ]
    assert {name: (user.rights, user.key) for name, user in machine.users.items()} == model.users
    assert machine.settings == model.settings


def _assert_same_running(machine: Machine, model: Model) -> None:
    assert [
        (job.id, job.queue, job.priority, job.data, job.item, job.deadline_ms, job.session) for job in machine.running()
    ] == [job.facts() for job in model.running()]
    assert [machine.queue_of(job.id) for job in machine.running()] == [job.queue for job in model.running()]
    assert [(one.number, one.user, one.address, one.used_ms, one.ending) for one in machine.sessions()] == [
        (one.number, one.user, one.address, one.used_ms, one.ending) for one in model.sessions.all
    ]
    assert [astuple(one) for one in machine.workers()] == [
        astuple(one) for _, one in sorted(model.workers.items()) if one.session
    ]
    assert [(topic, *one) for topic in sorted(machine.topics) for one in machine.topics[topic]] == [
        (topic, *one) for topic in sorted(model.topics) for one in model.topics[topic]]
    for session in range(model.sessions.next_number + 1):
        assert machine.taken(session) == [job.id for job in model.taken(session)]
    for job in model.running():
        assert machine.peek(Selector(job.id or 0)) == job.seen()


def _assert_same_groups(machine: Machine, model: Model) -> None:
    assert machine.fair_used == (model.fair is not None)
    assert machine.fair_settings == model.fair_settings
    assert machine.fair_levels() == model.fair_levels()
    groups = {job.unit for job in model.jobs} | {"unknown"} | (set() if model.fair is None else {*model.fair.groups})
    for name in groups:
        assert machine.fair_group(name) == model.fair_group(name)


def _assert_same_queue(machine: Machine, model: Model, queue: str) -> None:
    assert machine.queue_settings(queue) == model.queues.get(queue)
    assert machine.used_ms(queue) == model.used_ms(queue)
    assert machine.counts(queue) == model.counts(queue)
    assert machine.history(queue, machine.clock_ms) == model.history(queue)
    assert machine.ready(queue) == model.ready(queue)
    items = sorted({job.item for job in model.jobs if job.queue == queue and job.item is not None} | {"x", "item_1"})
    assert [machine.ready_of_item(queue, item) for item in items] == [model.ready(queue, item) for item in items]
    assert [machine.unfinished(queue, item) for item in items] == [model.unfinished(queue, item) for item in items]
    for state in JobState:
        seen = model.peek_queue(queue, state, PEEKED)
        assert machine.peek_queue(queue, state, PEEKED) == seen
        assert machine.peek_queue(queue, state, 1) == seen[:1]
    _assert_same_records(machine, model, queue)
    for key in {job.key for job in model.jobs if job.key is not None}:
        assert machine.peek(Selector(queue=queue, key=key)) == model.peek(Selector(queue=queue, key=key))


def _assert_same_records(machine: Machine, model: Model, queue: str) -> None:
    expected = model.records_of(queue)[::-1]
    seen, before = machine.ended_jobs(queue, 1)
    while before is not None:
        some, before = machine.ended_jobs(queue, 2, before)
        seen += some
    assert seen == [record.view for record in expected]
    assert machine.retained(queue) == (len(expected), sum(record.size for record in expected))
    for record in expected:
        number = record.view.number or 0
        unfinished = machine.peek(Number(number)) is not None
        assert machine.ended(number) == (None if unfinished else record.view)
        assert unfinished or machine.error(Number(number)) == record.error
        assert machine.result(number) == (None if unfinished else record.result)
