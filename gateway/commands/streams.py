"""Long answers, streamed as the client reads them: SNAPSHOT, and lists of jobs, queues and sessions."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Sequence
from typing import BinaryIO

from core import Data, JobView, RunningJob, bytes_of
from gateway.commands.context.client import Client, Services
from gateway.limits import LINES_PER_PIECE, STREAM_PIECE_BYTES
from gateway.protocol import listings, responses
from gateway.protocol.command import Command

log = logging.getLogger("sockpqd.gateway")


async def run_list(client: Client, jobs: Sequence[RunningJob], with_data: bool) -> None:
    """Stream the answer to RUNLIST [DATA] or TAKEN."""
    await client.stream(responses.number(len(jobs)))
    for start in range(0, len(jobs), LINES_PER_PIECE):
        await client.stream(listings.run_lines(jobs[start:start + LINES_PER_PIECE], with_data))
        await asyncio.sleep(0)
    if with_data:
        await _stream_data(client, [job.data for job in jobs])


async def peek_list(client: Client, jobs: Sequence[JobView], places: bool) -> None:
    """Stream the answer to PEEK at a queue: a list, then all data concatenated."""
    await client.stream(responses.number(len(jobs)))
    for start in range(0, len(jobs), LINES_PER_PIECE):
        await client.stream(listings.seen_lines(jobs[start:start + LINES_PER_PIECE], places))
        await asyncio.sleep(0)
    await _stream_data(client, [job.data for job in jobs])


async def queue_list(client: Client, names: Sequence[str]) -> None:
    """Stream the answer to QUEUE LIST. Counts are as of when a line is formatted, 0 if the queue is gone by then."""
    machine = client.hub.cluster.machine
    await client.stream(responses.number(len(names)))
    for start in range(0, len(names), LINES_PER_PIECE):
        piece = names[start:start + LINES_PER_PIECE]
        await client.stream(listings.queue_lines((name, machine.counts(name)) for name in piece))
        await asyncio.sleep(0)


async def topic_list(client: Client, bindings: Sequence[tuple[str, str, str | None]]) -> None:
    """Stream the answer to TOPIC LIST."""
    await client.stream(responses.number(len(bindings)))
    for start in range(0, len(bindings), LINES_PER_PIECE):
        await client.stream(listings.binding_lines(bindings[start:start + LINES_PER_PIECE]))
        await asyncio.sleep(0)


async def session_list(client: Client) -> None:
    """Stream the answer to SESSION LIST: the current sessions, each as it is when its line is formatted."""
    cluster = client.hub.cluster
    found = cluster.machine.sessions()
    await client.stream(responses.number(len(found)))
    for start in range(0, len(found), LINES_PER_PIECE):
        await client.stream(listings.session_lines(found[start:start + LINES_PER_PIECE], cluster.time_ms))
        await asyncio.sleep(0)


async def _stream_data(client: Client, blocks: list[Data]) -> None:
    """Stream the blocks concatenated, joining small ones."""
    piece: list[bytes] = []
    size = 0
    for block in blocks:
        piece.append(bytes_of(block))
        size += len(block)
        if size >= STREAM_PIECE_BYTES:
            await client.stream(b"".join(piece))
            await asyncio.sleep(0)
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

    The file is unlinked before it is sent, so that nothing is left behind whatever happens.
    """
    await client.hub.exports.acquire()
    export = asyncio.ensure_future(_export(client.hub, users))
    try:
        file = await asyncio.shield(export)
    except asyncio.CancelledError:      # the client is gone; the export cannot be stopped
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
            await asyncio.sleep(0)


async def _export(hub: Services, users: bool) -> BinaryIO:
    path = hub.new_export_path()
    try:
        await hub.cluster.export_snapshot(path, users=users)
        return path.open("rb")
    finally:
        path.unlink(missing_ok=True)
        hub.exports.release()


def _discard(export: asyncio.Future[BinaryIO]) -> None:
    if export.exception() is None:
        export.result().close()
