"""`pqctl queue ..`: how much there is in the queues, and how they behave."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from pqctl.invocation import Call, Seconds, command, given, group
from pqctl.output import exit_codes

STATES = ["ready", "delayed", "running", "dead"]


def settings(function: Callable[..., int]) -> Callable[..., int]:
    """The options for a queue's settings; 0 takes a limit away."""
    for option in reversed((
        click.option("--expire", type=Seconds(0), metavar="SECONDS", help="The lease of hand-outs that name none."),
        click.option("--then", type=click.Choice(["later", "done", "dead"]), help="What follows it; needs --expire."),
        click.option("--order", type=click.Choice(["fifo", "time"]), help="As they came, or by the time put for."),
        click.option("--tries", type=click.IntRange(0), metavar="N", help="Give jobs up after so many hand-outs."),
        click.option("--dead", metavar="QUEUE", help="Where they go then; needs --tries. [default: NAME_dead]"),
        click.option("--weight", type=click.IntRange(1), metavar="N", help="For policies that have weights."),
        click.option("--limit", type=click.IntRange(0), metavar="N", help="So many jobs run at a time."),
        click.option("--item-limit", type=click.IntRange(0), metavar="N", help="So many of one item."),
        click.option("--capacity", type=click.IntRange(0), metavar="N", help="So many jobs wait; more are refused."),
        click.option("--data-bytes-max", type=click.IntRange(0), metavar="N", help="The longest body."),
        click.option("--batch", type=click.IntRange(0), metavar="N", help="So many jobs at most are given at once."),
        click.option("--portion", type=click.IntRange(1), metavar="N", help="So many due jobs are activated at once."),
        click.option("--keep", type=Seconds(0), metavar="SECONDS", help="Remember the keys of finished jobs so long."),
    )):
        function = option(function)
    return function


@group("queue")
def queue() -> None:
    """The queues."""


@command(queue, "list", timeout=10.0, epilog=exit_codes.READING)
@click.argument("prefix", default="")
def list_(call: Call, prefix: str) -> int:
    """Show all queues, or those whose names begin with PREFIX.

    A queue exists while it has a job, waiting or running, or settings.
    """
    from pqctl.actions import queues

    return queues.show_list(call, prefix)


@command(queue, timeout=10.0, epilog=exit_codes.READING)
@click.argument("name", required=False)
def stat(call: Call, name: str | None) -> int:
    """Count the jobs of queue NAME, and what has happened in it since it began, or the jobs of all queues together."""
    from pqctl.actions import queues

    return queues.show_stat(call, name)


@command(queue, timeout=10.0)
@click.argument("name")
@settings
def create(call: Call, name: str, **options: Any) -> int:
    """Make queue NAME with these settings."""
    from pqctl.actions import queue_settings

    return queue_settings.create(call, name, given(**options))


@command(queue, timeout=10.0)
@click.argument("name")
@settings
def config(call: Call, name: str, **options: Any) -> int:
    """Change settings of queue NAME, and show all of them. 0 takes a limit away."""
    from pqctl.actions import queue_settings

    return queue_settings.config(call, name, given(**options))


@command(queue, timeout=60.0)
@click.argument("name")
@click.option("--force", is_flag=True, help="With all its jobs, also those that are worked on.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def delete(call: Call, name: str, force: bool, yes: bool) -> int:
    """Remove queue NAME with its settings, if it has no jobs."""
    from pqctl.actions import queue_settings

    return queue_settings.delete(call, name, force, yes)


@command(queue, timeout=60.0)
@click.argument("name")
@click.argument("state", type=click.Choice(["ready", "delayed", "dead", "all"]))
@click.option("--yes", is_flag=True, help="Do not ask.")
def purge(call: Call, name: str, state: str, yes: bool) -> int:
    """Remove the jobs of queue NAME that are in this state; those that are worked on never."""
    from pqctl.actions import queue_settings

    return queue_settings.purge(call, name, state, yes)


@command(queue, timeout=10.0)
@click.argument("name")
@click.argument("direction", type=click.Choice(["in", "out", "all"]), default="all")
def pause(call: Call, name: str, direction: str) -> int:
    """Let no jobs into queue NAME, none out of it, or neither, until `resume`."""
    from pqctl.actions import queue_settings

    return queue_settings.pause(call, name, direction)


@command(queue, timeout=10.0)
@click.argument("name")
def resume(call: Call, name: str) -> int:
    """Let jobs into queue NAME and out of it again."""
    from pqctl.actions import queue_settings

    return queue_settings.resume(call, name)


@command(queue, timeout=10.0, epilog=exit_codes.READING)
@click.argument("name")
@click.option("--state", type=click.Choice(STATES), default="ready", show_default=True, help="Only jobs in this state.")
@click.option("-n", "--count", type=click.IntRange(1, 10_000), default=10, show_default=True, metavar="N",
              help="How many of them, the first ones.")
@click.option("--body", is_flag=True, help="Show whole bodies, not only their beginnings.")
@click.option("--raw", is_flag=True, help="Write the bodies only, byte by byte, each with a line end behind it.")
def peek(call: Call, name: str, state: str, count: int, body: bool, raw: bool) -> int:
    """Look at the first jobs of queue NAME, without taking them."""
    from pqctl.actions import peek as peeking

    return peeking.show_queue(call, name, state, count, body, raw)


@command(queue, timeout=3600.0)
@click.argument("name")
def drain(call: Call, name: str) -> int:
    """Let no jobs into queue NAME, and wait until those that are in it are finished.

    It stays paused. A periodic job is never finished: delete it. --timeout says how long to wait.
    """
    from pqctl.actions import emptying

    return emptying.drain(call, name)


@command(queue, timeout=60.0)
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.option("--count", type=click.IntRange(1), metavar="N", help="Only the first so many. [default: all]")
def move(call: Call, source: str, target: str, count: int | None) -> int:
    """Move the ready jobs of queue FROM to queue TO, in their order.

    They keep priority, item and key; their attempts are counted anew. Delayed and dead jobs stay. If it is interrupted
    run it again.
    """
    from pqctl.actions import emptying

    return emptying.move(call, source, target, count)
