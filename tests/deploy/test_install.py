"""site.yml: from bare hosts to a cluster that serves, and what it does to one that is there already."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from sockpq import Client

if TYPE_CHECKING:
    from tests.deploy.installed import Installed

pytestmark = pytest.mark.timeout(1500)

INSTALL_S = 180
EXPOSURE_MAX = 2.0          # of 10, by systemd-analyze security
RESTARTED = "systemctl show sockpqd --property NRestarts,ExecMainStartTimestamp,Result,ExecMainStatus"


def test_check_mode_changes_nothing_on_bare_hosts(cluster: Installed) -> None:
    assert "everything would be installed" in cluster.checked.output
    assert cluster.left_by_check == ""


def test_one_command_makes_a_cluster_that_serves(cluster: Installed) -> None:
    print(f"site.yml took {cluster.installed.seconds:.0f} s")
    assert cluster.installed.seconds < INSTALL_S
    status = cluster.wait_until_well()
    assert {node["name"] for node in status["nodes"]} == set(cluster.names)
    with Client(cluster.servers(), **cluster.options) as client:
        client.put("installed", b"a job")
        job = client.get("installed", expire=60)
        assert job is not None
        assert job.data == b"a job"
        job.done()


def test_a_second_run_changes_nothing(cluster: Installed) -> None:
    before = [cluster.ssh(name, RESTARTED) for name in cluster.names]
    assert cluster.playbook("site.yml", "--check").changed == 0
    run = cluster.playbook("site.yml")
    assert run.changed == 0
    assert "Failed to parse inventory" not in run.output        # of the secrets beside it
    assert [cluster.ssh(name, RESTARTED) for name in cluster.names] == before


def test_the_unit_is_hardened(cluster: Installed) -> None:
    told = cluster.ssh("n1", "systemd-analyze security --no-pager sockpqd.service")
    exposure = float(told.split("Overall exposure level for sockpqd.service:")[1].split()[0])
    print(f"exposure {exposure}")
    assert exposure <= EXPOSURE_MAX
    assert cluster.ssh("n1", "systemctl show sockpqd --property StatusText --value").startswith(("leader", "follower"))
    cluster.ssh("n1", "pqctl node snapshot n1")      # written by a child with a lower priority
    assert "JSON" not in cluster.ssh("n1", "journalctl -u sockpqd --no-pager")


def test_secrets_are_where_only_their_owners_read_them(cluster: Installed) -> None:
    modes = dict(line.split() for line in cluster.ssh("n1", "stat --format \"%n %U:%a\" /etc/sockpqd/*").splitlines())
    assert modes == {
        "/etc/sockpqd/ca.crt": "sockpqd:444", "/etc/sockpqd/node.crt": "sockpqd:444",
        "/etc/sockpqd/node.key": "sockpqd:400", "/etc/sockpqd/users.toml": "sockpqd:600",
        "/etc/sockpqd/operator.secret": "root:600", "/etc/sockpqd/sockpqd.toml": "root:640",
    }
    assert cluster.secrets.stat().st_mode & 0o077 == 0
    for name in ("ca.key", "n1.key", "operator.secret"):
        assert (cluster.secrets / name).stat().st_mode & 0o077 == 0
    told = cluster.installed.output + "".join(
        cluster.ssh(name, "journalctl --no-pager") for name in cluster.names
    )
    secrets = [cluster.options["secret"], (cluster.secrets / "operator.secret").read_text().strip()]
    for secret in secrets:
        assert secret not in told
        assert secret.encode().hex() not in told


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({"sockpqd_limits": {"conections_max": 1}}, "conections_max"),
        ({"sockpqd_raft": {"lease_ms": "soon"}}, "lease_ms"),
        ({"sockpqd_client_port": 11362}, "must be three different ports"),
        ({"sockpqd_tls": False}, "set sockpqd_insecure to true"),
        ({"sockpqd_users": {"a b": {"rights": [], "secret": "x" * 16}}}, "sockpqd_users, a b:"),
        ({"sockpqd_users": {"ann": {"rights": ["all"], "secret": "x" * 16}}}, "sockpqd_users, ann:"),
        ({"sockpqd_users": {"ann": {"rights": ["put"], "secret": "short"}}}, "sockpqd_users, ann:"),
        ({"sockpqd_legacy": [{"address": "0.0.0.0:1", "user": "nobody"}]}, "names the user nobody"),
        ({"sockpqd_name": "n1"}, "belong to one host only"),
        ({"sockpqd_release": "0.0.1-0123456789"}, "is not on n"),
        ({"sockpqd_source": "/"}, "is not the repository"),
    ],
)
def test_a_wrong_variable_changes_nothing_and_is_named(
    cluster: Installed, variables: dict[str, object], sentence: str
) -> None:
    run = cluster.playbook("site.yml", "-e", json.dumps(variables), fails=True)
    assert run.changed == 0
    assert sentence in " ".join(run.output.split())


def test_a_configuration_that_is_not_good_is_not_put_in_place(cluster: Installed) -> None:
    before = [cluster.ssh(name, f"cat /etc/sockpqd/sockpqd.toml; {RESTARTED}") for name in cluster.names]
    wrong = {"sockpqd_raft": {"lease_ms": 800}}
    run = cluster.playbook("rolling.yml", "-e", json.dumps(wrong), fails=True)
    assert "raft.lease_ms: must be smaller than raft.election_min_ms" in run.output
    assert run.changed == 0
    assert [cluster.ssh(name, f"cat /etc/sockpqd/sockpqd.toml; {RESTARTED}") for name in cluster.names] == before


def test_only_nodes_reach_the_ports_behind_the_firewall(cluster: Installed) -> None:
    walled = {"sockpqd_firewall": True, "sockpqd_firewall_clients": ["192.0.2.0/24"]}
    try:
        cluster.playbook("site.yml", "-e", json.dumps(walled))
        for port in (11361, 11362, 11363):
            assert not cluster.reaches("n1", port)
        cluster.wait_until_well()                       # the nodes reach each other, and so does pqctl on them
        assert cluster.playbook("site.yml", "-e", json.dumps(walled)).changed == 0
    finally:
        cluster.playbook("site.yml")
    for port in (11361, 11362, 11363):
        assert cluster.reaches("n1", port)
