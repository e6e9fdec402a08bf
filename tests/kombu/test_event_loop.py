"""An event loop of kombu's that publishes, declares, consumes and acknowledges is never held up, also by a failover."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import kombu
import pytest
from kombu.asynchronous import Hub

from devcluster.cluster import LocalCluster

PERIOD_S = 0.005        # of what the loop has to do
TURN_MAX_S = 0.8        # far more than it takes, as the machine may hold up the loop; a fifth of the outage
TURN_CPU_MAX_S = 0.05   # of processor time: 2 ms, and 14 ms where the collector looks at all objects of the program
OUTAGE_S = 4.0
PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(3) as started:
        yield started


class Program:
    """All that it does happens in the event loop."""

    def __init__(self, connection: kombu.Connection) -> None:
        self._connection = connection
        self._queue = kombu.Queue("hub", kombu.Exchange("hub"), routing_key="hub")
        self.hub = Hub()
        self.sent = 0
        self.bodies: Counter[int] = Counter()
        self.came_at: list[float] = []
        self.longest_turn_s = 0.0
        self.longest_cpu_s = 0.0
        self.publishing = True
        connection.transport.register_with_event_loop(connection.connection, self.hub)
        self._consumer = connection.Consumer([self._queue], on_message=self._hear)
        self._consumer.qos(prefetch_count=8)
        self._consumer.consume()
        self._producer = connection.Producer()
        self.hub.call_repeatedly(PERIOD_S, self._work)
        self._loop = self.hub.create_loop()

    def turn(self) -> None:
        """Take one turn of the loop."""
        begun, worked = time.monotonic(), time.thread_time()
        next(self._loop)
        self.longest_turn_s = max(self.longest_turn_s, time.monotonic() - begun)
        self.longest_cpu_s = max(self.longest_cpu_s, time.thread_time() - worked)

    def turns(self, seconds: float) -> None:
        """Turn the loop for this time."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.turn()

    def close(self) -> None:
        """End the loop."""
        self.hub.close()

    def _work(self) -> None:
        if self.publishing:
            self._producer.publish(self.sent, exchange=self._queue.exchange, routing_key="hub")
            self.sent += 1
            if self.sent % 20 == 0:
                name = f"hub.{self.sent}"
                bound = kombu.Queue(name, self._queue.exchange, routing_key=name)(self._connection.default_channel)
                bound.declare()
                bound.delete()

    def _hear(self, message: Any) -> None:
        self.bodies[message.decode()] += 1
        self.came_at.append(time.monotonic())
        message.ack()


def test_no_turn_is_long_while_the_leader_is_killed_and_there_is_no_majority(cluster: LocalCluster) -> None:
    leader = cluster.wait_for_leader()
    frozen = next(name for name in cluster.names if name != leader)
    url = ";".join(f"sockpq://{server}" for server in cluster.servers)
    with kombu.Connection(url) as connection, closing(Program(connection)) as program:
        program.turns(0.5)
        cluster.kill(leader)
        cluster.pause(frozen)
        program.turns(OUTAGE_S)
        cluster.resume(frozen)
        program.turns(0.5)
        program.publishing = False
        until = time.monotonic() + PATIENCE_S
        while len(program.bodies) < program.sent and time.monotonic() < until:
            program.turn()
        print(f"{program.sent} messages, longest turn {program.longest_turn_s * 1000:.1f} ms,"
              f" of work {program.longest_cpu_s * 1000:.1f} ms")
        assert program.bodies == Counter(range(program.sent))
        assert program.longest_turn_s < TURN_MAX_S
        assert program.longest_cpu_s < TURN_CPU_MAX_S
        gaps = [later - earlier for earlier, later in zip(program.came_at, program.came_at[1:], strict=False)]
        assert max(gaps) > OUTAGE_S / 2         # there was something to be held up by
