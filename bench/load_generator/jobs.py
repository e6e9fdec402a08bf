"""The jobs that a load puts, and the commands that take them."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from struct import Struct
from time import perf_counter_ns

LEASE_S = 600
KINDS = 10_000      # different jobs made in advance and put in turn, so that making one costs nothing ...
KINDS_MIN = 16
POOL_BYTES = 64 << 20   # ... but fewer large ones
STAMP = Struct("!Q")


class Jobs:
    """Makes commands. Queue, priority and length of each job are random."""

    def __init__(
        self, queues: Sequence[str], size: int, size_max: int = 0, priorities: int = 1, stamped: bool = False
    ) -> None:
        """Make jobs of `size` to `size_max` bytes.

        `priorities`: how many there are; `stamped`: a job's data, at least 8 bytes, contain the time of its PUT
        (perf_counter_ns).
        """
        chance = random.Random(1)      # the same jobs in each run
        kinds = min(KINDS, max(KINDS_MIN, POOL_BYTES // max(size, size_max, 1)))
        self.queues = list(queues)
        self.stamped = stamped
        lengths = [chance.randint(size, max(size, size_max)) for _ in range(kinds)]
        if stamped:
            lengths = [max(length, STAMP.size) for length in lengths]
        self.lines = [f"{chance.choice(self.queues)} {chance.randrange(priorities)} {length}\r\n".encode()
                      for length in lengths]
        zeros = {length: bytes(length) for length in lengths}
        self.bodies = [zeros[length] for length in lengths]
        self._next = itertools.cycle(range(kinds))
        self._plain = [b"PUT " + line + body for line, body in zip(self.lines, self.bodies, strict=True)]
        what = f" {'|'.join(self.queues)} EXPIRE {LEASE_S}\r\n".encode()
        self.get, self.getb = b"GET" + what, b"GETB" + what

    def put(self) -> bytes:
        number = next(self._next)
        if not self.stamped:
            return self._plain[number]
        return b"PUT " + self.lines[number] + STAMP.pack(perf_counter_ns()) + self.bodies[number][STAMP.size :]

    def puts(self, count: int) -> bytes:
        """A PUTS of the next `count` jobs, which are not stamped."""
        numbers = [next(self._next) for _ in range(count)]
        parts = itertools.chain.from_iterable((self.lines[number], self.bodies[number]) for number in numbers)
        return b"PUTS %d\r\n" % count + b"".join(parts)


def put_ns(body: bytes) -> int:
    """Return the time at which a stamped job was put."""
    return int(STAMP.unpack_from(body)[0])
