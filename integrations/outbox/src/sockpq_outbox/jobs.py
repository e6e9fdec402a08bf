"""Jobs as rows: the options of a PUT as JSON, checked where the row is written."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from threading import Lock
from typing import Any, NamedTuple
from uuid import uuid4

from sockpq import BadArguments, Client, Put, Transaction

NO_TASK_OPTIONS = ("new_item", "value")         # of a Put; nobody would learn the item, and there is no codec
_ABSENT = Put().json
_lock = Lock()
_checking: Client | None = None


class Row(NamedTuple):
    """A job that is to be put: its id in the table, its queue, its body, and the options of Client.put() as JSON."""

    id: int
    queue: str
    body: bytes
    options: str

    def add_to(self, transaction: Transaction) -> None:
        """Put it in this transaction. Raises ValueError, TypeError or DataTooLarge."""
        transaction.put(self.queue, self.body, **options_of(self.options))


def columns_of(queue: str, job: Put) -> dict[str, Any]:
    """Return the columns of a job's row. Raises BadArguments, TypeError or DataTooLarge, as Client.put() does."""
    for name in NO_TASK_OPTIONS:
        if getattr(job, name) not in (False, _ABSENT):
            raise BadArguments(f"an outbox does not take {name}")
    now = time.time()
    body = _body(job)
    options = {name: value for name, value in _options(job, now).items() if value is not None}
    text = json.dumps(options, separators=(",", ":"), ensure_ascii=False)
    check(Row(0, queue, body, text))
    return {"queue": str(queue), "body": body, "options": text, "created": now}


def options_of(text: str) -> dict[str, Any]:
    """Return the options of a row. Raises ValueError."""
    options = json.loads(text)
    if not isinstance(options, dict):
        raise ValueError("the options of a row are no JSON object")
    if "dedup" in options:
        options["dedup"] = tuple(options["dedup"])
    return options


def check(row: Row) -> None:
    """Raise what the client would raise for this job before it sends anything."""
    global _checking
    with _lock:
        if _checking is None:
            _checking = Client("127.0.0.1:1", sessions=False)       # which is never used: nothing is sent
    row.add_to(_checking.transaction())


def _body(job: Put) -> bytes:
    if job.json is not _ABSENT:
        if job.data is not None:
            raise BadArguments("data and json are two ways to give the body: give one of them")
        return json.dumps(job.json, ensure_ascii=False, separators=(",", ":")).encode()
    if isinstance(job.data, str):
        return job.data.encode()
    if isinstance(job.data, bytes | bytearray | memoryview):
        return bytes(job.data)
    raise TypeError("a job needs data (bytes or str) or json")


def _options(job: Put, now: float) -> dict[str, Any]:
    """Return the options as JSON has them; `delay` counts from now, so it becomes a time.

    A job that is done once gets an id among its headers, by which an inbox recognizes it.
    """
    if job.delay is not None and job.at is not None:
        raise BadArguments("delay counts from now, at is a time: not both")
    at = job.at
    if job.delay is not None:
        if isinstance(job.delay, bool) or not isinstance(job.delay, int | float):
            raise TypeError(f"delay must be a number of seconds, not {type(job.delay).__name__}")
        if not job.delay >= 0:
            raise BadArguments(f"delay {job.delay} is less than 0 seconds")
        at = now + job.delay if job.delay else None
    headers = dict(job.headers or {})
    if job.every is None:
        headers.setdefault("id", uuid4().hex)
    return {
        "priority": job.priority or None, "item": job.item, "at": at, "ttl": job.ttl, "every": job.every,
        "after": _listed(job.after), "when": job.when, "key": job.key, "on_duplicate": job.on_duplicate,
        "tries": job.tries, "group": job.group, "number": job.number or None, "lease": job.lease,
        "headers": headers or None, "dedup": job.dedup,
    }


def _listed(names: str | Iterable[str] | None) -> str | list[str] | None:
    return names if names is None or isinstance(names, str) else list(names)
