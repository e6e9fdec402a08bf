"""The summary of a worker's settings: the banner on a terminal, and `--check`."""

from __future__ import annotations

from collections.abc import Iterator

from sockpq._version import __version__
from sockpq.errors import NotExecuted, QueueNotFound
from sockpq.worker.app import App
from sockpq.worker.pool.settings import PoolSettings

# Settings of a queue that say how its jobs are handed out and given up, and what each is when nobody set it.
USUAL = {"expire": "0", "tries": "0", "limit": "0", "order": "FIFO", "sched": "FIFO", "dead": ""}


def banner(app: App, settings: PoolSettings) -> str:
    """The app, its tasks and queues, the children and the cluster; lines with their ends."""
    lines = [f"pqworker {__version__}, worker {settings.name}"]
    lines += [f"  {'queue':<9} {line}" for line in _queues(app, settings)]
    lines += [f"  {'children':<9} {bounds(settings)} ({settings.kind})", f"  {'cluster':<9} {app.servers}"]
    return "".join(f"{line}\n" for line in lines)


def bounds(settings: PoolSettings) -> str:
    """Return how many children there may be: "2", or "3 to 10"."""
    return str(settings.most) if settings.most == settings.least else f"{settings.least} to {settings.most}"


def check(app: App, settings: PoolSettings) -> str:
    """Return the overview with the settings of the queues; raises SockpqError when no server answers."""
    told = banner(app, settings)
    cluster = app.client.cluster_id()
    lines = [f"  {'':<9} cluster {cluster.id or '-'} answers"]
    for queue in settings.queues or app.queues:
        try:
            found = app.client.queue_config(queue)
            unusual = [f"{key} {value}" for key, value in found.items() if key in USUAL and value != USUAL[key]]
            lines.append(f"  {'settings':<9} {queue}: {', '.join(unusual) or 'the usual ones'}")
        except QueueNotFound:
            lines.append(f"  {'settings':<9} {queue}: none, it has the usual ones")
        except NotExecuted as error:
            lines.append(f"  {'settings':<9} {queue}: {error}")
    return told + "".join(f"{line}\n" for line in lines)


def _queues(app: App, settings: PoolSettings) -> Iterator[str]:
    for queue in settings.queues or app.queues:
        tasks = [task for task in app.tasks.values() if task.queue == queue]
        names = [f"{task.name} ({task.schedule.line} {task.schedule.tz})" if task.schedule else task.name
                 for task in tasks]
        yield f"{queue}: {', '.join(names) or 'a handler'}"
