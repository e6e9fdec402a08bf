"""Clients that wait for turns of one pulse during the load, and the checks of their answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import Self

from sockpq import Client

from tests.chaos.checker.grants import after_another, given_twice, too_many, written
from tests.chaos.workload.history import Cut, Record
from tests.chaos.workload.turns import Grant, TurnClients
from tests.waiting import eventually

PULSE = "chaos"
RATE, PER_S = 15, 2.0           # a leader is replaced within a period
AGAIN_S = 30.0                  # until somebody has a turn when all is healed: a safety limit


class Turns:
    """Connects to the nodes directly, as no proxy may stand between a byte that is written and its reader."""

    def __init__(self, servers: list[str], count: int, seed: int) -> None:
        """`count`: of clients, every second one with a session; with 0 of them nothing happens."""
        self._servers = servers
        self._clients = TurnClients(servers, PULSE, count, seed) if count else None
        self._running = ExitStack()

    @property
    def grants(self) -> list[Grant]:
        """Return all turns that were given."""
        return [] if self._clients is None else self._clients.grants

    def __enter__(self) -> Self:
        if self._clients is not None:
            with Client(self._servers) as client:
                client.pulse_create(PULSE, rate=RATE, per=PER_S)
            self._running.enter_context(self._clients)
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    def stop(self) -> None:
        """Take no more turns once one was given after this time."""
        given = len(self.grants)
        if self._clients is not None:
            eventually(lambda: len(self.grants) > given, AGAIN_S)
        self._running.close()

    def judge(
        self, healed_s: float, records: Sequence[Record] = (), cuts: Iterable[Cut] = (), names: Sequence[str] = (),
        late: Sequence[Cut] = (),
    ) -> Iterator[str]:
        """Yield the violations, in sentences. `healed_s`: since when a turn can be had, by time.monotonic(); `records`
        and `cuts` of the clients next to these; `names`: of the servers, in their order; `late`: when what
        a server wrote may have come late."""
        if self._clients is None:
            return
        by_address = dict(zip(self._servers, names, strict=False))
        grants = written(self.grants, late, by_address)
        for group in too_many(grants, RATE, PER_S):
            yield f"pulse: {len(group)} turns within {PER_S:g} s from ticket {group[0].ticket} on, RATE is {RATE}"
        for one, other in given_twice(grants):
            yield f"pulse: {one} and {other} are the same turn"
        for grant, cut in after_another(grants, records, cuts, by_address):
            yield f"pulse: {cut.node} reached no majority and another node had served, but it gave {grant}"
        if not any(grant.before > healed_s for grant in self.grants):
            yield f"pulse: nobody had a turn within {AGAIN_S:g} s after all was healed"
        for line in self._clients.strange:
            yield f"pulse: an answer that nobody expects: {line!r}"
