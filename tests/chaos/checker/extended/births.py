"""Checks that jobs are handed out as they were put, from a possible queue, and only if they were put."""

from __future__ import annotations

from collections.abc import Iterator

from tests.chaos.checker.extended.tasks import Effect, Task, Tasks, Turn
from tests.chaos.checker.facts import Facts
from tests.chaos.checker.violation import Teller, Violation
from tests.chaos.workload.history import Cascade, Move


def task_births(tasks: Tasks, facts: Facts, teller: Teller) -> Iterator[Violation]:
    """Check that each job handed out, or running at the end, was put, and none was put by an aborted transaction."""
    running = {one.body for one in facts.running}
    for task in tasks:
        birth, seen = task.birth, teller.record(task.turns[0].hand_out.record) if task.turns else "at the end it runs"
        if not task.turns and task.body not in running:
            continue
        records = tuple(turn.hand_out.record for turn in task.turns[:1])
        if birth is None or task.put is None:
            yield Violation("invented", f"nobody put {task.body}: {seen}", records)
        elif birth.effect is Effect.NEVER:
            rule = "transaction" if isinstance(birth.command, Cascade) else "refused"
            text = f"{task.body} is there although {teller.record(birth.record)} did nothing: {seen}"
            yield Violation(rule, text, (birth.record, *records))
        else:
            for turn, wrong in _wrong(task, facts):
                text = f"{task.body} {wrong}: {teller.record(turn.hand_out.record)}, {teller.record(birth.record)}"
                yield Violation("invented", text, (birth.record, turn.hand_out.record))


def _wrong(task: Task, facts: Facts) -> Iterator[tuple[Turn, str]]:
    """Return the hand-outs that do not match, with reasons."""
    assert task.put is not None
    assert task.birth is not None
    places = _with_dead({task.put.queue}, facts)
    for turn in task.turns:
        handed = turn.hand_out.handed
        if turn.hand_out.latest_ns < task.birth.earliest_ns:
            yield turn, "was handed out before it was put"
        if handed.priority != task.put.priority or handed.item is not None:
            yield turn, f"came with priority {handed.priority} and item {handed.item}"
        if handed.attempt is not None and handed.group != task.put.group:
            yield turn, f"came with group {handed.group} and was put with {task.put.group}"
        if handed.queue not in places:
            yield turn, f"came from {handed.queue} and can have been in {', '.join(sorted(places))} only"
            return
        if handed.queue not in turn.hand_out.get.queues:
            yield turn, f"came from {handed.queue}, which was not asked for"
        places = {handed.queue}
        for act in turn.acts:
            if isinstance(act.command, Move):
                places = {act.command.queue} | (places if act.effect is Effect.PERHAPS else set())
        places = _with_dead(places, facts)


def _with_dead(places: set[str], facts: Facts) -> set[str]:
    return places | {f"{place}_dead" for place in places if place in facts.tries}


def attempts(tasks: Tasks, facts: Facts, teller: Teller) -> Iterator[Violation]:
    """Check that a queue with TRIES hands out no job more often, and its dead queue none that was handed out less
    often.
    """
    for task in tasks:
        for turn in task.turns:
            handed = turn.hand_out.handed
            if handed.attempt is None:
                continue
            tries, origin = facts.tries.get(handed.queue), handed.queue.removesuffix("_dead")
            if tries is not None and handed.attempt > tries:
                wrong = f"for the {handed.attempt}th time, and {handed.queue} has TRIES {tries}"
            elif handed.queue != origin and origin in facts.tries and handed.attempt <= facts.tries[origin]:
                wrong = f"as dead, for the {handed.attempt}th time, and {origin} has TRIES {facts.tries[origin]}"
            else:
                continue
            text = f"{task.body} was handed out {wrong}: {teller.record(turn.hand_out.record)}"
            yield Violation("attempts", text, (turn.hand_out.record,))
