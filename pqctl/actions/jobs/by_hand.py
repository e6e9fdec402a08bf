"""`pqctl job put`, `get`, `done`, `later` and `running`."""

from __future__ import annotations

import os
import sys
from base64 import b64encode
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, cast

import click
from sockpq import Finished, Job, JobNotFound, RunningJob, SockpqError

from sockpqd.pqctl.actions.existence import NOT_RUNNING, absent_queues, must_exist
from sockpqd.pqctl.actions.jobs.one_by_one import end_each
from sockpqd.pqctl.connect import cluster_of, reading
from sockpqd.pqctl.invocation import Call
from sockpqd.pqctl.output.exit_codes import DONE, REFUSED, Failure
from sockpqd.pqctl.output.files import read_stream
from sockpqd.pqctl.output.signals import INTERRUPTIONS
from sockpqd.pqctl.output.stdio import say
from sockpqd.pqctl.output.text import counted, lasting, sized
from sockpqd.pqctl.parameters import local_time

BODY_BYTES_MAX = 256 * 1024 * 1024      # above it a server closes the connection without reading the body


def body_from(argument: str | None, file: str | None) -> bytes:
    """Return the body of a job to put: the argument, a file, or standard input; raises click.UsageError."""
    if argument is not None and file is not None:
        raise click.UsageError("the body is BODY or --file, not both")
    if argument is not None:
        return os.fsencode(argument)        # the exact bytes typed, in whatever encoding
    if file is None and sys.stdin.isatty():
        raise click.UsageError("no body: give BODY, or --file FILE, or pipe something in")
    return read_stream(file or "-", BODY_BYTES_MAX)


def put(
    call: Call, queue: str, body: bytes, priority: int, item: str | None, new_item: bool, options: Mapping[str, Any],
) -> int:
    """Put a job (PUT) and print its item, key and number."""
    with cluster_of(call, serving=True) as (client, _):
        stored = client.put(queue, body, priority, item, new_item, **options)
    name, number = stored.item, stored.number
    done = "was queued before in" if stored.outcome == "exists" and "dedup" in options else "queued in"
    dropped = stored.outcome == "dropped"
    if dropped:
        done = "not queued, as no item that it waits for has failed, in"
    sentence = f"{counted(len(body), 'byte')} {done} {queue}" + (f", item {name}" if name else "")
    sentence += "" if number is None else f", number {number}"
    call.answer(sentence, {
        "queue": queue, "priority": priority, "item": name, "bytes": len(body),
        **({} if number is None else {"number": number}), **({"dropped": True} if dropped else {}),
    })
    return DONE


def publish(call: Call, topic: str, body: bytes, route: str | None, priority: int, item: str | None) -> int:
    """Put a job into all queues bound to a topic (PUT @<topic>)."""
    with cluster_of(call, serving=True) as (client, _):
        count = client.publish(topic, body, priority, item, route=route)
    size = counted(len(body), "byte")
    call.answer(f"{size} queued in {counted(count, 'queue')}" if count else
                f"{size} not queued: no queue is bound to {topic} for it (`pqctl topic list` shows all bindings)", {
        "topic": topic, "route": route, "priority": priority, "item": item, "bytes": len(body), "queues": count,
    })
    return DONE


def get(
    call: Call, queues: Sequence[str], expire: float, then: str | None, wait: float | None, item: str | None,
    by: str | None = None,
) -> int:
    """Take a job and print it (GET, or GETB to wait for one); if it cannot be printed it is put back."""
    job = None
    with cluster_of(call, serving=True) as (client, _):
        try:
            job = client.get(
                queues or None, expire=expire, then=cast(Literal["later", "done", "dead"] | None, then),
                block=wait is not None, wait=wait, item=item, policy=cast(Any, by), meta=True,
            )
            if job is not None:
                _print(call, job, expire)
        except BaseException as error:
            if job is not None:
                _put_back(job, error)
            elif isinstance(error, INTERRUPTIONS):
                until = f"until its lease of {expire:g} s ends" if expire else "for ever: look at `pqctl job running`"
                say(f"interrupted; if a job was on its way it is running {until}")
            raise
        absent = [] if job else absent_queues(client, queues)
    if job is None:
        call.answer_nothing("; ".join(["there is no job", *absent]), {"job": None})
        return REFUSED
    return DONE


def _put_back(job: Job, error: BaseException) -> None:
    try:
        job.later()
    except SockpqError as failure:
        raise Failure(REFUSED, f"job {job.id} was not printed and is still running: {failure}") from error


def _print(call: Call, job: Job, expire: float) -> None:
    expires_at = job.meta.expires_at if job.meta else None
    if call.as_json:
        call.answer("", {"job": {
            "id": job.id, "queue": job.queue, "priority": job.priority, "item": job.item, "expires_at": expires_at,
            "data_base64": b64encode(job.data).decode(),
        }})
        return
    item = f", item {job.item}" if job.item else ""
    lease = "no lease" if expires_at is None else f"yours for {lasting(expire)}, until {local_time(expires_at)}"
    say(f"job {job.id} of {job.queue}, priority {job.priority}{item}, {lease}: {counted(len(job.data), 'byte')}")
    call.write_body(job.data)


def done(call: Call, ids: Sequence[int]) -> int:
    """Finish running jobs (DONE) and report each."""
    with cluster_of(call, serving=True) as (client, _):
        answers = client.done_many(ids)
    return _tell_done(call, ids, answers)


def done_with(call: Call, ids: Sequence[int], file: str) -> int:
    """Finish one running job with the result in this file (DONE .. RESULT), and report it."""
    if len(ids) > 1:
        raise click.UsageError("--result goes with one job")
    data = read_stream(file, BODY_BYTES_MAX)
    answer: Finished | None = None
    with cluster_of(call, serving=True) as (client, _), suppress(JobNotFound):
        answer = client.done(ids[0], result=data)
    if answer is not None and answer.dropped:
        say("its result was not kept: the servers have no room for it")
    return _tell_done(call, ids, [answer])


def _tell_done(call: Call, ids: Sequence[int], answers: Sequence[Finished | None]) -> int:
    lines, told = [], []
    for number, answer in zip(ids, answers, strict=True):
        ends = [what for what, ended in (("its queue", answer and answer.queue_done),
                                         ("its item", answer and answer.item_done)) if ended]
        lines.append(f"job {number} {NOT_RUNNING}" if answer is None else
                     f"job {number} is done" + (f", the last one of {' and of '.join(ends)}" if ends else ""))
        told.append({
            "id": number, "done": answer is not None,
            "queue_done": bool(answer and answer.queue_done), "item_done": bool(answer and answer.item_done),
        })
    call.answer("\n".join(lines), {"jobs": told})
    return REFUSED if None in answers else DONE


def later(call: Call, ids: Sequence[int], options: Mapping[str, Any]) -> int:
    """Put running jobs back (LATER), one after the other."""
    return end_each(call, ids, lambda client, number: client.later(number, **options),
                    key="later", one="back in its queue", many="back in their queues")


def running(call: Call, queue: str | None, data: bool) -> int:
    """List the running jobs (RUNLIST)."""
    with reading(call) as (client, server):
        jobs = [job for job in client.running(data, server=server) if queue in (None, job.queue)]
        if queue is not None and not jobs:
            must_exist(client, queue, server)
    if call.as_json:
        call.answer("", {"jobs": [_as_json(job) for job in jobs]})
    elif not jobs:
        call.print("no job is running")
    else:
        from sockpqd.pqctl.output.table import Column, print_rows

        columns = [Column("id", figures=True), Column("queue", folds=True), Column("priority", figures=True),
                   Column("lease ends")]
        columns += [Column("size", figures=True)] if data else []
        print_rows(call, columns, [_row(job) for job in jobs])
        if any(job.expires_at is None for job in jobs):
            call.print("no lease: it runs until a client ends it, or its session; `pqctl job later ID` puts it back")
    return DONE


def _as_json(job: RunningJob) -> dict[str, object]:
    told: dict[str, object] = {
        "id": job.id, "queue": job.queue, "priority": job.priority, "expires_at": job.expires_at,
    }
    if job.data is not None:
        told["data_base64"] = b64encode(job.data).decode()
    return told


def _row(job: RunningJob) -> list[str]:
    ends = "no lease" if job.expires_at is None else local_time(job.expires_at)
    return [str(job.id), job.queue, str(job.priority), ends, *([] if job.data is None else [sized(len(job.data))])]
