"""The origin as [replica] describes it."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from sockpqd.gateway.config import ConfigError, ReplicaSection
from sockpqd.gateway.replica import origin_settings, settings_at_start
from tests.client.certificates import ca_file


def test_a_cluster_without_an_origin_is_no_replica() -> None:
    assert origin_settings(ReplicaSection()) is None


def test_the_origin_has_servers_a_user_and_an_authority(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of-copy\n")
    secret.chmod(0o600)
    found = origin_settings(ReplicaSection("a.example:1, [::1]:2", "copy", str(secret), ca_file(tmp_path)))
    assert found is not None
    assert found.servers == (("a.example", 1), ("::1", 2))
    assert (found.user, found.secret()) == ("copy", "of-copy")
    assert found.context is not None
    assert found.context.verify_mode is ssl.CERT_REQUIRED
    assert found.context.check_hostname
    plain = origin_settings(ReplicaSection("127.0.0.1:1"))
    assert plain is not None
    assert plain.context is None


def test_files_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    with pytest.raises(ConfigError, match=r"replica\.secret_file: .*No such file"):
        origin_settings(ReplicaSection("127.0.0.1:1", "copy", str(secret)))
    secret.write_text("x")
    secret.chmod(0o644)
    with pytest.raises(ConfigError, match=r"replica\.secret_file: .*by others \(mode 0644\)"):
        origin_settings(ReplicaSection("127.0.0.1:1", "copy", str(secret)))
    with pytest.raises(ConfigError, match=r"replica\.ca: .*no certificate in PEM"):
        origin_settings(ReplicaSection("127.0.0.1:1", ca=str(secret)))


def test_a_node_starts_without_the_files_and_says_what_is_missing(tmp_path: Path) -> None:
    assert settings_at_start(ReplicaSection()) is None
    found = settings_at_start(ReplicaSection("127.0.0.1:1", "copy", str(tmp_path / "gone")))
    assert found is not None
    assert "replica.secret_file" in found.problem
    usable = settings_at_start(ReplicaSection("127.0.0.1:1"))
    assert usable is not None
    assert usable.problem == ""
