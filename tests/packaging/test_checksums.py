"""`make dist` writes SHA256SUMS, and signs it if there is a key."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = sys.executable, str(ROOT / "deploy" / "release" / "checksums.py")
VERIFY = "ssh-keygen", "-Y", "verify", "-f", "signers", "-I", "releases", "-n", "sockpqd-release", "-s"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a-1.whl", "a-1.tar.gz", "notes"):
        (tmp_path / name).write_text(name)
    return tmp_path


def run(folder: Path, *command: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command, cwd=folder, input=given, capture_output=True, check=False)


def test_sums_are_those_of_the_distributions_and_unsigned_ones_say_so(folder: Path) -> None:
    (folder / "SHA256SUMS.sig").write_text("of other sums")
    done = run(folder, *PROGRAM, ".")
    assert done.returncode == 0
    assert b"SHA256SUMS is NOT signed" in done.stdout
    assert not (folder / "SHA256SUMS.sig").exists()
    assert [line.split()[1] for line in (folder / "SHA256SUMS").read_text().splitlines()] == ["a-1.tar.gz", "a-1.whl"]
    assert run(folder, "sha256sum", "--check", "SHA256SUMS").returncode == 0
    (folder / "a-1.whl").write_text("something else")
    assert run(folder, "sha256sum", "--check", "SHA256SUMS").returncode != 0


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is not installed")
def test_a_signature_is_good_for_these_sums_and_this_key_only(folder: Path) -> None:
    for name in ("key", "other"):
        run(folder, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", name)
    done = run(folder, *PROGRAM, ".", "key")
    assert done.returncode == 0, done.stderr
    assert b"NOT" not in done.stdout
    sums = (folder / "SHA256SUMS").read_bytes()
    (folder / "signers").write_text(f"releases {(folder / 'key.pub').read_text()}")
    assert run(folder, *VERIFY, "SHA256SUMS.sig", given=sums).returncode == 0
    assert run(folder, *VERIFY, "SHA256SUMS.sig", given=sums + b"x").returncode != 0
    (folder / "signers").write_text(f"releases {(folder / 'other.pub').read_text()}")
    assert run(folder, *VERIFY, "SHA256SUMS.sig", given=sums).returncode != 0


@pytest.mark.parametrize("key", ["nowhere", "a-1.whl"])
def test_a_key_that_cannot_sign_is_an_error(folder: Path, key: str) -> None:
    done = run(folder, *PROGRAM, ".", key)
    assert done.returncode != 0
    assert b"NOT signed" in done.stderr
    assert not (folder / "SHA256SUMS.sig").exists()


def test_an_empty_folder_is_an_error(tmp_path: Path) -> None:
    assert run(tmp_path, *PROGRAM, ".").returncode != 0


def test_make_dist_writes_them() -> None:
    rule = (ROOT / "Makefile").read_text().partition("\ndist:")[2].partition("\n\n")[0]
    assert "deploy/release/checksums.py dist $(KEY)" in rule
