"""Compares the jobs at the end of a run with the answers to its clients."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import TypeVar

TOLD = 5                # jobs of each kind that are named

Job = TypeVar("Job", bound=Hashable)


def differences(
    left: Iterable[Job], acknowledged: Iterable[Job], *, maybe_put: Iterable[Job] = (), refused: Iterable[Job] = (),
    finished: Iterable[Job] = (), maybe_finished: Iterable[Job] = (),
) -> list[str]:
    """Return the violations among the remaining jobs: lost, doubled, invented, resurrected or refused ones.

    `acknowledged`, `maybe_put`, `refused`: jobs whose PUT was answered with success, not at all, with a refusal.
    `finished`, `maybe_finished`: jobs whose DONE was answered with success, not at all, as often as that happened.
    """
    counted, ended = Counter(left), Counter(finished)
    put, turned_away = set(acknowledged), set(refused)
    wrong = {
        "lost": put - ended.keys() - set(maybe_finished) - counted.keys(),
        "there twice": {job for job, times in counted.items() if times > 1},
        "finished twice": {job for job, times in ended.items() if times > 1},
        "finished and there": ended.keys() & counted.keys(),
        "refused and there": turned_away & counted.keys(),
        "invented": counted.keys() - put - set(maybe_put) - turned_away,
    }
    return [
        f"{len(jobs)} jobs {what}: {sorted(jobs, key=repr)[:TOLD]}" for what, jobs in wrong.items() if jobs
    ]
