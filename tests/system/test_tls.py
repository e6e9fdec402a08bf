"""Real nodes with TLS: they serve, read new certificates on SIGHUP, and admit nobody without one."""

from __future__ import annotations

import re
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from devcluster.authority import Authority
from devcluster.cluster import LocalCluster
from devcluster.node import program
from tests.waiting import PATIENCE_S, until

QUICK_S = 30.0


def wait_for(condition: Callable[[], bool], cluster: LocalCluster) -> None:
    until(condition, lambda: "\n".join(cluster.logs(name)[-1000:] for name in cluster.names))


def linked(cluster: LocalCluster, name: str) -> bool:
    """Return whether this process has connections to both others."""
    return cluster.logs(name).rsplit("clients on", 1)[-1].count("connected to") >= 2


def shown(cluster: LocalCluster, name: str, authority: Authority) -> bytes:
    """Return the certificate that a client sees."""
    host, _, port = cluster.direct(name).rpartition(":")
    context = ssl.create_default_context(cafile=authority.ca)
    with socket.create_connection((host, int(port)), PATIENCE_S) as connection, \
            context.wrap_socket(connection, server_hostname=host) as tls:
        return tls.getpeercert(binary_form=True) or b""


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def cluster(authority: Authority) -> Iterator[LocalCluster]:
    with LocalCluster(3, authority=authority) as running:
        yield running


def test_a_cluster_serves_survives_and_takes_new_certificates(cluster: LocalCluster, authority: Authority) -> None:
    leader = cluster.wait_for_leader()
    assert cluster.say(leader, "PUT q 0 0", QUICK_S) == "200 OK"
    host, _, port = cluster.direct(leader).rpartition(":")
    with socket.create_connection((host, int(port)), PATIENCE_S) as plain:
        plain.sendall(b"PING\r\n")
        assert plain.recv(100) == b""
    before = {name: shown(cluster, name, authority) for name in cluster.names}
    for name in cluster.names:
        authority.node(name)
        cluster.hang_up(name)
    for name in cluster.names:
        wait_for(lambda: shown(cluster, name, authority) != before[name], cluster)      # noqa: B023
    cluster.kill(leader)
    following = cluster.wait_for_leader()
    cluster.restart(leader)
    wait_for(lambda: linked(cluster, leader), cluster)
    assert cluster.say(following, "TOTAL", QUICK_S) == "200 OK 1 1 1 0"
    authority.issue(following, [following], days=(-2, -1))
    cluster.hang_up(following)
    wait_for(lambda: "has expired. Correct that and send SIGHUP again" in cluster.logs(following), cluster)
    shown(cluster, following, authority)
    assert cluster.say(following, "TOTAL", QUICK_S) == "200 OK 1 1 1 0"
    assert not any("Traceback" in cluster.logs(name) for name in cluster.names)


def test_a_node_of_another_authority_is_not_admitted(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    other = Authority(tmp_path / "other", "other")
    leader = cluster.wait_for_leader()
    stranger = next(name for name in cluster.names if name != leader)
    cluster.kill(stranger)
    text, files = cluster.config_file(stranger).read_text(), other.node(stranger)
    for key, file in files.items():
        text = re.sub(rf'^{key} = .*$', f'{key} = "{file}"', text, flags=re.MULTILINE)
    cluster.config_file(stranger).write_text(text)
    cluster.restart(stranger, wait=False)
    wait_for(lambda: "its certificate is not accepted: it is not signed by tls.ca" in cluster.logs(leader), cluster)
    assert not linked(cluster, stranger)
    assert cluster.say(leader, "PUT q 0 0", QUICK_S) == "200 OK", "the others go on"


def test_what_is_wrong_is_refused_before_anything_is_done(cluster: LocalCluster, authority: Authority) -> None:
    name = cluster.names[0]
    cluster.kill(name)

    def check(*arguments: str) -> tuple[int, str]:
        ended = subprocess.run([program(), *arguments, cluster.config_file(name)], capture_output=True, text=True,
                               timeout=PATIENCE_S, check=False)
        return ended.returncode, ended.stdout + ended.stderr

    assert check("--check-config")[0] == 0
    key = authority.folder / f"{name}.key"
    key.chmod(0o644)
    for option in ("--check-config", "--config"):
        code, said = check(option)
        assert code == 2
        assert f"tls.key: {key} may be read or changed by others" in said


def test_sighup_ends_nobody_without_tls() -> None:
    with LocalCluster(1) as cluster:
        (name,) = cluster.names
        cluster.hang_up(name)
        assert cluster.say(name, "PING", QUICK_S) == "200 OK"
        assert cluster.running(name)
        assert cluster.terminate(name) == 0

