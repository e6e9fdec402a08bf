"""What happened in a run: the last events for a reader, and a digest over all of them for comparing two runs."""

from __future__ import annotations

from collections import Counter, deque
from hashlib import blake2b

from tests.sim.events import Events

SHOWN = 60


class Violation(Exception):  # noqa: N818  (the field's word for it)
    """A promise was broken: a bug of the product, or of the simulation."""


class Trace:
    """The last events, counters, and the digest of everything when `digesting`."""

    def __init__(self, events: Events, *, digesting: bool = False) -> None:
        self._events = events
        self._digesting = digesting
        self._last: deque[tuple[float, str]] = deque(maxlen=SHOWN)
        self._digest = blake2b(digest_size=16)
        self.faults: Counter[str] = Counter()
        self.seen: Counter[str] = Counter()

    def note(self, text: str) -> None:
        """Something worth a line."""
        self._last.append((self._events.now, text))
        self.bytes(text.encode())

    def fault(self, kind: str, text: str) -> None:
        """A fault fires."""
        self.faults[kind] += 1
        self.note(f"{kind}: {text}")

    def bytes(self, data: bytes) -> None:
        """Something that only the digest needs."""
        if self._digesting:
            self._digest.update(b"%.9f " % self._events.now)
            self._digest.update(data)

    def digest(self) -> str:
        """Equal for two runs in which the same things happened at the same times."""
        return self._digest.hexdigest()

    def last(self) -> list[str]:
        """The last events, one line each."""
        return [f"{when:10.6f}  {text}" for when, text in self._last]
