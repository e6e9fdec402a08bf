"""The pages that a snapshot by reference names, and the whole snapshot that says the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b

import msgspec

from core import limits
from core.pages.pages import PageLost
from core.snapshot import frames
from core.snapshot.write import CHECKSUM_BYTES, MAGIC
from core.store.job import Job

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(frames.Paged)
_jobs_decoder = msgspec.msgpack.Decoder(list[Job])
_PAGED = _encoder.encode(frames.Paged("", []))[:len("pages") + 2]           # the beginnings of such frames
_END = _encoder.encode(frames.End(0, 0))[:len("end") + 2]
_PROLOGUE_BYTES = len(MAGIC) + 4


def references(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The references of all pages that an intact snapshot names, in pieces of any size."""
    for piece in _pieces(chunks):
        if piece.startswith(_PAGED, 4):
            for row in _decoder.decode(piece[4:]).pages:
                yield row[-1]


def expanded(chunks: Iterable[bytes], read: Callable[[bytes], bytes]) -> Iterator[bytes]:
    """An intact snapshot with the jobs of the pages that it names. `read`: the bytes of the page of a reference.

    Raises PageLost.
    """
    digest = blake2b(digest_size=CHECKSUM_BYTES)
    chunk = bytearray()
    for piece in _pieces(chunks):
        for part in _with_jobs(piece, read) if piece.startswith(_PAGED, 4) else (piece,):
            chunk += part
            if len(chunk) >= limits.CHUNK_BYTES:
                digest.update(chunk)
                yield bytes(chunk)
                chunk.clear()
    digest.update(chunk)
    yield bytes(chunk) + digest.digest()


def _with_jobs(piece: bytes, read: Callable[[bytes], bytes]) -> Iterator[bytes]:
    """The frames with the jobs of the pages that this one names."""
    frame = _decoder.decode(piece[4:])
    for _, count, _, _, seq, reference in frame.pages:
        try:
            jobs = _jobs_decoder.decode(read(reference))
        except msgspec.MsgspecError as error:
            raise PageLost(f"a page holds no jobs: {error}") from error
        if len(jobs) != count or jobs[-1].seq != seq:
            raise PageLost("a page holds other jobs")
        body = _encoder.encode(frames.Waiting(frame.queue, [
            (-job.rank, job.when, job.seq, None, job.data, job.attempts, job.at_ms, None) for job in jobs
        ]))
        yield len(body).to_bytes(4, "big") + body


def _pieces(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """What is before the first frame, and each frame with its length before it; not the checksum behind the last."""
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
