"""All targets of one program, over one client, from the start to a graceful end."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

from sockpq import Unavailable
from sockpq.aio import Client

from sockpq_http.push.configuration import Config
from sockpq_http.push.figures import text_of
from sockpq_http.push.guard import Lookup
from sockpq_http.push.host_limits import HostLimits
from sockpq_http.push.outcomes import Outcomes
from sockpq_http.push.target_runner import TargetRunner

LOG = logging.getLogger("sockpq-http")

LOOK_S = 2.0            # for which a server is looked for at the start, before that is reported
REPORT_S = 10.0         # what the last reports to the cluster may take


class Pusher:
    """Delivers for all targets of a configuration until stop()."""

    def __init__(self, config: Config, client: Client, lookup: Lookup | None = None) -> None:
        """`lookup`: DNS by default. Raises OSError, and SecretError, for files that cannot be used."""
        self._config = config
        self._client = client
        self._outcomes = Outcomes(client)
        hosts = HostLimits(config.push.hosts, config.push.host_concurrency)
        self._runners = [
            TargetRunner(name, target, client, self._outcomes, hosts, config.push.ttl_s, config.push.proxy, lookup)
            for name, target in config.targets.items()
        ]
        self._stopped = asyncio.Event()
        self._cut = False

    def stop(self) -> None:
        """Take no more jobs, finish requests in flight within `push.stop_s`, and end. A second call ends them now."""
        if self._stopped.is_set():
            self._cut = True
            for runner in self._runners:
                runner.cut()
        self._stopped.set()
        for runner in self._runners:
            runner.stop()

    async def run(self) -> None:
        """Deliver until stop(). Raises errors that no further attempt can cure, such as ForeignCluster."""
        looking = asyncio.create_task(self._look())
        tasks = [asyncio.create_task(runner.run()) for runner in self._runners]
        stopped = asyncio.create_task(self._stopped.wait())
        try:
            await asyncio.wait([*tasks, stopped], return_when=asyncio.FIRST_COMPLETED)
            for runner in self._runners:
                runner.stop()
            _, left = await asyncio.wait(tasks, timeout=0 if self._cut else self._config.push.stop_s)
            if left:
                LOG.warning("requests in flight are cut off; their jobs go back")
                for runner in self._runners:
                    runner.cut()
                await asyncio.wait(tasks)
            await self._outcomes.flush(REPORT_S)
        finally:
            for task in (looking, stopped, *tasks):
                task.cancel()
            results = await asyncio.gather(*tasks, looking, stopped, return_exceptions=True)
            await asyncio.gather(*(runner.close() for runner in self._runners))
        for result in results:
            if isinstance(result, Exception):
                raise result

    @property
    def stopping(self) -> bool:
        """True from the first stop() on."""
        return self._stopped.is_set()

    @property
    def ready(self) -> bool:
        """True while the cluster hands out the jobs of all targets, and the end has not come."""
        return not self._stopped.is_set() and all(runner.figures.taking for runner in self._runners)

    def metrics(self) -> bytes:
        """Return the metrics in Prometheus' text format."""
        return text_of((runner.figures for runner in self._runners), self._outcomes.lost, self._outcomes.unreported)

    async def _look(self) -> None:
        """Report at the start whether the cluster answers, and make targets ready that wait for a first job."""
        with suppress(Unavailable):
            found = await self._client.cluster_id(timeout=LOOK_S)
            LOG.info("cluster %s answers", found.id)
            return
        LOG.warning("the cluster does not answer; looking for it")
