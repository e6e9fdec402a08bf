"""Putting jobs: one or many into a queue, one into many queues, and calls that wait for an answer."""

from __future__ import annotations

from typing import Any

from fastapi import Request
from pydantic import Field, ValidationError
from sockpq import Put as OneOfMany
from sockpq import SockpqError, Stored
from starlette.responses import Response

from sockpq_http.exchange.caller import BEFORE, REPLAYED_HEADER, Caller, Calling, answer, given, replay
from sockpq_http.exchange.decoding import decodable, not_valid
from sockpq_http.exchange.views import CountView, JobView, StoredView, stored_view, taken_view
from sockpq_http.idempotency.key import Key
from sockpq_http.limits import OPERATIONS_MAX, WAIT_S_MAX
from sockpq_http.problems.errors import problem_of
from sockpq_http.problems.problem import Problem, ProblemView
from sockpq_http.values.bodies import Body
from sockpq_http.values.ids import Shown
from sockpq_http.values.model import View
from sockpq_http.values.names import Queue, Topic
from sockpq_http.values.puts import CommonPut, Put, PutJob, RawOptions, raw_headers
from sockpq_http.values.times import Span

LEAST_WAIT_S = 0.001


class OutcomeView(View):
    """The outcome of one of several jobs: it is stored, or there is a problem."""

    stored: StoredView | None = None
    problem: ProblemView | None = None


class PutView(StoredView):
    """A job that was put, or the outcome of each of several jobs, in their order."""

    results: list[OutcomeView] | None = None


class PutTo(CommonPut):
    """A job for several queues: all of them get it, or none."""

    queues: list[str] = Field(min_length=1, max_length=1000)


class Publish(CommonPut):
    """A job for all queues that are bound to a topic."""

    route: str | None = Field(
        default=None, max_length=255, description="Its routing key, words with dots between them."
    )


class Call(Body):
    """A job, and the queue in which its answer is expected, under the same item."""

    output: str
    priority: int = 0
    item: str | None = None
    lease: Span = Field(default=60.0, description="The lease of the answer.")
    wait: Span = Field(default=30.0, le=WAIT_S_MAX, description="How long to wait for it.")


async def put(caller: Calling, request: Request, queue: Queue, key: Key = None) -> Response:
    """Put one job or several.

    With the content type `application/json` the body of the request describes the job, or `jobs`. With any other one it
    is the body of the job, whose options are parameters and whose headers are the request's `Sockpq-Header-*`.
    """
    kind = request.headers.get("content-type")
    data = await request.body()
    if not _is_json(kind):
        options = _read_options(request)
        headers = raw_headers(request.headers.items(), kind)
        return await _put_one(caller, queue, options.arguments(data, headers), key)
    if request.query_params:
        raise Problem(400, "with a JSON body options are fields of it, not parameters", "not-valid")
    described = _read(data)
    if described.jobs is not None:
        return await _put_many(caller, queue, described.jobs, key)
    return await _put_one(caller, queue, described.arguments(), key)


async def put_to(caller: Calling, job: PutTo, key: Key = None) -> Response:
    """Put the same job into several queues: into all of them, or into none."""
    return _counted(await caller.execute(key, "put_to", job.queues, **job.arguments()))


async def publish(caller: Calling, topic: Topic, job: Publish, key: Key = None) -> Response:
    """Put a job into all queues that are bound to the topic."""
    return _counted(await caller.execute(key, "publish", topic, **job.arguments(), **given(route=job.route)))


async def call(caller: Calling, queue: Queue, job: Call) -> Response:
    """Put a job and wait for its answer: the job that its worker puts into `output` under the same item.

    The answer is taken like any job: end it by its id. Without one in time the status is 504, and the problem has the
    `item` under which it can be taken later.
    """
    taken = await caller.unless_gone(_call(caller, queue, job))
    if taken is None:
        raise Problem(503, "this program stops: ask again", "stopping", headers={"retry-after": "1"})
    return answer(taken)


async def _call(caller: Caller, queue: str, job: Call) -> JobView:
    taken = await caller.client.call(
        queue, job.data() or b"", job.output, priority=job.priority, item=job.item, headers=job.header_fields(),
        expire=job.lease or None, wait=max(job.wait, LEAST_WAIT_S),
    )
    peeked = await caller.client.peek(taken, headers=True)
    return taken_view(taken, caller.client.id_text, (peeked.headers if peeked else None) or {})


def _is_json(kind: str | None) -> bool:
    return kind is not None and kind.partition(";")[0].strip().lower() == "application/json"


def _read(data: bytes) -> Put:
    """Return the job, or the jobs, that a body describes. Raises RequestValidationError and Problem."""
    try:
        return Put.model_validate_json(decodable(data))
    except ValidationError as error:
        raise not_valid(error, "body") from None


def _read_options(request: Request) -> RawOptions:
    """Return the options among the parameters. Raises RequestValidationError."""
    try:
        return RawOptions.model_validate(dict(request.query_params))
    except ValidationError as error:
        raise not_valid(error, "query") from None


async def _put_one(caller: Caller, queue: str, arguments: dict[str, Any], key: str | None) -> Response:
    if key is None:
        return answer(stored_view(await caller.client.put(queue, **arguments), caller.client.id_text), 201)
    if "dedup" in arguments:
        raise Problem(400, "dedup and an Idempotency-Key are two ways to say the same: choose one", "not-valid")
    if arguments.get("on_duplicate") == "ignore" or arguments.get("when") == "failed":
        # DEDUP does not remember a put that adds no job: the repetition would add one
        once = await caller.execute(key, "put", queue, **arguments)
        return replay(StoredView, 201) if once is BEFORE else answer(stored_view(once, caller.client.id_text), 201)
    arguments["number"] = True          # so that the answer to a repetition has it, too
    stored = await caller.put_once(key, queue, arguments)
    if stored.outcome == "exists":
        view = stored_view(stored._replace(outcome="new"), caller.client.id_text)
        view.replayed = True
        return answer(view, 201, REPLAYED_HEADER)
    return answer(stored_view(stored, caller.client.id_text), 201)


async def _put_many(caller: Caller, queue: str, jobs: list[PutJob], key: str | None) -> Response:
    each = [job.arguments() for job in jobs]
    outcomes: list[Stored | SockpqError]
    if key is None:
        outcomes = await caller.client.put_many(queue, jobs=[OneOfMany(**one) for one in each])
    else:
        if len(each) > OPERATIONS_MAX:
            raise Problem(400, f"with an Idempotency-Key there are {OPERATIONS_MAX} jobs at most", "not-valid")

        def collect(transaction: Any) -> None:
            for one in each:
                transaction.put(queue, **one)

        results = await caller.once(key, collect, queue)
        if results is None:
            return replay(PutView, 201)
        outcomes = results
    return answer(PutView(results=[_outcome(one, caller.client.id_text) for one in outcomes]), 201)


def _outcome(one: Stored | SockpqError, shown: Shown) -> OutcomeView:
    if isinstance(one, SockpqError):
        return OutcomeView(problem=ProblemView(**problem_of(one).fields()))
    return OutcomeView(stored=stored_view(one, shown))


def _counted(count: Any) -> Response:
    return replay(CountView, 201) if count is BEFORE else answer(CountView(count=count), 201)


# Of put(), which reads these itself: FastAPI takes a third of the time of a request for so many parameters.
PUT_BODY: dict[str, Any] = {
    "parameters": [
        {"name": name, "in": "query", "required": False, "schema": schema}
        for name, schema in RawOptions.model_json_schema()["properties"].items()
    ],
    "requestBody": {"required": True, "content": {
        "application/json": {"schema": {"$ref": "#/components/schemas/Put"}},
        "text/plain": {"schema": {"type": "string"}},
        "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
    }},
}
PUT_MODELS = (Put,)
