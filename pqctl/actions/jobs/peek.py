"""`pqctl job show` and `pqctl queue peek`: look at jobs without taking them."""

from __future__ import annotations

from base64 import b64encode
from typing import Literal, cast

import click
from sockpq import JobNotFound, Key, Number, PeekedJob, Place

from sockpqd.pqctl.actions.existence import must_exist, no_job
from sockpqd.pqctl.connect import reading
from sockpqd.pqctl.invocation import Call
from sockpqd.pqctl.output.exit_codes import DONE, REFUSED
from sockpqd.pqctl.output.stdio import say
from sockpqd.pqctl.output.text import counted, sized
from sockpqd.pqctl.parameters import local_time

BODY_CHARACTERS_MAX = 60

State = Literal["ready", "delayed", "running", "dead", "buried"]


def show_job(call: Call, job: int | Key | Place | Number) -> int:
    """Print one job: its body to standard output, a line about it to standard error."""
    with reading(call) as (client, server):
        found = client.peek(job, server=server)
        if found is None:
            call.answer_nothing(str(no_job(client, job, server)), {"job": None})
            return REFUSED
    if call.as_json:
        call.answer("", {"job": _as_json(found)})
        return DONE
    about = [f"{name} {value}" for name, value in _names(found) if value]
    say(f"{found.state} in {found.queue}, {', '.join([f'priority {found.priority}', *about, *_times(found)])}: "
        f"{counted(len(found.data), 'byte')}")
    call.write_body(found.data)
    return DONE


def _names(job: PeekedJob) -> tuple[tuple[str, object], ...]:
    return (("item", job.item), ("key", job.key), ("number", job.number))


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
        jobs = client.peek_queue(queue, cast(State, state), count, places=not raw, server=server)
        if not jobs:
            must_exist(client, queue, server)
    if raw:
        for job in jobs:
            call.write_body(job.data + b"\n")
        return DONE
    if call.as_json:
        call.answer("", {"jobs": [_as_json(job) for job in jobs]})
    elif not jobs:
        call.print(f"no job is {state} in {queue}")
    else:
        from sockpqd.pqctl.output.table import Column, print_rows

        columns = (Column("id", figures=True), Column("priority", figures=True), Column("key", folds=True),
                   Column("item", folds=True), Column("attempt", figures=True), Column("place"), Column("times"),
                   Column("size", figures=True), Column("body", folds=True))
        print_rows(call, columns, [_row(job, None if whole else BODY_CHARACTERS_MAX) for job in jobs])
    return DONE


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
    return ["-" if job.id is None else str(job.id), str(job.priority), job.key or "-", job.item or "-",
            str(job.attempt), place, ", ".join(_times(job)) or "-", sized(len(job.data)),
            _body(job.data, characters_max)]


def _times(job: PeekedJob) -> list[str]:
    times = (("for", job.at), ("lease ends", job.expires_at))
    reason = [] if job.reason is None else [f"reason: {job.reason}"]
    return reason + [f"{name} {local_time(unix)}" for name, unix in times if unix is not None]


def _as_json(job: PeekedJob) -> dict[str, object]:
    return {
        "id": job.id, "queue": job.queue, "priority": job.priority, "state": job.state, "item": job.item,
        "key": job.key, "attempt": job.attempt, "at": job.at, "expires_at": job.expires_at,
        "reason": job.reason, "number": job.number,
        "place": None if job.place is None or job.id is not None else job.place.seq,
        "data_base64": b64encode(job.data).decode(),
    }
