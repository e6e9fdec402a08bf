"""A hash chain over the applied entries, by which replicas are compared (spec/cluster 10.3).

Each node extends its chain by every applied entry and the replies of its operations.
"""

from __future__ import annotations

import logging
import struct
from array import array
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from hashlib import blake2b
from typing import Any

import msgspec

from sockpqd.cluster import limits

log = logging.getLogger("sockpqd.cluster")

CHECKPOINT_ENTRIES = 256        # entries between two values to compare; the same on all nodes
DIGEST_BYTES = 16
_SAVED = struct.Struct(f">Q{DIGEST_BYTES}s")      # a checkpoint in a snapshot: its index and its hash

_encode = msgspec.msgpack.Encoder().encode


def _hash(before: bytes, entry: bytes, answers: bytes) -> bytes:
    digest = blake2b(before, digest_size=DIGEST_BYTES)
    digest.update(entry)
    digest.update(answers)
    return digest.digest()


class Chain:
    """The hash chain of this node; `value` is the hash after the entry `index`.

    Hashing a large entry takes 10 ms or more, so it is done in a thread. Later entries wait here for it, and so does a
    caller of `value`; checkpoints for the other nodes are only delayed.
    """

    def __init__(self) -> None:
        self.index = 0
        self._value = bytes(DIGEST_BYTES)               # the hash after the entry _linked
        self._linked = 0
        self._due: deque[tuple[int, bytes, bytes]] = deque()    # index, entry and replies of the entries after that
        self._due_bytes = 0
        self._hashing: Future[bytes] | None = None      # the hash of the first of these
        self._thread = ThreadPoolExecutor(1, "chain")   # starts its thread on first use
        self._checkpoints = array("Q")                  # indexes, rising,
        self._values = bytearray()                      # and the hash at each

    @property
    def value(self) -> bytes:
        """The value after the entry `index`."""
        self._link(wait=True)
        return self._value

    def start(self, index: int, value: bytes, checkpoints: bytes = b"") -> None:
        """Restart the chain from a snapshot. `checkpoints`: those known before it, as saved() returned them."""
        self._link(wait=True)
        self.index, self._linked, self._value = index, index, value
        self._checkpoints, self._values = array("Q"), bytearray()
        for known, hash_ in _SAVED.iter_unpack(checkpoints):
            self._add(known, hash_)

    def begin_at(self, index: int, value: bytes) -> None:
        """Restart the chain from another one's value at this index, which counts as a checkpoint."""
        self.start(index, value, _SAVED.pack(index, value))

    def saved(self) -> bytes:
        """The checkpoints up to `index`, to be kept in a snapshot."""
        self._link(wait=True)
        return b"".join(_SAVED.pack(index, self._value_at(place)) for place, index in enumerate(self._checkpoints))

    def forget_before(self, index: int) -> None:
        """Forget the checkpoints before this index, but for the last few."""
        count = min(bisect_left(self._checkpoints, index), len(self._checkpoints) - limits.CHECKPOINTS_KEPT)
        if count > 0:
            del self._checkpoints[:count]
            del self._values[:count * DIGEST_BYTES]

    def extend(self, index: int, entry: bytes, replies: list[Any]) -> None:
        """Add an applied entry and its replies, as core.digests_of returns them."""
        self.index = index
        answers = _encode(replies)
        if not self._due and len(entry) + len(answers) < limits.BACKGROUND_HASH_BYTES:
            self._passed(index, _hash(self._value, entry, answers))
            return
        self._due.append((index, entry, answers))
        self._due_bytes += len(entry) + len(answers)
        self._link(wait=self._due_bytes > limits.HASH_BACKLOG_BYTES_MAX)

    def _link(self, *, wait: bool) -> None:
        """Hash the waiting entries: all of them with `wait`, otherwise only those that the thread has finished."""
        while self._due:
            index, entry, answers = self._due[0]
            if self._hashing is not None:
                if not wait and not self._hashing.done():
                    return
                value = self._hashing.result()
                self._hashing = None
            elif len(entry) + len(answers) < limits.BACKGROUND_HASH_BYTES:
                value = _hash(self._value, entry, answers)
            else:
                self._hashing = self._thread.submit(_hash, self._value, entry, answers)
                continue
            self._due.popleft()
            self._due_bytes -= len(entry) + len(answers)
            self._passed(index, value)

    def _passed(self, index: int, value: bytes) -> None:
        if index // CHECKPOINT_ENTRIES > self._linked // CHECKPOINT_ENTRIES:
            self._add(index, value)
        self._linked, self._value = index, value

    def _add(self, index: int, value: bytes) -> None:
        self._checkpoints.append(index)
        self._values += value

    def _value_at(self, place: int) -> bytes:
        return bytes(self._values[place * DIGEST_BYTES:(place + 1) * DIGEST_BYTES])

    def checkpoint(self) -> tuple[int, bytes]:
        """The newest value to compare, as (index, value); index 0 while there is none."""
        self._link(wait=False)
        return (self._checkpoints[-1], self._value_at(len(self._checkpoints) - 1)) if self._checkpoints else (0, b"")

    def at(self, index: int) -> bytes | None:
        """The hash at a checkpoint, None if there is none at this index."""
        return next((value for _, value in self.between(index - 1, index)), None)

    def between(self, after: int, up_to: int) -> Iterator[tuple[int, bytes]]:
        """The checkpoints with `after` < index <= `up_to`, in order, each with its hash."""
        self._link(wait=False)
        for place in range(bisect_right(self._checkpoints, after), bisect_right(self._checkpoints, up_to)):
            yield self._checkpoints[place], self._value_at(place)
