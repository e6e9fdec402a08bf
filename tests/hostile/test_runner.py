"""The suite's own parts on real nodes: harmless attacks are held off, others are reported, and limits hold."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

import pytest

from tests.hostile import limits
from tests.hostile.arena import Arena
from tests.hostile.attack import Attack, Bounds
from tests.hostile.attacks import ATTACKS
from tests.hostile.runner import run

PATIENT = Bounds(p50_ms=5000, gap_s=60, back_s=30)      # what is measured here is not the machine


async def greet(arena: Arena) -> None:
    """Let twenty clients send PING now and then."""
    await arena.put_lists(["greeting"] * 3)
    await arena.besiege(20, opening=b"PING\r\n")
    arena.note("greeted")


async def end_one(arena: Arena) -> None:
    """End a node, though nobody should be able to do that."""
    await asyncio.to_thread(arena.cluster.kill, "n2")
    await asyncio.to_thread(arena.cluster.restart, "n2")


async def kill_one(arena: Arena) -> None:
    """End a node as part of the attack."""
    await asyncio.to_thread(arena.kill, "n2")
    await asyncio.to_thread(arena.cluster.restart, "n2")


async def lose(arena: Arena) -> None:
    """Take the ordinary client's jobs and finish them."""
    with arena.client() as client:
        until = asyncio.get_running_loop().time() + arena.seconds
        while asyncio.get_running_loop().time() < until:
            if (job := await asyncio.to_thread(client.get, "ordinary", expire=60)) is not None:
                await asyncio.to_thread(job.done)


def test_a_harmless_attack_is_held_off() -> None:
    outcome = run(Attack("greet", "", greet, seconds=0.5, descriptors=300, bounds=PATIENT))
    assert outcome.reasons == []
    assert outcome.held
    assert outcome.notes == ["greeted"]
    assert outcome.p50_ms is not None
    assert outcome.rss_before_bytes > 10 << 20
    assert outcome.rss_bytes >= outcome.rss_before_bytes


def test_a_node_that_ends_is_told_and_its_logs_are_kept(tmp_path: Path) -> None:
    outcome = run(Attack("end", "", end_one, bounds=PATIENT), tmp_path)
    assert [reason.partition(" with ")[0] for reason in outcome.reasons] == ["n2 ended"]
    assert "n2 ended" in (tmp_path / "end" / "result.txt").read_text()
    assert (tmp_path / "end" / "n2.log").stat().st_size


def test_a_node_that_the_attack_kills_is_no_reason() -> None:
    assert run(Attack("kill", "", kill_one, bounds=PATIENT)).held


def test_a_lost_job_is_told() -> None:
    outcome = run(Attack("lose", "", lose, seconds=1.0, bounds=PATIENT))
    assert len(outcome.reasons) == 1
    assert "jobs lost" in outcome.reasons[0]


def test_an_attack_that_cannot_be_made_is_left_out() -> None:
    outcome = run(Attack("far", "", greet, strangers=1))
    assert (outcome.held, outcome.left_out) == (False, "needs root and ip, for a network of its own")


def test_a_program_behind_the_wrapper_has_its_limits() -> None:
    if not limits.can_limit():
        pytest.skip("needs prlimit")
    command = [*limits.wrapper(100, 512, None), "/bin/sh", "-c", "ulimit -n; ulimit -v"]
    assert subprocess.run(command, capture_output=True, check=True).stdout.split() == [b"100", b"524288"]
    assert limits.wrapper(None, None, None) == []


def test_groups_limit_memory_and_are_removed() -> None:
    with limits.groups(["a", "b"], 64) as groups:
        if not groups:
            pytest.skip("no control groups can be made here")
        assert set(groups) == {"a", "b"}
        command = [*limits.wrapper(None, None, groups["a"]), "/bin/cat", "/proc/self/cgroup"]
        assert groups["a"].name.encode() in subprocess.run(command, capture_output=True, check=True).stdout
    assert not any(group.exists() for group in groups.values())


def test_every_attack_has_a_name_and_a_line_in_the_readme() -> None:
    names = [attack.name for attack in ATTACKS]
    assert len(set(names)) == len(names)
    lines = (Path(__file__).parent / "README.md").read_text("utf-8").splitlines()
    assert [line.split("`")[1] for line in lines if line.startswith("| `")] == names
