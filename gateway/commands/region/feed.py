"""CLUSTER FEED: the log of the cluster, streamed to a copy of it in another region.

A feed is an answer without an end. It is made in pieces like other long answers: what its client has not read is
bounded by the buffers of its connection, and nobody else waits for it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Iterator
from itertools import islice

from sockpqd.cluster.api import Checkpoint, FeedRefusal, Frame
from sockpqd.gateway.commands.context.client import Client, Services
from sockpqd.gateway.commands.context.places import owner_of
from sockpqd.gateway.commands.region.feeds import FeedSnapshot
from sockpqd.gateway.limits import (
    FEED_LOOK_S,
    FEED_MARK_S,
    FEED_PIECE_FRAMES,
    FEED_RESTS,
    FEED_SNAPSHOT_KEPT_S,
    FEEDS_MAX,
    STREAM_PIECE_BYTES,
)
from sockpqd.gateway.protocol import responses
from sockpqd.gateway.protocol.command import Command

log = logging.getLogger("sockpqd.gateway")

_REFUSALS = {
    FeedRefusal.TOO_OLD: responses.TOO_OLD, FeedRefusal.TOO_NEW: responses.TOO_NEW,
    FeedRefusal.DIFFERENT: responses.DIFFERENT,
}


def feed(client: Client, command: Command) -> None:
    """CLUSTER FEED: stream the log from an entry on, and whatever is added to it."""
    refusal = _refusal(client) or _refusal_of_place(client, *command.arguments)
    if refusal is None:
        client.link.expect_distance()
        client.run(_feed(client, command.arguments[0]))
    else:
        client.say(refusal)


def snapshot(client: Client, command: Command) -> None:
    """CLUSTER FEED SNAPSHOT: stream the state with which a copy begins, or the rest of it."""
    refusal = _refusal(client)
    if refusal is None:
        client.link.expect_distance()
        client.run(_continue(client, *command.arguments) if command.arguments else _snapshot(client))
    else:
        client.say(refusal)


def _refusal(client: Client) -> bytes | None:
    """Return the refusal of any feed. It has all data and the keys of users, so its connection must be secure."""
    hub = client.hub
    if not client.link.secure:
        hub.access.complain("CLUSTER FEED without TLS", client.guard.user, client.link.peer)
        return responses.FORBIDDEN
    return responses.OFFLINE_MODE if hub.cluster.is_replica else None


def _refusal_of_place(client: Client, index: int, at: int | None, value: str) -> bytes | None:
    hub = client.hub
    if hub.feeds.running >= FEEDS_MAX:      # first, as a client that only looks asks for an entry that there cannot be
        return responses.BUSY
    refused = hub.cluster.feed.refusal(index, None if at is None else Checkpoint(at, bytes.fromhex(value)))
    return None if refused is None else _REFUSALS[refused]


async def _feed(client: Client, index: int) -> None:
    hub, source, loop = client.hub, client.hub.cluster.feed, asyncio.get_running_loop()
    log.info("%s: a copy of this cluster is fed from entry %d on", client.link.peer, index)
    hub.feeds.running += 1
    hub.feeds.forget_before(index)
    try:
        await client.stream(responses.number(index))
        checked, marked_at = index - 1, float("-inf")
        while True:
            executed = source.executed
            found = await source.read(index)
            if found is None:
                break
            index = found.next
            checkpoints = source.checkpoints(checked, index - 1)
            checked = checkpoints[-1].index if checkpoints else checked
            sent_bytes, busy_s = 0, 0.0
            if found.frames or checkpoints or loop.time() >= marked_at + FEED_MARK_S:
                marked_at = loop.time()
                sent_bytes, busy_s = await _send(client, found.frames, b"".join([
                    *map(responses.feed_checkpoint, checkpoints),
                    responses.feed_mark(index - 1, executed, hub.cluster.age_s()),
                ]))
            # One that is far behind goes on at once, but takes a share of the loop's time only.
            await asyncio.sleep(busy_s * FEED_RESTS if sent_bytes > STREAM_PIECE_BYTES else FEED_LOOK_S)
        if source.refusal(index, None) is FeedRefusal.TOO_OLD:      # otherwise the entry cannot be read
            log.warning("%s: the copy is too slow, or was away for too long: entry %d is not in the journal any more. "
                        "It starts again from a snapshot; a greater feed.keep_bytes gives it more time.",
                        client.link.peer, index)
        client.say_last(responses.TOO_OLD)
    finally:
        hub.feeds.running -= 1


async def _send(client: Client, frames: list[Frame], end: bytes) -> tuple[int, float]:
    """Send frames in pieces, the last with `end`; return their bytes, and the seconds that it took to make them."""
    feeds, sent, sent_bytes, busy_s = client.hub.feeds, 0, 0, 0.0
    left = iter(frames)
    _hold(client, sum([len(frame.data) for frame in frames]))
    while True:
        began = time.perf_counter()
        count, piece = _piece(left)
        sent += count
        if sent == len(frames):
            piece += end
        busy_s += time.perf_counter() - began
        await client.stream(piece)
        sent_bytes += len(piece)
        feeds.sent_entries += count
        feeds.sent_bytes += len(piece)
        if sent == len(frames):
            _hold(client, 0)
            return sent_bytes, busy_s
        await client.hub.turn()


def _hold(client: Client, held_bytes: int) -> None:
    """Charge the client for the entries read for it until they are sent, unless they are few."""
    held_bytes = 0 if held_bytes < STREAM_PIECE_BYTES else held_bytes
    if held_bytes != client.state.gathered_bytes:
        client.state.gathered_bytes = held_bytes
        client.weigh()


def _piece(frames: Iterator[Frame]) -> tuple[int, bytes]:
    """Encode the next frames; return how many these are, and the bytes."""
    parts: list[bytes] = []
    size = 0
    for frame in islice(frames, FEED_PIECE_FRAMES):
        parts += (responses.feed_frame(frame), frame.data)
        size += len(frame.data)
        if size >= STREAM_PIECE_BYTES:
            break
    return len(parts) // 2, b"".join(parts)


async def _snapshot(client: Client) -> None:
    """Write the state to a file, and stream it from there; the file is kept for a client that comes back for the rest.

    It has a place for as long as it is written and read, as it takes room on the disk.
    """
    hub, owner = client.hub, owner_of(client.guard.user, client.link.peer)
    if not hub.exported.take(owner):
        client.say(responses.BUSY)
        return
    export: asyncio.Future[FeedSnapshot] | None = None
    try:
        await hub.exports.acquire()
        export = asyncio.ensure_future(_export(hub))
        try:
            found = await asyncio.shield(export)
        except OSError as error:
            log.warning("CLUSTER FEED SNAPSHOT for %s failed: %s. Make room on the disk of node.data_dir.",
                        client.link.peer, error)
            client.say(responses.BUSY)
            return
        await _stream(client, found, 0)
    finally:
        hub.exported.leave_after(owner, export)     # an export cannot be stopped, also if the client is gone


async def _export(hub: Services) -> FeedSnapshot:
    path = hub.new_export_path()
    try:
        index, value = await hub.cluster.export_for_copy(path)
        found = FeedSnapshot(os.open(path, os.O_RDONLY | os.O_CLOEXEC), index, value)
    finally:
        path.unlink(missing_ok=True)
        hub.exports.release()
    hub.feeds.keep(found)
    _forget_later(hub, found)           # if its client has gone meanwhile, it may come back
    return found


async def _continue(client: Client, index: int, offset: int) -> None:
    found, places = client.hub.feeds.snapshot, client.hub.exported
    owner = owner_of(client.guard.user, client.link.peer)
    if found is None or found.index != index or offset > found.size:
        client.say(responses.TOO_OLD)
    elif not places.take(owner):
        client.say(responses.BUSY)
    else:
        try:
            await _stream(client, found, offset)
        finally:
            places.leave(owner)


async def _stream(client: Client, found: FeedSnapshot, offset: int) -> None:
    hub = client.hub
    found.use()
    try:
        await client.stream(responses.feed_snapshot(found.index, found.chain, found.size - offset))
        while piece := found.read(offset):
            await client.stream(piece)
            offset += len(piece)
            await hub.turn()
    finally:
        found.leave()
        _forget_later(hub, found)           # what was sent last may be lost, if the connection breaks


def _forget_later(hub: Services, found: FeedSnapshot) -> None:
    """Forget the snapshot if nobody uses it for a while."""
    def look() -> None:
        if not found.users:
            hub.feeds.forget(found)

    if found.forgetting is not None:
        found.forgetting.cancel()           # of an earlier use
    found.forgetting = asyncio.get_running_loop().call_later(FEED_SNAPSHOT_KEPT_S, look)
