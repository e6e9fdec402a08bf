"""Tests that need containers name the fixture `cluster`; where there can be none they are skipped, visibly."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.deploy.needs import missing

MISSING = "no containers"
HINT = "deploy tests skipped: {} need {}"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skipped here and not by the fixture, pytest puts them all into one line."""
    if "cluster" in getattr(item, "fixturenames", ()) and missing():
        pytest.skip(MISSING)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    """One line at the end, however many they are."""
    yield
    skipped = [report for report in terminalreporter.stats.get("skipped", ()) if MISSING in str(report.longrepr)]
    if skipped:
        terminalreporter.write_line(HINT.format(len(skipped), missing()), yellow=True)
