"""The cost of the lines of the protocol: reading a command and writing its answer, compared with MessagePack.

    python -m tests.gateway.protocol.line_costs

A binary framing could save at most the difference. "opcodes" are instructions of Python for one command, a figure
without noise; processor times are the least of all blocks, as everything else that the machine does only adds to them.
MessagePack is measured as favourably as it can be: one frame at a time, of a type that is known, with its length in
front, decoded by msgspec into a struct and encoded from one.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click
import msgspec

from bench.core.loads import CoreAlone, opcodes, timed_ns
from bench.load_generator.console import make_console
from bench.load_generator.target import RECORD
from bench.reports.recording import Result, finish
from sockpqd.core import Done, Finished, Get, Handed, Operation, Put, Reply, Stored
from sockpqd.gateway.commands.catalog import VERBS
from sockpqd.gateway.limits import Limits
from sockpqd.gateway.protocol.command import Command
from sockpqd.gateway.protocol.parser import Parser
from sockpqd.gateway.protocol.responses import answer

BODY = b"x" * 30
BLOCK = 200             # commands in one measurement
LENGTH = struct.Struct(">I")


class PutFrame(msgspec.Struct, array_like=True):
    """A PUT as a binary protocol would have it."""

    verb: int
    queue: str
    priority: int
    data: bytes


class GetFrame(msgspec.Struct, array_like=True):
    """A GET with a lease."""

    verb: int
    queue: str
    expire_ms: int


class DoneFrame(msgspec.Struct, array_like=True):
    """A DONE, as a frame of a binary protocol."""

    verb: int
    number: int


class HandedFrame(msgspec.Struct, array_like=True):
    """The answer to a GET that has got a job."""

    status: int
    queue: str
    number: int
    priority: int
    data: bytes


class StatusFrame(msgspec.Struct, array_like=True):
    """Any other answer, as a frame of a binary protocol."""

    status: int


class Framed(msgspec.Struct):
    """One command with its answer: as lines, and as frames."""

    name: str
    line: bytes
    reply: Reply
    frame: msgspec.Struct
    operation_of: Callable[[Any], Operation]        # of such a frame
    answer_of: Callable[[Any], msgspec.Struct]      # to such a reply


CASES = (
    Framed(
        "PUT", b"PUT q 5 %d\r\n" % len(BODY) + BODY, Stored(), PutFrame(1, "q", 5, BODY),
        lambda frame: Put(frame.queue, frame.priority, frame.data), lambda reply: StatusFrame(200),
    ),
    Framed(
        "GET", b"GET q EXPIRE 60\r\n", Handed(1234, "q", 5, BODY), GetFrame(2, "q", 60_000),
        lambda frame: Get((frame.queue,), expire_ms=frame.expire_ms),
        lambda reply: HandedFrame(200, reply.queue, reply.id, reply.priority, reply.data),
    ),
    Framed(
        "DONE", b"DONE 1234\r\n", Finished(), DoneFrame(3, 1234),
        lambda frame: Done(frame.number), lambda reply: StatusFrame(200),
    ),
)


def by_lines(case: Framed) -> None:
    """Read the command and write its answer a block of times, by the gateway's own parser and responses."""
    parser = Parser(Limits(), VERBS)
    feed, following, line, reply = parser.feed, parser.next, case.line, case.reply
    for _ in range(BLOCK):
        feed(line)
        following()
        answer(reply)


def by_frames(case: Framed) -> None:
    """Do the same by frames: split, decode and check, make the gateway's command, encode the answer."""
    encoder = msgspec.msgpack.Encoder()
    body = encoder.encode(case.frame)
    received, decode = LENGTH.pack(len(body)) + body, msgspec.msgpack.Decoder(type(case.frame)).decode
    encode, row = encoder.encode, VERBS.rows[0]
    operation_of, answer_of, reply = case.operation_of, case.answer_of, case.reply
    for _ in range(BLOCK):
        (length,) = LENGTH.unpack_from(received, 0)
        end = LENGTH.size + length
        if end > len(received):
            raise ValueError("the frame is not complete")
        command = Command(operation_of(decode(received[LENGTH.size:end])))
        command.row = row
        written = encode(answer_of(reply))
        LENGTH.pack(len(written)) + written


def measure(of: Callable[[Framed], None], case: Framed, blocks: int) -> tuple[float, float]:
    """Return the processor time of a command in microseconds, the least of all blocks, and its instructions."""
    call = partial(of, case)
    return min(timed_ns(call) for _ in range(blocks)) / BLOCK / 1000, opcodes(call) / BLOCK


@click.command()
@click.option("--blocks", default=200, show_default=True, type=click.IntRange(1), help="Measurements of each.")
@RECORD
def main(blocks: int, record_to: Path | None) -> None:
    """Compare the cost of lines with that of MessagePack frames."""
    result = Result("line_costs")
    for case in CASES:
        lines_us, lines_steps = measure(by_lines, case, blocks)
        frames_us, frames_steps = measure(by_frames, case, blocks)
        result.rows.append({
            "command": case.name, "lines_CPU_us": lines_us, "frames_CPU_us": frames_us,
            "saved_CPU_us": lines_us - frames_us, "lines_opcodes": lines_steps, "frames_opcodes": frames_steps,
        })
    finish(make_console(), result, CoreAlone(), record_to)


if __name__ == "__main__":
    main()
