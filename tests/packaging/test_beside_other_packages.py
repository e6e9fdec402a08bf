"""The wheels take one package name: a project may have packages core, cluster and gateway of its own."""

from __future__ import annotations

import subprocess
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from devcluster.ports import free_ports
from tests.packaging.distributions import INTEGRATIONS, empty_environment, install, run
from tests.waiting import until

PATIENCE_S = 120.0
OURS = {"sockpqd", "sockpq", "sockpq_kombu.pth"} | {f"sockpq_{path.name}" for path in INTEGRATIONS}
TAKEN = "core", "cluster", "gateway", "beanstalk", "connections", "pqctl"      # the project's own
TESTS = """\
import core, cluster, gateway

def test_the_project_has_its_packages_and_a_server(sockpq_client):
    assert {core.WHOSE, cluster.WHOSE, gateway.WHOSE} == {"the project's"}
    sockpq_client.put("mail", core.WHOSE)
    assert sockpq_client.get("mail", expire=30).text == core.WHOSE
"""
APP = """\
from pathlib import Path
from sockpq.worker import App
import core
app = App("ADDRESS")

@app.task(queue="mail")
def send(name):
    Path(name).write_text(core.WHOSE)
"""
CELERY = """\
from pathlib import Path
from celery import Celery
import cluster
app = Celery("tasks", broker="sockpq://ADDRESS")

@app.task
def send(name):
    Path(name).write_text(cluster.WHOSE)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    for name in TAKEN:
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text('WHOSE = "the project\'s"\n')
    (folder / "conftest.py").write_text('pytest_plugins = ["sockpq.testing"]\n')
    (folder / "test_project.py").write_text(TESTS)
    return folder


@contextmanager
def running(project: Path, *command: str | Path) -> Iterator[subprocess.Popen[bytes]]:
    with (project / "output").open("ab") as output:
        process = subprocess.Popen(command, cwd=project, env={"PYTHONPATH": str(project)}, stdout=output, stderr=output)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def has(path: Path) -> bool:
    return path.exists() and path.read_text() == "the project's"


def test_a_wheel_brings_one_name(built: Path) -> None:
    tops = {
        name.split("/")[0] for wheel in built.glob("*.whl") for name in zipfile.ZipFile(wheel).namelist()
        if ".dist-info/" not in name and ".data/" not in name
    }
    assert tops == OURS


def test_programs_run_in_a_project_with_packages_of_these_names(built: Path, project: Path, tmp_path: Path) -> None:
    bin_ = empty_environment(tmp_path)
    install(bin_, "--find-links", built, "sockpqd", "sockpq-kombu", "celery", "pytest", folder=tmp_path)
    path = str(project)
    assert "1 passed" in run(bin_ / "python", "-m", "pytest", "-q", folder=project, PYTHONPATH=path)

    port, peer = free_ports(2)
    address = f"127.0.0.1:{port}"
    (project / "sockpqd.toml").write_text(
        f'[node]\nname = "n1"\ndata_dir = "{tmp_path}/data"\n'
        f'[listen]\nclient = "{address}"\npeer = "127.0.0.1:{peer}"\n'
        f'[[cluster.members]]\nname = "n1"\nclient = "{address}"\npeer = "127.0.0.1:{peer}"\n')
    (project / "jobs.py").write_text(APP.replace("ADDRESS", address))
    (project / "tasks.py").write_text(CELERY.replace("ADDRESS", address))
    pqctl = bin_ / "pqctl", "--servers", address
    with (
        running(project, bin_ / "sockpqd", "--config", project / "sockpqd.toml"),
        running(project, bin_ / "pqworker", "--pool", "threads", "-c", "1", "jobs:app"),
        running(project, bin_ / "celery", "-A", "tasks", "worker", "--pool", "solo"),
    ):
        until(lambda: subprocess.run([*pqctl, "cluster", "leader"], cwd=project, env={"PYTHONPATH": path}, check=False,
                                     capture_output=True).returncode == 0, "a leader", PATIENCE_S)
        assert "n1" in run(*pqctl, "cluster", "status", folder=project, PYTHONPATH=path)
        for put in ("from jobs import send; send.put", "from tasks import send; send.delay"):
            file = project / put.rpartition(".")[2]
            run(bin_ / "python", "-c", f"{put}('{file}')", folder=project, PYTHONPATH=path)
            until(lambda file=file: has(file), lambda: (project / "output").read_text(), PATIENCE_S)
