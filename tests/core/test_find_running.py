"""A search among running jobs counts those that have ended meanwhile as looked at (core/find.py)."""

from __future__ import annotations

from sockpqd.core import Done, FindPlace, Get, GetWith, HandedMany, JobState, Machine, Put, Search, Section, Wanted

JOBS = 50


def test_jobs_that_have_ended_count_as_looked_at() -> None:
    """Or one step passes all of very many at once, and others wait meanwhile."""
    machine = Machine()
    (*_, handed) = machine.apply(1, 1_000_000, 1, [*[Put("q", 0, b"x")] * JOBS, GetWith(Get(("q",)), JOBS)]).replies
    assert isinstance(handed, HandedMany)
    search = Search(Wanted(frozenset({JobState.RUNNING})))
    first = machine.find(search, FindPlace("q", Section.RUNNING), 1, 10, 1000)
    assert [job.id for job in first.jobs] == [1]
    machine.apply(2, 1_000_000, 1, [Done(number) for number in range(2, JOBS)])
    steps = [first]
    while steps[-1].place.section is Section.RUNNING:
        steps.append(machine.find(search, steps[-1].place, JOBS, 10, 1000))
    assert [step.looked for step in steps] == [1, 10, 10, 10, 10, 9]
    assert [job.id for step in steps for job in step.jobs] == [1, JOBS]
