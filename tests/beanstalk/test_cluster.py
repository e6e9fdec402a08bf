"""Clients of beanstalkd on a cluster of three: at the listener of the leader, of a follower, and at the program."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sockpq import Client

from devcluster.cluster import LocalCluster
from devcluster.ports import HOST, free_ports
from tests.beanstalk.helpers.client import BeanstalkClient
from tests.waiting import until

PROGRAM = Path(sys.executable).parent / "sockpq-beanstalkd"
NAMES = (f"t{os.getpid()}-{number}" for number in itertools.count())
MANY = 1500             # jobs: more than one operation brings back
PLACES = ("leader", "follower", "program")


class Beanstalkd(LocalCluster):
    """A cluster with a listener on each node, and the program."""

    def __init__(self) -> None:
        super().__init__(3)
        self.ports = dict(zip(self.names, free_ports(3), strict=True))
        self.program_port = free_ports(1)[0]
        self.program: subprocess.Popen[bytes] | None = None

    def environment(self, name: str) -> dict[str, str]:
        """Return where the listener is."""
        return {"SOCKPQD_LISTEN_BEANSTALKD": f"{HOST}:{self.ports[name]}"}

    def start_program(self) -> None:
        """Start the program; returns when it listens."""
        self.program = subprocess.Popen(
            [PROGRAM, "--listen", f"{HOST}:{self.program_port}", "--servers", ",".join(self.servers)],
            stderr=subprocess.DEVNULL)
        until(self._reachable)

    def _reachable(self) -> bool:
        try:
            BeanstalkClient(f"{HOST}:{self.program_port}").close()
        except OSError:
            return False
        return True

    def address(self, place: str) -> str:
        """Return the address of the leader, of a follower, or of the separate program, as `place` says."""
        if place == "program":
            return f"{HOST}:{self.program_port}"
        leader = self.wait_for_leader()
        name = leader if place == "leader" else next(name for name in self.names if name != leader)
        return f"{HOST}:{self.ports[name]}"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Beanstalkd]:
    with Beanstalkd() as cluster:
        cluster.start_program()
        yield cluster
        assert cluster.program is not None
        cluster.program.terminate()
        assert cluster.program.wait(60) == 0


@pytest.fixture(params=PLACES)
def address(request: pytest.FixtureRequest, cluster: Beanstalkd) -> str:
    return cluster.address(request.param)


@pytest.fixture
def tube() -> str:
    return next(NAMES)


def test_a_job_goes_its_way(address: str, tube: str) -> None:
    with BeanstalkClient(address, tube) as producer, BeanstalkClient(address, tube) as worker:
        number = producer.put("abc", pri=7, ttr=30)
        assert worker.job("reserve") == (number, "abc")
        assert producer(f"delete {number}") == "NOT_FOUND"
        assert worker(f"release {number} 8 0") == "RELEASED"
        assert worker.take() == number
        assert worker(f"bury {number} 9") == "BURIED"
        assert producer.job("peek-buried") == (number, "abc")
        assert producer("kick 10") == "KICKED 1"
        figures = producer.stats(f"stats-job {number}")
        expected = {"tube": tube, "state": "ready", "pri": "9", "ttr": "30", "reserves": "2", "releases": "1",
                    "buries": "1", "kicks": "1"}
        assert {key: figures[key] for key in expected} == expected
        assert worker.job(f"reserve-job {number}") == (number, "abc")
        assert worker(f"touch {number}") == "TOUCHED"
        assert worker(f"delete {number}") == "DELETED"
        assert worker("reserve-with-timeout 0") == "TIMED_OUT"


def test_the_order_is_priority_and_then_id_over_all_tubes(address: str, tube: str) -> None:
    with BeanstalkClient(address, tube, f"{tube}b") as client:
        numbers = []
        for name, pri in ((tube, 5), (f"{tube}b", 5), (f"{tube}b", 1), (tube, 5), (tube, 1)):
            client(f"use {name}")
            numbers.append(client.put(pri=pri))
        assert [client.take() for _ in numbers] == [numbers[place] for place in (2, 4, 0, 1, 3)]


def test_a_closed_connections_jobs_are_back_before_the_next_command(address: str, tube: str) -> None:
    with BeanstalkClient(address, tube) as other:
        for _ in range(20):
            client = BeanstalkClient(address, tube)
            number = client.put()
            assert client.take() == number
            client.close()
            assert other.take() == number
            assert other(f"delete {number}") == "DELETED"


def test_a_lost_connection_releases_nothing(address: str, tube: str) -> None:
    with BeanstalkClient(address, tube) as other:
        client = BeanstalkClient(address, tube)
        number = client.put()
        assert client.take() == number
        client.close()
        until(lambda: other.stats(f"stats-job {number}")["state"] == "ready")
        figures = other.stats(f"stats-job {number}")
        assert (figures["reserves"], figures["releases"], figures["timeouts"]) == ("1", "0", "0")
        assert other(f"delete {number}") == "DELETED"


def test_thousands_of_reserved_jobs_go_back_while_others_go_on(address: str, tube: str) -> None:
    client = BeanstalkClient(address, tube)
    with BeanstalkClient(address, f"{tube}b") as other:
        client.socket.sendall(b"put 0 0 600 1\r\nx\r\n" * MANY + b"reserve\r\n" * MANY)
        for _ in range(MANY):
            assert client.line().startswith("INSERTED ")
        for _ in range(MANY):
            client.rest(client.line())
        assert other.stats(f"stats-tube {tube}")["current-jobs-reserved"] == str(MANY)
        client.close()
        began = time.monotonic()
        other.put()
        assert time.monotonic() - began < 10
        until(lambda: other.stats(f"stats-tube {tube}")["current-jobs-ready"] == str(MANY))


def test_a_job_handed_out_as_the_client_goes_is_not_lost(address: str, tube: str) -> None:
    with BeanstalkClient(address, tube) as other:
        for _ in range(20):
            client = BeanstalkClient(address, tube)
            client.send("reserve")
            other.send("put 0 0 600 1\r\nx")
            client.close()
            number = int(other.line().split()[1])
            assert other.take(20) == number
            assert other(f"delete {number}") == "DELETED"


def test_deadline_soon_comes_in_the_last_second(address: str, tube: str) -> None:
    with BeanstalkClient(address, tube) as client:
        number = client.put(ttr=2)
        assert client.take() == number
        assert client("reserve-with-timeout 30") == "DEADLINE_SOON"
        assert client(f"delete {number}") == "DELETED"


def test_a_job_whose_time_is_over_comes_back(address: str, tube: str) -> None:
    with BeanstalkClient(address, tube) as client, BeanstalkClient(address, tube) as other:
        number = client.put(ttr=1)
        assert client.take() == number
        assert other.take(30) == number
        assert other.stats(f"stats-job {number}")["timeouts"] == "1"
        assert client(f"release {number} 0 0") == "NOT_FOUND"


@pytest.mark.parametrize("name", ["+/;.$_()-", "(x)", "$x", ".x", "/x", "x" * 180])
def test_tubes_may_have_all_names(address: str, tube: str, name: str) -> None:
    name = f"{name}{tube}"
    with BeanstalkClient(address, name) as client:
        number = client.put()
        assert client.stats(f"stats-job {number}")["tube"] == name
        assert client.take() == number


@pytest.mark.parametrize(("here", "there"), [("leader", "follower"), ("follower", "program"), ("program", "leader")])
def test_what_was_put_in_one_place_is_seen_in_another(cluster: Beanstalkd, here: str, there: str, tube: str) -> None:
    with BeanstalkClient(cluster.address(here), tube) as one, BeanstalkClient(cluster.address(there), tube) as other:
        for _ in range(20):
            number = one.put()
            assert other.job("peek-ready")[0] == number
            assert other(f"delete {number}") == "DELETED"


def test_a_paused_tube_gives_nothing_for_a_while(address: str, tube: str) -> None:
    with BeanstalkClient(address, tube) as client:
        number = client.put()
        assert client(f"pause-tube {tube} 2") == "PAUSED"
        assert client("reserve-with-timeout 0") == "TIMED_OUT"
        assert client.take(30) == number


def test_native_clients_and_those_of_beanstalkd_share_queues(cluster: Beanstalkd, address: str, tube: str) -> None:
    with BeanstalkClient(address, tube) as client, Client(cluster.servers) as native:
        native.put(tube, "native", priority=-5)
        number, body = client.job("reserve-with-timeout 0")
        assert body == "native"
        assert client(f"delete {number}") == "DELETED"
        number = client.put("foreign", pri=3)
        job = native.get(tube, expire=60, meta=True)
        assert job is not None
        assert job.meta is not None
        assert (job.text, job.priority, job.meta.number) == ("foreign", -3, number)
        job.done()


def test_a_failover_is_a_pause(tube: str) -> None:
    with Beanstalkd() as cluster:
        cluster.start_program()
        leader = cluster.wait_for_leader()
        addresses = [cluster.address("follower"), cluster.address("program")]
        clients = [BeanstalkClient(address, f"{tube}{index}") for index, address in enumerate(addresses)]
        waiting = [BeanstalkClient(address, f"{tube}w{index}") for index, address in enumerate(addresses)]
        held = [client.put(ttr=600) for client in clients]
        assert [client.take() for client in clients] == held
        for client in waiting:
            client.send("reserve")
        cluster.kill(leader)
        numbers = [[client.put() for _ in range(20)] for client in clients]
        assert [client(f"touch {number}") for client, number in zip(clients, held, strict=True)] == ["TOUCHED"] * 2
        assert [client(f"delete {number}") for client, number in zip(clients, held, strict=True)] == ["DELETED"] * 2
        for client, of_client in zip(clients, numbers, strict=True):
            assert [client.take() for _ in of_client] == of_client
            assert client("reserve-with-timeout 0") == "TIMED_OUT"
        for index, client in enumerate(waiting):
            clients[index](f"use {tube}w{index}")
            number = clients[index].put()
            assert client.rest(client.line())[0] == number
        for client in (*clients, *waiting):
            client.close()
        assert cluster.program is not None
        cluster.program.terminate()
        cluster.program.wait(60)


def test_the_jobs_reserved_at_a_node_come_back_when_it_dies_and_not_before(tube: str) -> None:
    with Beanstalkd() as cluster:
        leader = cluster.wait_for_leader()
        dying, other = (name for name in cluster.names if name != leader)
        with BeanstalkClient(f"{HOST}:{cluster.ports[other]}", tube) as client:
            holder = BeanstalkClient(f"{HOST}:{cluster.ports[dying]}", tube)
            numbers = [holder.put(ttr=600) for _ in range(3)]
            assert [holder.take() for _ in numbers] == numbers
            assert client("reserve-with-timeout 12") == "TIMED_OUT"     # longer than a session lives if nobody keeps it
            cluster.kill(dying)
            assert [client.take(50) for _ in numbers] == numbers
            holder.close()


def test_a_node_without_a_leader_does_not_listen(tube: str) -> None:
    with Beanstalkd() as cluster:
        alone, *others = cluster.names
        address = f"{HOST}:{cluster.ports[alone]}"
        cluster.wait_for_leader()
        with BeanstalkClient(address, tube) as client:
            number = client.put()
            for name in others:
                cluster.kill(name)

            def reachable() -> bool:
                try:
                    BeanstalkClient(address).close()
                except OSError:
                    return False
                return True

            assert reachable()                      # for 5 seconds
            client.send("reserve")
            until(lambda: not reachable())
            for name in others:
                cluster.restart(name, wait=False)
            until(reachable)
            assert client.rest(client.line())[0] == number
