"""The last events of a run for a reader, and a digest of all of them for comparing two runs."""

from __future__ import annotations

import random
from array import array
from collections import Counter, deque
from hashlib import blake2b
from typing import Any

from sockpqd.core import Operation, Reply
from tests.sim.world.digest_codes import FAULTS, OUTCOMES, Kind, node_number, operations_bytes, replies_bytes
from tests.sim.world.events import Events

SHOWN = 60
NANOSECONDS = 1_000_000_000


class Violation(Exception):
    """A broken promise: a bug of the product, or of the simulation."""


class Trace:
    """The last events, counters, and the digest of everything when `digesting`.

    Texts are for readers. The digest has kinds and numbers instead, and bytes of the formats (digest_codes.py).
    """

    def __init__(self, events: Events, *, digesting: bool = False) -> None:
        self._events = events
        self._digesting = digesting
        self._last: deque[tuple[float, str]] = deque(maxlen=SHOWN)
        self._digest = blake2b(digest_size=16)
        self.faults: Counter[str] = Counter()
        self.seen: Counter[str] = Counter()
        self.steps: list[tuple[Any, ...]] | None = None     # of the replication, for tests/model

    def step(self, *step: Any) -> None:
        """Record a step of the replication for traces: its kind, its node, and its subject."""
        if self.steps is not None:
            self.steps.append(step)

    # For a reader, and for the digest

    def note(self, kind: Kind, text: str, *numbers: int) -> None:
        """Record an event; the digest gets the kind and the numbers."""
        self._last.append((self._events.now, text))
        self._record(kind, *numbers)

    def fault(self, kind: str, text: str) -> None:
        """Record that a fault fires."""
        self.faults[kind] += 1
        self.note(Kind.FAULT, f"{kind}: {text}", FAULTS[kind])

    # For the digest only

    def message(self, sender: str, receiver: str, data: bytes, wait_s: float) -> None:
        """Record that a node sends these bytes, `wait_s` from now."""
        self._record(
            Kind.MESSAGE, node_number(sender), node_number(receiver), round(wait_s * NANOSECONDS), data=data,
        )

    def connected(self, first: str, second: str) -> None:
        """Record that two nodes have a connection."""
        self._record(Kind.CONNECTED, node_number(first), node_number(second))

    def entry(
        self, name: str, index: int, now_ms: int, seed: int, operations: list[Operation], replies: list[Reply],
    ) -> None:
        """Record that a node has applied an entry, with these results."""
        if self._digesting:
            data = operations_bytes(operations) + replies_bytes(replies)
            self._record(Kind.ENTRY, node_number(name), index, now_ms, seed, data=data)

    def state(self, name: str, index: int, digest: bytes) -> None:
        """Record what a node holds after an entry."""
        self._record(Kind.STATE, node_number(name), index, data=digest)

    def answer(self, state: str, operation: Operation, reply: Reply | None) -> None:
        """Record that a client or an operator receives the outcome of an operation."""
        if self._digesting:
            data = operations_bytes([operation]) + replies_bytes([] if reply is None else [reply])
            self._record(Kind.ANSWER, OUTCOMES[state], data=data)

    def ended(self, steps: int, rng: random.Random, *, failed: bool) -> None:
        """Record the end of the run; the state of `rng` shows the number of draws."""
        if self._digesting:
            self._record(Kind.END, steps, int(failed), data=array("Q", rng.getstate()[1]).tobytes())

    def _record(self, kind: Kind, *numbers: int, data: bytes = b"") -> None:
        if self._digesting:
            head = (round(self._events.now * NANOSECONDS), int(kind), *numbers, len(data))
            self._digest.update(" ".join(map(str, head)).encode() + b"\n")
            self._digest.update(data)

    def digest(self) -> str:
        """Return a digest that is equal for two runs in which the same things happened at the same times."""
        return self._digest.hexdigest()

    def last(self) -> list[str]:
        """Return the last events, one line each."""
        return [f"{when:10.6f}  {text}" for when, text in self._last]
