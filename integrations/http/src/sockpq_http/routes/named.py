"""Jobs by their key, or their place, in a queue."""

from __future__ import annotations

from sockpq import Key, Place
from starlette.responses import Response

from sockpq_http.exchange.caller import Caller, Calling, answer
from sockpq_http.exchange.views import peeked_view
from sockpq_http.idempotency.key import Key as IdempotencyKey
from sockpq_http.routes.numbered import WAIT_S, Wait, await_end, error_of
from sockpq_http.routes.running import (
    Change,
    change_options,
    changed_answer,
    counted_answer,
    finished_answer,
    job_not_found,
)
from sockpq_http.values.names import JobKey, Queue, Seq


async def get(caller: Calling, queue: Queue, job_key: JobKey) -> Response:
    """Look at the unfinished job with this key."""
    return await _peek(caller, Key(queue, job_key))


async def change(
    caller: Calling, queue: Queue, job_key: JobKey, what: Change, key: IdempotencyKey = None
) -> Response:
    """Change the unfinished job with this key; 409 when it is running."""
    return changed_answer(await caller.execute(key, "change", Key(queue, job_key), **change_options(what)))


async def delete(caller: Calling, queue: Queue, job_key: JobKey, key: IdempotencyKey = None) -> Response:
    """Remove the unfinished job with this key; 409 when it is running."""
    return finished_answer(await caller.execute(key, "delete", Key(queue, job_key)))


async def wait(caller: Calling, queue: Queue, job_key: JobKey, wait: Wait = WAIT_S) -> Response:
    """Wait until the job that has this key now has ended or was given up."""
    return await await_end(caller, Key(queue, job_key), wait)


async def error(caller: Calling, queue: Queue, job_key: JobKey) -> Response:
    """Return the text of the last error of the job with this key."""
    return await error_of(caller, Key(queue, job_key))


async def get_place(caller: Calling, queue: Queue, seq: Seq) -> Response:
    """Look at the job at this place."""
    return await _peek(caller, Place(queue, int(seq)))


async def change_place(caller: Calling, queue: Queue, seq: Seq, what: Change, key: IdempotencyKey = None) -> Response:
    """Change the job at this place."""
    place = Place(queue, int(seq))
    return changed_answer(await caller.execute(key, "change", place, **change_options(what)))


async def delete_place(caller: Calling, queue: Queue, seq: Seq, key: IdempotencyKey = None) -> Response:
    """Remove the job at this place."""
    return finished_answer(await caller.execute(key, "delete", Place(queue, int(seq))))


async def kick_place(caller: Calling, queue: Queue, seq: Seq, key: IdempotencyKey = None) -> Response:
    """Make the dead or delayed job at this place ready."""
    return counted_answer(await caller.execute(key, "kick_job", Place(queue, int(seq))))


async def _peek(caller: Caller, job: Key | Place) -> Response:
    peeked = await caller.read(caller.client.peek(job, headers=True))
    if peeked is None:
        raise job_not_found()
    return answer(peeked_view(peeked, caller.client.id_text))
