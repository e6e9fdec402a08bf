"""The names of queues, and the ids of results: `<queue>/<32 hexadecimal digits>`. The digits are the job's key.

The id is known before there is a job, so that a task can be enqueued by a row of a database.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from uuid import uuid4

from sockpq.names import escape_name

ID_MAX = 64                 # what Django promises of ids
KEY_LENGTH = 32
QUEUE_MAX = ID_MAX - KEY_LENGTH - 1
KEY = re.compile(r"[0-9a-f]{32}")
RESULTS = "+results"        # no escaped name has a + after its first character, or is this one
DEAD = "_dead"              # what the server adds for the dead-letter queue


class TaskId(NamedTuple):
    """An id of a result, in its parts: the queue as Django names it, and the key of the job."""

    queue: str
    key: str

    def __str__(self) -> str:
        return f"{self.queue}/{self.key}"


def new_id(queue: str) -> TaskId:
    """Return an id for a task of this queue that nobody can guess."""
    return TaskId(queue, uuid4().hex)


def parsed_id(text: str) -> TaskId | None:
    """Return the parts of an id; None if it is not one of ours."""
    queue, _, key = str(text).rpartition("/")
    return TaskId(queue, key) if queue and KEY.fullmatch(key) and len(queue) <= QUEUE_MAX else None


def queue_of(queue: str, prefix: str) -> str:
    """Return the name that a queue of Django has in the cluster."""
    return escape_name(queue, prefix)


def dead_queue_of(queue: str, prefix: str) -> str:
    """Return the name of the dead-letter queue of a queue of Django."""
    return queue_of(queue, prefix) + DEAD


def results_queue(prefix: str) -> str:
    """Return the name of the queue that maps the key of each ended job to its number."""
    return prefix + RESULTS
