"""The table of all operations: how each is executed, what it costs, and where it is allowed.

A new operation needs a struct in core/ops (and its place in a union there), a handler and a cost in this package, and
a row here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from sockpqd.core.handlers import (
    cost,
    dispatch,
    fragments,
    groups,
    items,
    pulses,
    queues,
    requests,
    sessions,
    settings,
    topics,
    users,
    workers,
)
from sockpqd.core.handlers.cluster import clone, cluster_map, elsewhere, leadership, members, mirror, promote
from sockpqd.core.handlers.jobs import batch, edit, finish, get, move_queue, put, watch
from sockpqd.core.levels import FIRST_LEVEL, REPLICAS
from sockpqd.core.ops import cluster as cluster_ops
from sockpqd.core.ops import fragments as fragment_ops
from sockpqd.core.ops import jobs as job_ops
from sockpqd.core.ops import pulses as pulse_ops
from sockpqd.core.ops import queues as queue_ops
from sockpqd.core.ops import sessions as session_ops
from sockpqd.core.ops import topics as topic_ops
from sockpqd.core.ops import users as user_ops
from sockpqd.core.ops import workers as worker_ops


class Handler(NamedTuple):
    """The row of one operation: its handler, its cost, and whether it may stand alone or inside others."""

    execute: dispatch.Execute
    cost: Callable[[Any], cost.Cost]
    in_batch: bool = False          # PUTS; BEGIN .. COMMIT
    in_request: bool = False        # REQ
    brings: elsewhere.Brings | None = None      # to which names it brings something: another cluster may own them
    level: int = FIRST_LEVEL        # of the cluster that may log it: see core/levels.py


HANDLERS: dict[type[Any], Handler] = {
    job_ops.Put: Handler(put.put, put.put_cost, in_batch=True, in_request=True, brings=put.put_brings),
    job_ops.PutWith: Handler(put.put_with, put.put_with_cost, in_batch=True, in_request=True,
        brings=put.put_with_brings),
    job_ops.Get: Handler(get.get, get.get_cost, in_request=True),
    job_ops.GetWith: Handler(get.get_with, get.get_with_cost, in_request=True),
    job_ops.End: Handler(finish.end, finish.end_cost, in_batch=True, in_request=True),
    job_ops.Done: Handler(finish.done, cost.small, in_batch=True, in_request=True),
    job_ops.Later: Handler(finish.later, cost.small, in_batch=True, in_request=True),
    job_ops.Return: Handler(finish.return_, cost.small),
    job_ops.Touch: Handler(edit.touch, edit.touch_cost, in_batch=True, in_request=True),
    job_ops.Change: Handler(edit.change, edit.change_cost, in_batch=True, in_request=True),
    job_ops.Delete: Handler(edit.delete, edit.delete_cost, in_batch=True, in_request=True),
    job_ops.Move: Handler(edit.move, edit.move_cost, in_batch=True, in_request=True, brings=edit.move_brings),
    job_ops.Kick: Handler(edit.kick, edit.kick_cost, in_batch=True, in_request=True),
    job_ops.Batch: Handler(batch.batch, batch.batch_cost, in_request=True),
    job_ops.Await: Handler(watch.await_end, watch.await_cost),
    queue_ops.ConfigureQueue: Handler(queues.configure_queue, queues.settings_cost, in_request=True,
        brings=queues.settings_bring),
    queue_ops.DeleteQueue: Handler(queues.delete_queue, queues.purge_cost, in_request=True),
    queue_ops.PurgeQueue: Handler(queues.purge_queue, queues.purge_cost, in_request=True),
    queue_ops.MoveJobs: Handler(move_queue.move_jobs, move_queue.move_jobs_cost, in_request=True,
        brings=move_queue.move_jobs_brings),
    queue_ops.PauseQueue: Handler(queues.pause_queue, cost.on_queue, in_request=True, brings=queues.pause_brings),
    queue_ops.ConfigureGroup: Handler(groups.configure_group, groups.group_cost, in_request=True),
    queue_ops.DeleteGroup: Handler(groups.delete_group, groups.group_cost, in_request=True),
    queue_ops.Configure: Handler(settings.configure, settings.configure_cost, in_request=True),
    job_ops.HoldItem: Handler(items.hold_item, items.hold_cost, in_batch=True, in_request=True),
    job_ops.CancelItem: Handler(items.cancel_item, items.cancel_cost, in_request=True),
    job_ops.RetryItem: Handler(items.retry_item, items.retry_cost, in_request=True),
    pulse_ops.ConfigurePulse: Handler(pulses.configure, cost.on_pulse, in_request=True, brings=pulses.configure_brings),
    pulse_ops.DeletePulse: Handler(pulses.delete, pulses.delete_cost, in_request=True),
    pulse_ops.SetPulse: Handler(pulses.set_payload, pulses.set_cost, in_request=True),
    pulse_ops.Grant: Handler(pulses.grant, pulses.grant_cost),
    pulse_ops.TakeTurn: Handler(pulses.take_turn, cost.on_pulse, in_request=True),
    pulse_ops.GiveResult: Handler(pulses.give_result, cost.small, in_request=True),
    session_ops.OpenSession: Handler(sessions.open_session, sessions.open_cost),
    session_ops.AttachSession: Handler(sessions.attach_session, sessions.attach_cost),
    session_ops.CloseSession: Handler(sessions.close_session, sessions.close_cost),
    session_ops.TouchSession: Handler(sessions.touch_session, sessions.touch_cost),
    session_ops.Request: Handler(requests.request, requests.request_cost),
    topic_ops.BindQueue: Handler(topics.bind_queue, topics.bind_cost, in_request=True, brings=topics.bind_brings),
    topic_ops.UnbindQueue: Handler(topics.unbind_queue, topics.unbind_cost, in_request=True),
    worker_ops.BeatWorker: Handler(workers.heartbeat, workers.heartbeat_cost, in_request=True),
    worker_ops.SetWorker: Handler(workers.set_worker, workers.set_cost, in_request=True),
    user_ops.SetUser: Handler(users.set_user, users.set_cost),
    cluster_ops.Tick: Handler(leadership.tick, cost.small),
    cluster_ops.Lead: Handler(leadership.lead, leadership.lead_cost),
    cluster_ops.Resume: Handler(leadership.resume, cost.small),
    cluster_ops.SwitchService: Handler(leadership.switch_service, cost.small),
    cluster_ops.SetMap: Handler(cluster_map.set_map, cluster_map.set_map_cost),
    cluster_ops.RaiseLevel: Handler(leadership.raise_level, leadership.raise_level_cost),
    cluster_ops.ChangeMember: Handler(members.change_member, members.change_cost),
    cluster_ops.CloneChunk: Handler(clone.chunk, clone.chunk_cost, in_request=True),
    fragment_ops.Fragment: Handler(fragments.fragment, fragments.fragment_cost),
    cluster_ops.MirrorEntries: Handler(mirror.entries, mirror.entries_cost, level=REPLICAS),
    cluster_ops.MirrorChunk: Handler(mirror.chunk, mirror.chunk_cost, level=REPLICAS),
    cluster_ops.Promote: Handler(promote.promote, promote.promote_cost, level=REPLICAS),
    cluster_ops.Fence: Handler(promote.fence, promote.fence_cost, level=REPLICAS),
}

EXECUTE = dispatch.EXECUTE
EXECUTE.update({kind: row.execute for kind, row in HANDLERS.items()})
dispatch.ATOMIC.update({kind: row.execute for kind, row in HANDLERS.items() if row.in_batch})
dispatch.REQUESTED.update({kind: row.execute for kind, row in HANDLERS.items() if row.in_request})
dispatch.COSTS.update({kind: row.cost for kind, row in HANDLERS.items()})
dispatch.LEVELS.update({kind: row.level for kind, row in HANDLERS.items() if row.level > FIRST_LEVEL})
OWNED = dispatch.OWNED
OWNED.update(EXECUTE)
OWNED.update({
    kind: elsewhere.guarded(row.execute, row.brings) for kind, row in HANDLERS.items() if row.brings is not None
})
