"""`pqctl job show`: everything the cluster knows about one job, even an ended one."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple, TypeVar

from sockpq import Client, JobNotFound, Key, NotSupported, Number, PeekedJob, Place

from sockpqd.pqctl.actions.existence import no_job
from sockpqd.pqctl.actions.jobs.peek import ENDED_STATES, as_json, times
from sockpqd.pqctl.connect import reading
from sockpqd.pqctl.invocation import Call
from sockpqd.pqctl.output.exit_codes import DONE, REFUSED
from sockpqd.pqctl.output.stdio import say
from sockpqd.pqctl.output.text import counted, one_line, readable
from sockpqd.pqctl.parameters import local_time

RESULT_CHARACTERS_MAX = 200

T = TypeVar("T")


class Details(NamedTuple):
    """A job, the text of its last error, and the result of one that has ended; None where there is none."""

    job: PeekedJob
    error: str | None
    result: bytes | None


def show_job(call: Call, job: int | Key | Place | Number, part: Literal["body", "error", "result"]) -> int:
    """Print one job: this part of it to standard output, the rest as lines to standard error."""
    with reading(call) as (client, server):
        found = _details(client, job, server)
        if found is None:
            call.answer_nothing(str(no_job(client, job, server)), {"job": None})
            return REFUSED
    if call.as_json:
        call.answer("", {"job": _as_json(found)})
        return DONE
    text = None if found.error is None else found.error.encode("utf-8", "surrogateescape")
    data = {"body": found.job.data, "error": text, "result": found.result}[part]
    if data is None:
        call.answer_nothing(f"it has no {part}", {})
        return REFUSED
    for line in _lines(found, part):
        say(line)
    call.write_body(data)
    return DONE


def state_of(job: PeekedJob) -> str:
    """Return the state in which find() shows a job: a dead one is ready in the queue to which it went."""
    died = job.life is not None and job.life.died_in is not None
    return "dead" if died and job.state == "ready" else job.state


def _details(client: Client, selector: int | Key | Place | Number, server: str) -> Details | None:
    """Look at a job; parts that an old server does not know are missing. The job may end between two requests."""
    job = _known(lambda: client.peek(selector, headers=True, server=server),
                 lambda: client.peek(selector, server=server))
    number = selector if isinstance(selector, Number) else None if job is None or job.number is None else (
        Number(job.number))
    if number is not None:
        job = _known(lambda: client.ended(number, headers=True, life=True, server=server), lambda: job)
    if job is None:
        return None
    named = number or selector
    error = _known(lambda: client.job_error(named, server=server), lambda: None)
    result = None
    if number is not None and job.state in ENDED_STATES:
        result = _known(lambda: client.job_result(number, server=server), lambda: None) or None
    return Details(job, error, result)


def _known(ask: Callable[[], T], otherwise: Callable[[], T]) -> T:
    try:
        return ask()
    except (NotSupported, JobNotFound):
        return otherwise()


def _lines(found: Details, part: str) -> Iterator[str]:
    job = found.job
    names = (("item", job.item), ("key", job.key), ("number", job.number), ("group", job.group), ("id", job.id))
    about = [f"{name} {value}" for name, value in names if value is not None]
    if job.progress is not None:
        about.append(f"progress {job.progress}%")
    yield (f"{state_of(job)} in {job.queue}, {', '.join([f'priority {job.priority}', *about, *times(job)])}: "
           f"{counted(len(job.data), 'byte')}")
    if job.life is not None:
        yield ", ".join(_life(job))
    for name, value in (job.headers or {}).items():
        yield f"header {name}: {one_line(value)}"
    if found.error is not None and part != "error":
        lines = readable(found.error.encode("utf-8", "surrogateescape")).removesuffix("\n").split("\n")
        yield "\n    ".join(["error:", *lines])
    if found.result is not None and part != "result":
        text = one_line(found.result.decode("utf-8", "backslashreplace"))
        more = ".. (--result writes all of it)" if len(text) > RESULT_CHARACTERS_MAX else ""
        yield f"result, {counted(len(found.result), 'byte')}: {text[:RESULT_CHARACTERS_MAX]}{more}"


def _life(job: PeekedJob) -> Iterator[str]:
    life = job.life
    if life is None:
        return
    yield f"put {local_time(life.created)}"
    if life.first is not None:
        yield f"first taken {local_time(life.first)}"
    if life.started is not None and life.taken > 1:
        yield f"last taken {local_time(life.started)}"
    yield f"taken {counted(life.taken, 'time')}"
    if life.died_in is not None:
        yield f"died in {life.died_in}"


def _as_json(found: Details) -> dict[str, object]:
    job = found.job
    return {
        **as_json(job), "group": job.group, "headers": job.headers, "progress": job.progress,
        "life": None if job.life is None else job.life._asdict(), "error": found.error,
        "result_base64": None if found.result is None else b64encode(found.result).decode(),
    }
