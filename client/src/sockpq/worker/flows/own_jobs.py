"""The jobs of flows that are not steps. Workers run them like other jobs; running one twice does no harm.

A *watch* makes the steps after a failed one fail: it waits for the first failure, and then cancels these steps. So this
depends neither on the producer of the flow nor on the worker whose step has failed. It is put again for the steps that
may still fail. A *join* does nothing: it waits for some of the items that one job could not wait for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from sockpq._backends import sync as threads
from sockpq._protocol.arguments import TRIES_MAX, AfterWhen, Bodies, Codec
from sockpq._protocol.command import Command
from sockpq._protocol.commands import batches, jobs
from sockpq.errors import CrossCluster, ItemNotFound
from sockpq.model import Stored
from sockpq.worker.current import current_job
from sockpq.worker.envelope import Envelope
from sockpq.worker.flows.calls import Home
from sockpq.worker.flows.plan import Followers
from sockpq.worker.policy import Policy

WATCH = "sockpq.flow.watch"
JOIN = "sockpq.flow.join"
POLICY = Policy(tries=TRIES_MAX)
REASON = "ParentFailed"
LOOK_S = 5.0            # between two looks of a watch that cannot wait for the next failure


def watch(queue: str, followers: Sequence[Followers], codec: Codec, bodies: Bodies) -> Command[Stored]:
    """Return the PUT of a job that waits until one of these stages has failed."""
    body = Envelope(WATCH, [[list(one) for one in followers]], {}).encoded(codec)
    after = [item for item, _ in followers]
    return jobs.put(queue, body, after=after, when="failed", headers={"task": WATCH}, bodies=bodies)


def join(
    queue: str, item: str, after: Sequence[str], when: AfterWhen, codec: Codec, bodies: Bodies,
) -> Command[Stored]:
    """Return the PUT of a job of this item that waits for the items `after`."""
    body = Envelope(JOIN, [], {}).encoded(codec)
    return jobs.put(queue, body, item=item, after=after, when=when, headers={"task": JOIN}, bodies=bodies)


def own_function(app: Home, task: str) -> Callable[..., None] | None:
    """Return the function that works on these jobs, None for any other task."""
    if task == JOIN:
        return lambda: None
    return _watched(app) if task == WATCH else None


def _watched(app: Home) -> Callable[[list[Followers]], None]:
    def cancel(followers: list[Followers]) -> None:
        left = []
        for item, after in followers:
            try:
                stat = app.client.item_stat(item)
            except ItemNotFound:        # it has ended
                continue
            if not stat.dead and not stat.buried:
                left.append((item, after))
                continue
            for one in after:
                with suppress(ItemNotFound):
                    app.client.item_cancel(one, reason=REASON)
        if left:
            job = current_job()
            router = app.client._router
            again = watch(job.queue, left, app.codec, router.bodies)._replace(beside=left[0][0])
            try:
                threads.run(router.run(batches.transaction([again, jobs.done(job)])))
            except CrossCluster:        # the queue moves, and only what is here already stays beside the flow
                threads.run(router.run(jobs.later(job, delay=LOOK_S, yielded=True)))
            job._ended = True
    return cancel
