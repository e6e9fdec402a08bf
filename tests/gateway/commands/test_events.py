"""SUBSCRIBE to messages: the answer waits until the leader knows that somebody listens here."""

from __future__ import annotations

import asyncio

import pytest

from tests.gateway.helpers.memory import MemoryGateway, with_gateway


@pytest.mark.parametrize(("begin", "heard"), [
    (b"", b"250 5 PUT q 0\r\n"),
    (b" FROM 2", b"250 3 PUT q 0\r\n250 4 PUT q 0\r\n250 5 PUT q 0\r\n"),
])
def test_what_happens_before_the_answer_is_heard_by_who_asked_for_it_only(begin: bytes, heard: bytes) -> None:
    async def test(gateway: MemoryGateway) -> None:
        worker, recorder, hearer = (gateway.connect() for _ in range(3))
        recorder.send(b"SUBSCRIBE PUT\r\n")
        worker.send(b"PUT q 0 0\r\n")
        await gateway.settle()
        gateway.cluster.listening_known = False
        hearer.send(b"SUBSCRIBE PUT|MSG" + begin + b"\r\n")
        await gateway.settle()
        worker.send(b"PUT q 0 0\r\n" * 2)
        await gateway.settle()
        assert hearer.take() == b""
        gateway.cluster.listening_known = True
        answer = b""
        while not answer:
            await asyncio.sleep(0.01)
            await gateway.settle()
            answer = hearer.take()
        worker.send(b"PUT q 0 0\r\n")
        await gateway.settle()
        assert answer + hearer.take() == b"200 OK 4\r\n" + heard
    with_gateway(test)
