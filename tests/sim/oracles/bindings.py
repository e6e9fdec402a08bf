"""Which queues are bound to topics, and into which of them a job goes, as AMQP has it."""

from __future__ import annotations

import re

from sockpqd.core import BindQueue, DeleteTopic, UnbindQueue

Binding = tuple[str, str | None]        # a queue and a pattern


class Bindings:
    """Of all topics, fed with operations that were executed."""

    def __init__(self) -> None:
        self._of: dict[str, list[Binding]] = {}

    def executed(self, operation: BindQueue | UnbindQueue | DeleteTopic) -> None:
        """A binding comes or goes."""
        if isinstance(operation, DeleteTopic):
            self._of.pop(operation.topic, None)
            return
        bindings, one = self._of.setdefault(operation.topic, []), (operation.queue, operation.pattern)
        if isinstance(operation, UnbindQueue):
            bindings.remove(one)
        elif one not in bindings:
            bindings.append(one)

    def remove(self, queue: str) -> None:
        """The queue is no more, nor are its bindings."""
        for bindings in self._of.values():
            bindings[:] = [one for one in bindings if one[0] != queue]

    def reached(self, topic: str, route: str) -> list[str]:
        """The queues in which a job of this route comes, each once."""
        return list(dict.fromkeys(queue for queue, pattern in self._of.get(topic, ()) if _matches(pattern, route)))

    def copy(self) -> Bindings:
        """The same, which changes no more."""
        copied = Bindings()
        copied._of = {topic: list(bindings) for topic, bindings in self._of.items()}
        return copied


WORDS = {"*": r"[^.]+\.", "#": r"(?:[^.]+\.)*"}


def _matches(pattern: str | None, route: str) -> bool:
    if pattern is None:
        return True
    words = "".join(WORDS.get(word, re.escape(word) + r"\.") for word in pattern.split("."))
    return re.fullmatch(words, f"{route}." if route else "") is not None
