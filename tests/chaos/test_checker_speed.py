"""A run of some minutes makes 200,000 records; to judge them may take some seconds."""

from __future__ import annotations

import time
from collections import deque
from random import Random

import pytest

from tests.chaos.checker import Facts, check
from tests.chaos.workload.history import Done, Finished, Get, Handed, History, Outcome, Put, Record

RECORDS = 50_000
SECONDS = 15        # of the processor's time, which a slow one needs too; usual is one


def _history(seed: int, backlog: int, unknown: float) -> History:
    """Return what a fast queue of a few priorities does; `unknown`: the share of GETs without an answer."""
    random, history, now_ns, number = Random(seed), History(), 0, 0
    waiting: dict[str, list[deque[str]]] = {f"q{queue}": [deque() for _ in range(5)] for queue in range(4)}
    unfinished = dict.fromkeys(waiting, 0)
    running: deque[tuple[int, str, int]] = deque()
    while len(history.records) < RECORDS:
        now_ns += random.randrange(10_000, 100_000)
        start_ns, end_ns = now_ns - random.randrange(3_000_000), now_ns + random.randrange(3_000_000)
        queue = random.choice(list(waiting))
        jobs = sum(map(len, waiting[queue]))
        dice = random.random()
        outcome = Outcome.OK
        if dice < (0.5 if jobs < backlog else 0.2):
            body, priority = f"b{len(history.records)}", random.randrange(5)
            waiting[queue][priority].append(body)
            unfinished[queue] += 1
            history.add(Record("p", Put(body, queue, priority), start_ns, end_ns, outcome, "n1"))
        elif dice < 0.7:
            get, handed = Get((queue,), 60_000, blocks=random.random() < 0.5 and jobs > 0), None
            if jobs:
                priority = max(rank for rank in range(5) if waiting[queue][rank])
                number += 1
                handed = Handed(number, queue, priority, waiting[queue][priority].popleft())
                if random.random() < unknown:
                    outcome, handed = Outcome.UNKNOWN, None
                else:
                    running.append((number, queue, end_ns))
            history.add(Record("g", get, start_ns, end_ns, outcome, "n1", handed))
        elif running and running[0][2] < now_ns:
            taken, queue, before_ns = running.popleft()
            unfinished[queue] -= 1
            said = Finished(not unfinished[queue], item_done=False)
            history.add(Record("d", Done(taken), max(start_ns, before_ns), end_ns, outcome, "n1", finished=said))
    return history


@pytest.mark.parametrize(("backlog", "unknown"), [(5000, 0.0), (5000, 0.01), (3, 0.001)])
def test_long_histories_are_judged_soon(backlog: int, unknown: float) -> None:
    history = _history(1, backlog, unknown)
    before = time.process_time()
    assert check(history, Facts(lease_late_ms=10_000)) == []
    assert time.process_time() - before < SECONDS


def test_a_stack_is_found_out_soon() -> None:
    stack, half = History(), RECORDS // 2
    for number in range(half):
        stack.add(Record("p", Put(f"b{number}", "q", 0), number * 1000, number * 1000 + 900, Outcome.OK))
    for number in range(half):
        handed, start_ns = Handed(number + 1, "q", 0, f"b{half - number - 1}"), (half + number) * 1000
        stack.add(Record("g", Get(("q",)), start_ns, start_ns + 900, Outcome.OK, handed=handed))
    before = time.process_time()
    assert {violation.rule for violation in check(stack, Facts())} == {"order"}
    assert time.process_time() - before < SECONDS
