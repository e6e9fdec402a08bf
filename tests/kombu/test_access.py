"""Access: TLS by the scheme, users and their rights, and a wrong secret, which is never tried again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import kombu
import pytest
from kombu.exceptions import OperationalError
from sockpq import AuthError

from devcluster.authority import Authority
from devcluster.cluster import LocalCluster
from sockpqd.gateway.auth import scrypt
from tests.client.memory_cluster import MemoryCluster

USER, SECRET = "shop", "of-the-shop"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def place(authority: Authority) -> Iterator[str]:
    """`host:port` of a node with TLS where the user may do everything with queues that begin with `shop.`."""
    with LocalCluster(1, authority=authority) as cluster:
        (name,) = cluster.names
        users = cluster.folder / "users.toml"
        hashed = scrypt.hashed(SECRET).text
        rights = '["put:shop.*", "get:shop.*", "queue:shop.*", "put:@shop.*", "queue:@shop.*"]'
        users.write_text(f'[users.{USER}]\nrights = {rights}\nscrypt = "{hashed}"\n')
        users.chmod(0o600)
        config = cluster.config_file(name)
        config.write_text(f'{config.read_text()}\n[auth]\nusers_file = "{users}"\n')
        cluster.kill(name)
        cluster.restart(name, wait=False)
        yield cluster.server(name)


def connection(place: str, authority: Authority, vhost: str = "shop", secret: str = SECRET) -> kombu.Connection:
    return kombu.Connection(
        hostname=f"sockpqs://{place}/{vhost}", userid=USER, password=secret, ssl={"ca_certs": str(Path(authority.ca))},
    )


def test_a_user_works_over_tls_within_its_rights(place: str, authority: Authority) -> None:
    with connection(place, authority) as allowed:
        allowed.ensure_connection(max_retries=20, interval_start=0.2, interval_max=1)
        queue = kombu.Queue("orders", kombu.Exchange("orders"), routing_key="new")(allowed.default_channel)
        queue.declare()
        allowed.Producer().publish("x", exchange="orders", routing_key="new")
        message = queue.get()
        assert message.decode() == "x"
        message.ack()
    with connection(place, authority, "other") as elsewhere, pytest.raises(OperationalError, match="403"):
        elsewhere.Producer().publish("x", routing_key="orders")


def test_a_wrong_secret_is_not_tried_again(place: str, authority: Authority) -> None:
    again: list[Exception] = []
    with connection(place, authority, secret="wrong") as refused, pytest.raises(AuthError):
        refused.ensure_connection(errback=lambda error, interval: again.append(error), max_retries=None)
    assert not any(isinstance(error, AuthError) for error in again)     # others are those of a busy machine


def test_a_secret_in_a_file_may_be_replaced(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("old-secret-of-ann\n")
    with MemoryCluster(2, users={"ann": "old-secret-of-ann"}) as cluster:
        url = f"sockpq://ann@{cluster.addresses[0]}/"
        connection = kombu.Connection(url, transport_options={"secret_file": str(file)})
        client = connection.transport.link.client
        client.put("q", b"before")
        cluster.change_users({"ann": "new-secret-of-ann"})
        file.write_text("new-secret-of-ann\n")
        cluster.lead(cluster.servers[1])
        client.put("q", b"after")
        client.close()
        assert cluster.bodies("q") == [b"before", b"after"]
