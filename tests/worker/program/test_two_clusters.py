"""pqworker on two clusters that are used as one, with an app that does not know that."""

from __future__ import annotations

import signal
from contextlib import closing
from pathlib import Path
from urllib.request import urlopen

import pytest
from sockpq import Client, Moving, NoOutput
from sockpq.worker import App

from devcluster.cluster import LocalCluster
from tests.client.caller import Caller
from tests.client.pair import Pair
from tests.waiting import until
from tests.worker.program.running import Worker

APP = '''
@app.task("b.film", name="long", retain=60)
async def long():
    record("long begun")
    try:
        await asyncio.sleep(600)
    except asyncio.CancelledError:
        record("long cancelled")
        raise

@app.task("mail", name="mail", tries=2, backoff=(0.05, 0.1), result=True)
def mail(number, error=False):
    record("mail", number)
    if error:
        raise ValueError(number)
    return number + 1

@app.task("b.film", name="film", tries=2, backoff=(0.05, 0.1), result=True)
def film(number, error=False):
    record("film", number)
    if error:
        raise ValueError(number)
    return number * 2
'''


CALLED = '''
@app.task("b.film", name="called", expire=600)
def called(gate):
    record("begun")
    while not os.path.exists(gate):
        time.sleep(0.02)
    return "output"
'''


def hears_events(cluster: LocalCluster) -> bool:
    """Return whether there is a subscriber to events of this cluster."""
    with urlopen(f"http://{cluster.http('n1')}/metrics", timeout=60) as page:
        return b"\nsockpqd_subscriptions 0.0\n" not in page.read()


def test_tasks_of_both_clusters_run_through_a_move(tmp_path: Path) -> None:
    with Pair() as pair:
        pair.set({"b.": "b"})
        with Worker(tmp_path, ",".join(pair.a.servers), APP, "-c", "2", "--pool", "threads") as worker, \
                Client(pair.b.servers) as client, closing(App(pair.b.servers)) as app:
            mail = app.task("mail", name="mail", result=True)(lambda number, error=False: None)
            film = app.task("b.film", name="film", result=True)(lambda number, error=False: None)
            handles = [task.put(number) for number in range(20) for task in (mail, film)]
            assert [handle.result(60) for handle in handles] == [
                found for number in range(20) for found in (number + 1, number * 2)]
            film.put(7, error=True)
            worker.until(lambda: worker.record.count("film 7") == 3)        # twice, and once from before
            long = app.task("b.film", name="long", retain=60)(lambda: None)
            handle = long.put()
            worker.until(lambda: "long begun" in worker.record)
            until(lambda: hears_events(pair.b))
            assert handle.cancel()
            worker.until(lambda: "long cancelled" in worker.record)
            with pair.only("b") as b:
                until(lambda: b.total("b.film_dead").jobs == 1)
            pair.set({}, {"b.": Moving("b", "a")})
            assert film.put(100).result(90) == 200
            assert pair.count("a", "b.film") == (0, 0)
            assert client.total("b.film").jobs == 0
            assert worker.end(signal.SIGTERM) == 0
        assert (pair.count("a", "mail"), pair.count("b", "b.film")) == ((0, 0), (0, 0))


def test_a_call_that_is_answered_after_a_move_is_done_once(tmp_path: Path) -> None:
    """Its output has no owner where the caller waits, which is notified of that; the task is not repeated."""
    gate = tmp_path / "gate"
    with Pair() as pair:
        pair.set({"b.": "b"})
        with Worker(tmp_path, ",".join(pair.a.servers), CALLED, "-c", "1", "--pool", "threads") as worker, \
                closing(App(pair.a.servers)) as app:
            called = app.task("b.film", name="called")(lambda gate: None)
            waiting = Caller(lambda: called.options(wait=10).call(str(gate)))
            worker.until(lambda: "begun" in worker.record)
            pair.set({}, {"b.": Moving("b", "a")})
            gate.touch()
            with pytest.raises(NoOutput):
                waiting.result()
            until(lambda: pair.count("b", "b.film") == (0, 0))
            assert called.call(str(gate)) == "output"
            assert worker.record == ["begun", "begun"]
