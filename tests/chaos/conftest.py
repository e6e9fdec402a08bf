"""Tests that need toxiproxy-server name the fixture `toxiproxy_server`; without it they are skipped, visibly."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

MISSING = "no toxiproxy-server"
HINT = "chaos tests skipped: {} need toxiproxy-server 2.x on PATH, or Go 1.23, with which `make toxiproxy` builds it"


@pytest.fixture(scope="session")
def toxiproxy_server() -> None:
    """Skip the test unless the program is installed."""


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip here and not in the fixture, so that pytest puts all of them into one line."""
    if "toxiproxy_server" in getattr(item, "fixturenames", ()):
        # Here, as few tests need it and all would wait for what it imports.
        from tests.chaos.proxies.proxies import program
        if program() is None:
            pytest.skip(MISSING)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    """Print one line at the end, however many were skipped."""
    yield
    skipped = [report for report in terminalreporter.stats.get("skipped", ()) if MISSING in str(report.longrepr)]
    if skipped:
        terminalreporter.write_line(HINT.format(len(skipped)), yellow=True)
