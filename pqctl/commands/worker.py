"""`pqctl worker ..`: pools of workers and their control; `pqctl cron ..`: their periodic tasks."""

from __future__ import annotations

import click

from sockpqd.pqctl.invocation import Call, command, group
from sockpqd.pqctl.output import exit_codes
from sockpqd.pqctl.over_all import each


@group("worker")
def worker() -> None:
    """The pools of workers."""


@command(worker, "list", timeout=10.0, epilog=exit_codes.READING, over_all=each)
def list_(call: Call) -> int:
    """Show all pools: their addresses, children, jobs that run, and their last heartbeats."""
    from sockpqd.pqctl.actions import sessions

    return sessions.show_workers(call)


@command(worker, "set", timeout=10.0)
@click.argument("name")
@click.option("--max", "most", type=click.IntRange(1, 2**31), metavar="N", help="How many jobs at a time at most.")
@click.option("--min", "least", type=click.IntRange(0, 2**31), metavar="N", help="How many places to keep at least.")
def set_(call: Call, name: str, most: int | None, least: int | None) -> int:
    """Set how many jobs pool NAME may run at a time, with immediate effect."""
    from sockpqd.pqctl.actions import sessions

    if most is None and least is None:
        raise click.UsageError("give --max, --min, or both")
    return sessions.set_worker(call, name, most, least)


@command(worker, timeout=10.0)
@click.argument("name")
def pause(call: Call, name: str) -> int:
    """Let pool NAME take no more jobs, until `resume`."""
    from sockpqd.pqctl.actions import sessions

    return sessions.steer_worker(call, name, "pause")


@command(worker, timeout=10.0)
@click.argument("name")
def resume(call: Call, name: str) -> int:
    """Let pool NAME take jobs again."""
    from sockpqd.pqctl.actions import sessions

    return sessions.steer_worker(call, name, "run")


@command(worker, timeout=10.0)
@click.argument("name")
def stop(call: Call, name: str) -> int:
    """Let pool NAME finish its jobs and end."""
    from sockpqd.pqctl.actions import sessions

    return sessions.steer_worker(call, name, "stop")


@group("cron")
def cron() -> None:
    """The periodic tasks of workers (pqworker), each the job of its next run."""


@command(cron, "list", timeout=10.0, epilog=exit_codes.READING)
@click.option("--queue", default="cron", show_default=True, help="The queue of the periodic tasks.")
def list_cron(call: Call, queue: str) -> int:
    """Show the next run of each task, its schedule and its time zone."""
    from sockpqd.pqctl.actions import cron_jobs

    return cron_jobs.show_list(call, queue)


@command(cron, "delete", timeout=10.0, epilog=exit_codes.epilog(refused="refused, or no run of this task waits"))
@click.argument("task")
@click.option("--queue", default="cron", show_default=True, help="The queue of the periodic tasks.")
def delete_cron(call: Call, task: str, queue: str) -> int:
    """Remove the waiting runs of TASK; the next start of a worker whose app has the task puts one again."""
    from sockpqd.pqctl.actions import cron_jobs

    return cron_jobs.delete(call, task, queue)
