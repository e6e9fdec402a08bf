"""SUBSCRIBE to messages: the answer waits until the leader knows that there is a subscriber here."""

from __future__ import annotations

import asyncio

import pytest

from sockpqd.gateway.events import subscriptions
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


def test_the_names_of_a_subscription_are_held_for_its_client() -> None:
    async def test(gateway: MemoryGateway) -> None:
        hearer = gateway.connect()
        names = "|".join(f"name{number}*" for number in range(1000))
        hearer.send(f"SUBSCRIBE PUT {names}\r\n".encode())
        await gateway.settle()
        assert hearer.take() == b"200 OK 1\r\n"
        assert gateway.hub.account.held_bytes > 400_000
        hearer.send(b"UNSUBSCRIBE\r\n")
        await gateway.settle()
        assert hearer.take() == b"200 OK\r\n"
        assert gateway.hub.account.held_bytes == 0
    with_gateway(test)


def test_a_sender_of_messages_waits_while_those_before_are_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscriptions, "EVENT_DUE_HIGH", 10)
    monkeypatch.setattr(subscriptions, "EVENT_SLICE_STEPS", 0)
    monkeypatch.setattr(subscriptions, "EVENT_SLICE_STEPS_MAX", 0)      # nothing is told

    async def test(gateway: MemoryGateway) -> None:
        hearer, sender, worker = (gateway.connect() for _ in range(3))
        hearer.send(b"SUBSCRIBE MSG c\r\n")
        await gateway.settle()
        assert hearer.take() == b"200 OK 1\r\n"
        sender.send(b"NOTIFY c 0\r\n" * 20)
        worker.send(b"PUT q 0 0\r\n")
        for _ in range(20):
            await asyncio.sleep(0)
        assert sender.take().count(b"200 OK") == 11
        assert worker.take() == b"200 OK\r\n"
        gateway.hub.subscriptions._slice = 1000
        monkeypatch.undo()
        answers = b""
        while answers.count(b"200 OK") < 9:
            await asyncio.sleep(0.001)
            answers += sender.take()
        await gateway.settle()
        assert hearer.take().count(b" MSG c 0\r\n") == 20
    with_gateway(test)
