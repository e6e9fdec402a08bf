"""The memory that a node may use, as the system reports it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sockpqd.gateway.process.memory_limit import hot_complaint, memory_mark_bytes

PHYSICAL = os.sysconf("SC_PAGESIZE") * os.sysconf("SC_PHYS_PAGES")
MIB = 1 << 20


def system(root: Path, cgroup: str, files: dict[str, str]) -> Path:
    """Return a system that reports this."""
    for name, text in {"proc/self/cgroup": cgroup, **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.mark.parametrize(
    ("cgroup", "files", "limit"),
    [
        ("0::/a/b\n", {"sys/fs/cgroup/a/b/memory.max": f"{100 * MIB}\n"}, 100 * MIB),
        ("0::/a/b\n", {"sys/fs/cgroup/a/memory.max": f"{50 * MIB}\n", "sys/fs/cgroup/a/b/memory.max": "max\n"},
         50 * MIB),
        ("0::/\n", {"sys/fs/cgroup/memory.max": f"{70 * MIB}\n"}, 70 * MIB),
        ("0::/of/the/host\n", {"sys/fs/cgroup/memory.max": f"{60 * MIB}\n"}, 60 * MIB),
        ("5:cpu,memory:/a\n0::/\n", {"sys/fs/cgroup/memory/a/memory.limit_in_bytes": f"{40 * MIB}\n"}, 40 * MIB),
        ("5:memory:/a\n", {"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "9223372036854771712\n"}, PHYSICAL),
        ("0::/\n", {}, PHYSICAL),
        ("0::/a\n", {"sys/fs/cgroup/a/memory.max": "nonsense\n"}, PHYSICAL),
    ],
)
def test_the_mark_is_a_share_of_the_least_that_there_is(
    cgroup: str, files: dict[str, str], limit: int, tmp_path: Path,
) -> None:
    assert memory_mark_bytes(0, system(tmp_path, cgroup, files)) == limit * 45 // 100


def test_without_proc_it_is_a_share_of_the_physical_memory(tmp_path: Path) -> None:
    assert memory_mark_bytes(0, tmp_path) == PHYSICAL * 45 // 100


def test_what_is_configured_goes_first(tmp_path: Path) -> None:
    assert memory_mark_bytes(5, system(tmp_path, "0::/\n", {"sys/fs/cgroup/memory.max": "1000"})) == 5


def test_a_budget_that_leaves_too_little_below_the_mark_is_told() -> None:
    assert hot_complaint(0, 1000) == hot_complaint(600, 1000) == ""
    assert "limits.hot_bytes (601) is more than 60% of the memory mark (1000)" in hot_complaint(601, 1000)
