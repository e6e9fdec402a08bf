"""The body of a task's job: the task's name and its arguments; and the body of its result."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from sockpq._protocol.arguments import Codec
from sockpq.worker.errors import BadJob, BadResult, TaskFailed
from sockpq.worker.signature import Parents

NO_CALL = 'this is no call of a task: the body should be {"task": .., "args": .., "kwargs": ..}'


class JsonCodec:
    """Values as JSON, in UTF-8. Tuples become lists; values that JSON does not have raise TypeError."""

    def encode(self, value: Any, /) -> bytes:
        """Encode a value as the body of a job."""
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()

    def decode(self, data: bytes, /) -> Any:
        """Return the value that these bytes encode; raises ValueError."""
        return json.loads(data)


class Envelope(NamedTuple):
    """`reply`: a caller waits for the result. `cron`: of a periodic run its time and its schedule.

    `parents`: the steps of a flow that come before it.
    """

    task: str
    args: list[Any]
    kwargs: dict[str, Any]
    reply: bool = False
    cron: dict[str, Any] | None = None
    parents: Parents | None = None

    def encoded(self, codec: Codec) -> bytes:
        """Return the body of the job."""
        fields: dict[str, Any] = {"task": self.task, "args": self.args, "kwargs": self.kwargs}
        if self.reply:
            fields["reply"] = True
        if self.cron is not None:
            fields["cron"] = self.cron
        if self.parents is not None:
            fields["parents"] = self.parents._asdict()
        return codec.encode(fields)


def opened(data: bytes, codec: Codec) -> Envelope:
    """Return the content of the body. Raises BadJob."""
    try:
        fields = codec.decode(data)
    except Exception as error:      # whatever a codec raises: these bytes are not its own
        raise BadJob(f"{NO_CALL}, and it cannot be decoded: {error}") from error
    if not isinstance(fields, dict):
        raise BadJob(NO_CALL)
    task, args, kwargs = fields.get("task"), fields.get("args", []), fields.get("kwargs", {})
    if not isinstance(task, str) or not isinstance(args, list | tuple) or not isinstance(kwargs, dict):
        raise BadJob("the body needs a task (a name), args (a list) and kwargs (an object)")
    if not all(isinstance(name, str) for name in kwargs):
        raise BadJob("the names in kwargs must be strings")
    cron = fields.get("cron")
    return Envelope(
        task, list(args), kwargs, fields.get("reply") is True, cron if isinstance(cron, dict) else None,
        _parents(fields.get("parents")),
    )


def _parents(fields: Any) -> Parents | None:
    if fields is None:
        return None
    try:
        parents = Parents(**fields)
    except TypeError as error:
        raise BadJob(f"the parents of this step are not known: {error}") from None
    numbers, optional = parents.numbers, parents.optional
    if not isinstance(numbers, list | tuple) or not isinstance(optional, list | tuple) or len(numbers) != len(optional):
        raise BadJob("the parents of this step need numbers, and optional for each")
    return parents


def result_body(codec: Codec, value: Any) -> bytes:
    """Return the body of a result; raises BadResult for a value that the codec does not accept."""
    try:
        return codec.encode({"result": value})
    except Exception as error:      # whatever a codec raises
        raise BadResult(f"the result of the task cannot be encoded: {error}") from error


def returned_body(codec: Codec, value: Any) -> bytes:
    """Encode the value that a function returned, to be kept with its job; raises BadResult as result_body() does."""
    try:
        return codec.encode(value)
    except Exception as error:      # whatever a codec raises
        raise BadResult(f"what the task returned cannot be encoded: {error}") from error


def error_body(codec: Codec, kind: str, message: str) -> bytes:
    """Return the body of a result that is an error."""
    return codec.encode({"error": kind, "message": message})


def result_of(data: bytes, codec: Codec) -> Any:
    """Return the value of a result; raises TaskFailed."""
    fields = codec.decode(data)
    if not isinstance(fields, dict) or not ("result" in fields or "error" in fields):
        raise TaskFailed("BadResult", "what came is not the result of a task")
    if "error" in fields:
        raise TaskFailed(str(fields["error"]), str(fields.get("message", "")))
    return fields["result"]
