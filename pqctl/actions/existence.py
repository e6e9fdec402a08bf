"""Errors for things that do not exist: they suggest similar names, or the command that lists the existing ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from typing import NamedTuple

from sockpq import BadArguments, Client, JobNotFound, Key, NotExecuted, Number, Place, QueueNotFound, SockpqError

from sockpqd.pqctl.output.exit_codes import REFUSED, Failure
from sockpqd.pqctl.parameters import described

SIMILAR_MAX = 3


class EntityKind(NamedTuple):
    """A kind of named things, such as queues."""

    called: str
    words: str                  # a server's answer when there is none of this name, see docs/PROTOCOL.md
    listed_by: str
    names: Callable[[Client, str | None], Iterable[str]]


QUEUE = EntityKind("queue", "404 Queue Not Found", "pqctl queue list",
                   lambda client, server: [queue.name for queue in client.queues(server=server)])
TOPIC = EntityKind("topic", "404 Topic Not Found", "pqctl topic list",
                   lambda client, server: {binding.topic for binding in client.topic_list(server=server)})
PULSE = EntityKind("pulse", "404 Pulse Not Found", "pqctl pulse list",
                   lambda client, server: client.pulses(server=server))
WORKERS = EntityKind("pool of workers", "404 Worker Not Found", "pqctl worker list",
                     lambda client, server: [pool.name for pool in client.workers(server=server)])
ITEM = EntityKind("item", "404 Item Not Found", "pqctl item list",
                  lambda client, server: [item.name for item in client.items(server=server)])
GROUP = EntityKind("group", "404 Group Not Found", "pqctl group list",
                   lambda client, server: [group.name for group in client.groups(server=server)])
USER = EntityKind("user", "404 User Not Found", "pqctl user list",
                  lambda client, server: [user.name for user in client.users()])

NOT_RUNNING = "is not running (any more): `pqctl job running` shows those that are"


@contextmanager
def existing(client: Client, kind: EntityKind, name: str, server: str | None = None) -> Iterator[None]:
    """Turn the server's answer that the name does not exist into a Failure with a hint."""
    try:
        yield
    except NotExecuted as error:
        if str(error) != kind.words:
            raise
        raise missing(client, kind, name, server) from None


def missing(client: Client, kind: EntityKind, name: str, server: str | None = None) -> Failure:
    """Return the failure for a name that does not exist."""
    return Failure(REFUSED, f"there is no {kind.called} {name} ({hint(client, kind, name, server)})")


def hint(client: Client, kind: EntityKind, name: str, server: str | None = None) -> str:
    """Suggest similar names; if there are none, the command that lists all."""
    similar: list[str] = []
    with suppress(SockpqError):             # not everybody may list them
        similar = get_close_matches(name, sorted(kind.names(client, server)), SIMILAR_MAX)
    return f"did you mean {' or '.join(similar)}?" if similar else f"`{kind.listed_by}` shows all"


def must_exist(client: Client, queue: str, server: str | None = None) -> dict[str, int]:
    """Return the counters of a queue, {} from a server too old to have them; raises Failure if it does not exist."""
    try:
        return client.queue_stat(queue, server=server)
    except QueueNotFound:
        raise missing(client, QUEUE, queue, server) from None
    except BadArguments:
        return {}


def absent_queues(client: Client, queues: Iterable[str], server: str | None = None) -> list[str]:
    """Describe each queue that does not exist: its name may be misspelt."""
    told = []
    for queue in queues:
        try:
            must_exist(client, queue, server)
        except Failure as failure:
            told.append(str(failure))
    return told


@contextmanager
def existing_job(client: Client, job: int | Key | Place | Number) -> Iterator[None]:
    """Turn the server's answer that there is no such job into a Failure with a hint."""
    try:
        yield
    except JobNotFound:
        raise no_job(client, job) from None


def no_job(client: Client, job: int | Key | Place | Number, server: str | None = None) -> Failure:
    """Return the failure for a job that does not exist; its queue may not either."""
    if isinstance(job, int):
        return Failure(REFUSED, f"job {job} {NOT_RUNNING}")
    if isinstance(job, Number):
        return Failure(REFUSED, f"there is no {described(job)}")
    try:
        must_exist(client, job.queue, server)
    except Failure as failure:
        return failure
    return Failure(
        REFUSED, f"there is no {described(job)}: `pqctl queue peek {job.queue}` shows the first that are ready")
