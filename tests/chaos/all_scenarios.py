"""All scenarios, and what a machine lacks to run each of them."""

from __future__ import annotations

from tests.chaos.machines import clocks, disks, faulty_disk, thin_disks
from tests.chaos.paged_scenarios import PAGED
from tests.chaos.scenarios import SCENARIOS, Scenario
from tests.chaos.torture_scenarios import TORTURE

ALL = (*SCENARIOS, *PAGED, *TORTURE)


def lacks(scenario: Scenario) -> str:
    """Return what this machine lacks to run the scenario; empty if it can be run."""
    if scenario.fake_clocks and clocks.library() is None:
        return "no libfaketime: install the package libfaketime"
    if scenario.disk_mb is not None and not disks.can_mount():
        return "a small disk needs root and mount"
    if scenario.faulty_disks and not faulty_disk.can_build():
        return "no cc: a C compiler builds the library that makes disks fail"
    if scenario.thin_disk_mb is not None and not thin_disks.can_mount():
        return "a disk without space needs root, mkfs.ext4 and loop devices"
    return ""
