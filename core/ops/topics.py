"""The operations on topics: names to which queues are bound (spec/state-machine 12)."""

from __future__ import annotations

from sockpqd.core.ops.logged import Logged


class BindQueue(Logged, tag=75, frozen=True):
    """TOPIC BIND: put jobs of `topic` into `queue` too, if their key matches `pattern` (None: all).

    Replies: Accepted, QueueNotFound (AUTOCREATE is OFF), TooManyBindings.
    """

    topic: str
    queue: str
    pattern: str | None = None


class UnbindQueue(Logged, tag=76, frozen=True):
    """TOPIC UNBIND: remove one binding. TOPIC DELETE, with `queue` None: remove all bindings of the topic.

    Replies: Accepted, TopicNotFound, BindingNotFound.
    """

    topic: str
    queue: str | None
    pattern: str | None = None


OnTopics = BindQueue | UnbindQueue
