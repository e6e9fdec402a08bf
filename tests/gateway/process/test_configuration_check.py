"""Findings of --check-config in a configuration that is valid by itself."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from devcluster.authority import Authority
from sockpqd.gateway.config import Config, ConfigError, Tls
from sockpqd.gateway.config.reading import read
from sockpqd.gateway.process import configuration_check
from sockpqd.gateway.process.certificates import Certificates
from sockpqd.gateway.process.configuration_check import check_data_dir, warnings


def member(name: str, host: str, *, client: int = 11361, peer: int = 11362) -> dict[str, str]:
    return {"name": name, "client": f"{host}:{client}", "peer": f"{host}:{peer}"}


def config(folder: Path, *members: dict[str, str], **sections: dict[str, Any]) -> Config:
    """Return the configuration of n1, with the data directory in a folder."""
    return read({
        "node": {"name": "n1", "data_dir": str(folder / "data")},
        "listen": {"client": "127.0.0.1:11361", "peer": "127.0.0.1:11362"},
        "cluster": {"members": list(members) or [member("n1", "127.0.0.1"), member("n2", "10.0.0.2")]},
        **sections,
    }, {})


def found(given: Config, certificates: Certificates | None = None) -> list[str]:
    return list(warnings(given, certificates))


def test_nothing_is_found_in_a_good_one(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    good = config(tmp_path, log={"audit_file": str(tmp_path / "audit")}, replica={"of": "127.0.0.1:21361"})
    assert found(good) == []
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_a_file_for_data_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").touch()
    with pytest.raises(ConfigError, match=r"node\.data_dir: .*/data is a file"):
        found(config(tmp_path))


def test_a_folder_for_the_audit_log_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"log\.audit_file: .* is a folder"):
        found(config(tmp_path, log={"audit_file": str(tmp_path)}))


def test_a_folder_that_systemd_makes_at_the_start_may_be_missing(tmp_path: Path) -> None:
    (line,) = found(config(tmp_path, log={"audit_file": str(tmp_path / "none" / "audit.log")}))
    assert "there is no folder" in line
    assert "LogsDirectory=" in line


def test_a_place_where_this_user_may_not_look_is_left_to_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*arguments: object, **named: object) -> None:
        raise PermissionError("no")
    monkeypatch.setattr(os, "stat", refuse)
    check_data_dir(str(tmp_path / "closed" / "n1"))


def close(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this user not write to a folder; root, who runs these tests as well, could write to any."""
    access = os.access
    monkeypatch.setattr(
        os, "access", lambda path, mode: access(path, mode) and not (Path(path) == folder and mode & os.W_OK))


def test_a_data_directory_that_cannot_be_written_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").mkdir()
    close(tmp_path / "data", monkeypatch)
    with pytest.raises(ConfigError, match=r"node\.data_dir: .*/data cannot be written by the user that runs"):
        found(config(tmp_path))


def test_a_data_directory_that_cannot_be_made_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    close(tmp_path, monkeypatch)
    with pytest.raises(ConfigError, match=rf"node\.data_dir: .*/none/data cannot be made in {tmp_path} by the user"):
        found(config(tmp_path / "none"))


def test_a_data_directory_that_systemd_makes_at_the_start_may_be_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    close(tmp_path, monkeypatch)
    monkeypatch.setattr(configuration_check, "STATE_FOLDER", tmp_path)
    (line,) = found(config(tmp_path))
    assert "/data cannot be made" in line
    assert "StateDirectory=" in line


def test_a_data_directory_that_can_be_made_is_not_made_by_the_check(tmp_path: Path) -> None:
    assert found(config(tmp_path / "a" / "b")) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("address", "words"), [
    ("127.0.0.1:11361", "the client port of n1, a node of this cluster"),
    ("127.0.0.1:11362", "the port of n1 for other nodes"),
    ("10.0.0.9:11361, 10.0.0.2:11361", "10.0.0.2:11361 is the client port of n2"),
])
def test_a_copy_of_itself_is_refused(address: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=rf"replica\.of: .*{words}"):
        found(config(tmp_path, replica={"of": address, "ca": "ca.crt"}))


def test_ports_that_are_swapped_are_refused_here_and_doubted_elsewhere(tmp_path: Path) -> None:
    swapped = {"client": 11362, "peer": 11361}
    with pytest.raises(ConfigError, match=r"cluster\.members\[0\]: client and peer are swapped"):
        found(config(tmp_path, member("n1", "127.0.0.1", **swapped)))
    (line,) = found(config(tmp_path, member("n1", "127.0.0.1"), member("n2", "10.0.0.2", **swapped)))
    assert line.startswith("cluster.members[1]: n2 has port 11362 for clients and 11361 for other nodes")


def test_one_port_on_two_addresses_is_not_swapped(tmp_path: Path) -> None:
    both = {"client": "127.0.0.1:7000", "peer": "127.0.0.2:7000"}
    assert found(config(tmp_path, {"name": "n1", **both}, listen=both)) == []


@pytest.mark.parametrize(("host", "names", "right"), [
    ("10.0.0.9", ["n1", "10.0.0.9"], True), ("10.0.0.9", ["n1", "10.0.0.1"], False), ("N1", ["n1"], True),
    ("n1.example.org", ["n1", "*.example.org"], True), ("a.n1.example.org", ["n1", "*.example.org"], False),
    ("fd00::9", ["n1", "fd00:0::9"], True),
])
def test_a_certificate_must_be_for_the_address_that_clients_dial(
    host: str, names: list[str], right: bool, tmp_path: Path
) -> None:
    authority = Authority(tmp_path)
    cert, key = authority.issue("n1", names)
    certificates = Certificates(Tls(str(cert), str(key), str(authority.ca)), "n1")
    lines = found(config(tmp_path, member("n1", f"[{host}]" if ":" in host else host)), certificates)
    if right:
        assert lines == []
    else:
        (line,) = lines
        assert line.startswith("tls.cert: it is for ")
        assert f"not for {host}, which clients dial" in line


def test_a_certificate_that_ends_soon_is_named(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    cert, key = authority.issue("n1", ["n1", "127.0.0.1"], days=(-1, 0.125))
    (line,) = found(config(tmp_path), Certificates(Tls(str(cert), str(key), str(authority.ca)), "n1"))
    assert line.startswith(("tls.cert: it expires in 3.0 hours", "tls.cert: it expires in 2.9 hours"))
