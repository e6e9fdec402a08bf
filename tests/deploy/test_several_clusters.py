"""Two clusters on three hosts: site.yml and rolling.yml for each of them, and what each has for itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from sockpq import Client

if TYPE_CHECKING:
    from tests.deploy.cluster import Cluster

pytestmark = pytest.mark.timeout(1500)

SECRET = "secret-of-the-tests"
VARIABLES = {
    "sockpqd_clusters": ["a", "b"], "sockpqd_backup_schedule": "weekly",
    "sockpqd_users": {"worker": {"rights": ["put", "get"], "secret": SECRET}},
}
STARTED = "systemctl show sockpqd@{} --property NRestarts,ExecMainStartTimestamp"
B_PORT = 11371


def of(name: str) -> tuple[str, str]:
    """Return the arguments of a playbook for one of the clusters."""
    return "-e", f"sockpqd_cluster={name}"


@pytest.fixture(scope="module")
def pair() -> Iterator[Cluster]:
    """Hosts on which site.yml has installed both clusters."""
    from tests.deploy.cluster import Cluster  # needs what is not there where the tests are skipped

    with Cluster(VARIABLES) as hosts:
        for name in "ab":
            hosts.playbook("site.yml", *of(name))
        yield hosts


def statuses(hosts: Cluster) -> dict[str, Any]:
    """Return what `pqctl cluster status --all` says, by cluster."""
    return dict(json.loads(hosts.ssh("n1", "pqctl cluster status --all --json --timeout 2", check=False))["clusters"])


def test_both_serve_and_are_used_as_one(pair: Cluster) -> None:
    servers = ",".join(f"{pair.machines[name].address}:{B_PORT}" for name in pair.names)
    pair.ssh("n1", "pqctl map init a")
    pair.ssh("n1", f"pqctl map add b {servers}")
    pair.ssh("n1", "pqctl map assign film. b")
    found = statuses(pair)
    assert list(found) == ["a", "b"]
    for status in found.values():
        assert status["serving"]
        assert {node["name"] for node in status["nodes"]} == set(pair.names)
    assert found["a"]["cluster"] != found["b"]["cluster"]
    with Client(pair.servers(), tls=str(pair.secrets / "ca.crt"), user="worker", secret=SECRET) as client:
        client.put("film.new", b"of b")
        client.put("mail", b"of a")
        for queue in ("film.new", "mail"):
            client.get(queue, expire=60).done()


def test_each_has_folders_of_its_own_and_prefers_a_host(pair: Cluster) -> None:
    for host in pair.names:
        assert pair.ssh(host, "ls /etc/sockpqd /etc/sockpqd/a /etc/sockpqd/b").split() == [
            "/etc/sockpqd:", "a", "b", "/etc/sockpqd/a:", "ca.crt", "node.crt", "node.key", "operator.secret",
            "sockpqd.toml", "users.toml", "/etc/sockpqd/b:", "ca.crt", "node.crt", "node.key", "operator.secret",
            "sockpqd.toml", "users.toml",
        ]
        assert pair.ssh(host, "ls -d /var/lib/sockpqd*").split() == ["/var/lib/sockpqd-a", "/var/lib/sockpqd-b"]
    preferring = [(name, host) for name in "ab" for host in pair.names
                  if "prefer = 80" in pair.ssh(host, f"cat /etc/sockpqd/{name}/sockpqd.toml")]
    assert preferring == [("a", "n1"), ("b", "n2")]


def test_a_second_run_changes_nothing(pair: Cluster) -> None:
    for name in "ab":
        assert pair.playbook("site.yml", *of(name)).changed == 0


def test_the_nodes_of_one_are_restarted_alone(pair: Cluster) -> None:
    before = {name: [pair.ssh(host, STARTED.format(name)) for host in pair.names] for name in "ab"}
    pair.playbook("rolling.yml", *of("b"))
    after = {name: [pair.ssh(host, STARTED.format(name)) for host in pair.names] for name in "ab"}
    assert after["a"] == before["a"]
    assert all(now != then for now, then in zip(after["b"], before["b"], strict=True))
    assert statuses(pair)["b"]["serving"]


def test_each_has_a_backup(pair: Cluster) -> None:
    for name in "ab":
        assert pair.ssh("n1", f"systemctl is-active sockpqd-backup@{name}.timer") == "active\n"
        pair.ssh("n1", f"systemctl start sockpqd-backup@{name}.service")
    assert len(pair.ssh("n1", "ls /var/backups/sockpqd").split()) == 2


@pytest.mark.parametrize("arguments", [(), of("c")])
def test_a_run_without_a_cluster_changes_nothing(pair: Cluster, arguments: tuple[str, ...]) -> None:
    run = pair.playbook("site.yml", *arguments, fails=True)
    assert run.changed == 0
    assert "-e sockpqd_cluster=NAME one of them; there are: a, b" in " ".join(run.output.split())
