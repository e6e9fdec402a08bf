"""Checks that a delayed job is not handed out early, and that no job has two holders."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from tests.chaos.checker.evidence.moments import MS, NEVER, latest
from tests.chaos.checker.extended.tasks import Act, Effect, Task, Tasks, Turn
from tests.chaos.checker.facts import Facts
from tests.chaos.checker.violation import Teller, Violation
from tests.chaos.workload.history import Move, PutOff, Touch, TouchMany


def early(tasks: Tasks, facts: Facts, teller: Teller) -> Iterator[Violation]:
    """No job is handed out sooner than its DELAY after it was put, put back or moved.

    Only what was surely executed counts, and a job that was put off can only be handed out after that.
    """
    if facts.lease_slack_ms is None:
        return
    for task in tasks:
        if task.put is None or task.birth is None:
            continue
        put_off = [(task.birth, task.put.delay_ms, turn) for turn in task.turns[:1]]
        for turn, following in pairwise(task.turns):
            sure = [act for act in turn.acts if act.effect is Effect.SURE]
            put_off += [(act, _delay_ms(act, turn, following), following) for act in sure]
        for act, delay_ms, turn in put_off:
            if delay_ms and turn.hand_out.latest_ns < act.earliest_ns + (delay_ms - facts.lease_slack_ms) * MS:
                text = (
                    f"{task.body} was handed out as {turn.id} by {teller.at(turn.hand_out.latest_ns)}, {delay_ms} ms "
                    f"were not over since {teller.record(act.record)}"
                )
                yield Violation("early", text, (act.record, turn.hand_out.record))


def _delay_ms(act: Act, turn: Turn, following: Turn) -> int:
    match act.command:
        case Move(delay_ms=delay_ms):
            return delay_ms
        case PutOff(delay_ms=delay_ms) if following.hand_out.handed.queue == turn.hand_out.handed.queue:
            return delay_ms
        case _:
            return 0            # also a LATER that was one too many: a dead job does not wait


def held(tasks: Tasks, facts: Facts, teller: Teller) -> Iterator[Violation]:
    """Check that no job is handed out while certainly held, and that no certain holder gets `Job Not Running`."""
    for task in tasks:
        for turn, following in pairwise(task.turns):
            if following.hand_out.latest_ns < _held_until_ns(turn, facts):
                text = (
                    f"{task.body} was handed out as {following.id} while it was held as {turn.id}: "
                    f"{teller.record(turn.hand_out.record)}; {teller.record(following.hand_out.record)}"
                )
                yield Violation(_rule(task, "lease"), text, (turn.hand_out.record, following.hand_out.record))
        for turn in task.turns:
            for act in turn.missed:
                by_ns = latest(act.record)
                if act.earliest_ns >= turn.hand_out.latest_ns and by_ns < min(_held_until_ns(turn, facts), NEVER):
                    text = f"{teller.record(act.record)} found no job, but {task.body} ran as {turn.id}"
                    yield Violation(_rule(task, "done"), text, (turn.hand_out.record, act.record))


def _held_until_ns(turn: Turn, facts: Facts) -> int:
    """Return the earliest possible end of the hold. A TOUCH that found the job restarts the lease, an unknown one may
    extend it.
    """
    slack_ms, hand_out = facts.lease_slack_ms, turn.hand_out
    assert hand_out.get.expire_ms is not None
    until_ns = hand_out.earliest_ns
    if slack_ms is not None:
        until_ns += max(0, hand_out.get.expire_ms - slack_ms) * MS
    for act in turn.acts:
        if not isinstance(act.command, Touch | TouchMany):
            continue
        if act.effect is Effect.SURE:
            lease_ms = 0 if slack_ms is None else max(0, act.command.expire_ms - slack_ms)
            until_ns = max(until_ns, act.earliest_ns + lease_ms * MS)
    ends = [act.earliest_ns for act in turn.acts if not isinstance(act.command, Touch | TouchMany)]
    return min([until_ns, *ends])


def _rule(task: Task, rule: str) -> str:
    in_session = task.birth is not None and task.birth.record.session
    return "dedupe" if in_session else rule
