"""`pqctl cron list` and `delete`, against a real gateway."""

from __future__ import annotations

import asyncio

import pytest
from sockpq import Client
from sockpq.aio import Client as AsyncClient
from sockpq.worker import App
from sockpq.worker.cron_jobs import CronJobs

from sockpqd.pqctl.output.exit_codes import DONE, REFUSED
from tests.client.real_server import RealServer
from tests.pqctl.running import ask, run


def test_runs_are_listed_and_deleted(capsys: pytest.CaptureFixture[str]) -> None:
    app = App(name="shop")
    app.cron("0 3 * * mon-fri", tz="Europe/Berlin", name="shop.nightly")(lambda: None)
    app.cron("*/5 * * * *", name="shop.often", catch_up="all")(lambda: None)

    async def begin(address: str) -> None:
        async with AsyncClient(address) as client:
            await CronJobs(app).start(client)

    with RealServer() as server, Client(server.address) as client:
        client.put("cron", b"something else", key="k")
        asyncio.run(begin(server.address))
        code, told = ask(capsys, [server.address], "cron", "list")
        assert code == DONE
        assert [(one["task"], one["line"], one["tz"], one["catch_up"], one["app"]) for one in told["runs"]] == [
            ("shop.often", "*/5 * * * *", "UTC", "all", "shop"),
            ("shop.nightly", "0 3 * * mon-fri", "Europe/Berlin", "one", "shop"),
        ]
        assert told["runs"][0]["at"] == 1_700_000_100
        _, out, _ = run(capsys, "--servers", server.address, "cron", "list")
        assert "shop.nightly" in out
        assert run(capsys, "--servers", server.address, "cron", "delete", "shop.often")[:2] == (
            DONE, "removed 1 run of shop.often\n",
        )
        assert ask(capsys, [server.address], "cron", "delete", "shop.often") == (
            REFUSED, {"task": "shop.often", "removed": 0},
        )
        assert run(capsys, "--servers", server.address, "cron", "list", "--queue", "none")[1] == (
            "no periodic task has a run in queue none\n"
        )
