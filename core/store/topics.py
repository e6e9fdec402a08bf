"""The topics, the queues bound to them, and the queues that a routing key reaches (spec/state-machine 12).

Matching tracks the set of positions in the pattern that can have been reached, as bits of a number. So any pattern,
however many `#` it has, takes only a few operations for each word of the key.
"""

from __future__ import annotations

from msgspec import Struct
from sortedcontainers import SortedDict

Binding = tuple[str, str | None]        # a queue, and the pattern of the keys that reach it; None: all


class Pattern(Struct, frozen=True, gc=False):
    """A pattern in a form that is matched quickly: bit n of a mask stands for the n-th word."""

    length: int
    literals: dict[str, int]        # where each word stands
    ones: int                       # where `*` stands, which is any one word
    runs: int                       # where `#` stands, which is any number of words

    def matches(self, words: list[str]) -> bool:
        """Return whether a key of these words matches."""
        reached = 1
        reached |= (reached & self.runs) << 1
        for word in words:
            stays = reached & self.runs
            reached = (reached & (self.literals.get(word, 0) | self.ones)) << 1 | stays
            reached |= (reached & self.runs) << 1
            if not reached:
                return False
        return bool(reached >> self.length & 1)


def compiled(pattern: str) -> Pattern:
    """Compile the pattern; repeated `#` are one."""
    words: list[str] = []
    for word in pattern.split("."):
        if word != "#" or not words or words[-1] != "#":
            words.append(word)
    masks: dict[str, int] = {}
    for place, word in enumerate(words):
        masks[word] = masks.get(word, 0) | 1 << place
    return Pattern(len(words), masks, masks.pop("*", 0), masks.pop("#", 0))


def words_of(pattern: str | None) -> int:
    """Return the number of words of a pattern."""
    return 0 if pattern is None else pattern.count(".") + 1


class Topics:
    """The bindings of each topic, in order, and of each queue."""

    __slots__ = ("by_name", "count", "of_queue", "patterns", "words")

    def __init__(self) -> None:
        self.by_name: dict[str, dict[Binding, Pattern | None]] = SortedDict()
        self.of_queue: dict[str, dict[tuple[str, str | None], None]] = {}      # topics and patterns
        self.count = 0
        self.patterns: dict[str, int] = {}      # of each topic that has bindings with one: how many these are
        self.words = 0                          # in all patterns

    def bind(self, topic: str, queue: str, pattern: str | None) -> None:
        """Add a binding, which must not exist yet."""
        self.by_name.setdefault(topic, {})[queue, pattern] = None if pattern is None else compiled(pattern)
        self.of_queue.setdefault(queue, {})[topic, pattern] = None
        self.count += 1
        if pattern is not None:
            self.patterns[topic] = self.patterns.get(topic, 0) + 1
            self.words += words_of(pattern)

    def unbind(self, topic: str, queue: str, pattern: str | None) -> None:
        """Remove a binding, which must exist."""
        bindings, bound = self.by_name[topic], self.of_queue[queue]
        del bindings[queue, pattern]
        if not bindings:
            del self.by_name[topic]
        del bound[topic, pattern]
        if not bound:
            del self.of_queue[queue]
        self.count -= 1
        if pattern is not None:
            self.words -= words_of(pattern)
            self.patterns[topic] -= 1
            if not self.patterns[topic]:
                del self.patterns[topic]

    def drop_queue(self, queue: str) -> None:
        """Remove all bindings of the queue."""
        for topic, pattern in list(self.of_queue.get(queue, ())):
            self.unbind(topic, queue, pattern)

    def route_steps(self, topic: str, key: str) -> int:
        """Return how many words of the key are compared with a pattern, at most, to find the queues that it reaches."""
        return self.patterns.get(topic, 0) * (key.count(".") + 1)

    def reached(self, topic: str, key: str) -> list[str]:
        """Return the queues that this key reaches, each once, in the order of their bindings."""
        words = key.split(".") if key else []
        queues: dict[str, None] = {}
        matching: dict[str | None, bool] = {None: True}         # many queues have the same pattern
        for (queue, text), pattern in self.by_name.get(topic, {}).items():
            matches = matching.get(text)
            if matches is None:
                assert text is not None
                assert pattern is not None
                matches = matching[text] = pattern.matches(words)
            if matches:
                queues[queue] = None
        return list(queues)
