"""`pqctl job retry`, `cancel` and `await`: commands about the end of a job."""

from __future__ import annotations

from base64 import b64encode

import click
from sockpq import Client, JobNotFound, JobRunning, Key, NotSupported, Number, PeekedJob, Place

from sockpqd.pqctl.actions.existence import existing_job, no_job
from sockpqd.pqctl.actions.jobs.details import state_of
from sockpqd.pqctl.connect import cluster_of
from sockpqd.pqctl.invocation import Call
from sockpqd.pqctl.output.exit_codes import DONE, REFUSED, Failure
from sockpqd.pqctl.output.stdio import say
from sockpqd.pqctl.output.text import counted, readable
from sockpqd.pqctl.parameters import described


def retry(call: Call, job: int | Key | Place | Number) -> int:
    """Make a job ready again that has ended, is dead, buried or delayed, selected by its number, key or place."""
    with cluster_of(call, serving=True) as (client, _):
        if isinstance(job, Place):
            return _retry_place(call, client, job)
        found = _look(client, job)
        number = found.number
        if number is None:
            raise Failure(REFUSED, f"{described(job)} has no number: name it by its place, QUEUE@N")
        with existing_job(client, Number(number)):
            state = state_of(found)
            queue = _retry(client, number, found, state)
    call.answer(f"job with number {number}, which was {state}, is ready in {queue}",
                {"number": number, "queue": queue, "was": state})
    return DONE


def _retry_place(call: Call, client: Client, place: Place) -> int:
    """Make the dead or delayed job at this place ready."""
    with existing_job(client, place):
        if client.peek(place) is None:
            raise JobNotFound
        try:
            client.kick_job(place)
        except JobNotFound:
            named = described(place)
            raise Failure(REFUSED, f"{named} is neither dead nor delayed: there is nothing to retry") from None
    call.answer(f"{described(place)} is ready again", {"queue": place.queue, "place": place.seq})
    return DONE


def _retry(client: Client, number: int, found: PeekedJob, state: str) -> str:
    """Make the job ready; returns its queue."""
    match state:
        case "done" | "cancelled" | "expired":
            client.retry_ended(number)
        case "buried" | "delayed":
            client.kick_job(number)
        case "dead":
            home = found.queue if found.life is None else found.life.died_in or found.queue
            client.kick_job(Place(found.queue, number))     # a numbered job has its number as its place
            return home
        case _:
            raise Failure(REFUSED, f"the job with number {number} is {state}: there is nothing to retry")
    return found.queue


def cancel(call: Call, job: int | Key | Place | Number, *, untaken: bool) -> int:
    """Remove a job that has not ended, a running one too, of which its worker is notified (DELETE)."""
    if untaken and not isinstance(job, Number | Key):
        raise click.UsageError("--untaken goes with a number or a key: an ID belongs to a running job")
    with cluster_of(call, serving=True) as (client, _), existing_job(client, job):
        was_running = isinstance(job, int)
        try:
            client.delete(job, untaken=True) if isinstance(job, Number) else client.delete(job)
        except JobRunning:
            if untaken:
                raise
            client.delete(_id_of(client, job))
            was_running = True
    call.answer(f"{described(job)} is cancelled" + (", its worker is notified" if was_running else ""),
                {"job": job if isinstance(job, int) else job._asdict(), "was_running": was_running})
    return DONE


def _id_of(client: Client, job: int | Key | Place | Number) -> int | Number:
    """Turn the key of a running job into its id; a number stays as it is."""
    if isinstance(job, Number):
        return job
    found = client.peek(job)
    if found is None or found.id is None:
        raise Failure(REFUSED, f"{described(job)} is not running any more: try again")
    return found.id


def await_job(call: Call, job: int | Key | Place | Number, wait: float | None) -> int:
    """Wait for the end of a job (AWAIT) and print its result; the exit code is DONE only for a job that is done."""
    if not isinstance(job, Number | Key):
        raise click.UsageError("only a job with a number or a key is awaited: name it by number:N or QUEUE/KEY")
    with cluster_of(call, serving=True) as (client, _), existing_job(client, job):
        ended = client.await_job(job, wait=wait)
    if ended is None:
        call.answer_nothing(f"{described(job)} has not ended yet", {"state": None, "data_base64": None})
        return REFUSED
    if call.as_json:
        call.answer("", {"state": ended.state, "data_base64": b64encode(ended.data).decode()})
    elif ended.state == "done":
        say(f"{described(job)} is done: {counted(len(ended.data), 'byte')}")
        call.write_body(ended.data)
    else:
        said = readable(ended.data).removesuffix("\n").split("\n")
        say("\n    ".join([f"{described(job)} is {ended.state}" + (":" if ended.data else ""), *said]).rstrip())
    return DONE if ended.state == "done" else REFUSED


def _look(client: Client, job: int | Key | Place | Number) -> PeekedJob:
    if not isinstance(job, Number | Key):
        raise click.UsageError("a running job is not retried: name one by number:N, QUEUE/KEY or QUEUE@N")
    found = client.peek(job) if isinstance(job, Key) else None
    number = job if isinstance(job, Number) else None if found is None or found.number is None else Number(found.number)
    if number is not None:
        try:
            found = client.ended(number, life=True)
        except (NotSupported, JobNotFound):
            found = client.peek(number)
    if found is None:
        raise no_job(client, job)
    return found
