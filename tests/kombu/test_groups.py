"""The property MessageGroupId, that of kombu's transport for SQS, sets the group of the job."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import kombu
import pytest
from sockpq import Client
from sockpq.testing import Server

from tests.kombu.test_transport import plain, send
from tests.waiting import PATIENCE_S

EXAMPLES = Path(__file__).parents[2] / "examples" / "celery"


def test_a_message_is_of_the_group_that_it_names(own_server: Server, own_client: Client) -> None:
    with kombu.Connection(f"sockpq://{own_server.address}/") as connection:
        exchange = kombu.Exchange("news", type="fanout")
        send(connection, plain("q"), "1", MessageGroupId="anna@home")
        send(connection, kombu.Queue("news", exchange), "2", MessageGroupId="bert")
        send(connection, plain("q"), "3")
        found = {(job.queue, job.meta.group) for job in own_client.find()}
        assert found == {("q", "anna:40home"), ("news", "bert"), ("q", None)}
        for wrong in (5, ""):
            with pytest.raises(ValueError, match="MessageGroupId is a string"):
                send(connection, plain("q"), "4", MessageGroupId=wrong)
        got: list[Any] = []
        with connection.Consumer([plain("q")], on_message=got.append):
            connection.drain_events(timeout=PATIENCE_S)
        assert got[0].properties["MessageGroupId"] == "anna@home"


def test_the_example_runs(own_server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOCKPQ_SERVERS", own_server.address)
    monkeypatch.chdir(EXAMPLES)
    with subprocess.Popen(
        [sys.executable, "-m", "celery", "-A", "tenants", "worker", "-c", "1", "-P", "solo", "--without-gossip",
         "--without-mingle", "--loglevel", "warning"],
    ) as worker:
        try:
            told = subprocess.run([sys.executable, "-m", "tenants"], capture_output=True, text=True, check=True).stdout
        finally:
            worker.terminate()
            worker.wait(PATIENCE_S)
    first, second = told.splitlines()
    assert first == "table 1 of bert"
    assert int(second.split()[2]) < 20, second
