"""Runs the whole load of beanstalkd clients, from the first command to the last deleted job."""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import TracebackType

from tests.chaos.beanstalkd.actors import Producer, Victim, Worker
from tests.chaos.beanstalkd.client import RecordingClient
from tests.chaos.beanstalkd.deeds import Deeds
from tests.chaos.machines.beanstalkd import PROGRAM
from tests.chaos.workload.actors import Actor, Meter

SHARED = "shared"
WORKERS = 2                 # at each door
PAUSE_S = 0.03              # of a producer between two jobs, on the average
STOP_S = 60.0
DRAIN_S = 90.0
AGAIN_S = 0.1


class BeanstalkdLoad:
    """Clients at each door, until the block ends: a producer, workers, and one that is killed again and again.

    Those at the program and those at the nodes have a tube each, and one they share: as no answer is lost at the
    program, the judge sees most in its tube.
    """

    def __init__(self, doors: Mapping[str, str], deeds: Deeds, seed: int) -> None:
        """`doors`: the address of the program and of each node's listener, by name."""
        self._doors, self._deeds = doors, deeds
        self._actors: list[Actor] = []
        meter = Meter()
        for via in doors:
            tubes = ("program" if via == PROGRAM else "nodes", SHARED)
            producer = self._client(f"{via}.producer", via)
            self._add(producer, Producer(producer, tubes, PAUSE_S, meter, f"{seed} {producer.name}"))
            for number in range(WORKERS):
                worker = self._client(f"{via}.worker{number}", via)
                self._add(worker, Worker(worker, tubes, meter, f"{seed} {worker.name}"))
            victim = self._client(f"{via}.victim", via)
            self._add(victim, Victim(victim, tubes, f"{seed} {victim.name}"))

    def _client(self, name: str, via: str) -> RecordingClient:
        return RecordingClient(name, via, self._doors[via], self._deeds)

    def _add(self, client: RecordingClient, act: Producer | Worker | Victim) -> None:
        self._actors.append(Actor(client, act))

    def __enter__(self) -> BeanstalkdLoad:
        for actor in self._actors:
            actor.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None,
    ) -> None:
        for actor in self._actors:
            actor.stop()

    def finish(self) -> None:
        """Start nothing new, wait for commands in flight, then reserve and delete all remaining jobs."""
        for actor in self._actors:
            actor.stop()
        until = time.monotonic() + STOP_S
        for actor in self._actors:
            actor.join(max(until - time.monotonic(), 0.1))
        late = [actor.name for actor in self._actors if actor.is_alive()]
        assert not late, f"{', '.join(late)} did not stop within {STOP_S} s"
        for actor in self._actors:
            if actor.error is not None:
                raise actor.error
        self._drain()

    def _drain(self) -> None:
        tubes = ("program", "nodes", SHARED)
        client = RecordingClient("drain", PROGRAM, self._doors[PROGRAM], self._deeds)
        until = time.monotonic() + DRAIN_S
        left: list[int | None] = []
        while time.monotonic() < until:
            if not client.connect(tubes):
                continue
            for tube in tubes:
                client.kick(tube)
            while (deed := client.reserve(0)) is not None and deed.job is not None:
                client.end("delete", deed.job)
            left = [client.current(tube) for tube in tubes]
            if left == [0, 0, 0]:
                client.abort()
                return
            time.sleep(AGAIN_S)
        raise AssertionError(f"tubes not empty {DRAIN_S} s after the end: {left} jobs")
