"""`make dist`: the distributions install into empty environments, and what is installed runs."""

from __future__ import annotations

import os
import shutil
import tarfile
import zipfile
from importlib import import_module
from pathlib import Path

import pytest

from tests.packaging.distributions import INTEGRATIONS, PIP, ROOT, build, empty_environment, install, run

PROGRAMS = "sockpqd", "pqctl", "sockpq-beanstalkd"

PROGRAM = """
import sockpq, sockpq.aio
from importlib.metadata import version
from importlib.resources import files
assert version("sockpq") == VERSION, version("sockpq")
assert files("sockpq").joinpath("py.typed").is_file()
"""


@pytest.fixture(scope="module")
def version(built: Path) -> str:
    (wheel,) = built.glob("sockpqd-*.whl")
    return wheel.name.split("-")[1]


def test_server_and_client_have_one_version_and_integrations_their_own(version: str, built: Path) -> None:
    versions = {"sockpqd": version, "sockpq": version} | {
        package: import_module(f"{package}._version").__version__
        for package in (f"sockpq_{path.name}" for path in INTEGRATIONS)
    }
    assert {path.name for path in built.iterdir()} == {
        f"{name}-{of}{end}" for name, of in versions.items() for end in ("-py3-none-any.whl", ".tar.gz")
    }
    changes = (ROOT / "CHANGELOG.md").read_text()
    assert f"## [{version}]" in changes


def test_the_same_sources_give_the_same_bytes(built: Path, backend: Path, tmp_path: Path) -> None:
    copy = tmp_path / "elsewhere"
    shutil.copytree(ROOT, copy, symlinks=True, ignore=shutil.ignore_patterns(
        ".git", ".venv", ".tools", ".*_cache", ".hypothesis", "__pycache__", "*.egg-info",
        "tests", "bench", "dist", "build",
    ))
    for path in copy.rglob("*"):
        os.utime(path, (1_000_000_000, 1_000_000_000), follow_symlinks=False)
    again = tmp_path / "again"
    again.mkdir()
    build(copy, backend, again)
    for file in built.iterdir():
        assert (again / file.name).read_bytes() == file.read_bytes(), file.name


def test_the_wheel_has_everything_and_nothing_else(built: Path) -> None:
    (wheel,) = built.glob("sockpqd-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names if ".d" not in name.split("/")[0]} == {"sockpqd"}
    for package in ("core", "cluster", "beanstalk", "connections", "gateway", "beanstalk_proxy", "pqctl"):
        assert f"sockpqd/{package}/py.typed" in names
    shared = {name.partition(".data/data/")[2] for name in names if ".data/data/" in name}
    assert {f"share/man/man1/{program}.1" for program in PROGRAMS} <= shared
    assert {f"share/bash-completion/completions/{program}" for program in PROGRAMS} <= shared
    assert {f"share/zsh/site-functions/_{program}" for program in PROGRAMS} <= shared
    assert {f"share/fish/vendor_completions.d/{program}.fish" for program in PROGRAMS} <= shared
    (sources,) = built.glob("sockpqd-*.tar.gz")
    with tarfile.open(sources) as archive:
        assert not [name for name in archive.getnames() if "/tests/" in name or "/bench/" in name]


def test_the_client_installs_alone(built: Path, version: str, tmp_path: Path) -> None:
    bin_ = empty_environment(tmp_path)
    install(bin_, "--no-index", "--find-links", built, "sockpq", folder=tmp_path)
    run(bin_ / "python", "-c", PROGRAM.replace("VERSION", repr(version), 1), folder=tmp_path)
    assert "--autoscale" in run(bin_ / "pqworker", "--help", folder=tmp_path)       # without sockpq[worker], too
    share = bin_.parent / "share"
    assert (share / "man/man1/pqworker.1").exists()
    assert (share / "bash-completion/completions/pqworker").exists()


def test_celery_knows_the_broker_and_the_backend_after_the_installation_alone(built: Path, tmp_path: Path) -> None:
    bin_ = empty_environment(tmp_path)
    install(bin_, "--find-links", built, "sockpq-kombu", "celery", folder=tmp_path)
    told = run(bin_ / "celery", "-b", "sockpq://127.0.0.1:1", "--result-backend", "sockpq://127.0.0.1:1", "report",
               folder=tmp_path)
    assert "transport:sockpq results:sockpq" in told.replace("\n", " ")


def test_the_server_installs_from_wheels_and_runs(built: Path, version: str, tmp_path: Path) -> None:
    bin_ = empty_environment(tmp_path)
    install(bin_, "--find-links", built, f"sockpqd=={version}", folder=tmp_path)
    assert run(bin_ / "sockpqd", "--version", folder=tmp_path).strip() == f"sockpqd, version {version}"
    assert run(bin_ / "pqctl", "--version", folder=tmp_path).strip().endswith(version)
    config = ROOT / "deploy" / "systemd" / "sockpqd.toml"
    assert "good; node n1 of 1" in run(bin_ / "sockpqd", "--check-config", config, folder=tmp_path)
    assert (bin_.parent / "share" / "man" / "man1" / "pqctl.1").exists()


def test_the_server_can_be_made_from_its_sources(built: Path, backend: Path, tmp_path: Path) -> None:
    (sources,) = built.glob("sockpqd-*.tar.gz")
    run(*PIP, "wheel", "-q", "--no-deps", "--no-build-isolation", "--wheel-dir", tmp_path, sources,
        folder=tmp_path, PYTHONPATH=str(backend))
    (made,) = tmp_path.glob("*.whl")
    (wheel,) = built.glob("sockpqd-*.whl")
    assert zipfile.ZipFile(made).namelist() == zipfile.ZipFile(wheel).namelist()
