"""The check of `pqctl doctor` on jobs that run without a lease: nothing brings them back when their worker is dead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import sleep

from sockpq import BadArguments, Client, RunningJob, SockpqError

from sockpqd.pqctl.access import ClusterAccess
from sockpqd.pqctl.doctor.check import WARN, Check
from sockpqd.pqctl.output.text import counted

LOOKS_APART_S = 1.0     # work that takes less is not worth a word
NAMED = 3


def look(servers: Sequence[str], timeout: float, access: ClusterAccess) -> list[Check]:
    """Look twice; no check if all have leases or belong to sessions, or if this user may not see them."""
    try:
        with access.client(servers, timeout) as client:
            first = _unleased(client)
            if not first:
                return []
            sleep(LOOKS_APART_S)
            found = unleased(first, _unleased(client), _bound(client))
    except (SockpqError, BadArguments):     # the other checks say why; or not everybody may list jobs and sessions
        return []
    return [found] if found else []


def unleased(first: Mapping[int, RunningJob], then: Mapping[int, RunningJob], bound: int) -> Check | None:
    """Report the jobs that ran both times; `bound`: how many running jobs go back with their sessions."""
    both = [job for number, job in then.items() if number in first]
    count = len(both) - bound
    if count <= 0:
        return None
    found = f"{counted(count, 'job runs', 'jobs run')} without a lease"
    if not bound:       # else nobody can tell which they are
        names = [f"{job.id} of {job.queue}" for job in both[:NAMED]] + [".."] * (count > NAMED)
        found += f" ({', '.join(names)})"
    return Check(WARN, "leases", found,
                 "they stay until a client ends them, so if their workers are gone: `pqctl job running`, "
                 "`pqctl job later ID`; take jobs with EXPIRE, or give the queue one")


def _unleased(client: Client) -> dict[int, RunningJob]:
    return {job.id: job for job in client.running() if job.expires_at is None}


def _bound(client: Client) -> int:
    return sum(session.bound for session in client.sessions())
