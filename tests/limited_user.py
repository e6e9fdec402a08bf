"""A node on which a user has rights for names with one prefix only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from devcluster.cluster import LocalCluster
from sockpqd.gateway.auth import scrypt

USER, SECRET = "shop", "of-the-shop-alone"


@contextmanager
def limited_user(rights: str) -> Iterator[str]:
    """Run a node for a block; returns its address. `rights`: of the user, separated by commas."""
    with LocalCluster(1) as cluster:
        (name,) = cluster.names
        users = cluster.folder / "users.toml"
        words = ", ".join(f'"{right}"' for right in rights.split(","))
        users.write_text(f'[users.{USER}]\nrights = [{words}]\nscrypt = "{scrypt.hashed(SECRET).text}"\n')
        users.chmod(0o600)
        config = cluster.config_file(name)
        config.write_text(f'{config.read_text()}\n[auth]\nusers_file = "{users}"\n')
        cluster.kill(name)
        cluster.restart(name, wait=False)
        yield cluster.server(name)
