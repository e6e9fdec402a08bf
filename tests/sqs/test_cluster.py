"""The service before three nodes: the conformance checks; FIFO queues while a leader and a front end are killed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from devcluster.cluster import LocalCluster
from tests.sqs.conformance.__main__ import main
from tests.sqs.fifo_once import GROUPS, FifoLoad
from tests.sqs.service import Service

MESSAGES = 60


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    """A real cluster of three nodes."""
    with LocalCluster(3) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def service(cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A front end before them."""
    with Service(cluster.servers, tmp_path_factory.mktemp("sqs")) as service:
        yield service


def test_it_behaves_as_amazons_service(service: Service, capsys: pytest.CaptureFixture[str]) -> None:
    """All checks but those that a slow machine fails."""
    failed = main(["--endpoint", service.url, "--untimed"])
    assert not failed, capsys.readouterr().out


def test_each_fifo_message_comes_once_and_in_order(cluster: LocalCluster, service: Service) -> None:
    faults = []

    def fault() -> None:
        if faults:
            service.kill()
            service.start()
        else:
            name = cluster.wait_for_leader()
            cluster.kill(name)
            cluster.restart(name)
        faults.append(1)

    outcome = FifoLoad(service, MESSAGES).run(fault, 2)
    assert outcome.wrong == []
    assert outcome.received == GROUPS * MESSAGES
