"""The operations of calls, and what their replies are to a client of beanstalkd."""

from __future__ import annotations

from sockpqd.beanstalk import U32_MAX, calls
from sockpqd.cluster.api import Cluster
from sockpqd.core import Due, Get, GetWith, Handed, Policy, Put, PutNumbered, PutWith

MS = 1000
LASTING_S = float(U32_MAX)      # the time of a job that has none


def put_of(call: calls.Put) -> PutNumbered:
    """The operation of a put."""
    due = Due(call.delay_s * MS) if call.delay_s else None
    put = PutWith(Put(call.tube, -call.priority, call.body), due)
    return PutNumbered(put, number=True, lease_ms=call.ttr_s * MS)


def get_of(call: calls.Reserve, session: int | None) -> Get | GetWith:
    """The operation of a reserve, whose job is bound to the session."""
    get = Get(call.tubes, session=session)
    return get if len(call.tubes) == 1 else GetWith(get, policy=Policy.PLACE)


def reserved(cluster: Cluster, reply: Handed) -> calls.Reserved:
    """The job as a client of beanstalkd gets it. One put natively has no number but that of this hand-out."""
    job = cluster.machine.running_job(reply.id)
    number, ttr_s = reply.id, LASTING_S
    if job is not None:
        extras = job.extras
        if extras is not None and extras.counts is not None:
            number = job.seq
        if extras is not None and extras.lease_ms:
            ttr_s = extras.lease_ms / MS                    # as it counts it, from when it hears of the job
        elif job.deadline_ms is not None:
            ttr_s = max(job.deadline_ms - cluster.time_ms, 0) / MS
    return calls.Reserved(number, reply.id, reply.queue, ttr_s, reply.data)
