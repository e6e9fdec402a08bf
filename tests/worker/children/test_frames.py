"""Messages between a pool and a child process."""

from __future__ import annotations

import socket

from sockpq.model import Handed, Meta
from sockpq.worker.children.frames import Decoder, encode, messages


def test_messages_come_whole_however_they_are_cut() -> None:
    told = [None, (1, "x" * 1000), tuple(Handed(1, "q", -3, b"data", None, Meta("k", 2, None, 5)))]
    stream = b"".join(encode(one) for one in told)
    for step in (1, 3, 4, 999, len(stream)):
        decoder = Decoder()
        found = [one for at in range(0, len(stream), step) for one in decoder.feed(stream[at : at + step])]
        assert found == told


def test_the_other_end_closes() -> None:
    here, there = socket.socketpair()
    with here, there:
        there.sendall(encode("a") + encode("b")[:3])
        there.shutdown(socket.SHUT_WR)
        assert list(messages(here)) == ["a"]
