"""`pqctl queue peek` and `pqctl job stat`: look at jobs without taking them."""

from __future__ import annotations

from base64 import b64encode
from typing import Literal, cast

import click
from sockpq import Client, JobNotFound, Key, Number, PeekedJob, Place

from sockpqd.pqctl.actions.existence import must_exist, no_job
from sockpqd.pqctl.connect import reading
from sockpqd.pqctl.invocation import Call
from sockpqd.pqctl.output.exit_codes import DONE, REFUSED
from sockpqd.pqctl.output.stdio import say
from sockpqd.pqctl.output.text import counted, sized
from sockpqd.pqctl.parameters import local_time

BODY_CHARACTERS_MAX = 60
PEEK_JOBS_MAX = 10_000
ENDED_STATES = ("done", "cancelled", "expired")

State = Literal["ready", "delayed", "running", "dead", "buried"]


def show_stat(call: Call, job: int | Key | Place | Number) -> int:
    """Print the figures of a numbered job (JOB STAT)."""
    if not isinstance(job, Number):
        raise click.UsageError("only numbered jobs have these figures: name one by number:N")
    with reading(call) as (client, server):
        try:
            figures = client.job_stat(job, server=server)
        except JobNotFound:
            call.answer_nothing(str(no_job(client, job, server)), {"job": None})
            return REFUSED
    if call.as_json:
        call.answer("", {"number": job.number, **figures._asdict()})
        return DONE

    from sockpqd.pqctl.output.table import Column, print_rows

    shown = [(name, "-" if value is None else str(value)) for name, value in figures._asdict().items()]
    print_rows(call, (Column("figure"), Column("value", folds=True)), shown)
    return DONE


def show_queue(call: Call, queue: str, state: str, count: int, whole: bool, raw: bool) -> int:
    """Print the first jobs of a queue in one state as a table, or with `raw` just their bodies."""
    with reading(call) as (client, server):
        if state == "ended" or state in ENDED_STATES:
            jobs = _ended(client, queue, state, count, server)
        else:
            jobs = client.peek_queue(queue, cast(State, state), count, places=not raw, server=server)
        if not jobs:
            must_exist(client, queue, server)
    if raw:
        for job in jobs:
            call.write_body(job.data + b"\n")
        return DONE
    if call.as_json:
        call.answer("", {"jobs": [as_json(job) for job in jobs]})
    elif not jobs:
        call.print(f"{queue} keeps no job that {'has ended' if state == 'ended' else 'is ' + state}"
                   if state == "ended" or state in ENDED_STATES else f"no job is {state} in {queue}")
    else:
        from sockpqd.pqctl.output.table import Column, print_rows

        columns = (Column("id", figures=True), Column("priority", figures=True), Column("key", folds=True),
                   Column("item", folds=True), Column("attempt", figures=True), Column("place"), Column("times"),
                   Column("size", figures=True), Column("body", folds=True))
        print_rows(call, columns, [_row(job, None if whole else BODY_CHARACTERS_MAX) for job in jobs])
    return DONE


def _ended(client: Client, queue: str, state: str, count: int, server: str) -> list[PeekedJob]:
    """Return the last jobs of a queue that ended in this state, or in any ("ended"), the newest first.

    Prints a hint if only some of the jobs that ended were looked at and too few are in this state.
    """
    if state == "ended":
        return client.ended_jobs(queue, count, server=server)
    last = client.ended_jobs(queue, PEEK_JOBS_MAX, server=server)
    chosen = [job for job in last if job.state == state][:count]
    if len(chosen) < count and must_exist(client, queue, server).get("retained", 0) > len(last):
        say(f"only the last {counted(len(last), 'job')} that ended were looked at: `pqctl job find {queue} --state "
            f"{state}` finds older ones")
    return chosen


def _body(data: bytes, characters_max: int | None) -> str:
    """Return a body, or its beginning, with control characters escaped for the terminal."""
    start = data if characters_max is None else data[: 4 * characters_max]
    text = "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode()
        for char in start.decode("utf-8", "backslashreplace")
    )
    if characters_max is None or (len(text) <= characters_max and len(start) == len(data)):
        return text
    return f"{text[:characters_max]}.."


def _row(job: PeekedJob, characters_max: int | None) -> list[str]:
    place = "-" if job.place is None or job.id is not None else f"{job.queue}@{job.place.seq}"
    place = place if job.ended is None else f"number:{job.number}"
    return ["-" if job.id is None else str(job.id), str(job.priority), job.key or "-", job.item or "-",
            str(job.attempt), place, ", ".join(times(job)) or "-", sized(len(job.data)),
            _body(job.data, characters_max)]


def times(job: PeekedJob) -> list[str]:
    """Return the reason and the times of a job for people."""
    named = (("for", job.at), ("lease ends", job.expires_at), ("ended", job.ended))
    reason = [] if job.reason is None else [f"reason: {job.reason}"]
    return reason + [f"{name} {local_time(unix)}" for name, unix in named if unix is not None]


def as_json(job: PeekedJob) -> dict[str, object]:
    """Return a job for programs."""
    return {
        "id": job.id, "queue": job.queue, "priority": job.priority, "state": job.state, "item": job.item,
        "key": job.key, "attempt": job.attempt, "at": job.at, "expires_at": job.expires_at,
        "reason": job.reason, "number": job.number, "ended": job.ended,
        "place": None if job.place is None or job.id is not None else job.place.seq,
        "data_base64": b64encode(job.data).decode(),
    }
