"""The state as bytes. Equal states give equal bytes, whatever way led to them.

    magic       8 bytes     PQRAFT1 and a newline
    format      4 bytes     big endian; a change of anything below gives it a new number
    frames                  each: length of its body (4 bytes, big endian), body (MessagePack)
    checksum    32 bytes    BLAKE2b of everything before

The frames are, in this order: one Head; Waiting, queues in name order and the jobs of a queue in the order in which
they will be handed out; Running, in rising id; SessionTable and SessionRows, in rising number, when there has been a
session; UserRows, in name order; Clone and its Chunks, when a CLONE is under way; one End. Long lists are cut into
several frames.

To change the layout: raise FORMAT, keep reading the old numbers (format2.py shows how, restore.py has the table), add a
snapshot of the old format to the tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import TypeVar

import msgspec

from core.frames import Chunk, Clone, End, Frame, Head, Running, RunningRow, UserRow, UserRows, Waiting
from core.job import Job, RunningJob
from core.session_frames import session_frames
from core.state import State
from core.users import User

MAGIC = b"PQRAFT1\n"
FORMAT = 3
CHECKSUM_BYTES = 32

CHUNK_BYTES = 256 << 10             # a chunk is yielded when it has this size
CHUNK_BYTES_MAX = 1 << 20           # a larger one, caused by a large job, is cut
FRAME_JOBS_MAX = 1000
FRAME_DATA_BYTES = 128 << 10        # a frame is closed when the data in it have this size
FRAME_USERS_MAX = 100

_encoder = msgspec.msgpack.Encoder()


def write(state: State, *, users: bool) -> Iterator[bytes]:
    """The snapshot of `state` in chunks, with the users and their keys or without.

    The state must not change before the last one is taken.
    """
    digest = blake2b(digest_size=CHECKSUM_BYTES)
    chunk = bytearray(MAGIC + FORMAT.to_bytes(4, "big"))
    for frame in _frames(state, users):
        body = _encoder.encode(frame)
        chunk += len(body).to_bytes(4, "big")
        chunk += body
        if len(chunk) >= CHUNK_BYTES:
            digest.update(chunk)
            yield from _cut(chunk)
            chunk.clear()
    digest.update(chunk)
    yield bytes(chunk) + digest.digest()


def _cut(chunk: bytearray) -> Iterator[bytes]:
    for start in range(0, len(chunk), CHUNK_BYTES_MAX):
        yield bytes(chunk[start : start + CHUNK_BYTES_MAX])


def _frames(state: State, users: bool) -> Iterator[Frame]:
    yield _head(state)
    for name in state.queues.nonempty:
        for jobs in _portions(state.queues.by_name[name].ready):
            yield Waiting(name, [(-job.rank, job.seq, job.item, job.data) for job in jobs])
    for running in _portions(state.running.values()):
        yield Running([_running_row(job) for job in running])
    yield from session_frames(state.sessions)
    if users:
        yield from _user_frames(state.users)
    if state.clone is not None:
        yield Clone(state.clone.clone, state.clone.total_bytes)
        for data in state.clone.chunks:
            yield Chunk(data)
    yield End(state.queues.waiting, len(state.running))


def _head(state: State) -> Head:
    return Head(
        index=state.index,
        term=state.term,
        leader=state.leader,
        clock_ms=state.clock_ms,
        cluster_id=state.cluster_id,
        expire_default=state.expire_default,
        servers=sorted(state.servers.ids.items(), key=lambda server: server[1]),
        max_id=state.servers.max_id,
        next_id=state.next_id,
        next_seq=state.next_seq,
        next_item=state.items.next_item,
        members=[(one.name, one.peer, one.client) for one in state.membership.addresses.values()],
        learner=state.membership.learner,
        configuration=state.membership.configuration,
        online=state.online,
    )


def _running_row(job: RunningJob) -> RunningRow:
    return RunningRow(
        job.id, job.queue, job.priority, job.seq, job.item, job.data, job.deadline_ms, job.then, job.graced
    )


def _user_frames(users: Mapping[str, User]) -> Iterator[UserRows]:
    rows = [UserRow(name, users[name].rights, users[name].key) for name in sorted(users)]
    for start in range(0, len(rows), FRAME_USERS_MAX):
        yield UserRows(rows[start : start + FRAME_USERS_MAX])


_AnyJob = TypeVar("_AnyJob", Job, RunningJob)


def _portions(jobs: Iterable[_AnyJob]) -> Iterator[list[_AnyJob]]:
    """The jobs in lists that make frames of a handy size."""
    portion: list[_AnyJob] = []
    data_bytes = 0
    for job in jobs:
        portion.append(job)
        data_bytes += len(job.data)
        if data_bytes >= FRAME_DATA_BYTES or len(portion) >= FRAME_JOBS_MAX:
            yield portion
            portion = []
            data_bytes = 0
    if portion:
        yield portion
