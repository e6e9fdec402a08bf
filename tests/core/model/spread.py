"""Puts into several queues of the reference model at once, and the topics that name these."""

from __future__ import annotations

from msgspec import structs

from sockpqd.core import (
    Accepted,
    BindingNotFound,
    BindQueue,
    GroupBy,
    ItemCancelled,
    JobExists,
    PutWith,
    QueueFull,
    QueueNotFound,
    Reply,
    Spread,
    TopicNotFound,
    ToQueues,
    ToTopic,
    UnbindQueue,
)
from tests.core.model.items import ModelItems


class ModelSpread(ModelItems):
    """Puts with targets, and the bindings of topics."""

    def spread(self, job: PutWith, targets: ToQueues | ToTopic) -> Reply:
        """Put into all of them or none."""
        names = list(dict.fromkeys(targets.queues)) if isinstance(targets, ToQueues) else self.reached(targets)
        self.put_item = None
        names = [name for name in names if job.dedup is None or (name, job.dedup.key) not in self.remembered]
        for name in names:
            refusal = self._closed(name, job.put.data)
            if refusal is not None:
                return refusal
            if not job.put.new_item and self.cancelling(job.put.item):
                return ItemCancelled()
            if self.holder(name, job.key) is not None or self.key_kept(name, job.key):
                return JobExists()
            if self._refuses(name) or self.remembers_all(name, job):
                return QueueFull()
        for name in names:
            group = job.group if self.settings_of(name).group_by is GroupBy.PUT else None
            self.put(structs.replace(job, put=structs.replace(job.put, queue=name), targets=None, group=group))
        self.put_item = None
        return Spread(len(names))

    def reached(self, targets: ToTopic) -> list[str]:
        """Return the queues that the routing key reaches."""
        bindings = self.topics.get(targets.topic, [])
        key = targets.route.split(".") if targets.route else []
        return list(dict.fromkeys([
            queue for queue, pattern in bindings if pattern is None or fits(pattern.split("."), key)
        ]))

    def on_topic(self, operation: BindQueue | UnbindQueue) -> Reply:
        """Execute TOPIC BIND, UNBIND, DELETE."""
        bindings = self.topics.get(operation.topic)
        if isinstance(operation, BindQueue):
            one = (operation.queue, operation.pattern)
            if not self.settings.autocreate and not self.known(operation.queue):
                return QueueNotFound()
            if one not in (bindings or ()):
                self.topics.setdefault(operation.topic, []).append(one)
            return Accepted()
        if bindings is None:
            return TopicNotFound()
        if operation.queue is None:
            self.drop_bindings(operation.topic, set(bindings))
            return Accepted()
        if (operation.queue, operation.pattern) not in bindings:
            return BindingNotFound()
        self.drop_bindings(operation.topic, {(operation.queue, operation.pattern)})
        return Accepted()


def fits(pattern: list[str], key: list[str]) -> bool:
    """Return whether these words of a key match: `*` is one of them, `#` any number."""
    if not pattern:
        return not key
    if pattern[0] == "#":
        return fits(pattern[1:], key) or (bool(key) and fits(pattern, key[1:]))
    return bool(key) and pattern[0] in ("*", key[0]) and fits(pattern[1:], key[1:])
