"""A process that puts a flow is killed before each of its calls: nothing of the flow runs, or all of it."""

from __future__ import annotations

import subprocess
import sys

import pytest
from sockpq import Client
from sockpq.worker import App
from sockpq.worker.flows.writing import HOLD_S

from tests.client.real_server import RealServer
from tests.waiting import PATIENCE_S
from tests.worker.flows.working import at_work, left_over

APP = '''
from sockpq.worker import App, chain

app = App(None)
RAN = []

@app.task("q", name="step", result=True, tries=1)
def step(*given):
    RAN.append(given)
    return len(given)
'''
AUTHOR = APP + '''
import sys
from sockpq._routing.router import Router

app.use_servers(sys.argv[1])
run = Router.run

async def asked(self, *arguments, **options):
    print("call", flush=True)
    sys.stdin.readline()
    return await run(self, *arguments, **options)

Router.run = asked
app.flow(chain(step.s(n) for n in range(4)))
print("put", flush=True)
'''
STEPS = 4


@pytest.mark.parametrize("calls", range(7))
def test_a_process_that_is_killed_leaves_nothing_or_all(calls: int) -> None:
    names: dict[str, object] = {"__name__": "app"}
    exec(APP, names)
    app = names["app"]
    assert isinstance(app, App)
    with RealServer() as server, Client(server.address) as client:
        client.queue_config("q", retain=3600)
        app.use_servers(server.address)
        author = subprocess.Popen([sys.executable, "-c", AUTHOR, server.address], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)
        assert author.stdin is not None
        assert author.stdout is not None
        said = "call"
        for _ in range(calls):
            said = author.stdout.readline().strip()
            if said == "put":
                break
            author.stdin.write("\n")
            author.stdin.flush()
        if said == "call":
            said = author.stdout.readline().strip()
        author.kill()
        author.wait(PATIENCE_S)
        author.stdin.close()
        author.stdout.close()
        with at_work(server, app) as worker:
            worker.work_off()
            server.pass_time(HOLD_S + 1)
            worker.work_off()
        assert len(names["RAN"]) == (STEPS if said == "put" else 0)     # type: ignore[arg-type]
        assert left_over(client) == (0, [])
        app.close()
    assert (said == "put") == (calls >= STEPS + 2)
