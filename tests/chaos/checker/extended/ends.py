"""Checks that no acknowledged job is lost, that DONE is final, and that transactions are atomic and keys unique."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations

from tests.chaos.checker.evidence.moments import is_ok, latest
from tests.chaos.checker.extended.tasks import Act, Effect, Task, Tasks
from tests.chaos.checker.facts import Facts
from tests.chaos.checker.violation import Teller, Violation
from tests.chaos.workload.history import Cascade, Copies


def _rule(rule: str, *acts: Act | None) -> str:
    commands = [act.command for act in acts if act is not None]
    if any(isinstance(command, Cascade) for command in commands):
        return "transaction"
    return "copies" if any(isinstance(command, Copies) for command in commands) else rule


def vanished(tasks: Tasks, facts: Facts, teller: Teller) -> Iterator[Violation]:
    """After the drain each job that was surely put runs, or was done, or somebody tried to and was not answered.

    There is no other end: no lease drops its job, and jobs that are moved or dead are drained too. A DONE without an
    answer explains it only if the job was not handed out again under another id.
    """
    if not facts.drained:
        return
    running = {one.body for one in facts.running}
    for task in tasks:
        birth = task.birth
        if birth is None or birth.effect is not Effect.SURE or task.body in running:
            continue
        if task.done or any(act.ends for turn in task.turns[-1:] for act in turn.acts):
            continue
        undone = [act for turn in task.turns for act in turn.missed]
        last = "" if not task.turns else f"; last seen: {teller.record(task.turns[-1].hand_out.record)}"
        text = f"{task.body} was put, not done, and is not there{last}: {teller.record(birth.record)}"
        yield Violation(_rule("lost", birth, *undone), text, (birth.record,))


def done_once(tasks: Tasks, facts: Facts, teller: Teller) -> Iterator[Violation]:
    """Find jobs that were surely done and handed out, or done, again. Ids rise, so a greater one is of later."""
    running = {one.body: one.id for one in facts.running}
    for task in tasks:
        done = task.done
        if not done:
            continue
        place = next(number for number, turn in enumerate(task.turns) if done[0] in turn.acts)
        if len(done) > 1:
            text = f"{task.body} was done twice: {teller.record(done[0].record)}, {teller.record(done[1].record)}"
            yield Violation(_rule("done", *done), text, (done[0].record, done[1].record))
        elif len(task.turns) > place + 1:
            again = task.turns[place + 1].hand_out
            text = (
                f"{task.body} was handed out as {again.id} in spite of {teller.record(done[0].record)}: "
                f"{teller.record(again.record)}"
            )
            yield Violation(_rule("done", *done), text, (done[0].record, again.record))
        elif task.body in running:
            text = f"{task.body} runs at the end as {running[task.body]} in spite of {teller.record(done[0].record)}"
            yield Violation(_rule("done", *done), text, (done[0].record,))


def keys(tasks: Tasks, teller: Teller) -> Iterator[Violation]:
    """Check that at most one job per key and queue is unfinished, and that a key given only once is not refused."""
    by_key: dict[tuple[str, str], list[Task]] = defaultdict(list)
    for task in tasks:
        if task.put is not None and task.put.key is not None:
            by_key[task.put.queue, task.put.key].append(task)
    for (_, key), group in by_key.items():
        births = [(task, task.birth) for task in group if task.birth is not None]
        sure = [(task, birth) for task, birth in births if birth.effect is Effect.SURE]
        for (one, first), (other, second) in combinations(sure, 2):
            if one.over_earliest_ns() > second.latest_ns and other.over_earliest_ns() > first.latest_ns:
                text = f"{teller.record(first.record)} and {teller.record(second.record)} both stored a job with {key}"
                yield Violation("key", text, (first.record, second.record))
        for _, birth in births:
            if birth.effect is Effect.NEVER and is_ok(birth.record):
                by_ns = latest(birth.record)
                if not any(rival.effect is not Effect.NEVER and rival.earliest_ns <= by_ns for _, rival in births):
                    text = f"{teller.record(birth.record)} was told that there is a job with {key}, and there was none"
                    yield Violation("key", text, (birth.record,))
