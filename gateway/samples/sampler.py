"""Takes the samples: one of the cluster, of this node and of some queues each second, and writes them to the disk."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from sockpqd.gateway.monitoring.loop_lag import LoopLag
from sockpqd.gateway.samples import sample_file
from sockpqd.gateway.samples.cluster_figures import CLUSTER_FIELDS, NODE_FIELDS, NodeFigures, cluster_row, dead_jobs
from sockpqd.gateway.samples.course import QUEUE_FIELDS, SHORT, FigureSeries
from sockpqd.gateway.samples.flows import Flows
from sockpqd.gateway.samples.kept_pulses import PULSE_FIELDS, KeptPulses
from sockpqd.gateway.samples.kept_queues import KeptQueues
from sockpqd.gateway.samples.latencies import QueueLatencies
from sockpqd.gateway.samples.oldest import Oldest
from sockpqd.gateway.server.hub import Hub

log = logging.getLogger("sockpqd")

SAVE_S = 300            # between two writes of the file; a node that is killed loses so much
REST_S = 60.0           # after one that failed
BEHIND_S = 3.0          # a node that is further behind than this catches up in no time: its rates say nothing
CLUSTER, NODE = "cluster", "node"       # names of courses in the file
QUEUE, PULSE = "queue ", "pulse "       # with the name of the queue or pulse after it


class FigureSampler:
    """The samples of this node. `path`: the file that keeps them, None for memory only."""

    def __init__(
        self, hub: Hub, loop_lag: LoopLag, path: Path | None = None, clock: Callable[[], float] = time.time,
    ) -> None:
        self.cluster = FigureSeries(CLUSTER_FIELDS)
        self.node = FigureSeries(NODE_FIELDS)
        self.queues = KeptQueues()
        self.pulses = KeptPulses()
        self.flows = Flows()
        self.oldest = Oldest()
        self.latencies = QueueLatencies()
        self._hub = hub
        self._path = path
        self._clock = clock
        self._node_figures = NodeFigures(hub, loop_lag)
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin to take samples, one each second, in tasks that stop() ends."""
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._run()), loop.create_task(self._run_flows())]

    async def stop(self) -> None:
        """Stop, and write the file."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
        await self.save()

    @property
    def now_s(self) -> int:
        """The Unix time in seconds."""
        return int(self._clock())

    def queue(self, name: str) -> FigureSeries | None:
        """Return the course of a queue, None if it has none yet; as it is being looked at, it is kept from now on."""
        return self.queues.look(name, self.now_s)

    async def sample(self) -> None:
        """Take one sample of everything but the flows."""
        cluster, now_s = self._hub.cluster, self.now_s
        known = self.flows.total is not None
        self.queues.busy(self.flows.of, now_s)
        await self.oldest.look(cluster)
        dead = await dead_jobs(self._hub)
        self.latencies.look(cluster)
        longest_ms = self.oldest.longest[0][0] if self.oldest.longest else 0
        self.cluster.add(now_s, cluster_row(
            self._hub, self.flows.total, dead, longest_ms, self.latencies.total))
        self.node.add(now_s, self._node_figures.row())
        await self.queues.sample(cluster, self.flows.of, self.latencies, now_s, known=known)
        await self.pulses.sample(cluster, now_s)

    async def look(self) -> None:
        """Compute the flows of all queues, which are unknown on a node that is behind."""
        if self._hub.cluster.age_s() > BEHIND_S:
            self.flows.forget()
        await self.flows.look(self._hub.cluster.machine)

    async def save(self) -> None:
        """Write the file, in a thread."""
        if self._path is None:
            return
        courses = {CLUSTER: self.cluster, NODE: self.node} | {
            QUEUE + name: course for name, course in self.queues.courses.items()} | {
            PULSE + name: course for name, course in self.pulses.courses.items()}
        try:
            await asyncio.to_thread(sample_file.save, self._path, courses)
        except OSError as error:        # a full disk, say, which others report
            log.info("the samples of the dashboard cannot be written: %s", error)

    async def load(self) -> None:
        """Load the samples in the file, which a thread reads."""
        if self._path is None:
            return
        stored = await asyncio.to_thread(sample_file.load, self._path)
        for name, course in ((CLUSTER, self.cluster), (NODE, self.node)):
            if name in stored:
                sample_file.fill(course, stored.pop(name))
        for name, one in stored.items():
            of_pulse = name.startswith(PULSE)
            course = FigureSeries(PULSE_FIELDS if of_pulse else QUEUE_FIELDS, SHORT)
            if sample_file.fill(course, one):
                if of_pulse:
                    self.pulses.courses[name.removeprefix(PULSE)] = course
                elif name.startswith(QUEUE):
                    self.queues.restore(name.removeprefix(QUEUE), course, self.now_s)
            await asyncio.sleep(0)

    async def _run(self) -> None:
        await self.load()
        saved_s = self.now_s
        while True:
            await self._next_second()
            await _reported(self.sample())
            if not 0 <= self.now_s - saved_s < SAVE_S:
                saved_s = self.now_s
                await self.save()

    async def _run_flows(self) -> None:
        while True:
            await _reported(self.look())
            await self._next_second()

    async def _next_second(self) -> None:
        await asyncio.sleep(1.0 - self._clock() % 1.0)


async def _reported(sample: Awaitable[None]) -> None:
    """Log an error of a sample, and pause: a later one may succeed."""
    try:
        await sample
    except Exception:
        log.exception("a sample failed: report it, with this line")
        await asyncio.sleep(REST_S)
