"""The rights that docs/TASKIQ.md names are enough."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from sockpq import ForbiddenError
from sockpq_taskiq import SockpqBroker, SockpqMiddleware, SockpqResultBackend, SockpqScheduleSource

from tests.limited_user import SECRET, USER, limited_user
from tests.taskiq.conftest import receiving, started
from tests.waiting import PATIENCE_S


def test_a_user_with_these_rights_can_use_everything() -> None:
    async def main(address: str) -> None:
        results = SockpqResultBackend(address, user=USER, secret=SECRET, prefix="shop.", timeout=PATIENCE_S)
        broker = SockpqBroker(address, user=USER, secret=SECRET, prefix="shop.", timeout=PATIENCE_S)
        broker.with_result_backend(results).add_middlewares(SockpqMiddleware(retries=1, backoff=(0.01, 0.01)))
        source = SockpqScheduleSource(broker)
        async with started(broker):
            @broker.task
            async def half(number: int) -> int:
                return number // 2 if number else 1 // number

            await half.schedule_by_cron(source, "* * * * *", 2)
            at = await half.schedule_by_time(source, datetime.now(UTC) + timedelta(hours=1), 2)
            assert len(await source.get_schedules()) == 1
            await at.unschedule()
            good, bad = await half.kiq(2), await half.kiq(0)
            async with receiving(broker):
                assert (await results.wait_result(good.task_id, timeout=PATIENCE_S)).return_value == 1
                assert (await results.wait_result(bad.task_id, timeout=PATIENCE_S)).is_err
            with pytest.raises(ForbiddenError):
                await broker.client.put("other", b"")

    with limited_user("put:shop.*,get:shop.*,queue:shop.*,item:shop.*") as address:
        asyncio.run(main(address))
