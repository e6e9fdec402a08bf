"""An existing cluster: upgrades while clients work, and systemd's treatment of a bad node."""

from __future__ import annotations

import json
import re
import shutil
import time
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sockpq._version import __version__

from sockpqd.core.levels import FEATURE_LEVEL
from tests.deploy.absences import absence_of, at_once
from tests.deploy.load import Load

if TYPE_CHECKING:
    from tests.deploy.cluster import Run
    from tests.deploy.installed import Installed

pytestmark = pytest.mark.timeout(1500)

ROOT = Path(__file__).parents[2]
JOBS_PER_S = 500
AROUND_S = 2.0          # the load goes on so long before and after
WATCHDOG_PATIENCE_S = 90
NEWER = "99.0.0"


# Without it the level is raised when the last node knows the next one, and there is no way back.
HELD_BACK = "-e", json.dumps({"sockpqd_raft": {"feature_level_max": FEATURE_LEVEL}})


def newer(folder: Path) -> str:
    """The repository with another version and the next feature level, as a later release would be."""
    source = folder / "newer"
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    for name in (*wheel["packages"], "client"):         # where links stand for packages these are copied
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    shutil.copy(ROOT / "README.md", source)
    for name in ("manual", "systemd"):
        shutil.copytree(ROOT / "deploy" / name, source / "deploy" / name)
    shutil.copy(ROOT / "pyproject.toml", source)
    version_file = source / "client" / "src" / "sockpq" / "_version.py"
    text = version_file.read_text()
    assert f'"{__version__}"' in text
    version_file.write_text(text.replace(f'"{__version__}"', f'"{NEWER}"'))
    levels = source / "sockpqd" / "core" / "levels.py"
    text = levels.read_text()
    assert f"\nFEATURE_LEVEL = {FEATURE_LEVEL} " in text
    levels.write_text(text.replace(f"\nFEATURE_LEVEL = {FEATURE_LEVEL} ", f"\nFEATURE_LEVEL = {FEATURE_LEVEL + 1} "))
    return str(source)


def under_load(cluster: Installed, *arguments: str) -> Run:
    """rolling.yml while clients put, take and finish jobs: no call may fail, and no two nodes may be down at once.

    How long their longest pause was is printed and not judged: it is the machine's when that is busy.
    """
    begun = time.time()
    with Load(cluster.servers(), JOBS_PER_S, **cluster.options) as load:
        time.sleep(AROUND_S)
        run = cluster.playbook("rolling.yml", *arguments)
        time.sleep(AROUND_S)
    print(f"{load.jobs_per_s:.0f} jobs/s, longest pause {load.pause_s() * 1000:.0f} ms, {run.seconds:.0f} s")
    load.check()
    since = f"journalctl --unit sockpqd --output short-unix --no-pager --since @{begun:.3f}"
    absences = sorted(absence_of(name, cluster.ssh(name, since)) for name in cluster.names)
    assert [absence.name for absence in absences] == order_of(run)    # each restarted once, the leader last
    assert at_once(absences) == [], absences
    return run


def levels_of(cluster: Installed) -> set[tuple[str, int, int]]:
    """Return the version, the level and the cluster's level that each node shows, once the cluster is well."""
    return {(node["version"], node["level"], node["cluster_level"]) for node in cluster.wait_until_well()["nodes"]}


def order_of(run: Run) -> list[str]:
    """Return the nodes in the order in which the playbook restarted them."""
    return re.findall(r": Restart\] \*+\nchanged: \[(\w+)\]", run.output)


def test_a_rolling_upgrade_and_the_way_back_under_load(cluster: Installed, tmp_path: Path) -> None:
    old = cluster.ssh("n1", "readlink /opt/sockpqd/current").strip()
    leader = cluster.wait_until_well()["leader"]
    run = under_load(
        cluster, *HELD_BACK, "-e", f"sockpqd_source={newer(tmp_path)}", "-e", f"sockpqd_build_dir={tmp_path}/build"
    )
    assert levels_of(cluster) == {(NEWER, FEATURE_LEVEL + 1, FEATURE_LEVEL)}
    assert re.findall(r"Hand leadership over\] \*+\nchanged: \[(\w+)\]", run.output) == [leader]
    assert run.output.rindex(f"changed: [{leader}]") > max(
        run.output.rindex(f"changed: [{name}]") for name in cluster.names if name != leader
    )
    under_load(cluster, "-e", f"sockpqd_release={old}")
    assert levels_of(cluster) == {(__version__, FEATURE_LEVEL, FEATURE_LEVEL)}
    assert cluster.ssh("n1", "readlink /opt/sockpqd/current").strip() == old


def test_an_upgrade_stops_at_the_first_node_that_does_not_come_back(cluster: Installed, tmp_path: Path) -> None:
    source = newer(tmp_path)
    daemon = Path(source, "sockpqd/gateway/daemon.py")
    text = daemon.read_text()
    assert "    stopping = asyncio.Event()\n" in text
    daemon.write_text(text.replace("    stopping = asyncio.Event()\n", "    raise SystemExit(70)\n", 1))
    run = cluster.playbook(
        "rolling.yml", "-e", f"sockpqd_source={source}", "-e", f"sockpqd_build_dir={tmp_path}/build", fails=True
    )
    active = {name: cluster.ssh(name, "systemctl is-active sockpqd", check=False).strip() for name in cluster.names}
    down = [name for name in cluster.names if active[name] != "active"]
    assert len(down) == 1, run.output
    status = cluster.status(next(name for name in cluster.names if name not in down))
    assert status["serving"]
    assert cluster.ssh(down[0], "systemctl show sockpqd --property NRestarts --value") == "0\n"     # 70: not in a loop
    cluster.playbook("site.yml")                # with the good release again
    assert {node["version"] for node in cluster.wait_until_well()["nodes"]} == {__version__}


def test_a_node_that_stands_still_is_restarted(cluster: Installed) -> None:
    name = cluster.wait_until_well()["leader"]
    process = cluster.ssh(name, "systemctl show sockpqd --property MainPID --value").strip()
    cluster.ssh(name, f"kill -STOP {process}")
    deadline = time.monotonic() + WATCHDOG_PATIENCE_S
    while cluster.ssh(name, "systemctl show sockpqd --property NRestarts --value") == "0\n":
        assert time.monotonic() < deadline, "the watchdog did not bite"
        time.sleep(1)
    cluster.wait_until_well()


def test_a_node_with_a_bad_configuration_is_not_restarted_in_a_loop_and_is_mended(cluster: Installed) -> None:
    name = cluster.names[-1]
    cluster.ssh(name, "echo nonsense >> /etc/sockpqd/sockpqd.toml; systemctl reset-failed; systemctl restart sockpqd",
                check=False)
    told = cluster.ssh(name, "systemctl show sockpqd --property ActiveState,ExecMainStatus,NRestarts")
    assert sorted(told.split()) == ["ActiveState=failed", "ExecMainStatus=2", "NRestarts=0"]
    cluster.playbook("site.yml")
    cluster.wait_until_well()
