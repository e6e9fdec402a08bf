"""The Debian package: installed on three hosts, upgraded under load, removed, purged."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from sockpq import Client

from tests.deploy.needs import missing

if TYPE_CHECKING:
    from tests.deploy.packaged import Packaged

pytestmark = pytest.mark.timeout(1500)

OLD, NEW = "0.9-1", "99.0-1"
FILES = "ls -d /opt/sockpqd /usr/bin/sockpqd /usr/lib/systemd/system/sockpqd.service /etc/sockpqd.toml /var/lib/sockpqd"


@pytest.fixture(scope="module")
def debian() -> Iterator[Packaged]:
    if missing() or shutil.which("dpkg-deb") is None:
        pytest.skip("no containers")
    from tests.deploy.packaged import Packaged  # needs what is not there where the tests are skipped

    with Packaged() as hosts:
        yield hosts


def test_a_node_is_not_started_before_it_is_configured(debian: Packaged) -> None:
    for name in debian.names:
        debian.install(name, OLD)
        assert debian.status_of(name) == "install ok installed"
        assert debian.ssh(name, "systemctl is-active sockpqd", check=False).strip() == "inactive"
        assert debian.ssh(name, "stat --format \"%U:%G %a\" /etc/sockpqd.toml").split() == ["root:sockpqd", "640"]
        assert "good; node n1 of 1" in debian.ssh(name, "sockpqd --check-config /etc/sockpqd.toml")


def test_three_hosts_become_a_cluster(debian: Packaged) -> None:
    for name in debian.names:
        debian.configure(name)
        debian.ssh(name, "systemctl enable --now sockpqd")
    status = debian.wait_until_well()
    assert {node["name"] for node in status["nodes"]} == set(debian.names)
    for file in ("man1/sockpqd.1.gz", "man1/pqctl.1.gz", "man1/pqworker.1.gz"):
        assert (debian.machines["n1"].root / "usr/share/man" / file).exists()
    with Client(debian.servers()) as client:
        client.put("kept", b"before the upgrade")


def test_an_upgrade_of_one_host_after_the_other_loses_nothing(debian: Packaged) -> None:
    put, ended = [], threading.Event()

    def produce() -> None:
        with Client(debian.servers(), timeout=60) as client:
            while not ended.is_set():
                client.put("under_load", b"%d" % len(put))
                put.append(len(put))

    producer = threading.Thread(target=produce)
    producer.start()
    try:
        for name in debian.names:
            before = debian.ssh(name, "systemctl show sockpqd --property ExecMainPID --value")
            debian.install(name, NEW)
            assert debian.ssh(name, "systemctl show sockpqd --property ExecMainPID --value") != before
            debian.wait_until_well()
    finally:
        ended.set()
        producer.join()
    with Client(debian.servers()) as client:
        assert client.total("under_load").jobs == len(put) > 0
        assert client.total("kept").jobs == 1
    assert "[[cluster.members]]" in debian.ssh("n1", "cat /etc/sockpqd.toml")      # a conffile is the operator's


def test_removing_keeps_configuration_and_data_and_purging_does_not(debian: Packaged) -> None:
    debian.ssh("n3", "dpkg --remove sockpqd")
    assert debian.ssh("n3", FILES, check=False).split() == ["/etc/sockpqd.toml", "/var/lib/sockpqd"]
    assert debian.ssh("n3", "systemctl is-active sockpqd", check=False).strip() == "inactive"
    debian.install("n3", NEW)
    debian.ssh("n3", "systemctl enable --now sockpqd")
    debian.wait_until_well()
    debian.ssh("n3", "dpkg --purge sockpqd")
    assert debian.ssh("n3", FILES, check=False) == ""
    assert debian.status_of("n3") == ""


def test_a_host_that_ansible_keeps_is_refused(debian: Packaged) -> None:
    debian.ssh("n3", "mkdir -p /opt/sockpqd && touch /opt/sockpqd/current")
    told = debian.ssh("n3", f"dpkg --install /root/{debian.packages[NEW]} 2>&1", check=False)
    assert "rolling.yml" in told
    assert debian.status_of("n3") != "install ok installed"
