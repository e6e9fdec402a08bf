"""`pqctl queue ..`: counts, settings and contents of queues; `pqctl topic ..`: the bindings of topics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from sockpqd.pqctl.invocation import Call, Seconds, command, files, given, group
from sockpqd.pqctl.output import exit_codes
from sockpqd.pqctl.over_all import each, each_and_sum
from sockpqd.pqctl.parameters import group_by

STATES = ["ready", "delayed", "running", "dead", "buried", "ended", "done", "cancelled", "expired"]


def settings(function: Callable[..., int]) -> Callable[..., int]:
    """Add the options for a queue's settings; 0 removes a limit."""
    for option in reversed((
        click.option("--expire", type=Seconds(0), metavar="SECONDS", help="The default lease of its jobs."),
        click.option("--then", type=click.Choice(["later", "done", "dead"]), help="What follows it; needs --expire."),
        click.option("--order", type=click.Choice(["fifo", "time"]), help="By arrival, or by the time they are due."),
        click.option("--tries", type=click.IntRange(0), metavar="N", help="Make jobs dead after this many attempts."),
        click.option("--dead", metavar="QUEUE", help="Where dead jobs go; needs --tries. [default: NAME_dead]"),
        click.option("--weight", type=click.IntRange(1), metavar="N", help="For the policy `weight`."),
        click.option("--sched", type=click.Choice(["fifo", "fair", "groups"]),
                     help="Which of its jobs it gives: the first, one of the group whose turn it is, or the first of "
                          "all groups that may have one."),
        click.option("--group-limit", type=click.IntRange(0), metavar="N",
                     help="With --sched `fair` or `groups`: how many of one group run at a time."),
        click.option("--group-rate", type=click.IntRange(0), metavar="N",
                     help="How many of one group are handed out in --group-per seconds at most; 0 ends that."),
        click.option("--group-per", type=Seconds(0), metavar="SECONDS", help="See --group-rate."),
        click.option("--group-by", type=group_by, metavar="WHAT",
                     help="Whose its jobs are: `user`, `item`, `header:NAME`, or as each PUT says: `off`."),
        click.option("--group-order/--no-group-order", default=None,
                     help="Give a job of a group only when those before it are done."),
        click.option("--limit", type=click.IntRange(0), metavar="N", help="How many jobs run at a time."),
        click.option("--item-limit", type=click.IntRange(0), metavar="N", help="How many of one item run at a time."),
        click.option("--capacity", type=click.IntRange(0), metavar="N", help="How many jobs may wait at most."),
        click.option("--data-bytes-max", type=click.IntRange(0), metavar="N", help="The longest body."),
        click.option("--batch", type=click.IntRange(0), metavar="N", help="How many jobs one GET takes at most."),
        click.option("--portion", type=click.IntRange(1), metavar="N", help="How many due jobs are activated at once."),
        click.option("--keep", type=Seconds(0), metavar="SECONDS", help="How long to remember keys of finished jobs."),
        click.option("--ttl", type=Seconds(0), metavar="SECONDS", help="Remove jobs that nobody takes for this long."),
        click.option("--idle", type=Seconds(0), metavar="SECONDS",
                     help="Delete the queue, with its jobs, when nobody uses it for this long: 1 or more, or 0."),
        click.option("--alarm", type=click.IntRange(0), metavar="N",
                     help="Tell subscribers (DEPTH) when this many jobs wait, and when half of it do."),
        click.option("--retain", type=Seconds(0), metavar="SECONDS",
                     help="How long to keep what is known of numbered jobs that have ended, with their results."),
        click.option("--retain-max", type=click.IntRange(0), metavar="N", help="How many of them at most."),
        click.option("--retain-bytes", type=click.IntRange(0), metavar="N", help="How many bytes of data and results."),
        click.option("--numbered/--not-numbered", default=None, help="Give every job a number, so that it is kept."),
        click.option("--backoff", type=(Seconds(0), Seconds(0)), metavar="FIRST MAX",
                     help="Seconds for which a job that failed waits: FIRST, doubled each time, up to MAX; 0 0: none."),
        click.option("--error-bytes", type=click.IntRange(0), metavar="N",
                     help="How many bytes of texts of errors to keep with its jobs, the newest; 0 keeps none."),
        click.option("--dedup-max", type=click.IntRange(0), metavar="N", help="How many keys of --dedup to remember."),
        click.option("--overflow", type=click.Choice(["refuse", "drop_oldest"]),
                     help="What a full queue does with a new job: refuse it, or drop an old one. Needs a capacity."),
        click.option("--rate", type=click.IntRange(0), metavar="N",
                     help="How many jobs are handed out in --per seconds at most; 0 ends that."),
        click.option("--per", type=Seconds(0), metavar="SECONDS", help="See --rate."),
        click.option("--spread", is_flag=True, default=None, help="With --rate: one by one, at even distances."),
        click.option("--pulse", metavar="NAME", help="Hand out as this pulse allows; '' to end that."),
    )):
        function = option(function)
    return function


@group("queue")
def queue() -> None:
    """The queues."""


@command(queue, "list", timeout=10.0, epilog=exit_codes.READING, over_all=each)
@click.argument("prefix", default="")
def list_(call: Call, prefix: str) -> int:
    """Show all queues, or those whose names begin with PREFIX.

    A queue exists while it has a job, waiting or running, or settings.
    """
    from sockpqd.pqctl.actions.queues import counts

    return counts.show_list(call, prefix)


@command(queue, timeout=10.0, epilog=exit_codes.READING, over_all=each_and_sum)
@click.argument("name", required=False)
def stat(call: Call, name: str | None) -> int:
    """Count the jobs of queue NAME, and its events since it was created, or the jobs of all queues together."""
    from sockpqd.pqctl.actions.queues import counts

    return counts.show_stat(call, name)


@command(queue, timeout=10.0)
@click.argument("name")
@settings
def create(call: Call, name: str, **options: Any) -> int:
    """Create queue NAME with these settings."""
    from sockpqd.pqctl.actions.queues import settings

    return settings.create(call, name, given(**options))


@command(queue, timeout=10.0)
@click.argument("name")
@settings
def config(call: Call, name: str, **options: Any) -> int:
    """Change settings of queue NAME, and show all of them. 0 removes a limit."""
    from sockpqd.pqctl.actions.queues import settings

    return settings.config(call, name, given(**options))


@command(queue, timeout=60.0)
@click.argument("name")
@click.option("--force", is_flag=True, help="With all its jobs, including running ones.")
@click.option("--leave", is_flag=True, help="With --force: its dead jobs stay where they lie.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def delete(call: Call, name: str, force: bool, leave: bool, yes: bool) -> int:
    """Remove queue NAME with its settings, if it has no jobs."""
    from sockpqd.pqctl.actions.queues import settings

    return settings.delete(call, name, force, leave, yes)


@command(queue, timeout=60.0)
@click.argument("name")
@click.argument("state", type=click.Choice(["ready", "delayed", "running", "dead", "buried", "ended", "own", "all"]))
@click.option("--yes", is_flag=True, help="Do not ask.")
def purge(call: Call, name: str, state: str, yes: bool) -> int:
    """Remove the jobs of queue NAME that are in this state.

    `own`: all that are in it, running ones too, but not dead ones, which are in other queues. `ended`: what is kept of
    those that have ended. `all`: everything but running ones.
    """
    from sockpqd.pqctl.actions.queues import settings

    return settings.purge(call, name, state, yes)


@command(queue, timeout=10.0)
@click.argument("name")
@click.argument("direction", type=click.Choice(["in", "out", "all"]), default="all")
@click.option("--for", "seconds", type=Seconds(0), metavar="SECONDS", help="With `out`: for this long only; 0 ends it.")
def pause(call: Call, name: str, direction: str, seconds: float | None) -> int:
    """Pause queue NAME until `resume`: its input, its output, or both."""
    from sockpqd.pqctl.actions.queues import settings

    return settings.pause(call, name, direction, seconds)


@command(queue, timeout=10.0)
@click.argument("name")
def resume(call: Call, name: str) -> int:
    """Resume the paused queue NAME."""
    from sockpqd.pqctl.actions.queues import settings

    return settings.resume(call, name)


@command(queue, timeout=10.0, epilog=exit_codes.READING)
@click.argument("name")
@click.option("--state", type=click.Choice(STATES), default="ready", show_default=True, help="Only jobs in this state.")
@click.option("-n", "--count", type=click.IntRange(1, 10_000), default=10, show_default=True, metavar="N",
              help="How many jobs to show.")
@click.option("--body", is_flag=True, help="Show entire bodies, not just their beginnings.")
@click.option("--raw", is_flag=True, help="Write just the bodies, unchanged, each followed by a line end.")
def peek(call: Call, name: str, state: str, count: int, body: bool, raw: bool) -> int:
    """Look at the first jobs of queue NAME, without taking them.

    Of jobs that have ended (`ended`, or only those `done`, `cancelled` or `expired`) it shows the last ones, if the
    queue keeps them (`pqctl queue config --retain`).
    """
    from sockpqd.pqctl.actions.jobs import peek as peeking

    return peeking.show_queue(call, name, state, count, body, raw)


@command(queue, timeout=3600.0)
@click.argument("name")
def drain(call: Call, name: str) -> int:
    """Pause the input of queue NAME, and wait until the jobs in it are finished.

    It stays paused. A periodic job is never finished: delete it. --timeout says how long to wait.
    """
    from sockpqd.pqctl.actions.queues import emptying

    return emptying.drain(call, name)


@command(queue, timeout=60.0)
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.option("--count", type=click.IntRange(1), metavar="N", help="Only the first N. [default: all]")
@click.option("--died", metavar="QUEUE", help="Only dead jobs that came from this queue.")
@click.option("--seq", type=click.IntRange(0), metavar="N",
              help="Only the job at this place, the number that `pqctl job peek` and `find` show.")
def move(call: Call, source: str, target: str, count: int | None, died: str | None, seq: int | None) -> int:
    """Move the ready jobs of queue FROM to queue TO, in their order.

    They keep what they were put with; their attempts start over. Delayed and running jobs stay. When TO refuses a job,
    for its key or because it is full, this one and those after it stay. If interrupted, run it again.
    """
    from sockpqd.pqctl.actions.queues import emptying

    if seq is not None and (count is not None or died is not None):
        raise click.UsageError("--seq names one job: it goes with neither --count nor --died")
    return emptying.move(call, source, target, count, died, seq)


@group("topic")
def topic() -> None:
    """Topics: a job put to one goes into every queue bound to it."""


@command(topic, "list", timeout=10.0, epilog=exit_codes.READING, over_all=each)
@click.argument("prefix", default="")
def list_topics(call: Call, prefix: str) -> int:
    """Show the bindings of all topics, or of those whose names begin with PREFIX."""
    from sockpqd.pqctl.actions.queues import counts

    return counts.show_topics(call, prefix)


@command(topic, timeout=10.0)
@click.argument("name")
@click.argument("queue")
@click.option("--pattern", metavar="PATTERN", help="Only matching routing keys: `*` is one word, `#` any number.")
def bind(call: Call, name: str, queue: str, pattern: str | None) -> int:
    """Bind QUEUE to topic NAME."""
    from sockpqd.pqctl.actions.queues import settings

    return settings.bind(call, name, queue, pattern)


@command(topic, timeout=10.0)
@click.argument("name")
@click.argument("queue")
@click.option("--pattern", metavar="PATTERN", help="The pattern with which it was bound.")
def unbind(call: Call, name: str, queue: str, pattern: str | None) -> int:
    """Unbind QUEUE from topic NAME."""
    from sockpqd.pqctl.actions.queues import settings

    return settings.unbind(call, name, queue, pattern)


@command(topic, timeout=10.0)
@click.argument("name")
@click.argument("body", required=False)
@click.option("--file", "file", metavar="FILE", shell_complete=files,
              help="Read the body from FILE, - for standard input.")
@click.option("--route", metavar="KEY", help="The routing key that the patterns of bindings are compared with.")
@click.option("--priority", type=int, default=0, show_default=True, help="Higher priorities go first.")
@click.option("--item", metavar="ITEM", help="The item (group of jobs) it belongs to.")
def publish(
    call: Call, name: str, body: str | None, file: str | None, route: str | None, priority: int, item: str | None,
) -> int:
    """Put a job into all queues that are bound to topic NAME. Its body is given as to `pqctl job put`."""
    from sockpqd.pqctl.actions.jobs import by_hand

    return by_hand.publish(call, name, by_hand.body_from(body, file), route, priority, item)


@command(topic, "delete", timeout=10.0)
@click.argument("name")
def delete_topic(call: Call, name: str) -> int:
    """Remove all bindings of topic NAME. The queues stay if they have jobs or settings."""
    from sockpqd.pqctl.actions.queues import settings

    return settings.delete_topic(call, name)
