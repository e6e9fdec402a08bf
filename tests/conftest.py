"""Which tests start processes, which take long, and what `pytest --fast` does to them.

    pytest -m "not processes"               # everything in this process: the lane that computes (tests/lanes.py)
    pytest -m "not processes and not long" --fast

`--fast` gives tests of hypothesis a tenth of their examples, and lets no test start a process.
"""

from __future__ import annotations

import sys
import unittest
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import is_hypothesis_test, settings

ROOT = Path(__file__).parent

# Folders and files whose tests start processes, most of them whole clusters.
PROCESSES = (
    "bench", "chaos/test_clocks.py", "chaos/test_faults.py", "chaos/test_proxies.py", "chaos/test_scenarios.py",
    "deploy", "hostile/test_runner.py", "system", "upgrade",
    "client/test_against_sockpqd.py", "client/test_examples.py", "client/test_jobs_in_time.py",
    "client/test_leader_kills.py", "client/test_old_client.py", "client/test_testing.py",
    "core/laws/test_hash_seed.py",
    "gateway/process/test_logs.py", "gateway/process/test_restarts.py", "gateway/process/test_systemd.py",
    "gateway/server/test_half_open.py", "gateway/test_daemon.py", "gateway/test_dev_cluster.py",
    "gateway/test_users_of_a_node.py",
    "pqctl/test_bench.py", "pqctl/test_doctor.py", "pqctl/test_hash.py", "pqctl/test_jobs.py", "pqctl/test_node.py",
    "pqctl/test_queues.py", "pqctl/test_sessions.py", "pqctl/test_signals.py", "pqctl/test_snapshots.py",
    "pqctl/test_status.py", "pqctl/test_streams.py", "pqctl/test_terminal.py", "pqctl/test_usage.py",
    "worker/program/test_pqworker.py",
    "test_lanes.py",
)
# Folders and files whose tests take long without any process.
LONG = (
    "chaos/test_checker_mutants.py", "chaos/test_checker_speed.py",
    "cluster/test_journal_tears.py", "cluster/test_limits_of_commands.py", "cluster/test_random_faults.py",
    "cluster/test_real_files.py",
    "sim/test_cures.py", "sim/test_digest.py", "sim/test_faults.py", "sim/test_repeatable.py", "sim/test_scenarios.py",
    "sim/test_seeds.py",
)

EXAMPLES_SHARE = 10         # with --fast hypothesis draws one example of so many, and no fewer than so many
EXAMPLES_MIN = 10

_forbidding = False         # processes, at present


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --fast."""
    parser.addoption("--fast", action="store_true", help="small budgets for tests with random input, and no processes")


def pytest_configure(config: pytest.Config) -> None:
    """Refuse lists that have become wrong; watch for processes that are started."""
    check_lists()
    if config.getoption("--fast"):
        sys.addaudithook(_forbid_processes)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add the markers."""
    for item in items:
        place = item.path.relative_to(ROOT).as_posix() if item.path.is_relative_to(ROOT) else ""
        if _listed(place, PROCESSES):
            item.add_marker(pytest.mark.processes)
        if _listed(place, LONG):
            item.add_marker(pytest.mark.long)
    if config.getoption("--fast"):
        draw_less(_laws(items))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """With --fast: no process from here to the end of the test."""
    global _forbidding
    _forbidding = item.get_closest_marker("processes") is None
    try:
        return (yield)
    finally:
        _forbidding = False


def check_lists() -> None:
    """Raise pytest.UsageError when a file that is listed is not there: its tests would be in the wrong lane."""
    missing = [place for place in (*PROCESSES, *LONG) if not (ROOT / place).exists()]
    if missing:
        raise pytest.UsageError(f"listed in tests/conftest.py, and not there: {', '.join(missing)}")


def draw_less(tests: Iterable[Any]) -> None:
    """Let these draw fewer examples: functions under @given, and test cases of state machines."""
    for test in tests:
        if isinstance(test, type):
            test.settings = _less(test.settings)
        else:       # there is no public way: what a decorator says goes before any profile
            test._hypothesis_internal_use_settings = _less(test._hypothesis_internal_use_settings)


def _laws(items: Iterable[Any]) -> set[Any]:
    """What of hypothesis is behind the items, each once."""
    laws: set[Any] = set()
    for item in items:
        if issubclass(getattr(item, "cls", None) or object, unittest.TestCase):
            laws.add(item.cls)
        elif is_hypothesis_test(getattr(item, "obj", None)):
            laws.add(item.obj)
    return laws


def _less(budget: settings) -> settings:
    return settings(budget, max_examples=max(EXAMPLES_MIN, budget.max_examples // EXAMPLES_SHARE))


def _listed(place: str, places: tuple[str, ...]) -> bool:
    return any(place == one or place.startswith(f"{one}/") for one in places)


def _forbid_processes(event: str, arguments: Any) -> None:
    if _forbidding and event == "subprocess.Popen":
        raise RuntimeError(f"a process, {arguments[0]}, in a test whose file is not in PROCESSES of tests/conftest.py")
