"""Programs have users of the cluster with the rights that docs/DJANGO.md names, and no more."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import sockpq_django
from sockpq import ForbiddenError
from sockpq_django.api import TaskResultStatus
from sockpq_django.models import OutboxRow

from devcluster.cluster import LocalCluster
from sockpqd.gateway.auth import scrypt
from tests.django.conftest import Configure, in_cluster
from tests.django.shop import tasks
from tests.django.test_outbox import relaying
from tests.waiting import until

SECRET = "of-the-shop"
PAGE = (Path(__file__).parents[2] / "docs/DJANGO.md").read_text("utf-8")
PROGRAMS = ("web", "worker", "relay")
LIMITED = "put:shop.*,get:shop.*"

pytestmark = pytest.mark.usefixtures("tables")


@pytest.fixture(scope="module")
def place() -> Iterator[str]:
    """`host:port` of a node that has a user for each program, with the rights of the page."""
    lists = [words for words in re.findall(r"`((?:put|get|queue):[^`]*)`", PAGE) if "," in words]
    assert len(lists) == len(PROGRAMS)
    with LocalCluster(1) as cluster:
        (name,) = cluster.names
        hashed = scrypt.hashed(SECRET).text
        users = cluster.folder / "users.toml"
        users.write_text("".join(
            f'[users.{program}]\nrights = {rights.split(",")}\nscrypt = "{hashed}"\n'
            for program, rights in zip((*PROGRAMS, "limited"), (*lists, LIMITED), strict=True)
        ))
        users.chmod(0o600)
        config = cluster.config_file(name)
        config.write_text(f'{config.read_text()}\n[auth]\nusers_file = "{users}"\n')
        cluster.kill(name)
        cluster.restart(name)
        yield cluster.server(name)


@pytest.fixture
def program(place: str) -> Iterator[Configure]:
    """Let the backend act as a program: `USER` is one of PROGRAMS, or "limited"."""
    with in_cluster(place) as configure:
        yield lambda **options: configure(SECRET=SECRET, PREFIX="shop.", **options)


def test_each_program_has_the_rights_that_it_needs(program: Configure) -> None:
    program(USER="web")
    result, cancelled = tasks.add.enqueue(1, 2), tasks.add.enqueue(3, 4)
    with pytest.raises(ForbiddenError):
        program(USER="web").client.get("shop.default", expire=60)
    assert program(USER="worker").run(["mail"]) == 0            # which makes the settings of that queue
    assert program(USER="web").get_result(result.id).status == TaskResultStatus.READY
    assert sockpq_django.cancel(cancelled.id)
    assert program(USER="worker").run() == 1
    program(USER="web")
    result.refresh()
    assert result.return_value == 3


def test_a_worker_that_may_not_set_up_queues_says_what_an_operator_has_to_do(
    program: Configure, caplog: pytest.LogCaptureFixture
) -> None:
    program(USER="web")
    tasks.add.using(queue_name="queue_1").enqueue(1, 2)
    assert program(USER="limited", RETENTION=100_000).run(["queue_1"]) == 1
    assert "pqctl queue config shop.queue_1 --retain 100000" in caplog.text


def test_the_relay_needs_less_than_everything(program: Configure) -> None:
    program(USER="web", OUTBOX="default")
    result = tasks.fail.enqueue()
    with relaying(program(USER="relay", OUTBOX="default")):
        until(lambda: OutboxRow.objects.count() == 0)
    assert program(USER="worker", OUTBOX="default").run() == 1
    program(USER="web", OUTBOX="default")
    result.refresh()
    assert result.status == TaskResultStatus.FAILED
