"""Errors for queues that do not exist, with suggestions for misspelt names."""

from __future__ import annotations

from difflib import get_close_matches

from sockpq import BadArguments, Client, QueueNotFound

from pqctl.output.exit_codes import REFUSED, Failure

SIMILAR_MAX = 3


def must_exist(client: Client, queue: str, server: str | None = None) -> dict[str, int]:
    """Return the counters of a queue, {} from a server too old to have them; raises Failure if it does not exist."""
    try:
        return client.queue_stat(queue, server=server)
    except QueueNotFound:
        raise missing(client, queue, server) from None
    except BadArguments:
        return {}


def missing(client: Client, queue: str, server: str | None = None) -> Failure:
    """Return the failure for a queue that does not exist."""
    names = [found.name for found in client.queues(server=server)]
    similar = get_close_matches(queue, names, SIMILAR_MAX)
    hint = f"did you mean {' or '.join(similar)}?" if similar else "`pqctl queue list` shows all"
    return Failure(REFUSED, f"there is no queue {queue} ({hint})")
