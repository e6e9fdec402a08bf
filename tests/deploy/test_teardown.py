"""Nothing stays behind, however the run ends."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(300)

ROOT = Path(__file__).parents[2]
PATIENCE_S = 60.0
PROGRAM = """
import sys, time
from tests.deploy.cluster import Cluster
with Cluster({}) as cluster:
    print(cluster.folder, cluster.bridge, flush=True)
    if sys.argv[1] == "wait":
        time.sleep(1000)
    raise RuntimeError(sys.argv[1])
"""


def left(folder: str, bridge: str) -> list[str]:
    """Return what is still there of a run."""
    here = []
    if Path(folder).exists():
        here.append(folder)
    here += [line for line in Path("/proc/self/mounts").read_text().splitlines() if folder in line]
    links = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout
    here += [line for line in links.splitlines() if f"{bridge}:" in line or f"vb-{bridge}-" in line]
    processes = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    here += [line for line in processes.splitlines() if f"--machine={bridge}-" in line]
    here += map(str, Path("/sys/fs/cgroup").glob(f"*/{bridge}-*"))
    return here


@pytest.mark.usefixtures("ansible")
@pytest.mark.parametrize("end", ["wait", "failure"])
def test_everything_is_torn_down(end: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, end], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    with process:
        assert process.stdout is not None
        folder, bridge = process.stdout.readline().split()
        if end == "wait":
            assert len(left(folder, bridge)) > 6
            process.send_signal(signal.SIGKILL)
        process.wait()
    deadline = time.monotonic() + PATIENCE_S
    while left(folder, bridge):
        assert time.monotonic() < deadline, left(folder, bridge)
        time.sleep(0.1)
