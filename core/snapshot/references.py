"""The pages that a snapshot by reference names, and its expansion to a self-contained snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from heapq import merge
from itertools import chain
from typing import TypeVar

import msgspec

from sockpqd.core import limits
from sockpqd.core.pages.bodies import body_of
from sockpqd.core.pages.delayed_pages import jobs_in
from sockpqd.core.pages.merge import merged
from sockpqd.core.pages.page_space import PageLost
from sockpqd.core.pages.pages import DelayedPage
from sockpqd.core.snapshot import frames
from sockpqd.core.snapshot.records import expanded_pages
from sockpqd.core.snapshot.rows import extras_row
from sockpqd.core.snapshot.write import CHECKSUM_BYTES, MAGIC
from sockpqd.core.store.body import bytes_of
from sockpqd.core.store.job import Job

_Row = TypeVar("_Row", frames.WaitingRow, frames.DelayedRow)
_ReadyFrame = frames.GroupWaiting | frames.GroupPaged | frames.Waiting | frames.Paged | frames.NumberedPaged

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(frames.Paged | frames.NumberedPaged | frames.GroupPaged)
_ready_decoder = msgspec.msgpack.Decoder(
    frames.GroupWaiting | frames.GroupPaged | frames.Waiting | frames.Paged | frames.NumberedPaged
)
_delayed_decoder = msgspec.msgpack.Decoder(frames.PagedDelayed | frames.Delayed)
_bodies_decoder = msgspec.msgpack.Decoder(frames.BodiesFrame)
_filled_decoder = msgspec.msgpack.Decoder(
    frames.Waiting | frames.GroupWaiting | frames.Delayed | frames.Buried | frames.Running | frames.ErrorRows
)
_jobs_decoder = msgspec.msgpack.Decoder(list[Job])
_PAGED = _encoder.encode(frames.Paged("", []))[:len("pages") + 2]           # the beginnings of such frames
_NUMBERED_PAGED = _encoder.encode(frames.NumberedPaged("", []))[:len("numbered pages") + 2]
_WAITING = _encoder.encode(frames.Waiting("", []))[:len("waiting") + 2]
_GROUP_WAITING = _encoder.encode(frames.GroupWaiting("", []))[:len("group waiting") + 2]
_GROUP_PAGED = _encoder.encode(frames.GroupPaged("", []))[:len("group pages") + 2]
_NUMBER_INDEX = _encoder.encode(frames.NumberIndex([]))[:len("number index") + 2]
_SEQ_RANKS = _encoder.encode(frames.SeqRanks("", None, []))[:len("seq ranks") + 2]
_PAGE_INDEX = _encoder.encode(frames.PageIndex([]))[:len("page index") + 2]
_PAGED_DELAYED = _encoder.encode(frames.PagedDelayed("", [], []))[:len("delayed pages") + 2]
_DELAYED = _encoder.encode(frames.Delayed("", []))[:len("delayed") + 2]
_BODIES = _encoder.encode(frames.BodiesFrame([]))[:len("bodies") + 2]
_record_decoder = msgspec.msgpack.Decoder(frames.RecordPages)
_RECORD_INDEX = _encoder.encode(frames.RecordIndex([]))[:len("record index") + 2]
_RECORD_PAGES = _encoder.encode(frames.RecordPages("", 0, []))[:len("record pages") + 2]
_mirror_decoder = msgspec.msgpack.Decoder(frames.MirrorBytes)
_MIRROR = _encoder.encode(frames.MirrorBytes(b""))[:len("mirrored") + 2]
_END = _encoder.encode(frames.EndFrame(0, 0))[:len("end") + 2]
_PROLOGUE_BYTES = len(MAGIC) + 4


def references(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the references of all pages, and bodies, that a snapshot names, given in pieces of any size.

    The snapshot is known to be intact only at the end of `chunks`. Raises PageLost if it certainly is not.
    """
    pieces = _pieces(chunks)
    for piece in pieces:
        if piece.startswith(_MIRROR, 4):
            yield from references(_Mirrored(piece, pieces))         # no frame after it names a page
            continue
        try:
            found = _references_in(piece)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise PageLost(f"it does not say which pages it names: {error}") from error
        yield from found


def _references_in(piece: bytes) -> list[bytes]:
    if piece.startswith((_PAGED, _NUMBERED_PAGED, _GROUP_PAGED), 4):
        return [row[-1] for row in _decoder.decode(piece[4:]).pages]
    if piece.startswith(_PAGED_DELAYED, 4):
        frame = _delayed_decoder.decode(piece[4:])
        return [page[-1] for page in frame.pages] if isinstance(frame, frames.PagedDelayed) else []
    if piece.startswith(_BODIES, 4):
        return [body[-1] for body in _bodies_decoder.decode(piece[4:]).bodies]
    if piece.startswith(_RECORD_PAGES, 4):
        return [page[-1] for page in _record_decoder.decode(piece[4:]).pages]
    return []


def expanded(chunks: Iterable[bytes], read: Callable[[bytes], bytes]) -> Iterator[bytes]:
    """Yield an intact snapshot with the jobs of the pages, and the bodies, that it names.

    `read`: returns the bytes of the page of a reference. Raises PageLost.
    """
    digest = blake2b(digest_size=CHECKSUM_BYTES)
    chunk = bytearray()
    for part in _with_all_jobs(_with_bodies(_with_mirror(_pieces(chunks), read), read), read):
        chunk += part
        if len(chunk) >= limits.CHUNK_BYTES:
            digest.update(chunk)
            yield bytes(chunk)
            chunk.clear()
    digest.update(chunk)
    yield bytes(chunk) + digest.digest()


class _Mirrored:
    """The snapshot of a replica's mirror, in pieces. `following`: the frame after it, once it has been read."""

    def __init__(self, piece: bytes, pieces: Iterator[bytes]) -> None:
        """`piece`: the first frame with its bytes. `pieces`: the others, and all pieces that follow."""
        self.following: bytes | None = None
        self._pieces = chain((piece,), pieces)

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._pieces:
            if not piece.startswith(_MIRROR, 4):
                self.following = piece
                return
            yield _mirror_decoder.decode(piece[4:]).data


def _with_mirror(pieces: Iterator[bytes], read: Callable[[bytes], bytes]) -> Iterator[bytes]:
    """Yield these frames, with a mirror that names no pages."""
    for piece in pieces:
        if not piece.startswith(_MIRROR, 4):
            yield piece
            continue
        mirrored = _Mirrored(piece, pieces)
        for chunk in expanded(mirrored, read):
            yield _framed(frames.MirrorBytes(chunk))
        if mirrored.following is not None:
            yield mirrored.following


def _with_bodies(pieces: Iterator[bytes], read: Callable[[bytes], bytes]) -> Iterator[bytes]:
    """Yield these frames, with the bodies that they name inserted."""
    for piece in pieces:
        if not piece.startswith(_BODIES, 4):
            yield piece
            continue
        named = {seq: (length, reference) for seq, length, reference in _bodies_decoder.decode(piece[4:]).bodies}

        def body(seq: int, data: bytes, named: dict[int, tuple[int, bytes]] = named) -> bytes:
            if seq not in named:
                return data
            length, reference = named[seq]
            return body_of(read(reference), length)

        frame = _filled_decoder.decode(next(pieces)[4:])
        if isinstance(frame, frames.Running):
            for row in frame.jobs:
                row.data = body(row.seq, row.data)
        elif isinstance(frame, frames.ErrorRows):
            frame.rows = [(number, body(number, data)) for number, data in frame.rows]
        elif isinstance(frame, frames.Waiting | frames.GroupWaiting):
            frame.jobs = [(*row[:4], body(row[2], row[4]), *row[5:]) for row in frame.jobs]
        else:
            frame.jobs = [(*row[:4], body(row[1], row[4]), *row[5:]) for row in frame.jobs]
        yield _framed(frame)


def _with_all_jobs(pieces: Iterator[bytes], read: Callable[[bytes], bytes]) -> Iterator[bytes]:
    """Yield these frames, with jobs instead of the pages that they name."""
    for piece in pieces:
        following: bytes | None = piece
        while following is not None and following.startswith((_PAGED_DELAYED, _GROUP_WAITING), 4):
            delayed = following.startswith(_PAGED_DELAYED, 4)
            queue = _DelayedOfQueue(following, pieces) if delayed else _ReadyOfQueue(following, pieces)
            yield from queue.whole(read)
            following = queue.following
        if following is None:
            return
        if following.startswith((_PAGED, _NUMBERED_PAGED), 4):
            yield from _with_jobs(following, read)
        elif following.startswith(_RECORD_PAGES, 4):
            for frame in expanded_pages(_record_decoder.decode(following[4:]), read):
                yield _framed(frame)
        elif not following.startswith((_PAGE_INDEX, _NUMBER_INDEX, _RECORD_INDEX, _SEQ_RANKS), 4):
            yield following


class _DelayedOfQueue:
    """The frames with DELAYED jobs of one queue. `following`: the frame after them, once they have all been read."""

    def __init__(self, piece: bytes, pieces: Iterator[bytes]) -> None:
        """`piece`: the first of them. `pieces`: the others, and all pieces that follow."""
        self.following: bytes | None = None
        self._pieces = pieces
        self._queue: str = _delayed_decoder.decode(piece[4:]).queue
        self._first = piece

    def whole(self, read: Callable[[bytes], bytes]) -> Iterator[bytes]:
        """Yield frames with the jobs of these frames and of the pages that they name, sorted by due time."""
        rows: list[frames.DelayedPageRow] = []
        near: Iterator[frames.DelayedRow] = iter(())
        own = self._own()
        for frame in own:
            if isinstance(frame, frames.Delayed):
                near = chain(frame.jobs, _jobs(own))
                break
            rows += frame.pages
        pages = [(_first_place(row), row) for row in rows]
        yield from _frames_of(frames.Delayed, self._queue, merged(near, pages, lambda row: _rows_in(row, read), _place))

    def _own(self) -> Iterator[frames.PagedDelayed | frames.Delayed]:
        """Yield the frames that belong to this queue."""
        for piece in chain((self._first,), self._pieces):
            if piece.startswith((_PAGED_DELAYED, _DELAYED), 4):
                frame = _delayed_decoder.decode(piece[4:])
                if frame.queue == self._queue:
                    yield frame
                    continue
            self.following = piece
            return


class _ReadyOfQueue:
    """The frames with READY jobs of one queue that several groups share. `following`: as in _DelayedOfQueue.

    Its own jobs come one frame at a time, while those of other groups that the node had in memory are held.
    """

    def __init__(self, piece: bytes, pieces: Iterator[bytes]) -> None:
        """`piece`: the first of them. `pieces`: the others, and all pieces that follow."""
        self.following: bytes | None = None
        self._pieces = pieces
        self._queue: str = _ready_decoder.decode(piece[4:]).queue
        self._first = piece

    def whole(self, read: Callable[[bytes], bytes]) -> Iterator[bytes]:
        """Yield frames with the jobs of these frames and of the pages that they name, in the order of the queue."""
        others: list[frames.WaitingRow] = []
        pages: list[tuple[tuple[int, int, int], frames.GroupPageRow]] = []
        own: Iterator[frames.WaitingRow] = iter(())
        those = self._those()
        for frame in those:
            if isinstance(frame, frames.GroupWaiting):
                others += frame.jobs
            elif isinstance(frame, frames.GroupPaged):
                pages += [((-row[1], 0, row[4]), row) for row in frame.pages]
            else:
                own = _own_rows(chain((frame,), those), read)
                break
        rows = merged(
            merge(others, own, key=_ready_place), pages, lambda row: _ready_rows(row[-1], row[2], row[5], read),
            _ready_place,
        )
        yield from _frames_of(frames.Waiting, self._queue, rows)

    def _those(self) -> Iterator[_ReadyFrame]:
        """Yield the frames that belong to this queue."""
        for piece in chain((self._first,), self._pieces):
            if piece.startswith((_GROUP_WAITING, _GROUP_PAGED, _WAITING, _PAGED, _NUMBERED_PAGED), 4):
                frame = _ready_decoder.decode(piece[4:])
                if frame.queue == self._queue:
                    yield frame
                    continue
            self.following = piece
            return


def _own_rows(those: Iterable[_ReadyFrame], read: Callable[[bytes], bytes]) -> Iterator[frames.WaitingRow]:
    """Yield the jobs of these frames and of the pages that they name, in order. Raises PageLost."""
    for frame in those:
        if isinstance(frame, frames.Paged | frames.NumberedPaged):
            for _, count, _, _, seq, *_, reference in frame.pages:
                yield from _ready_rows(reference, count, seq, read)
        elif isinstance(frame, frames.Waiting):
            yield from frame.jobs


def _ready_place(row: frames.WaitingRow) -> tuple[int, int, int]:
    return -row[0], row[1], row[2]


def _ready_rows(
    reference: bytes, count: int, seq: int, read: Callable[[bytes], bytes],
) -> Iterator[frames.WaitingRow]:
    """Yield the jobs of a page as rows of a snapshot; there must be `count`, the last with this seq.

    Raises PageLost.
    """
    try:
        jobs = _jobs_decoder.decode(read(reference))
    except msgspec.MsgspecError as error:
        raise PageLost(f"a page holds no jobs: {error}") from error
    if len(jobs) != count or jobs[-1].seq != seq:
        raise PageLost("a page holds other jobs")
    for job in jobs:
        yield -job.rank, job.when, job.seq, None, bytes_of(job.data), job.attempts, job.at_ms, extras_row(job.extras)


def _jobs(those: Iterator[frames.PagedDelayed | frames.Delayed]) -> Iterator[frames.DelayedRow]:
    for frame in those:
        if isinstance(frame, frames.Delayed):
            yield from frame.jobs


def _place(row: frames.DelayedRow) -> tuple[int, int]:
    return row[0], row[1]


def _first_place(row: frames.DelayedPageRow) -> tuple[int, int]:
    return row[2], row[3]


def _rows_in(row: frames.DelayedPageRow, read: Callable[[bytes], bytes]) -> Iterator[frames.DelayedRow]:
    """Yield the jobs of a page as rows of a snapshot. Raises PageLost."""
    count, data_bytes, first_ms, first_seq, due_ms, seq, reference = row
    page = DelayedPage(0, count, data_bytes, due_ms, seq, (first_ms, first_seq))
    for job in jobs_in(read(reference), page):
        yield job.due_ms, job.seq, -job.rank, None, bytes_of(job.data), job.attempts, job.at_ms, extras_row(job.extras)


def _frames_of(
    kind: Callable[[str, list[_Row]], frames.Frame], queue: str, rows: Iterator[_Row],
) -> Iterator[bytes]:
    """Yield frames of this kind with these jobs of the queue."""
    portion: list[_Row] = []
    size = 0
    for row in rows:
        portion.append(row)
        size += len(row[4])
        if size >= limits.FRAME_DATA_BYTES or len(portion) >= limits.FRAME_JOBS_MAX:
            yield _framed(kind(queue, portion))
            portion, size = [], 0
    if portion:
        yield _framed(kind(queue, portion))


def _framed(frame: frames.Frame) -> bytes:
    body = _encoder.encode(frame)
    return len(body).to_bytes(4, "big") + body


def _with_jobs(piece: bytes, read: Callable[[bytes], bytes]) -> Iterator[bytes]:
    """Yield the frames with the jobs of the pages that this one names."""
    frame = _decoder.decode(piece[4:])
    for _, count, _, _, seq, *_, reference in frame.pages:
        yield _framed(frames.Waiting(frame.queue, list(_ready_rows(reference, count, seq, read))))


def _pieces(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the bytes before the first frame, then each frame, preceded by its length; not the final checksum."""
    buffer = bytearray()
    length, prologue, ended = _PROLOGUE_BYTES, True, False
    for chunk in chunks:                # to their end, where it is verified that nothing of them has changed
        if ended:
            continue
        buffer += chunk
        start = 0
        while len(buffer) - start >= length:
            if not prologue and length == 4:
                length += int.from_bytes(buffer[start:start + 4], "big")
                continue
            piece = bytes(buffer[start:start + length])
            yield piece
            start += length
            ended = not prologue and piece.startswith(_END, 4)
            if ended:
                break
            prologue, length = False, 4
        del buffer[:start]
