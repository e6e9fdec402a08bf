"""Three hosts for all tests of this folder. Where there can be none the tests are skipped, visibly.

A test finds a cluster that serves and leaves one behind; which hosts it has may change (`cluster.names`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.deploy.needs import missing

if TYPE_CHECKING:
    from tests.deploy.installed import Installed

MISSING = "no containers"
NEEDY = {"ansible", "cluster", "pair", "regions"}
HINT = "deploy tests skipped: {} need {}"


@pytest.fixture(scope="session")
def cluster() -> Iterator[Installed]:
    """A cluster that site.yml made of bare hosts."""
    from tests.deploy.installed import Installed  # needs what is not there where the tests are skipped

    with Installed() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def ansible() -> None:
    """Skip the test unless Ansible is installed. For tests that need no hosts."""


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skipped here and not by the fixture, pytest puts them all into one line."""
    if NEEDY.intersection(getattr(item, "fixturenames", ())) and missing():
        pytest.skip(MISSING)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    """One line at the end, however many they are."""
    yield
    skipped = [report for report in terminalreporter.stats.get("skipped", ()) if MISSING in str(report.longrepr)]
    if skipped:
        terminalreporter.write_line(HINT.format(len(skipped), missing()), yellow=True)
