"""`import beanstalkd`: all jobs of one in memory arrive at real nodes, in their states."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sockpq import Client, Key

from devcluster.cluster import LocalCluster
from devcluster.ports import free_ports
from sockpqd.pqctl.importing.beanstalkd import _put
from sockpqd.pqctl.output.exit_codes import DONE, REFUSED, UNREACHED
from tests.beanstalk.helpers.client import BeanstalkClient
from tests.beanstalk.helpers.server import beanstalkd
from tests.pqctl.running import ask, run


@pytest.fixture
def client(nodes: LocalCluster) -> Iterator[Client]:
    with Client(nodes.servers) as client:
        yield client
        for queue in client.queues():
            client.queue_delete(queue.name, force=True)


@pytest.fixture
def source() -> Iterator[str]:
    with beanstalkd() as address:
        yield address


def test_all_jobs_come_in_their_states(
    nodes: LocalCluster, client: Client, source: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with BeanstalkClient(source, "mail") as there:
        for number in range(20):
            there.put(f"ready {number}", pri=number % 3, ttr=30)
        there.put("delayed", pri=5, delay=1000)
        there.put("buried", pri=0)
        there(f"bury {there.take()} 4")
        there("use +other")
        there.put("alone")
    code, told = ask(capsys, nodes.servers, "import", "beanstalkd", source)
    assert (code, told) == (DONE, {"moved": {"ready": 21, "delayed": 1, "buried": 1}, "reserved": 0})
    with BeanstalkClient(source) as there:
        assert there.stats("stats")["current-jobs-ready"] == "0"
    assert client.queue_stat("mail")["ready"] == 20
    bodies = [(job.priority, job.text) for job in client.get_many(30, "mail", expire=60)]
    assert [priority for priority, _ in bodies] == sorted((priority for priority, _ in bodies), reverse=True)
    delayed, = client.peek_queue("mail", "delayed")
    assert (delayed.data, delayed.priority) == (b"delayed", -5)
    assert delayed.number is not None
    assert 900 < client.job_stat(delayed.number).left <= 1000
    buried, = client.peek_queue("mail", "buried")
    assert buried.priority == -4
    alone = client.get("+other", expire=60)
    assert alone is not None
    assert alone.text == "alone"


def test_reserved_ones_stay(
    nodes: LocalCluster, client: Client, source: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with BeanstalkClient(source, "mail") as there:
        there.put("one")
        there.put("two")
        there.take()
        code, told = ask(capsys, nodes.servers, "import", "beanstalkd", source)
        assert (code, told) == (REFUSED, {"moved": {"ready": 1}, "reserved": 1})
    code, told = ask(capsys, nodes.servers, "import", "beanstalkd", source)
    assert (code, told) == (DONE, {"moved": {"ready": 1}, "reserved": 0})
    assert client.queue_stat("mail")["ready"] == 2


def test_what_was_put_before_an_interruption_is_not_put_again(
    nodes: LocalCluster, client: Client, source: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with BeanstalkClient(source, "mail") as there:
        ready = there.put("one", ttr=5)
        buried = there.put("two", pri=9)
        there.job(f"reserve-job {buried}")
        there(f"bury {buried} 9")
        for number, body in ((ready, b"one"), (buried, b"two")):
            figures = there.stats(f"stats-job {number}")
            _put(client, Key("mail", f"beanstalkd.memory.{number}"), figures, body, 0, buried=False)
    code, told = ask(capsys, nodes.servers, "import", "beanstalkd", source)
    assert (code, told) == (DONE, {"moved": {"ready": 1, "buried": 1}, "reserved": 0})
    counters = client.queue_stat("mail")
    assert (counters["ready"], counters["buried"]) == (1, 1)


def test_nobody_is_there_or_somebody_else(
    nodes: LocalCluster, client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    nobody = f"127.0.0.1:{free_ports(1)[0]}"
    assert run(capsys, "--servers", nodes.servers[0], "import", "beanstalkd", nobody)[0] == UNREACHED
    code, _, errors = run(capsys, "--servers", nodes.servers[0], "import", "beanstalkd", "nonsense")
    assert code == UNREACHED
    assert "nonsense" in errors
    code, _, errors = run(capsys, "--servers", nodes.servers[0], "import", "beanstalkd", nodes.servers[0])
    assert code == UNREACHED
    assert "not beanstalkd" in errors
