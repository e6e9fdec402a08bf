"""`pqctl queue drain` and `pqctl queue move`: emptying a queue by waiting for its jobs or by moving them."""

from __future__ import annotations

from time import monotonic, sleep

from sockpq import Aborted, Client, Job, JobExists

from sockpqd.pqctl.actions.existence import must_exist
from sockpqd.pqctl.connect import cluster_of
from sockpqd.pqctl.invocation import Call
from sockpqd.pqctl.output.exit_codes import DONE, REFUSED, Failure
from sockpqd.pqctl.output.stdio import say
from sockpqd.pqctl.output.text import counted

LOOK_S = 0.25           # between two checks of a queue being drained
TELL_S = 5.0            # between two progress messages
MOVED_AT_ONCE = 500     # jobs per transaction
LEASE_S = 60


def drain(call: Call, queue: str) -> int:
    """Pause the queue's input, then wait for its jobs to finish, up to the call's timeout. The queue stays paused."""
    until = monotonic() + call.timeout
    with cluster_of(call, serving=True) as (client, _):
        must_exist(client, queue)
        client.queue_pause(queue, "in")
        told = monotonic()
        while left := _unfinished(client, queue):
            if monotonic() >= until:
                raise Failure(REFUSED, f"{queue} takes no jobs any more, but has unfinished ones after "
                                       f"{call.timeout:g} s: {left}; run this again to wait on")
            if monotonic() >= told + TELL_S:
                told = monotonic()
                say(f"{queue}: {left}")
            sleep(LOOK_S)
    call.answer(f"{queue} has no unfinished job, and takes none until `pqctl queue resume {queue}`", {"queue": queue})
    return DONE


def _unfinished(client: Client, queue: str) -> str:
    """Describe the unfinished jobs in words; "" if there are none."""
    counters = client.queue_stat(queue)
    return ", ".join(
        f"{counters[state]:,} {state}" for state in ("ready", "delayed", "running") if counters.get(state)
    )


def move(call: Call, source: str, target: str, count: int | None) -> int:
    """Move READY jobs in order; those whose keys already exist in the target stay."""
    moved = 0
    kept: list[Job] = []
    with cluster_of(call, serving=True) as (client, _):
        ready = must_exist(client, source).get("ready", 0)
        wanted = ready if count is None else count
        try:
            while moved + len(kept) < wanted:
                asked = min(MOVED_AT_ONCE, wanted - moved - len(kept))
                jobs = client.get_many(asked, source, expire=LEASE_S, then="later")
                if not jobs:
                    break
                moved += _move(client, jobs, target, kept)
                for job in kept:
                    job.touch()
        finally:
            for job in reversed(kept):
                job.later(first=True)
        if not moved and not kept and ready:
            raise Failure(REFUSED, f"{source} gives no jobs; `pqctl queue config {source}` shows whether it is paused")
    sentence = f"{counted(moved, 'job')} moved from {source} to {target}"
    if kept:
        sentence += f"; {counted(len(kept), 'job')} stayed, whose keys {target} has already"
    call.answer(sentence, {"from": source, "to": target, "moved": moved, "stayed": len(kept)})
    return REFUSED if kept else DONE


def _move(client: Client, jobs: list[Job], target: str, kept: list[Job]) -> int:
    """Move these jobs in one transaction, adding those that cannot move to `kept`; returns how many were moved."""
    left = list(jobs)
    while left:
        try:
            with client.transaction() as step:
                for job in left:
                    step.move(job, target)
            return len(left)
        except Aborted as aborted:
            if isinstance(aborted.reason, JobExists):
                kept.append(left.pop(aborted.position - 1))
                continue
            for job in reversed(left):          # nothing was moved: put them back
                job.later(first=True)
            raise aborted.reason from None
    return 0
