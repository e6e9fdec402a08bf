"""Ports for nodes: free, and given to no other process while this one lives."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import deque
from collections.abc import Iterator

import pytest

from devcluster import ports
from devcluster.ports import BLOCK, LOWEST, OWN_MAX, free_ports

SHOW = "from devcluster.ports import free_ports; print(*free_ports(5), flush=True); input()"
ELSEWHERE = 60_000          # above the ports that are given out, so that nothing claims them


def blocks(found: list[int]) -> set[int]:
    return {(port - LOWEST) // BLOCK for port in found}


@pytest.fixture
def two_blocks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let there be only two blocks, of which this process has none yet."""
    monkeypatch.setattr(ports, "LOWEST", ELSEWHERE)
    monkeypatch.setattr(ports, "_highest", lambda: ELSEWHERE + 2 * BLOCK)
    for name, empty in (("_claims", {}), ("_unused", deque()), ("_used", deque())):
        monkeypatch.setattr(ports, name, empty)
    yield
    for claim in ports._claims.values():
        claim.close()


def test_they_are_different_and_free() -> None:
    assert len(set(free_ports(50))) == 50


def test_a_port_is_not_given_to_a_second_node_before_the_first_one_listens() -> None:
    found = [port for _ in range(OWN_MAX // 4) for port in free_ports(1)]
    assert len(set(found)) == len(found)


def test_another_process_is_given_others() -> None:
    own = blocks(free_ports(2 * BLOCK))
    with subprocess.Popen([sys.executable, "-c", SHOW], stdin=-1, stdout=-1, text=True) as other:
        assert other.stdout
        theirs = blocks([int(port) for port in other.stdout.readline().split()])
        assert theirs
        assert not theirs & own
        assert not theirs & blocks(free_ports(4 * BLOCK))


def test_a_forked_child_is_given_others() -> None:
    own = blocks(free_ports(1))
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, " ".join(map(str, free_ports(5))).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        theirs = blocks([int(port) for port in answer.read().split()])
    os.waitpid(child, 0)
    assert theirs
    assert not theirs & own


@pytest.mark.usefixtures("two_blocks")
def test_where_others_have_claimed_all_a_process_gets_along_with_its_own_and_without_any_there_is_an_error() -> None:
    assert {port for _ in range(3 * BLOCK) for port in free_ports(1)} <= set(range(ELSEWHERE, ELSEWHERE + 2 * BLOCK))
    assert len(ports._claims) == 2
    ports._unused.clear()
    ports._used.clear()
    with pytest.raises(OSError, match="have claimed all ports from 60000 to 60128"):
        free_ports(1)
