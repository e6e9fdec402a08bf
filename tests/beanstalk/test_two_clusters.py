"""The program for clients of beanstalkd on two clusters that are used as one."""

from __future__ import annotations

import asyncio

import pytest
from sockpq.aio import Client

from sockpqd.beanstalk import Call, CallFailure, Result, calls
from sockpqd.beanstalk_proxy.backend import ClientBackend, SharedClient
from tests.client.pair import Pair


def test_tubes_of_two_clusters() -> None:
    with Pair() as pair:
        pair.set({"b.": "b"})

        async def test() -> None:
            async with Client(pair.a.servers) as client, asyncio.timeout(60):
                backend = ClientBackend(SharedClient(client, pytest.fail, 1), lambda: False)

                async def say(call: Call) -> Result | CallFailure:
                    result: asyncio.Future[Result | CallFailure] = asyncio.get_running_loop().create_future()
                    backend.execute(call, result.set_result)
                    return await result

                put = [await say(calls.PutJob(tube, 5, 0, 60, tube.encode())) for tube in ("b.q", "q")]
                numbers = [one.number for one in put if isinstance(one, calls.NumberResult)]
                assert len(set(numbers)) == 2
                for number, tube in zip(numbers, ("b.q", "q"), strict=True):
                    assert await say(calls.Peek(number)) == calls.Found(number, tube.encode())
                assert await say(calls.ListTubes()) == calls.Names(("q", "b.q"))
                reserved = [await say(calls.Reserve(("q", "b.q"), 0)) for _ in "ab"]
                found = {one.tube: one for one in reserved if isinstance(one, calls.Reserved)}
                assert [found[tube].number for tube in ("b.q", "q")] == numbers
                assert await say(calls.TouchJob(found["b.q"].handle)) is None
                assert await say(calls.Release(found["b.q"].handle, 3, 0)) is None
                for number, handle in ((numbers[0], None), (numbers[1], found["q"].handle)):
                    assert not isinstance(await say(calls.DeleteJob(number, handle)), CallFailure)
                waiting = asyncio.create_task(say(calls.Reserve(("q", "b.q"), 30)))
                await asyncio.sleep(0.2)
                await say(calls.PutJob("b.q", 5, 0, 60, b"late"))
                late = await waiting
                assert isinstance(late, calls.Reserved)
                assert late.body == b"late"

        asyncio.run(test())
        assert pair.count("b", "b.q") == (0, 1)
        assert pair.count("a", "q") == (0, 0)
