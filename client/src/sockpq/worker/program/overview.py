"""The summary of a worker's settings: the banner on a terminal, and `--check`."""

from __future__ import annotations

from collections.abc import Iterator

from sockpq._version import __version__
from sockpq.errors import NotExecuted, QueueNotFound
from sockpq.worker.app import App
from sockpq.worker.pool.queue_setup import lacking, line, wanted
from sockpq.worker.pool.settings import PoolSettings

# The default settings of a queue; servers show any other setting only if it was set.
DEFAULTS = {
    "expire": "0", "order": "FIFO", "tries": "0", "weight": "1", "limit": "0", "item_limit": "0", "capacity": "0",
    "data_bytes_max": "0", "batch": "0", "portion": "1000", "keep": "0", "ttl": "0", "idle": "0", "overflow": "REFUSE",
    "alarm": "0", "bound": "0", "sched": "FIFO", "backoff": "OFF", "error_bytes": "67108864", "dedup_max": "1000000",
    "retain": "0", "retain_max": "100000", "retain_bytes": "67108864", "numbered": "0",
}


def banner(app: App, settings: PoolSettings) -> str:
    """Return the app, its tasks and queues, the children and the cluster; lines with their ends."""
    lines = [f"pqworker {__version__}, worker {settings.name}"]
    lines += [f"  {'queue':<9} {line}" for line in _queues(app, settings)]
    lines += [f"  {'children':<9} {bounds(settings)} ({settings.kind})", f"  {'cluster':<9} {app.servers}"]
    return "".join(f"{line}\n" for line in lines)


def bounds(settings: PoolSettings) -> str:
    """Return how many children there may be: "2", or "3 to 10"."""
    return str(settings.most) if settings.most == settings.least else f"{settings.least} to {settings.most}"


def check(app: App, settings: PoolSettings) -> str:
    """Return what follows the banner: the settings of the queues. Raises SockpqError when no server answers."""
    cluster = app.client.cluster_id()
    lines = [f"  {'':<9} cluster {cluster.id or '-'} answers"]
    for queue in settings.queues or app.queues:
        try:
            found = app.client.queue_config(queue)
        except QueueNotFound:
            found = {}
        except NotExecuted as error:
            lines.append(f"  {'settings':<9} {queue}: {error}")
            continue
        changed = [f"{key} {value}" for key, value in found.items() if value != DEFAULTS.get(key)]
        missing = lacking(wanted(app, queue), found)
        coming = f"; a worker that starts sends {line(queue, missing)}" if missing else ""
        lines.append(f"  {'settings':<9} {queue}: {', '.join(changed) or 'the defaults'}{coming}")
    return "".join(f"{line}\n" for line in lines)


def _queues(app: App, settings: PoolSettings) -> Iterator[str]:
    for queue in settings.queues or app.queues:
        tasks = [task for task in app.tasks.values() if task.queue == queue]
        names = [f"{task.name} ({task.schedule.line} {task.schedule.tz})" if task.schedule else task.name
                 for task in tasks]
        yield f"{queue}: {', '.join(names) or 'a handler'}"
