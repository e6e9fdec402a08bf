"""The laws of FIND: its pages show what the model finds, and an unchanged job exactly once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from random import Random
from typing import Any

import pytest

from sockpqd.core import EndState, FindPlace, JobState, JobView, Machine, Search, Section, Wanted
from tests.core.helpers.logs import restored, snapshot_of
from tests.core.helpers.paging import MemoryStore, page_out, paged_machine, small_collections
from tests.core.helpers.time_logs import random_time_log
from tests.core.laws.test_paging_laws import deep_log
from tests.core.laws.test_record_laws import record_log
from tests.core.model.jobs import ModelJob
from tests.core.model.model import Model

LOGS = {"times": random_time_log, "records": record_log, "deep": deep_log}
STATES: list[JobState | EndState] = [*JobState, *EndState]
ALL = Wanted(frozenset(STATES))
SEQ_BITS = 10
Shown = tuple[Any, ...]
Pages = Generator[list[JobView], Machine | None, None]


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    small_collections(monkeypatch)
    monkeypatch.setattr("sockpqd.core.records.block.RECORD_BLOCK_MAX", 5)


def pages(machine: Machine, names: list[str], wanted: Wanted, random: Random) -> Pages:
    """Return the answers of a search, which continues at the machine that is sent, if any is."""
    search = Search(wanted)
    for name in names:
        place = FindPlace(name)
        while place.section is not Section.OVER:
            if random.random() < 0.3:       # as another call, at any node
                search = Search(wanted)
            before, found = place, machine.find(search, place, random.randrange(1, 5), random.randrange(1, 9), 200)
            place = found.place
            assert found.looked > 0 or (place.section > before.section and not found.jobs)
            other = yield found.jobs
            machine = other or machine


def shown(view: JobView) -> Shown:
    """Return the figures that are equal while a job does not change."""
    return view.queue, view.state, view.priority, view.seq, view.id, view.due_ms, view.attempts, view.ended_ms


def of_model(model: Model, wanted: Wanted, *, with_places: bool = False) -> list[Shown]:
    """Return the jobs that the model finds; `with_places`: with their places, which QUEUE CONFIG .. ORDER may change.
    """
    found: list[Shown] = []
    for job in model.jobs + model.buried:
        state = JobState.DEAD if job.ready and job.origin is not None else job.state()
        view = job.seen(state)
        if state in wanted.states and _is(wanted, view, job):
            found.append((*shown(view), job.place()) if with_places else shown(view))
    for record in model.records:
        if record.view.state in wanted.states and _is(wanted, record.view, None):
            found.append((*shown(record.view), ()) if with_places else shown(record.view))
    return found


def _is(wanted: Wanted, view: JobView, job: ModelJob | None) -> bool:
    ms = view.ended_ms if view.ended_ms is not None else (view.number or view.seq) >> SEQ_BITS
    headers = b"\n" + (job.headers if job else view.headers())
    return (
        wanted.item in (None, view.item) and wanted.group in (None, view.group) and wanted.reason in (None, view.reason)
        and (wanted.key_prefix is None or (view.key or "-").startswith(wanted.key_prefix))
        and (wanted.since_ms or 0) <= ms <= (ms if wanted.until_ms is None else wanted.until_ms)
        and (wanted.head is None or b"\n%b: %b\n" % wanted.head in headers)
    )


def some_wanted(random: Random, model: Model) -> Wanted:
    """Return a random search for what exists."""
    jobs = model.jobs or [None]
    job = random.choice(jobs)
    states = frozenset(random.sample(STATES, random.randrange(1, len(STATES))))
    if job is None or random.random() < 0.3:
        return random.choice([Wanted(), Wanted(states=states)])
    ms = (job.known_as or job.seq) >> SEQ_BITS
    return random.choice([
        Wanted(ALL.states, item=job.item), Wanted(ALL.states, key_prefix=(job.key or "k")[:1]),
        Wanted(ALL.states, group=job.group), Wanted(ALL.states, reason=job.reason), Wanted(ALL.states, since_ms=ms),
        Wanted(states, until_ms=ms), Wanted(states, since_ms=ms, until_ms=ms + 100), Wanted(head=(b"name", b"value")),
    ])


@pytest.mark.parametrize("kind", LOGS)
@pytest.mark.parametrize("seed", range(2))
def test_pages_show_what_the_model_finds(kind: str, seed: int) -> None:
    random, model, machine = Random(seed), Model(), paged_machine(MemoryStore())
    looks = Counter[JobState | EndState]()
    for entry in LOGS[kind](seed, 250):
        machine.apply(machine.index + 1, *entry)
        model.apply(model.index + 1, *entry)
        page_out(machine, random)
        if random.random() < 0.2:
            wanted = random.choice([ALL, some_wanted(random, model)])
            others = [machine, restored(snapshot_of(machine))]
            search = pages(machine, sorted(model.queue_names("")), wanted, random)
            found = next(search, [])
            try:
                while True:
                    found = found + search.send(random.choice(others))
            except StopIteration:
                pass
            assert Counter(map(shown, found)) == Counter(of_model(model, wanted)), wanted
            looks.update(job.state for job in found)
    assert looks[JobState.READY]
    assert looks[JobState.RUNNING]


@pytest.mark.parametrize("kind", LOGS)
@pytest.mark.parametrize("seed", range(2))
def test_a_job_that_stays_is_shown_once_while_others_move(kind: str, seed: int) -> None:
    random, model, machine = Random(seed), Model(), paged_machine(MemoryStore())
    search: Pages | None = None
    found: list[JobView] = []
    stayed: set[Shown] = set()
    stays = 0
    for entry in LOGS[kind](seed, 250):
        machine.apply(machine.index + 1, *entry)
        model.apply(model.index + 1, *entry)
        page_out(machine, random)
        there = {*of_model(model, ALL, with_places=True)}
        if search is None:
            search, found, stayed = pages(machine, sorted(model.queue_names("")), ALL, random), [], there
        stayed &= there
        for _ in range(3):
            page = next(search, None)
            if page is None:
                counted = Counter(map(shown, found))
                assert [one for *one, _ in stayed if counted[tuple(one)] != 1] == []
                stays += len(stayed)
                search = None
                break
            found += page
    assert stays > 20
