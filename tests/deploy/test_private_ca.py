"""The script that makes certificates: what it makes, and what it leaves alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("ansible")

SCRIPT = Path(__file__).parents[2] / "deploy/ansible/roles/sockpqd/files/certificates.py"
NODES = [{"name": "n1", "names": ["n1", "10.0.0.1"]}, {"name": "n2", "names": ["n2", "host-2.example", "::1"]}]


def run(folder: Path, nodes: object = NODES, days: int = 825) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, SCRIPT, "--folder", folder, "--days", str(days)], input=json.dumps(nodes), text=True,
        capture_output=True, check=False,
    )


def made(folder: Path, nodes: object = NODES, days: int = 825) -> list[str]:
    """Return what it says it made."""
    done = run(folder, nodes, days)
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout)["made"])


def openssl(*arguments: str | Path) -> str:
    """An opinion of somebody else."""
    return subprocess.run(["openssl", *arguments], check=True, capture_output=True, text=True).stdout


def test_certificates_are_good_for_nodes_that_serve_and_dial(tmp_path: Path) -> None:
    folder = tmp_path / "secrets"
    assert made(folder) == ["ca", "n1", "n2"]
    for purpose in ("sslserver", "sslclient"):
        openssl("verify", "-x509_strict", "-purpose", purpose, "-CAfile", folder / "ca.crt", folder / "n1.crt")
    names = openssl("x509", "-in", folder / "n2.crt", "-noout", "-ext", "subjectAltName").splitlines()[1].strip()
    assert names == "DNS:n2, DNS:host-2.example, IP Address:0:0:0:0:0:0:0:1"
    modes = {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}
    assert modes == {
        "ca.key": 0o600, "n1.key": 0o600, "n2.key": 0o600, "ca.crt": 0o644, "n1.crt": 0o644, "n2.crt": 0o644
    }
    assert folder.stat().st_mode & 0o777 == 0o700


def test_what_is_good_is_left_alone(tmp_path: Path) -> None:
    made(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    assert made(tmp_path) == []
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_what_is_not_good_is_made_again(tmp_path: Path) -> None:
    made(tmp_path, days=29)
    assert made(tmp_path) == ["n1", "n2"]                           # they would have ended soon
    assert made(tmp_path, [{"name": "n1", "names": ["n1", "10.0.0.9"]}]) == ["n1"]      # it has moved
    (tmp_path / "n2.key").write_bytes((tmp_path / "n1.key").read_bytes())
    assert made(tmp_path, NODES[1:]) == ["n2"]
    (tmp_path / "n2.crt").write_text("nonsense")
    assert made(tmp_path, NODES[1:]) == ["n2"]
    other = tmp_path / "other"
    made(other)
    (tmp_path / "n2.crt").write_bytes((other / "n2.crt").read_bytes())
    (tmp_path / "n2.key").write_bytes((other / "n2.key").read_bytes())
    assert made(tmp_path, NODES[1:]) == ["n2"]                      # another authority's


@pytest.mark.parametrize("lost", ["ca.key", "ca.crt"])
def test_half_an_authority_is_no_reason_for_a_new_one(tmp_path: Path, lost: str) -> None:
    made(tmp_path)
    (tmp_path / lost).unlink()
    done = run(tmp_path)
    assert done.returncode == 1
    assert "has only one of ca.crt and ca.key" in done.stderr
    assert not (tmp_path / lost).exists()


def test_the_key_of_another_authority_is_refused(tmp_path: Path) -> None:
    made(tmp_path)
    (tmp_path / "ca.key").write_bytes((tmp_path / "n1.key").read_bytes())
    done = run(tmp_path)
    assert done.returncode == 1
    assert "is not the key of" in done.stderr
