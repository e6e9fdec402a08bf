"""Reports to a cluster that does not answer at once."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from sockpq import Finished, JobNotFound, OutcomeUnknown, SockpqError, Unavailable
from sockpq.aio import Client, Job
from sockpq_http.push import outcomes
from sockpq_http.push.answers import Verdict
from sockpq_http.push.outcomes import Outcomes, own_delay_s

DONE = Finished(False, False)
LATER = Verdict("later", "http_500", "text", failed=True)


class Cluster:
    """Stands for a client and its jobs: gives these answers, one after the other, the last for ever."""

    def __init__(self, *answers: object) -> None:
        self.calls: list[tuple[str, Any]] = []
        self._answers = list(answers)

    def _answer(self, name: str, what: object) -> Any:
        self.calls.append((name, what))
        found = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(found, SockpqError):
            raise found
        return found

    async def done_many(self, jobs: list[Any], **options: Any) -> Any:
        """As Client.done_many."""
        await asyncio.sleep(0)
        ends = self._answer("done_many", list(jobs))
        return [DONE] * len(jobs) if ends is None else ends

    attempt = 1

    async def later(self, **options: Any) -> None:
        """As Job.later."""
        self._answer("later", options)

    async def done(self, **options: Any) -> None:
        """As Job.done."""
        self._answer("done", options)


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcomes, "PAUSE_S", 0.0)


def report(cluster: Cluster, verdict: Verdict = LATER, *, has_backoff: bool = True) -> Outcomes:
    """Report one end; returns when that is over."""
    made = Outcomes(cast(Client, cluster))
    asyncio.run(made.end(cast(Job, cluster), verdict, has_backoff=has_backoff))
    return made


def test_jobs_that_are_finished_together_are_reported_together() -> None:
    cluster = Cluster(None)

    async def main() -> Outcomes:
        made = Outcomes(cast(Client, cluster))
        for number in range(10):
            made.finish(cast(Job, number))
        assert made.unreported == 10
        await asyncio.sleep(0)
        made.finish(cast(Job, 10))          # while the first DONE is in flight
        await made.flush(60)
        return made

    made = asyncio.run(main())
    assert [jobs for _, jobs in cluster.calls] == [list(range(10)), [10]]
    assert (made.unreported, made.lost) == (0, 0)


def test_done_is_repeated_and_what_is_not_found_then_is_not_lost() -> None:
    cluster = Cluster(Unavailable("no server"), OutcomeUnknown("no answer"), [None])

    async def main() -> Outcomes:
        made = Outcomes(cast(Client, cluster))
        made.finish(cast(Job, 1))
        while made.unreported:
            await asyncio.sleep(0)
        await made.flush(60)
        return made

    assert asyncio.run(main()).lost == 0
    assert len(cluster.calls) == 3


def test_a_job_that_is_not_ours_any_more_is_counted() -> None:
    cluster = Cluster([None, DONE])

    async def main() -> int:
        made = Outcomes(cast(Client, cluster))
        made.finish(cast(Job, 1))
        made.finish(cast(Job, 2))
        await made.flush(60)
        return made.lost

    assert asyncio.run(main()) == 1


def test_at_the_end_nothing_is_repeated_without_end() -> None:
    cluster = Cluster(Unavailable("no server"))

    async def main() -> int:
        made = Outcomes(cast(Client, cluster))
        made.finish(cast(Job, 1))
        await made.flush(60)
        return made.unreported

    assert asyncio.run(main()) == 1


def test_later_is_repeated_until_it_is_executed() -> None:
    cluster = Cluster(Unavailable("no server"), OutcomeUnknown("no answer"), None)
    assert report(cluster).lost == 0
    assert len(cluster.calls) == 3
    assert report(Cluster(OutcomeUnknown("no answer"), JobNotFound("404"))).lost == 0
    assert report(Cluster(JobNotFound("404"))).lost == 1


@pytest.mark.parametrize(("verdict", "has_backoff", "expected"), [
    (LATER, True, {"delay": None, "sleep": None, "slow": False}),
    (LATER, False, {"delay": 1.0, "sleep": None, "slow": False}),
    (LATER._replace(rest_s=7.0), True, {"delay": 7.0, "sleep": 7.0, "slow": False}),
    (LATER._replace(slow=True), True, {"delay": None, "sleep": None, "slow": True}),
])
def test_a_failed_job_comes_back_in_time(verdict: Verdict, has_backoff: bool, expected: dict[str, object]) -> None:
    cluster = Cluster(None)
    report(cluster, verdict, has_backoff=has_backoff)
    ((_, options),) = cluster.calls
    assert {name: options[name] for name in expected} == expected
    assert (options["reason"], options["error"]) == ("http_500", "text")


def test_without_backoff_delays_grow_to_a_minute() -> None:
    assert [own_delay_s(attempt) for attempt in (1, 2, 3, 6, 7, 8, 1000)] == [1.0, 2.0, 4.0, 32.0, 60.0, 60.0, 60.0]
