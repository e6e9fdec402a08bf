"""Hosts that are lost: the leader's power, a host for ever, all jobs; and a host that does not belong here."""

from __future__ import annotations

import json
import shutil
import time
from typing import TYPE_CHECKING

import pytest
from sockpq import Client, SockpqError

from tests.deploy.load import Load

if TYPE_CHECKING:
    from tests.deploy.installed import Installed

pytestmark = pytest.mark.timeout(1500)

SERVING_S = 3.0
JOBS_PER_S = 50


def test_the_power_of_the_leader(cluster: Installed) -> None:
    leader = cluster.wait_until_well()["leader"]
    others = ",".join(f"{cluster.machines[name].address}:11361" for name in cluster.names if name != leader)
    with Load(cluster.servers(), JOBS_PER_S, **cluster.options) as load:
        time.sleep(2)
        off = time.monotonic()
        cluster.machines[leader].power_off()
        while True:
            try:
                with Client(others, timeout=0.5, **cluster.options) as client:
                    client.put("power", b"")
                break
            except SockpqError:
                assert time.monotonic() < off + SERVING_S
        served_s = time.monotonic() - off
        time.sleep(8)
    load.check()            # its clients had to find out that the leader is silent
    print(f"serving again after {served_s:.2f} s; clients waited for {load.pause_s():.2f} s")
    assert served_s <= SERVING_S
    cluster.machines[leader].power_on()
    cluster.wait_until_well()       # it came back by itself, with its data


def test_a_destroyed_host_is_replaced(cluster: Installed) -> None:
    old, new = cluster.names[1], f"n{len(cluster.machines) + 1}"
    run = cluster.playbook("replace.yml", "-e", f"sockpqd_old={old}", "-e", f"sockpqd_new={new}", fails=True)
    assert "HOST must be in the inventory group sockpqd, and NODE no more" in " ".join(run.output.split())
    cluster.add(new)
    names = [name for name in cluster.names if name != old]
    cluster.write_inventory([*names, new])
    arguments = ("replace.yml", "-e", f"sockpqd_old={old}", "-e", f"sockpqd_new={new}")
    assert f"{old} runs; stop it first" in cluster.playbook(*arguments, fails=True).output
    assert cluster.ssh(new, "ls /opt", check=False) == ""
    cluster.machines[old].power_off()
    run = cluster.playbook(*arguments)
    print(f"replaced in {run.seconds:.0f} s")
    assert {node["name"] for node in cluster.wait_until_well()["nodes"]} == {*names, new}
    again = cluster.playbook(*arguments)
    assert again.changed == 0
    cluster.playbook("site.yml")        # the files of the other nodes
    for name in names:
        assert old not in cluster.ssh(name, "cat /etc/sockpqd/sockpqd.toml").split('"')
    assert cluster.playbook("site.yml").changed == 0


def test_a_host_without_a_valid_certificate_cannot_join(cluster: Installed) -> None:
    names, stranger = cluster.names, f"n{len(cluster.machines) + 1}"
    with Client(cluster.servers(), **cluster.options) as client:
        client.put("guarded", b"a job")
    machine = cluster.add(stranger)
    cluster.write_inventory([*names, stranger])
    try:
        cluster.playbook(
            "site.yml", "--limit", stranger, "-e", f"sockpqd_secrets_dir={cluster.folder}/other",
            "-e", "sockpqd_wait_s=2", fails=True,
        )
    finally:
        cluster.write_inventory(names)
    assert cluster.ssh(stranger, "systemctl is-active sockpqd") == "active\n"
    cluster.ssh(names[0], f"pqctl cluster add {stranger} {machine.address}:11362 {machine.address}:11361")
    try:
        time.sleep(5)
        nodes = {node["name"]: node for node in cluster.status(names[0])["nodes"]}
        assert nodes[stranger]["applied"] is None
        assert nodes[stranger]["role"] in ("LEARNER", "DOWN")
        told = "".join(cluster.ssh(name, "journalctl -u sockpqd --no-pager") for name in [*names, stranger])
        assert "certificate" in told
        has_jobs = "grep --recursive --text --files-with-matches --fixed-strings guarded /var/lib/sockpqd"
        assert cluster.ssh(names[0], has_jobs) != ""
        assert cluster.ssh(stranger, has_jobs, check=False) == ""
    finally:
        cluster.ssh(names[0], f"pqctl cluster remove {stranger}")
        machine.power_off()
    cluster.wait_until_well()


def test_a_backup_is_restored_into_an_empty_cluster(cluster: Installed) -> None:
    with Client(cluster.servers(), **cluster.options) as client:
        client.put_many("kept", [b"%d" % number for number in range(1000)])
    backup = cluster.folder / "saved" / "backup"
    named_by_time = cluster.folder / "by_time"
    cluster.playbook("backup.yml", "-e", f"sockpqd_backup_dir={named_by_time}")
    assert [file.stat().st_mode & 0o077 for file in named_by_time.iterdir()] == [0]
    cluster.playbook("backup.yml", "-e", f"sockpqd_backup_file={backup}")
    assert backup.stat().st_mode & 0o077 == 0
    run = cluster.playbook("restore.yml", "-e", f"sockpqd_backup_file={backup}", fails=True)
    assert "jobs, which would be gone" in " ".join(run.output.split())
    for name in cluster.names:
        cluster.ssh(name, "systemctl stop sockpqd; rm -rf /var/lib/sockpqd/*")
    cluster.playbook("site.yml")
    with Client(cluster.servers(), **cluster.options) as client:
        assert client.total("kept").jobs == 0
        cluster.playbook("restore.yml", "-e", f"sockpqd_backup_file={backup}")
        jobs = client.get_many(1001, "kept", expire=60)
        assert [job.data for job in jobs] == [b"%d" % number for number in range(1000)]
        client.done_many(jobs)
    shutil.rmtree(backup.parent)


def test_a_timer_makes_backups_on_each_host(cluster: Installed) -> None:
    variables = ("backup_schedule=03:00", "backup_keep=2", "backup_with_users=true")
    options = [word for variable in variables for word in ("-e", f"sockpqd_{variable}")]
    cluster.playbook("site.yml", *options)
    assert cluster.playbook("site.yml", *options).changed == 0
    name = cluster.names[0]
    cluster.ssh(name, "pqctl user set saved --rights put")
    assert "sockpqd-backup.timer" in cluster.ssh(name, "systemctl list-timers --no-pager")
    for _ in range(3):
        cluster.ssh(name, "systemctl start sockpqd-backup.service")
    files = cluster.ssh(name, "ls /var/backups/sockpqd").split()
    assert len(files) == 2
    told = cluster.ssh(name, f"pqctl verify /var/backups/sockpqd/{files[-1]}")
    assert "is good" in told
    assert "with 1 user" in told
    cluster.ssh(name, "pqctl user delete saved")
    cluster.playbook("site.yml")
    assert "sockpqd-backup" not in cluster.ssh(name, "systemctl list-timers --all --no-pager")


def test_losing_a_majority_step_by_step(cluster: Installed) -> None:
    """docs/LOSING_A_MAJORITY.md, as it is written there."""
    with Client(cluster.servers(), **cluster.options) as client:
        client.put_many("kept", [b"%d" % number for number in range(1000)])
    survivor, *lost = cluster.names
    for name in lost:
        cluster.machines[name].power_off()
    time.sleep(2)
    cluster.ssh(survivor, "pqctl backup /root", check=False)                # no server leads: nothing is saved
    assert cluster.ssh(survivor, "ls /root/sockpqd-*", check=False) == ""
    saved = json.loads(cluster.ssh(survivor, f"pqctl backup /root --node {survivor} --json"))
    assert "is good" in cluster.ssh(survivor, f"pqctl verify {saved['file']}")
    cluster.ssh(survivor, "systemctl stop sockpqd; mv /var/lib/sockpqd /var/lib/sockpqd.old")
    for name in lost:
        cluster.machines[name].power_on()
        cluster.ssh(name, "systemctl stop sockpqd; rm -rf /var/lib/sockpqd")
    cluster.playbook("site.yml")
    cluster.wait_until_well()
    assert "Nothing was done" in cluster.ssh(survivor, f"pqctl restore {saved['file']} --dry-run")
    cluster.ssh(survivor, f"pqctl restore {saved['file']} --yes")
    with Client(cluster.servers(), **cluster.options) as client:
        jobs = client.get_many(1001, "kept", expire=60)
        assert [job.data for job in jobs] == [b"%d" % number for number in range(1000)]
        client.done_many(jobs)
