"""Handlers of the operations on topics (spec/state-machine 12)."""

from __future__ import annotations

from sockpqd.core import limits
from sockpqd.core.handlers.cost import BASE_BYTES, JOB, Cost, of_names
from sockpqd.core.ops import replies
from sockpqd.core.ops import topics as ops
from sockpqd.core.ops.replies import ACCEPTED, Reply
from sockpqd.core.state import State
from sockpqd.core.store.topics import words_of

_TOPIC_NOT_FOUND = replies.TopicNotFound()


def bind_queue(state: State, operation: ops.BindQueue, seed: int) -> Reply:
    """Bind the queue, creating it if necessary; an existing binding stays."""
    topics, queue = state.topics, operation.queue
    bindings = topics.by_name.get(operation.topic, {})
    if (queue, operation.pattern) in bindings:
        return ACCEPTED
    if not state.settings.autocreate and state.queues.find(queue) is None:
        return replies.QUEUE_NOT_FOUND
    words = topics.words + words_of(operation.pattern)
    many = topics.count >= limits.BINDINGS_MAX or words > limits.PATTERN_WORDS_MAX
    if many or len(bindings) >= limits.TOPIC_BINDINGS_MAX:
        return replies.TooManyBindings()
    topics.bind(operation.topic, queue, operation.pattern)
    state.queues.join_topic(queue)
    return ACCEPTED


def bind_brings(state: State, operation: ops.BindQueue) -> tuple[str, str]:
    """Return the topic and the queue that is bound to it."""
    return operation.topic, operation.queue


def bind_cost(operation: ops.BindQueue) -> Cost:
    """Return the bytes and work of a BindQueue."""
    return BASE_BYTES + of_names(operation.topic, operation.queue, operation.pattern), JOB


def unbind_queue(state: State, operation: ops.UnbindQueue, seed: int) -> Reply:
    """Remove the binding, or all of the topic. A queue that has no other reason to exist is removed too."""
    bindings = state.topics.by_name.get(operation.topic)
    if bindings is None:
        return _TOPIC_NOT_FOUND
    if operation.queue is None:
        removed = list(bindings)
    elif (operation.queue, operation.pattern) in bindings:
        removed = [(operation.queue, operation.pattern)]
    else:
        return replies.BindingNotFound()
    for queue, pattern in removed:
        _unbind(state, operation.topic, queue, pattern)
    return ACCEPTED


def unbind_cost(operation: ops.UnbindQueue) -> Cost:
    """Return the bytes and work of an UnbindQueue: a topic may have many bindings to remove."""
    size = BASE_BYTES + of_names(operation.topic, operation.queue, operation.pattern)
    return size, limits.OPERATION_WORK_MAX if operation.queue is None else JOB


def _unbind(state: State, topic: str, queue: str, pattern: str | None) -> None:
    state.topics.unbind(topic, queue, pattern)
    if queue not in state.topics.of_queue:
        state.queues.leave_topics(queue)
