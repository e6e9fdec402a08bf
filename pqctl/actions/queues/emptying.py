"""`pqctl queue drain` and `pqctl queue move`: emptying a queue by waiting for its jobs or by moving them."""

from __future__ import annotations

from time import monotonic, sleep

from sockpq import Client, Place

from sockpqd.pqctl.actions.existence import QUEUE, existing, existing_job, must_exist
from sockpqd.pqctl.connect import cluster_of
from sockpqd.pqctl.invocation import Call
from sockpqd.pqctl.output.exit_codes import DONE, REFUSED, Failure
from sockpqd.pqctl.output.stdio import say
from sockpqd.pqctl.output.text import counted

LOOK_S = 0.25           # between two checks of a queue being drained
TELL_S = 5.0            # between two progress messages


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


def move(call: Call, source: str, target: str, count: int | None, died: str | None, seq: int | None) -> int:
    """Move READY jobs in order (QUEUE MOVE), until the target refuses one."""
    with cluster_of(call, serving=True) as (client, _), existing(client, QUEUE, source):
        must_exist(client, source)
        if seq is None:
            moved, refusal = client.queue_move(source, target, count, died=died)
        else:
            with existing_job(client, Place(source, seq)):
                moved, refusal = client.queue_move(source, target, seq=seq)
    sentence = f"{counted(moved, 'job')} moved from {source} to {target}"
    if refusal is not None:
        sentence += f"; the next one stayed: {refusal}"
    call.answer(sentence, {
        "from": source, "to": target, "moved": moved, "refusal": None if refusal is None else str(refusal),
    })
    return DONE if refusal is None else REFUSED
