"""The check of `pqctl doctor` on jobs that run without a lease: nothing puts them back when their worker is dead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import sleep, time

from sockpq import BadArguments, Client, FoundJob, SockpqError

from sockpqd.pqctl.access import ClusterAccess
from sockpqd.pqctl.doctor.check import WARN, Check
from sockpqd.pqctl.output.text import counted

# The servers do not record when a job was handed out, only when it took its place in the queue, which was earlier.
OLD_S = 3600.0
LOOKS_APART_S = 1.0     # an old job that ran only the first time is being worked on
NAMED = 3
PAGE_JOBS = 1000        # the most of one FIND


def look(servers: Sequence[str], timeout: float, access: ClusterAccess) -> list[Check]:
    """Search for jobs without a lease twice, LOOKS_APART_S apart, and report those that ran both times.

    Returns no check if all jobs have leases, belong to sessions or are young, or are hidden from this user.
    """
    try:
        with access.client(servers, timeout) as client:
            first = _unleased(client)
            if not first:
                return []
            sleep(LOOKS_APART_S)
            found = unleased(first, _unleased(client), _bound(client))
    except (SockpqError, BadArguments):     # the other checks say why; or not everybody may search and list sessions
        return []
    return [found] if found else []


def unleased(first: Mapping[int, FoundJob], then: Mapping[int, FoundJob], bound: int) -> Check | None:
    """Report the jobs that were running both times; `bound`: how many running jobs go back with their sessions."""
    both = [job for number, job in then.items() if number in first]
    count = len(both) - bound
    if count <= 0:
        return None
    found = f"{counted(count, 'job', 'jobs')}, put over an hour ago, {'runs' if count == 1 else 'run'} without a lease"
    if not bound:       # else nobody can tell which they are
        names = [f"{job.id} of {job.queue}" for job in both[:NAMED]] + [".."] * (count > NAMED)
        found += f" ({', '.join(names)})"
    return Check(WARN, "leases", found,
                 "they stay until a client ends them, so if their workers are gone: `pqctl job running`, "
                 "`pqctl job later ID`; take jobs with EXPIRE, or give the queue one")


def _unleased(client: Client) -> dict[int, FoundJob]:
    running = client.find(state="running", until=time() - OLD_S, count=PAGE_JOBS)
    return {job.id: job for job in running if job.id is not None and job.meta.expires_at is None}


def _bound(client: Client) -> int:
    return sum(session.bound for session in client.sessions())
