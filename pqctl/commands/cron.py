"""`pqctl cron ..`: the periodic tasks of workers."""

from __future__ import annotations

import click

from sockpqd.pqctl.invocation import Call, command, group
from sockpqd.pqctl.output import exit_codes


@group("cron")
def cron() -> None:
    """The periodic tasks of workers (pqworker), each the job of its next run."""


@command(cron, "list", timeout=10.0, epilog=exit_codes.READING)
@click.option("--queue", default="cron", show_default=True, help="The queue of the periodic tasks.")
def list_(call: Call, queue: str) -> int:
    """Show the next run of each task, its schedule and its time zone."""
    from sockpqd.pqctl.actions import cron_jobs

    return cron_jobs.show_list(call, queue)


@command(cron, timeout=10.0, epilog=exit_codes.epilog(refused="refused, or no run of this task waits"))
@click.argument("task")
@click.option("--queue", default="cron", show_default=True, help="The queue of the periodic tasks.")
def delete(call: Call, task: str, queue: str) -> int:
    """Remove the waiting runs of TASK; the next start of a worker whose app has the task puts one again."""
    from sockpqd.pqctl.actions import cron_jobs

    return cron_jobs.delete(call, task, queue)
