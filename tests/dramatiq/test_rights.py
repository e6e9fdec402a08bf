"""The rights that docs/DRAMATIQ.md names are enough."""

from __future__ import annotations

import dramatiq
import pytest
from sockpq import ForbiddenError
from sockpq_dramatiq import SentMessage, SockpqBroker, SockpqGroupCallbacks, SockpqResults

from tests.dramatiq.workers import PATIENCE_MS, work_off, working
from tests.limited_user import SECRET, USER, limited_user


def test_a_user_with_these_rights_can_use_everything() -> None:
    with limited_user("put:shop.*,get:shop.*,queue:shop.*,item:shop.*") as address:
        broker = SockpqBroker(
            address, user=USER, secret=SECRET, prefix="shop.", results=SockpqResults(), timeout=PATIENCE_MS / 1000,
        )
        broker.add_middleware(SockpqGroupCallbacks(broker))
        dramatiq.set_broker(broker)
        finished: list[int] = []

        @dramatiq.actor(store_results=True, atomic=True, max_retries=0)
        def half(number: int) -> int:
            return number // 2 if number else 1 // number

        @dramatiq.actor
        def last() -> None:
            finished.append(1)

        group = dramatiq.group([half.message(2), half.message(4)])
        group.add_completion_callback(last.message())
        group.run()
        waiting, failing = half.send_with_options(args=(1,), delay=60_000), half.send(0)
        assert isinstance(waiting, SentMessage)
        with working(broker):
            assert list(group.get_results(block=True, timeout=PATIENCE_MS)) == [1, 2]
            with pytest.raises(dramatiq.results.ResultFailure):
                failing.get_result(block=True, timeout=PATIENCE_MS)
            assert waiting.abort()
        work_off(broker)
        assert finished == [1]
        with pytest.raises(ForbiddenError):
            broker.client.put("other", b"")
        broker.close()
