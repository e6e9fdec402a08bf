"""`pqctl job ..`: working on single jobs by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import click

from sockpqd.pqctl.invocation import Call, Seconds, command, files, given, group
from sockpqd.pqctl.output import exit_codes
from sockpqd.pqctl.over_all import each
from sockpqd.pqctl.parameters import moment, pair, selector

if TYPE_CHECKING:
    from sockpq import Key, Number, Place

ENDING = exit_codes.epilog(refused="some were not running (any more), or refused")
NO_JOB = exit_codes.epilog(refused="there is no such job, or refused")
JOB = "ID|QUEUE/KEY|number:N|QUEUE@PLACE"
THEN = click.Choice(["later", "done", "dead"])
DELAY = click.option("--delay", type=Seconds(0), metavar="SECONDS", help="Delay the job by this long.")
AT = click.option("--at", type=moment, metavar="TIME", help="Not before then: Unix seconds, or like 2026-12-24T18:00.")
PRIORITY = click.option("--priority", type=int, metavar="N", help="Its new priority.")
ERROR = click.option("--error", metavar="TEXT", help="Why it failed, for `pqctl job show --error`.")
QUEUE_EMPTY = exit_codes.epilog(refused="there is no job, or refused")


@group("job")
def job() -> None:
    """Single jobs."""


@command(job, timeout=10.0)
@click.argument("queue")
@click.argument("body", required=False)
@click.option("--file", "file", metavar="FILE", shell_complete=files,
              help="Read the body from FILE, - for standard input.")
@click.option("--priority", type=int, default=0, show_default=True, help="Higher priorities go first.")
@click.option("--item", metavar="NAME", help="The item (group of jobs) it belongs to.")
@click.option("--new-item", is_flag=True, help="Have the server generate an item for it.")
@DELAY
@AT
@click.option("--ttl", type=Seconds(0, min_open=True), metavar="SECONDS",
              help="Remove it unless it is taken within this time.")
@click.option("--every", type=Seconds(0, min_open=True), metavar="SECONDS",
              help="Repeat it at this interval, after DONE.")
@click.option("--after", multiple=True, metavar="ITEM", help="Not before this item has no unfinished jobs.")
@click.option("--when", type=click.Choice(["done", "end", "failed"]),
              help="With --after: not before it has none, none but dead ones, or a dead one. [default: done]")
@click.option("--key", metavar="KEY", help="A name for it, unique within its queue.")
@click.option("--on-duplicate", type=click.Choice(["fail", "ignore", "replace"]),
              help="What to do if the key is taken. [default: fail]")
@click.option("--group", metavar="WORD", help="Whose job it is, for fair shares.")
@click.option("--tries", type=click.IntRange(1), metavar="N", help="Make it dead after this many attempts.")
@click.option("--number", is_flag=True, help="Print a number by which it is found; it keeps its place in the queue.")
@click.option("--lease", type=Seconds(0), metavar="SECONDS", help="The lease if a worker names none; 0: no limit.")
@click.option("--header", "headers", multiple=True, metavar="NAME=VALUE", help="A header; may be given several times.")
@click.option("--dedup", type=(str, Seconds(1, 86400)), metavar="KEY SECONDS",
              help="Put nothing if a job was put with the same for this long before.")
def put(
    call: Call, queue: str, body: str | None, file: str | None, priority: int, item: str | None, new_item: bool,
    delay: float | None, at: float | None, ttl: float | None, every: float | None, after: tuple[str, ...],
    when: str | None, key: str | None, on_duplicate: str | None, tries: int | None, group: str | None, number: bool,
    lease: float | None, headers: tuple[str, ...], dedup: tuple[str, float] | None,
) -> int:
    """Put a job into QUEUE. Its body is BODY, the content of FILE, or else standard input.

    Nothing is added or removed: `echo x | pqctl job put q` puts a body with a line end. A BODY that begins with a dash
    goes after `--`.
    """
    from sockpqd.pqctl.actions.jobs import by_hand

    options = given(
        delay=delay, at=at, ttl=ttl, every=every, after=after or None, when=when, key=key, on_duplicate=on_duplicate,
        tries=tries, group=group, number=number or None, lease=lease, headers=dict(map(pair, headers)) or None,
        dedup=dedup,
    )
    return by_hand.put(call, queue, by_hand.body_from(body, file), priority, item, new_item, options)


@command(job, timeout=10.0, epilog=QUEUE_EMPTY)
@click.argument("queues", nargs=-1, metavar="[QUEUE]...")
@click.option("--expire", type=float, default=60.0, show_default=True, metavar="SECONDS",
              help="The lease; 0 for none: the job then runs until DONE or LATER, for ever without either.")
@click.option("--then", type=THEN,
              help="What happens when the lease ends: back to its queue, done, or dead. [default: the cluster's]")
@click.option("--wait", type=Seconds(0, min_open=True), metavar="SECONDS", help="Wait this long for a job.")
@click.option("--item", metavar="NAME", help="Only a job of this item.")
@click.option("--by", type=click.Choice(
    ["random", "weight", "rr", "order", "sorted", "priority", "oldest", "fair", "place"]
), help="How the queue is chosen. [default: the cluster's policy]")
def get(
    call: Call, queues: tuple[str, ...], expire: float, then: str | None, wait: float | None, item: str | None,
    by: str | None,
) -> int:
    """Take a job from one of the QUEUEs, or from any.

    Its body goes to standard output unchanged, and a line about it, with its id and how long it is yours, to standard
    error. The job is then running: finish it with `pqctl job done ID`, or give it back with `pqctl job later ID`.
    """
    from sockpqd.pqctl.actions.jobs import by_hand

    return by_hand.get(call, queues, expire, then, wait, item, by)


@command(job, timeout=10.0, epilog=ENDING)
@click.argument("ids", nargs=-1, required=True, type=int, metavar="ID...")
@click.option("--result", metavar="FILE", shell_complete=files,
              help="Its result, from FILE, - for standard input; for one job.")
def done(call: Call, ids: tuple[int, ...], result: str | None) -> int:
    """Finish running jobs: they are removed.

    Programs that wait for the job (`pqctl job await`) get its result. It is kept if the queue keeps jobs that have
    ended (`pqctl queue config --retain`).
    """
    from sockpqd.pqctl.actions.jobs import by_hand

    return by_hand.done(call, ids) if result is None else by_hand.done_with(call, ids, result)


@command(job, timeout=10.0, epilog=ENDING)
@click.argument("ids", nargs=-1, required=True, type=int, metavar="ID...")
@DELAY
@AT
@PRIORITY
@ERROR
def later(
    call: Call, ids: tuple[int, ...], delay: float | None, at: float | None, priority: int | None, error: str | None,
) -> int:
    """Put running jobs back at the end of their queues."""
    from sockpqd.pqctl.actions.jobs import by_hand

    return by_hand.later(call, ids, given(delay=delay, at=at, priority=priority, error=error))


@command(job, timeout=10.0, epilog=exit_codes.READING, over_all=each)
@click.option("--queue", metavar="NAME", help="Only those of this queue.")
@click.option("--data", is_flag=True, help="Fetch their bodies, too: shows their lengths, with --json the bytes.")
def running(call: Call, queue: str | None, data: bool) -> int:
    """List the running jobs in the order of their ids."""
    from sockpqd.pqctl.actions.jobs import by_hand

    return by_hand.running(call, queue, data)


@command(job, timeout=10.0, epilog=NO_JOB)
@click.argument("job", type=selector, metavar=JOB)
@click.option("--error", "part", flag_value="error", help="Write the text of its last error instead of its body.")
@click.option("--result", "part", flag_value="result", help="Write its result instead of its body.")
def show(call: Call, job: int | Key | Place | Number, part: Literal["error", "result"] | None) -> int:
    """Show all that is known of a running job by its ID, one in any state by its KEY or number, or one by its PLACE.

    By its number a job is found when it has ended, too, if its queue keeps such jobs (`pqctl queue config --retain`).
    Its body goes to standard output unchanged; its times, headers, error and result go to standard error. `pqctl queue
    peek` shows places.
    """
    from sockpqd.pqctl.actions.jobs import details

    return details.show_job(call, job, part or "body")


@command(job, timeout=10.0, epilog=NO_JOB)
@click.argument("job", type=selector, metavar=JOB)
def peek(call: Call, job: int | Key | Place | Number) -> int:
    """Show a job: the same as `pqctl job show`."""
    from sockpqd.pqctl.actions.jobs import details

    return details.show_job(call, job, "body")


@command(job, timeout=10.0)
@click.argument("job", type=selector, metavar=JOB)
@PRIORITY
@DELAY
@AT
@click.option("--item", metavar="NAME", help="Another item.")
@click.option("--no-item", is_flag=True, help="Remove it from its item.")
@click.option("--body", metavar="BODY", help="Another body.")
@click.option("--file", "file", metavar="FILE", shell_complete=files, help="Another body, from FILE or from -.")
def change(
    call: Call, job: int | Key | Place | Number, priority: int | None, delay: float | None, at: float | None,
    item: str | None, no_item: bool, body: str | None, file: str | None,
) -> int:
    """Change a running job by its ID, or a waiting one by its KEY, number or PLACE. Everything else stays the same."""
    from sockpqd.pqctl.actions.jobs import by_hand, edits

    data = None if body is None and file is None else by_hand.body_from(body, file)
    changes = given(priority=priority, delay=delay, at=at, item=item, no_item=no_item or None, data=data)
    return edits.change(call, job, changes)


@command(job, timeout=10.0)
@click.argument("job", type=selector, metavar=JOB)
@click.option("--ended", is_flag=True, help="Remove what is kept of the job with this number, which has ended.")
def delete(call: Call, job: int | Key | Place | Number, ended: bool) -> int:
    """Remove a running job by its ID, or a waiting one by its KEY, number or PLACE."""
    from sockpqd.pqctl.actions.jobs import edits

    return edits.delete_ended(call, job) if ended else edits.delete(call, job)


@command(job, timeout=10.0)
@click.argument("number", type=int, metavar="ID")
@click.option("--expire", type=Seconds(0), metavar="SECONDS", help="The new lease; 0 for none. [default: as before]")
@click.option("--then", type=THEN, help="What happens when the lease ends; needs --expire.")
def touch(call: Call, number: int, expire: float | None, then: str | None) -> int:
    """Renew the lease of a running job."""
    from sockpqd.pqctl.actions.jobs import edits

    return edits.touch(call, number, expire, then)


@command(job, timeout=10.0, epilog=ENDING)
@click.argument("ids", nargs=-1, required=True, type=int, metavar="ID...")
@click.option("--reason", metavar="WORD", help="Why, in one word: kept with the job, and in the servers' log.")
@ERROR
@click.option("--here", is_flag=True, help="They stay in their own queues, buried, until `job kick --here`.")
def bury(call: Call, ids: tuple[int, ...], reason: str | None, error: str | None, here: bool) -> int:
    """Give up running jobs: they go to the dead-letter queues of their queues."""
    from sockpqd.pqctl.actions.jobs import edits

    return edits.bury(call, ids, reason, error, here=here)


@command(job, timeout=60.0)
@click.argument("queue")
@click.argument("count", type=click.IntRange(1))
@click.option("--here", is_flag=True, help="Kick the jobs buried in QUEUE instead, or delayed ones if there are none.")
def kick(call: Call, queue: str, count: int, here: bool) -> int:
    """Bring up to COUNT dead jobs of QUEUE back into it."""
    from sockpqd.pqctl.actions.jobs import edits

    return edits.kick(call, queue, count, here=here)


@command(job, timeout=10.0, epilog=NO_JOB)
@click.argument("job", type=selector, metavar="number:N|QUEUE/KEY|QUEUE@N")
def retry(call: Call, job: int | Key | Place | Number) -> int:
    """Make a job ready again that has ended, is dead, buried or delayed: as it was put, with its number.

    One that has ended is found while its queue keeps it (`pqctl queue config --retain`).
    """
    from sockpqd.pqctl.actions.jobs import ends

    return ends.retry(call, job)


@command(job, timeout=10.0, epilog=exit_codes.epilog(refused="there is no such job, it was running, or refused"))
@click.argument("job", type=selector, metavar=JOB)
@click.option("--untaken", is_flag=True, help="Only if it is not running.")
def cancel(call: Call, job: int | Key | Place | Number, untaken: bool) -> int:
    """Remove a job that has not ended. The worker of a running one is notified."""
    from sockpqd.pqctl.actions.jobs import ends

    return ends.cancel(call, job, untaken=untaken)


@command(job, "await", timeout=3600.0, epilog=exit_codes.epilog(
    done="it is done", refused="it ended otherwise, has not ended yet, or does not exist"))
@click.argument("job", type=selector, metavar="number:N|QUEUE/KEY")
@click.option("--wait", type=Seconds(0, min_open=True), metavar="SECONDS", help="Wait this long at most.")
def await_(call: Call, job: int | Key | Place | Number, wait: float | None) -> int:
    """Wait until a job has ended or was given up, and write its result to standard output.

    What is not a result, such as the error of a job that is dead, goes to standard error.
    """
    from sockpqd.pqctl.actions.jobs import ends

    return ends.await_job(call, job, wait)


@command(job, timeout=60.0, epilog=exit_codes.epilog(refused="no job matches, or refused"))
@click.argument("queues", nargs=-1, metavar="[QUEUE]...")
@click.option("--state", "states", multiple=True, type=click.Choice(
    ["ready", "delayed", "running", "dead", "buried", "done", "cancelled", "expired"]
), help="In this state; may be given several times. [default: all that have not ended]")
@click.option("--header", metavar="NAME=VALUE", help="With this header.")
@click.option("--key", metavar="PREFIX", help="With a key that begins so.")
@click.option("--item", metavar="NAME", help="Of this item.")
@click.option("--group", metavar="WORD", help="Of this group.")
@click.option("--reason", metavar="WORD", help="Put back or buried with this reason.")
@click.option("--since", type=moment, metavar="TIME", help="Put, or ended, then or later.")
@click.option("--until", type=moment, metavar="TIME", help="Put, or ended, then or before.")
@click.option("-n", "--count", type=click.IntRange(1), default=100, show_default=True, metavar="N",
              help="How many jobs to show at most.")
def find(
    call: Call, queues: tuple[str, ...], states: tuple[str, ...], header: str | None, key: str | None,
    item: str | None, group: str | None, reason: str | None, since: float | None, until: float | None, count: int,
) -> int:
    """Find the jobs of the QUEUEs, or of all, that match all given options: running, waiting or ended ones.

    Each is shown with the words by which other commands find it.
    """
    from sockpqd.pqctl.actions.jobs import finding

    wanted = given(state=list(states) or None, header=None if header is None else pair(header), key=key, item=item,
                   group=group, reason=reason, since=since, until=until)
    return finding.find(call, queues, wanted, count)


@command(job, timeout=10.0, epilog=NO_JOB)
@click.argument("job", type=selector, metavar="number:N")
def stat(call: Call, job: int | Key | Place | Number) -> int:
    """Show the state and the history of a numbered job."""
    from sockpqd.pqctl.actions.jobs import peek as peeking

    return peeking.show_stat(call, job)
