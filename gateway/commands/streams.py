"""Long answers, streamed as the client reads them: SNAPSHOT, and lists that may be long.

A list is made in pieces, each of which has a turn of its own (hub.py): so no other client waits for it, however long it
is and however many clients ask for it. Copies made in one step use only loops of the interpreter itself. The source of
a list is held in memory until the answer is complete, and charged to its client: a thousand lists of a hundred thousand
names are gigabytes.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Iterable, Sequence, Sized
from itertools import islice
from typing import BinaryIO, TypeVar

from sockpqd.core import AnyJob, JobState, RunningJob, body_of, bytes_of
from sockpqd.gateway.commands.context.client import Client, Services
from sockpqd.gateway.commands.context.places import owner_of
from sockpqd.gateway.limits import ENDED_BYTES_MAX, KIB, LINES_PER_PIECE, STREAM_PIECE_BYTES
from sockpqd.gateway.protocol import listings, responses
from sockpqd.gateway.protocol.command import Command

log = logging.getLogger("sockpqd.gateway")

REFERENCE_BYTES = 8                     # of a name or job in a list, and
CHOSEN_BYTES = 64                       # of a name that is chosen, about: each is kept once, in their order
GATHERED_COUNTED_BYTES = 4 * KIB        # of less nothing is counted

_Item = TypeVar("_Item")


async def run_list(client: Client, jobs: Sequence[RunningJob], with_data: bool) -> None:
    """Stream the answer to RUNLIST [DATA] or TAKEN."""
    _hold(client, len(jobs) * REFERENCE_BYTES)
    await client.stream(responses.number(len(jobs)))
    async for piece in pieces(client, jobs):
        await client.stream(listings.run_lines(piece, with_data))
    if with_data:
        await _stream_data(client, jobs)


async def running_list(client: Client, with_data: bool) -> None:
    """Stream the answer to RUNLIST: the jobs running now, even if they end before their lines are formatted."""
    await client.hub.turn()
    await run_list(client, client.hub.cluster.machine.running(), with_data)


async def taken_list(client: Client, session: int) -> None:
    """Stream the answer to TAKEN: the jobs that were taken, without those that end before their lines are formatted."""
    machine = client.hub.cluster.machine
    jobs = []
    async for piece in pieces(client, machine.taken(session)):
        jobs += [job for number in piece if (job := machine.running_job(number)) is not None]
    await run_list(client, jobs, with_data=False)


async def peek_list(
    client: Client, queue: str, state: JobState, count: int, places: bool = False, head: bool = False,
    life: bool = False,
) -> None:
    """Stream the answer to PEEK at a queue: a list, then all data concatenated."""
    await client.hub.turn()
    machine = client.hub.cluster.machine
    jobs: list[AnyJob] = []
    while some := machine.next_jobs(queue, state, count, jobs):
        jobs += some
        if len(jobs) < count:
            await client.hub.turn()
    _hold(client, len(jobs) * REFERENCE_BYTES)
    await client.stream(responses.number(len(jobs)))
    async for piece in pieces(client, jobs):
        await client.stream(listings.seen_lines(machine.views(piece, state), places, head, life))
    await _stream_data(client, jobs, head)


async def peek_ended(client: Client, queue: str, count: int, places: bool, head: bool, life: bool) -> None:
    """Stream the answer to PEEK at the ended jobs of a queue, with at most ENDED_BYTES_MAX of data."""
    await client.hub.turn()
    machine = client.hub.cluster.machine
    lines: list[bytes] = []         # of a block of records each
    data: list[bytes] = []
    found, left, before = 0, ENDED_BYTES_MAX, None
    while found < count and left > 0:
        some, before = machine.ended_jobs(queue, count - found, before)
        shown: list[bytes] = []
        for job in some:
            shown.append(bytes_of(job.data) if head else job.body())
            left -= len(shown[-1])
            if left < 0 and found + len(shown) > 1:
                shown.pop()
                break
        lines.append(listings.seen_lines(some[:len(shown)], places, head, life))
        data.append(b"".join(shown))
        found += len(shown)
        _hold(client, sum(map(len, lines)) + ENDED_BYTES_MAX - max(left, 0))
        if before is None:
            break
        await client.hub.turn()
    answer = b"".join((responses.number(found), *lines, *data))
    lines.clear()
    data.clear()
    _hold(client, len(answer))
    for start in range(0, len(answer), STREAM_PIECE_BYTES):
        await client.stream(answer[start:start + STREAM_PIECE_BYTES])
        await client.hub.turn()


async def queue_list(client: Client, prefix: str) -> None:
    """Stream the answer to QUEUE LIST, of the queues on which the user has any right.

    Counts are those at the time a line is formatted, 0 if the queue is gone by then or only has waiting clients.
    """
    await client.hub.turn()
    machine, visible = client.hub.cluster.machine, client.guard.visible
    awaited = client.hub.job_waiters.queues() if client.hub.cluster.serving else []
    found = await gathered(
        client, [*machine.all_queue_names(), *awaited],
        lambda names: visible(name for name in names if name.startswith(prefix)))
    await client.stream(responses.number(len(found)))
    async for piece in pieces(client, found):
        await client.stream(listings.queue_lines((name, machine.counts(name)) for name in piece))


async def item_list(client: Client, prefix: str, held: bool) -> None:
    """Stream the answer to ITEM LIST: the user's items, or only those that are `held`.

    Figures are those at the time a line is formatted; an item that has ended by then has no jobs.
    """
    await client.hub.turn()
    machine, visible = client.hub.cluster.machine, client.guard.visible_items
    found = await gathered(
        client, machine.held_items() if held else machine.item_names(),
        lambda names: visible(name for name in names if name.startswith(prefix)))
    await client.stream(responses.number(len(found)))
    async for piece in pieces(client, found):
        await client.stream(listings.item_lines((name, machine.item_summary(name)) for name in piece))


async def group_list(client: Client, prefix: str) -> None:
    """Stream the answer to GROUP LIST: the groups that the user may see, each as it is when its line is formatted."""
    await client.hub.turn()
    machine, visible = client.hub.cluster.machine, client.guard.visible_groups
    found = await gathered(
        client, list(machine.group_names()),
        lambda names: [
            name for name in visible(name for name in names if name.startswith(prefix))
            if machine.group_counts(name) is not None
        ])
    await client.stream(responses.number(len(found)))
    async for piece in pieces(client, found):
        await client.stream(listings.group_lines(
            ((name, machine.group_counts(name)) for name in piece), client.hub.cluster.time_ms,
        ))


async def topic_list(client: Client, prefix: str) -> None:
    """Stream the answer to TOPIC LIST: the bindings of which the user has any right on the topic and on the queue."""
    await client.hub.turn()
    bound, visible = client.hub.cluster.machine.topics, client.guard.visible
    topics = await gathered(
        client, client.hub.cluster.machine.topic_names(),
        lambda names: [name for name in names if name.startswith(prefix) and visible((f"@{name}",))])
    bindings = await gathered(
        client, ((topic, *one) for topic in topics for one in list(bound.get(topic, ()))),
        lambda found: [one for one in found if visible((one[1],))])
    await client.stream(responses.number(len(bindings)))
    async for piece in pieces(client, bindings):
        await client.stream(listings.binding_lines(piece))


async def session_list(client: Client) -> None:
    """Stream the answer to SESSION LIST: the current sessions, each as it is when its line is formatted."""
    await client.hub.turn()
    cluster = client.hub.cluster
    found = cluster.machine.sessions()
    _hold(client, len(found) * REFERENCE_BYTES)
    await client.stream(responses.number(len(found)))
    async for piece in pieces(client, found):
        await client.stream(listings.session_lines(piece, cluster.time_ms))


async def worker_list(client: Client) -> None:
    """Stream the answer to WORKER LIST: the workers the user may see, each as it is when its line is formatted."""
    await client.hub.turn()
    cluster = client.hub.cluster
    found = await gathered(client, cluster.machine.workers(), client.guard.visible_workers)
    await client.stream(responses.number(len(found)))
    async for piece in pieces(client, found):
        await client.stream(listings.worker_lines(piece, cluster.time_ms))


async def pulse_list(client: Client) -> None:
    """Stream the answer to PULSE LIST: the names of the pulses that the user may see."""
    await client.hub.turn()
    found = await gathered(client, sorted(client.hub.cluster.machine.pulses), client.guard.visible_pulses)
    await client.stream(responses.number(len(found)))
    async for piece in pieces(client, found):
        await client.stream(listings.names(piece))


async def user_list(client: Client) -> None:
    """Stream the answer to USER LIST."""
    await client.hub.turn()
    access = client.hub.access
    found = access.names()
    await client.stream(responses.number(len(found)))
    async for piece in pieces(client, found):
        await client.stream(listings.user_lines(access.listed(piece)))


async def gathered(
    client: Client, candidates: Iterable[_Item], choose: Callable[[list[_Item]], Iterable[_Item]],
) -> list[_Item]:
    """Return the chosen candidates, each once, inspected in pieces; the first piece is handled in the current turn."""
    chosen: dict[_Item, None] = {}
    held_bytes = len(candidates) * REFERENCE_BYTES if isinstance(candidates, Sized) else 0
    _hold(client, held_bytes)
    left = iter(candidates)
    while piece := list(islice(left, LINES_PER_PIECE)):
        chosen.update(dict.fromkeys(choose(piece)))
        _hold(client, held_bytes + len(chosen) * CHOSEN_BYTES)
        if len(piece) == LINES_PER_PIECE:
            await client.hub.turn()
    _hold(client, len(chosen) * REFERENCE_BYTES)
    return list(chosen)


def _hold(client: Client, held_bytes: int) -> None:
    """Charge these bytes, the source of the answer, to the client until its answer is complete."""
    if held_bytes >= GATHERED_COUNTED_BYTES or client.state.gathered_bytes:
        client.state.gathered_bytes = held_bytes
        client.weigh()


async def pieces(client: Client, items: Sequence[_Item]) -> AsyncIterator[Sequence[_Item]]:
    """Yield the items of an answer in pieces, each in a turn of its own."""
    for start in range(0, len(items), LINES_PER_PIECE):
        piece = items[start:start + LINES_PER_PIECE]
        await client.hub.turn(len(piece))
        yield piece


async def _stream_data(client: Client, jobs: Iterable[AnyJob], head: bool = False) -> None:
    """Stream the data of the jobs concatenated, joining small ones; `head`: with their headers."""
    piece: list[bytes] = []
    size = 0
    for job in jobs:
        piece.append(bytes_of(job.data) if head else body_of(job))
        size += len(piece[-1])
        if size >= STREAM_PIECE_BYTES or len(piece) == LINES_PER_PIECE:
            await client.stream(b"".join(piece))
            await client.hub.turn(max(len(piece), min(size * LINES_PER_PIECE // STREAM_PIECE_BYTES, LINES_PER_PIECE)))
            piece, size = [], 0
    await client.stream(b"".join(piece))


def snapshot(client: Client, command: Command) -> None:
    """SNAPSHOT: stream a snapshot of the applied state. With USERS it carries keys, so it needs a secure connection."""
    users = bool(command.arguments)
    if users and not client.link.secure:
        client.hub.access.complain("SNAPSHOT USERS without TLS", client.guard.user, client.link.peer)
        client.say(responses.FORBIDDEN)
    else:
        client.run(_snapshot(client, users))


async def _snapshot(client: Client, users: bool) -> None:
    """Write the applied state to a file, and stream it from there to the client.

    The file is unlinked before it is sent, so that nothing is left behind whatever happens. It has a place until it is
    sent, as it takes room on the disk for as long as its client reads it.
    """
    places, owner = client.hub.exported, owner_of(client.guard.user, client.link.peer)
    if not places.take(owner):
        client.say(responses.BUSY)
        return
    export: asyncio.Future[BinaryIO] | None = None
    try:
        await client.hub.exports.acquire()
        export = asyncio.ensure_future(_export(client.hub, users))
        try:
            file = await asyncio.shield(export)
        except asyncio.CancelledError:      # the client is gone
            export.add_done_callback(_discard)
            raise
        except OSError as error:
            log.warning("SNAPSHOT for %s failed: %s. Make room on the disk of node.data_dir.", client.link.peer,
                        error)
            client.say(responses.BUSY)
            return
        with file:
            size = file.seek(0, os.SEEK_END)
            file.seek(0)
            await client.stream(responses.number(size))
            while piece := file.read(STREAM_PIECE_BYTES):
                await client.stream(piece)
                await client.hub.turn()
    finally:
        places.leave_after(owner, export)   # an export cannot be stopped


async def _export(hub: Services, users: bool) -> BinaryIO:
    path = hub.new_export_path()
    try:
        await hub.cluster.export_snapshot(path, users=users)
        return path.open("rb")
    finally:
        path.unlink(missing_ok=True)
        hub.exports.release()


def _discard(export: asyncio.Future[BinaryIO]) -> None:
    """Close the file of a client that has gone, once it is written."""
    if not export.cancelled() and export.exception() is None:
        export.result().close()
