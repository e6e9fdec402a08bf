"""The checker of the chaos tests: finds violations in a history that no order of its commands can explain.

Each rule accuses only when no order of the commands explains the records. A command that is OK took effect at one
instant of its record, one that was not executed never did, and one of unknown outcome may take effect at any later
time, or not at all. So the checker reports no false violation, and may miss real ones: the fewer answers are lost,
the more it finds. The runs take care of that by letting clients work most of the time.

    rule        promise
    lost        an acknowledged PUT is done in the end, or was dropped by the rule of its lease, or is still there
    invented    what is handed out was put with these bytes
    refused     what was answered `500` was not executed
    lease       a job runs under one id at a time
    done        DONE is final, happens once, and finds the job while its lease holds
    dedupe      a PUT in a session is one job: the same as lease and done, for jobs that were put in a session
    ids         ids are unique and rise
    order       priority, then first come first served; 404 only when the queue is empty
    policy      BY ORDER, SORTED, PRIORITY and PLACE choose their queue
    finished    FINQ, FINI and the 404 of GETBE are exact
    wakeup      no job waits while a client waits for it
    worker      the answer to each heartbeat of a worker pool has the operator's latest setting
    stale       a leader that was cut off answers nothing
    equality    at the end all nodes hold the same state

For jobs that were put or taken by extended commands (extended/tasks.py) also lost, invented, refused, lease, done,
dedupe and ids, and:

    early       a delayed job is not handed out before its time
    transaction a committed one is there entirely, an aborted one not at all, one of unknown outcome either way
    copies      one PUT into several queues is a job in each of them, or in none
    key         of the jobs with one key at most one is unfinished
    rate        a queue with a rate gives no more jobs in any window of time
    number      a job keeps its number, and is found by it as long as it is not finished
    attempts    a job is dead after TRIES hand-outs, not before and not later

The rules are functions of the history, without input or output.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from msgspec.structs import replace

from tests.chaos.checker.availability import availability, rate_before
from tests.chaos.checker.evidence.hidden import Hidden
from tests.chaos.checker.evidence.jobs import Jobs
from tests.chaos.checker.extended.births import attempts, task_births
from tests.chaos.checker.extended.ends import done_once, keys, vanished
from tests.chaos.checker.extended.numbers import numbers
from tests.chaos.checker.extended.tasks import Tasks
from tests.chaos.checker.extended.times import early, held
from tests.chaos.checker.facts import Facts, Node, Running
from tests.chaos.checker.rules.done import done
from tests.chaos.checker.rules.equality import equality
from tests.chaos.checker.rules.finished import finished
from tests.chaos.checker.rules.ids import ids
from tests.chaos.checker.rules.invented import invented, refused
from tests.chaos.checker.rules.leases import leases
from tests.chaos.checker.rules.lost import lost
from tests.chaos.checker.rules.order import order
from tests.chaos.checker.rules.rates import rates
from tests.chaos.checker.rules.stale import stale
from tests.chaos.checker.rules.steering import steering
from tests.chaos.checker.rules.wakeups import wakeups
from tests.chaos.checker.violation import Teller, Violation
from tests.chaos.workload.history import History

__all__ = ["VIOLATIONS_MAX", "Facts", "Node", "Running", "Violation", "availability", "check", "rate_before"]

VIOLATIONS_MAX = 20         # of one rule: more of the same add no information


def check(history: History, facts: Facts) -> list[Violation]:
    """Return all that certainly went wrong; empty if the records can be explained without a broken promise."""
    jobs = Jobs(history.records)
    tasks, whole = Tasks(history.records, jobs, facts), facts
    facts = replace(facts, running=tuple(one for one in facts.running if one.body not in tasks.by_body))
    hidden = Hidden(jobs, facts)
    teller = Teller(facts)
    rules: list[Iterator[Violation]] = [
        lost(jobs, hidden, facts, teller),
        invented(jobs, hidden, facts, teller),
        refused(jobs, facts, teller),
        leases(jobs, facts, teller),
        done(jobs, facts, teller),
        ids(jobs, teller),
        order(jobs, hidden, facts, teller),
        finished(jobs, hidden, facts, teller),
        wakeups(jobs, history.records, hidden, facts, teller),
        stale(history.records, history.cuts, facts, teller),
        equality(facts),
        task_births(tasks, whole, teller),
        attempts(tasks, whole, teller),
        early(tasks, whole, teller),
        held(tasks, whole, teller),
        vanished(tasks, whole, teller),
        done_once(tasks, whole, teller),
        keys(tasks, teller),
        numbers(tasks, history.records, teller),
        rates(jobs, whole, teller),
        steering(history.records, teller),
    ]
    return [violation for rule in rules for violation in islice(rule, VIOLATIONS_MAX)]
