"""The OCI image: unpacked, and started from its root file system as a container's runtime starts it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from sockpq import Client

from devcluster.guardian import Guardian
from devcluster.ports import free_ports
from tests.deploy.needs import missing
from tests.waiting import until

pytestmark = pytest.mark.timeout(1500)

ROOT = Path(__file__).parents[2]
BUILD_S = 1200


def run(*command: str | Path) -> str:
    done = subprocess.run(command, text=True, capture_output=True, timeout=BUILD_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=10):
        return True
    return False


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The image as umoci unpacks it: config.json of a runtime, and rootfs."""
    if missing() or shutil.which("umoci") is None or shutil.which("dpkg-deb") is None:
        pytest.skip("no containers")
    folder = tmp_path_factory.mktemp("image")
    dist, layout = folder / "dist", folder / "layout"
    for source in (ROOT / "client", ROOT):
        run(sys.executable, "-m", "build", "--wheel", "--outdir", dist, source)
    run(sys.executable, ROOT / "deploy/debian/build.py", dist)
    run(sys.executable, ROOT / "deploy/container/build_image.py", dist)
    (archive,) = dist.glob("*.oci.tar")
    with tarfile.open(archive) as packed:
        packed.extractall(layout)
    run("umoci", "unpack", "--image", f"{layout}:latest", folder / "bundle")
    yield folder / "bundle"
    shutil.rmtree(folder)


def test_it_is_not_root_and_says_what_it_needs(bundle: Path) -> None:
    process = json.loads((bundle / "config.json").read_text())["process"]
    assert process["args"] == ["/usr/bin/sockpqd"]
    assert process["user"]["uid"] == process["user"]["gid"] == 10001
    assert process["cwd"] == "/var/lib/sockpqd"


def test_it_serves_and_ends_in_order(bundle: Path, tmp_path: Path) -> None:
    client_port, peer_port, http_port = free_ports(3)
    addresses = {"CLIENT": client_port, "PEER": peer_port, "HTTP": http_port}
    environment = {f"SOCKPQD_LISTEN_{name}": f"127.0.0.1:{port}" for name, port in addresses.items()}
    config = (bundle / "rootfs/etc/sockpqd.toml").read_text()
    config = config.replace("11361", str(client_port)).replace("11362", str(peer_port))
    (bundle / "rootfs/etc/sockpqd.toml").write_text(config)
    guardian = Guardian(tmp_path)
    try:
        with (tmp_path / "log").open("wb") as log:
            node = subprocess.Popen(
                ["systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--kill-signal=SIGTERM", "--user=sockpqd",
                 "--directory", bundle / "rootfs", *(f"--setenv={name}={value}" for name, value in environment.items()),
                 "/usr/bin/sockpqd"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )
        guardian.watch(node.pid)
        until(lambda: listens(client_port) or node.poll() is not None, "the node listens")
        assert node.poll() is None, (tmp_path / "log").read_text()
        with Client(f"127.0.0.1:{client_port}", timeout=120) as client:
            client.put("image", b"a job")
            job = client.get("image", expire=60)
            assert job is not None
            job.done()
        owner = (bundle / "rootfs/var/lib/sockpqd/journal").stat().st_uid
        assert owner == 10001
        os.kill(node.pid, 15)
        until(lambda: node.poll() is not None, "the node has ended")
        assert node.returncode == 0, (tmp_path / "log").read_text()
        guardian.forget(node.pid)
    finally:
        guardian.close()
