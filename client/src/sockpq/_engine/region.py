"""Describes the role of a cluster for another region: why its servers execute no commands that write."""

from __future__ import annotations

from collections.abc import Iterable

from sockpq._engine.probe import Response
from sockpq.errors import Refused
from sockpq.model import ReplicaStatus

FENCED = "409 Fenced "


def region_part(responses: Iterable[Response]) -> str:
    """Return which cluster takes writes, if answers to CLUSTER REPLICA say that this one is a copy, or fenced.

    "" if none of them says so: the cluster has no such role, or its servers are too old to know.
    """
    for response in responses:
        for answer in response.answers:
            if isinstance(answer.value, ReplicaStatus):
                origin = f"cluster {answer.value.origin}" if answer.value.origin else "its origin"
                at = f", as at {answer.value.server}" if answer.value.server else ""
                return (f"these servers are a copy in another region, and only {origin} takes writes{at}: name servers "
                        "of that one, or promote the copy if that one is lost")
            if isinstance(answer.error, Refused) and str(answer.error).startswith(FENCED):
                taker = str(answer.error).removeprefix(FENCED)
                return (f"these servers are switched off for good, as their copy, the cluster {taker}, takes writes in "
                        "their place: name servers of that one")
    return ""
