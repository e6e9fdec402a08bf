"""Clients of beanstalkd under constant load: they put jobs, work on them, or die while they do."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence

from tests.chaos.beanstalkd.client import RecordingClient
from tests.chaos.workload.actors import Meter

PRIORITIES = (0, 1, 1024, 5_000_000)
TTR_S = (2, 8)              # some are over before a worker ends, others last through a fault
BACKLOG_MAX = 30
WAIT_S = 1
HELD_MAX = 4                # by one that dies with them
STAYS_S = 2.0               # how long a connection lasts, on the average


class Producer:
    """Puts jobs into its tubes."""

    def __init__(self, client: RecordingClient, tubes: Sequence[str], pause_s: float, meter: Meter, seed: str) -> None:
        self._client, self._tubes, self._pause_s, self._meter = client, tubes, pause_s, meter
        self._random = random.Random(seed)

    def __call__(self) -> None:
        chance = self._random
        time.sleep(chance.expovariate(1 / self._pause_s))
        if self._meter.backlog > BACKLOG_MAX or not self._client.connect(()):
            return
        delay_s = 1 if chance.random() < 0.1 else 0
        deed = self._client.put(chance.choice(self._tubes), chance.choice(PRIORITIES), delay_s, chance.choice(TTR_S))
        if deed is not None and deed.answer == "INSERTED":
            self._meter.put += 1


class Worker:
    """Reserves a job and deletes, releases, buries or touches it, at once or late."""

    def __init__(self, client: RecordingClient, tubes: Sequence[str], meter: Meter, seed: str) -> None:
        self._client, self._tubes, self._meter = client, tubes, meter
        self._random = random.Random(seed)

    def __call__(self) -> None:
        chance, client = self._random, self._client
        if not client.connect(chance.sample(self._tubes, chance.randint(1, len(self._tubes)))):
            return
        deed = client.reserve(chance.choice((0, WAIT_S)))
        if deed is None or deed.job is None:
            return
        job, fate = deed.job, chance.random()
        if fate < 0.12:
            client.end("release", job, chance.choice(PRIORITIES), 1 if chance.random() < 0.3 else 0)
            return
        if fate < 0.2:
            client.end("bury", job, chance.choice(PRIORITIES))
            client.kick_job(job)
            return
        if fate < 0.3:
            client.touch(job)
        if fate < 0.215:
            time.sleep(TTR_S[0] * 1.1)          # too late for some of them
        elif fate < 0.6:
            time.sleep(chance.random() * 0.05)
        ended = client.end("delete", job)
        if ended is not None and ended.answer == "DELETED":
            self._meter.taken += 1
        if chance.random() < 0.02:
            client.abort()                      # and watches other tubes next time


class Victim:
    """Reserves several jobs and is killed with them."""

    def __init__(self, client: RecordingClient, tubes: Sequence[str], seed: str) -> None:
        self._client, self._tubes = client, tubes
        self._random = random.Random(seed)

    def __call__(self) -> None:
        if self._client.connect(self._tubes):
            for _ in range(self._random.randint(1, HELD_MAX)):
                self._client.reserve(0)
            time.sleep(self._random.expovariate(1 / STAYS_S))
            self._client.abort()
