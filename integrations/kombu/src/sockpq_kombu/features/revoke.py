"""A revoked task that waits in the cluster is removed there, whether or not a worker runs.

With other brokers it stays until a worker takes it and drops it, for a year if that is its ETA. Workers are notified of
the revocation as usual: one that already has the task drops or terminates it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import wraps
from time import monotonic
from types import ModuleType
from typing import Any

from celery import states
from kombu.exceptions import OperationalError
from kombu.log import get_logger
from sockpq import SockpqError

from sockpq_kombu.mapping.messages import can_be_shown

REMOVE_S = 5.0          # messages are searched for this long; each search looks at all that wait
UNBEGUN = (states.PENDING, states.RECEIVED, states.RETRY, states.REJECTED)
PARTS = 3               # of a task's body: arguments, keyword arguments, what is to come next

logger = get_logger("kombu.transport.sockpq")


def revoke(module: ModuleType) -> None:
    """Make `app.control.revoke()` remove waiting messages, after the workers were notified."""
    control = module.Control
    tell = control.revoke

    @wraps(tell)
    def revoke(self: Any, task_id: Any, destination: Any = None, *args: Any, **kwargs: Any) -> Any:
        told = tell(self, task_id, destination, *args, **kwargs)
        if destination is None:         # otherwise it is meant for some workers only
            ids = [task_id] if isinstance(task_id, str) else task_id or ()
            _remove(self.app, filter(can_be_shown, ids), kwargs.get("connection"))
        return told

    control.revoke = revoke


def _remove(app: Any, task_ids: Iterable[str], connection: Any) -> None:
    """Remove the messages of these tasks; if that is not possible the workers drop them."""
    from sockpq_kombu.channels.channel import Channel

    until = monotonic() + REMOVE_S
    with app.connection_or_acquire(connection) as connected:
        channel = connected.default_channel
        if not isinstance(channel, Channel) or not channel.remove_revoked:
            return
        for task_id in task_ids:
            if monotonic() > until:
                logger.warning("not all revoked tasks were looked for in time: workers drop the others")
                return
            try:
                removed = channel.remove_waiting(task_id, _ends_alone)
            except (SockpqError, OperationalError) as error:
                logger.warning("revoked tasks that wait are not removed, workers drop them: %s", error)
                return
            if removed:
                _mark(app.backend, task_id)


def _ends_alone(message: Any) -> bool:
    """Return whether only the caller waits for the task: a part of a chord is dropped by a worker, which ends it."""
    try:
        called = message.payload
    except Exception:       # of whatever decodes it
        return False
    following = called[PARTS - 1] if isinstance(called, list | tuple) and len(called) == PARTS else None
    return isinstance(following, dict) and not following.get("chord")


def _mark(backend: Any, task_id: str) -> None:
    """Store the state "revoked", as a worker would, unless there is a result."""
    try:
        if backend.get_state(task_id) in UNBEGUN:
            backend.mark_as_revoked(task_id, reason="revoked", store_result=True)
    except NotImplementedError:         # no result backend
        pass
    except Exception as error:
        logger.warning("task %s was removed, and is not marked as revoked: %s", task_id, error)
