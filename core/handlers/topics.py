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


def unbind_queue(state: State, operation: ops.UnbindQueue, seed: int) -> Reply:
    """Remove the binding. A queue that has no other reason to exist is removed too."""
    bindings = state.topics.by_name.get(operation.topic)
    if bindings is None:
        return _TOPIC_NOT_FOUND
    if (operation.queue, operation.pattern) not in bindings:
        return replies.BindingNotFound()
    _unbind(state, operation.topic, operation.queue, operation.pattern)
    return ACCEPTED


def binding_cost(operation: ops.BindQueue | ops.UnbindQueue) -> Cost:
    """Return the bytes and work of an operation on one binding."""
    return BASE_BYTES + of_names(operation.topic, operation.queue, operation.pattern), JOB


def delete_topic(state: State, operation: ops.DeleteTopic, seed: int) -> Reply:
    """Remove all bindings of the topic."""
    bindings = state.topics.by_name.get(operation.topic)
    if bindings is None:
        return _TOPIC_NOT_FOUND
    for queue, pattern in list(bindings):
        _unbind(state, operation.topic, queue, pattern)
    return ACCEPTED


def delete_cost(operation: ops.DeleteTopic) -> Cost:
    """Return the bytes and work of a DeleteTopic."""
    return BASE_BYTES + of_names(operation.topic), limits.OPERATION_WORK_MAX


def _unbind(state: State, topic: str, queue: str, pattern: str | None) -> None:
    state.topics.unbind(topic, queue, pattern)
    if queue not in state.topics.of_queue:
        state.queues.leave_topics(queue)
