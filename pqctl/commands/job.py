"""`pqctl job ..`: single jobs, by hand."""

from __future__ import annotations

import click

from pqctl import exits
from pqctl.call import Call, Seconds, command, files, group

ENDING = exits.epilog(refused="some were not running (any more), or refused")
QUEUE_EMPTY = exits.epilog(refused="there is no job, or refused")


@group("job")
def job() -> None:
    """Single jobs."""


@command(job, timeout=10.0)
@click.argument("queue")
@click.argument("body", required=False)
@click.option("--file", "file", metavar="FILE", shell_complete=files,
              help="Read the body from FILE, - for the standard input.")
@click.option("--priority", type=int, default=0, show_default=True, help="The greatest goes first.")
@click.option("--item", metavar="NAME", help="The item (group of jobs) it belongs to.")
@click.option("--new-item", is_flag=True, help="Let the server make an item for it.")
def put(
    call: Call, queue: str, body: str | None, file: str | None, priority: int, item: str | None, new_item: bool
) -> int:
    """Put a job into QUEUE. Its body is BODY, or FILE's bytes, or else what comes from the standard input.

    Nothing is added and nothing is taken away: `echo x | pqctl job put q` has a line end in its body. A BODY that
    begins with a dash goes behind `--`.
    """
    from pqctl import jobs

    return jobs.put(call, queue, jobs.body_from(body, file), priority, item, new_item)


@command(job, timeout=10.0, epilog=QUEUE_EMPTY)
@click.argument("queues", nargs=-1, metavar="[QUEUE]...")
@click.option("--expire", type=float, default=60.0, show_default=True, metavar="SECONDS",
              help="The lease; 0 for none: it then runs until DONE or LATER, for ever if nobody says so.")
@click.option("--then", type=click.Choice(["later", "done"]),
              help="What becomes of it when the lease ends: back to its queue, or gone. [default: the cluster's]")
@click.option("--wait", type=Seconds(0, min_open=True), metavar="SECONDS", help="Wait so long for a job.")
def get(call: Call, queues: tuple[str, ...], expire: float, then: str | None, wait: float | None) -> int:
    """Take a job from one of the QUEUEs, or from any.

    Its body goes to the standard output, byte by byte, and a line about it to the standard error. It is running then:
    end it with `pqctl job done ID`, or give it back with `pqctl job later ID`.
    """
    from pqctl import jobs

    return jobs.get(call, queues, expire, then, wait)


@command(job, timeout=10.0, epilog=ENDING)
@click.argument("ids", nargs=-1, required=True, type=int, metavar="ID...")
def done(call: Call, ids: tuple[int, ...]) -> int:
    """Say that running jobs are finished: they are removed."""
    from pqctl import jobs

    return jobs.done(call, ids)


@command(job, timeout=10.0, epilog=ENDING)
@click.argument("ids", nargs=-1, required=True, type=int, metavar="ID...")
def later(call: Call, ids: tuple[int, ...]) -> int:
    """Put running jobs back at the end of their queues."""
    from pqctl import jobs

    return jobs.later(call, ids)


@command(job, timeout=10.0, epilog=exits.READING)
@click.option("--queue", metavar="NAME", help="Only those of this queue.")
@click.option("--data", is_flag=True, help="Fetch their bodies as well: their lengths, with --json the bytes.")
def running(call: Call, queue: str | None, data: bool) -> int:
    """List the running jobs in the order of their ids."""
    from pqctl import jobs

    return jobs.running(call, queue, data)
