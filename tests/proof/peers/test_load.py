"""Tests for load.py with a system in memory: what its clients write down is what happened."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pytest

from tests.proof.peers.ledger import CONFIRMED, UNKNOWN, Findings, Ledger
from tests.proof.peers.load import Load
from tests.proof.peers.system import Hand, Lost, Server, System, Taken
from tests.waiting import eventually

SERVERS = [Server(name, name, Path(name), []) for name in ("n1", "n2", "n3")]
JOBS = 30


class InMemory(System):
    """A queue of this process, which forgets some jobs, gives some twice, and has a server that is down."""

    name = "in memory"

    def __init__(self, *, forgets: bool = False, doubles: bool = False, broken: bool = False) -> None:
        self.jobs: queue.Queue[str] = queue.Queue()
        self.count = 0
        self.lock = threading.Lock()
        self.forgets, self.doubles, self.broken = forgets, doubles, broken

    def version(self) -> str:
        return "0"

    def prepare(self, server: Server, servers: Sequence[Server]) -> None:
        raise NotImplementedError

    def command(self, server: Server) -> tuple[Sequence[str], Mapping[str, str]]:
        raise NotImplementedError

    def form(self, servers: Sequence[Server]) -> bool:
        return True

    def files(self, server: Server) -> Iterable[Path]:
        return []

    def is_level(self, hand: Hand) -> bool:
        return True

    def hand(self, server: Server) -> Hand:
        if server.name == "n2":
            raise Lost
        return InMemoryHand(self)


class InMemoryHand:
    """A connection to the system in memory."""

    def __init__(self, system: InMemory) -> None:
        self._system = system

    def put(self, job: str) -> None:
        system = self._system
        if system.broken:
            raise ValueError("a defect")
        with system.lock:
            system.count += 1
            number = system.count
        if not (system.forgets and number % 10 == 0):
            system.jobs.put(job)
        if number % 10 == 5:
            raise Lost

    def take(self, wait_s: float) -> Taken | None:
        try:
            return Taken(job := self._system.jobs.get(timeout=wait_s), job)
        except queue.Empty:
            return None

    def end(self, taken: Taken) -> None:
        system = self._system
        if system.doubles:
            system.doubles = False
            threading.Timer(0.2, system.jobs.put, [taken.job]).start()

    def left(self) -> int:
        return self._system.jobs.qsize()

    def close(self) -> None:
        pass


def played(system: InMemory) -> Ledger:
    """Return what clients wrote down until some jobs had been put and the queue was empty."""
    ledger = Ledger()
    with Load(system, SERVERS, ledger, empty_s=1.0) as load:
        eventually(lambda: len(ledger.puts) >= JOBS)
        assert load.drain(60)
    return ledger


def test_a_sound_system_is_not_accused() -> None:
    ledger = played(InMemory())
    assert ledger.outcomes()[CONFIRMED] > ledger.outcomes()[UNKNOWN] > 0
    assert {one.job for one in ledger.puts} == {one.job for one in ledger.deliveries}
    assert ledger.findings() == Findings([], [], [])


def test_forgotten_jobs_are_found() -> None:
    assert len(played(InMemory(forgets=True)).findings().lost) >= JOBS // 10 - 1


def test_a_job_that_comes_again_is_found() -> None:
    assert len(played(InMemory(doubles=True)).findings().doubled) == 1


def test_a_defect_of_this_program_is_no_outage() -> None:
    load = Load(InMemory(broken=True), SERVERS, Ledger())
    load.__enter__()
    assert not load.drain(600)
    with pytest.raises(ValueError, match="a defect"):
        load.__exit__(None, None, None)
