"""Containerfile.http: its lines executed on a Debian, and its entry point started in that root file system.

Where a registry would be needed, for Python's image, there is the small Debian of these tests.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from sockpq.testing import Server

from devcluster.guardian import Guardian
from devcluster.ports import free_ports
from tests.deploy.needs import missing
from tests.waiting import PATIENCE_S, until

pytestmark = pytest.mark.timeout(1500)

ROOT = Path(__file__).parents[2]
BUILD_S = 1200
TEXT = (ROOT / "deploy/container/Containerfile.http").read_text().replace("\\\n", " ")
PIP = f"{sys.executable} -m pip"


def words_of(instruction: str) -> list[str]:
    """Return the rest of each line with this instruction."""
    return re.findall(rf"^{instruction} (.*)$", TEXT, re.MULTILINE)


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the files that the image has below /usr/local."""
    if missing() or sys.version_info[:2] != (3, 11):
        pytest.skip("no containers")
    folder = tmp_path_factory.mktemp("http-image")
    make, install = words_of("RUN")
    make = make.replace("/source", str(ROOT)).replace("/wheels", str(folder / "wheels"))
    subprocess.run(shlex.split(make.replace("pip ", f"{PIP} ", 1)), check=True, timeout=BUILD_S)
    command = re.search(r"pip install .*? sockpq-http", install)
    assert command
    target = folder / "local/lib/python3.11/dist-packages"
    line = command[0].replace("pip ", f"{PIP} ", 1).replace("/wheels", str(folder / "wheels"))
    subprocess.run([*shlex.split(line), "--target", target], check=True, timeout=BUILD_S)
    program = folder / "local/bin/sockpq-http"
    program.parent.mkdir()
    lines = (target / "bin/sockpq-http").read_text().splitlines(keepends=True)
    program.write_text("".join(["#!/usr/bin/python3\n", *lines[1:]]))
    program.chmod(0o755)
    return folder / "local"


def test_it_serves_as_its_user_and_ends_in_order(local: Path, tmp_path: Path) -> None:
    from tests.deploy.image import image

    (user,), (entry,), (signal,) = (words_of(name) for name in ("USER", "ENTRYPOINT", "STOPSIGNAL"))
    make_user = re.search(r"useradd .*", words_of("RUN")[1])
    assert make_user
    (port,) = free_ports(1)
    guardian = Guardian(tmp_path)
    with Server() as node, (tmp_path / "log").open("wb") as log:
        try:
            started = subprocess.Popen(
                ["systemd-nspawn", "--quiet", "--register=no", "--keep-unit", f"--kill-signal={signal}",
                 "--volatile=overlay", f"--directory={image()}", f"--bind-ro={local}:/usr/local",
                 f"--setenv=SOCKPQ_SERVERS={node.address}",
                 "/bin/sh", "-c", f'{make_user[0]} && exec setpriv --reuid={user} --regid={user} --clear-groups "$@"',
                 "sh", *json.loads(entry), "--listen", f"127.0.0.1:{port}", "--drain", "0"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )
            guardian.watch(started.pid)
            url = f"http://127.0.0.1:{port}"
            until(lambda: serves(url) or started.poll() is not None, "it serves")
            assert started.poll() is None, (tmp_path / "log").read_text()
            with httpx.Client(base_url=url, timeout=PATIENCE_S, trust_env=False) as web:
                assert web.post("/v1/queues/image/jobs", json={"text": "x"}).status_code == 201
                (job,) = web.post("/v1/queues/image/take").json()["jobs"]
                assert web.post(f"/v1/jobs/{job['id']}/done").status_code == 200
                assert web.get("/docs").status_code == 200
            os.kill(started.pid, 15)
            until(lambda: started.poll() is not None, "it has ended")
            assert started.returncode == 0, (tmp_path / "log").read_text()
            guardian.forget(started.pid)
        finally:
            guardian.close()


def serves(url: str) -> bool:
    """Return whether it is ready."""
    try:
        return httpx.get(f"{url}/readyz", trust_env=False, timeout=PATIENCE_S).status_code == 200
    except httpx.TransportError:
        return False
